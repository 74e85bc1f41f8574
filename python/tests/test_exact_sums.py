"""ExactSums, and the functions that make it."""

import copy
import math
import operator
import pickle
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import warpfold as wf
from hypothesis import given
from hypothesis import strategies as st

from support import BFLOAT16, FLOATS, arrays, base_arrays, norm_of, round_fraction, same, sum_of

FUNCTIONS = [wf.exact_sums, wf.exact_sums_of_squares]


def reference(function, x, axes, keepdims):
    """A function of the elements of each output, by a loop."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    reduced = math.prod(x.shape[axis] for axis in axes)
    moved = x.transpose([*kept, *axes]).reshape([math.prod(shape), reduced])
    results = np.array([function(row) for row in moved], function(x[:0]).dtype)
    return results.reshape([1 if axis in axes else x.shape[axis] for axis in range(x.ndim)] if keepdims else shape)


def subsets(data, ndim):
    return tuple(axis for axis in range(ndim) if data.draw(st.booleans()))


@given(arrays(FLOATS, min_dims=1), st.booleans(), st.sampled_from(FLOATS), st.data())
def test_each_sum_is_exact_and_rounded_once(x, keepdims, dtype, data):
    axes = subsets(data, x.ndim)
    arguments = {"axis": axes, "keepdims": keepdims}
    sums, squares = wf.exact_sums(x, **arguments), wf.exact_sums_of_squares(x, **arguments)
    assert same(np.asarray(sums.values(dtype)), reference(lambda row: sum_of(row, dtype), x, axes, keepdims))
    assert same(np.asarray(squares.norms(dtype)), reference(lambda row: norm_of(row, dtype), x, axes, keepdims))
    wide = np.dtype("float64")
    expected = reference(lambda row: sum_of(row, wide, lambda value: value * value), x, axes, keepdims)
    assert same(np.asarray(squares.values(wide)), expected)
    for found, function in (
        (sums.values(), wf.sum),
        (sums.means(), wf.mean),
        (squares.norms(), wf.vector_norm),
        (squares.values(), wf.sum_of_squares),
    ):
        expected = function(x, **arguments)
        assert same(found, expected) and type(found) is type(expected)
    for s, kind in ((sums, "sum"), (squares, "sum_of_squares")):
        assert (s.shape, s.dtype, s.kind) == (np.any(x, **arguments).shape, x.dtype.name, kind)
        count = math.prod(x.shape[axis] for axis in axes)
        assert same(s.counts(), np.full(s.shape, count, "int64")[()])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_means_are_rounded_once(dtype):
    s = wf.exact_sums(np.array([[1, 2, 4], [0, 0, 1]], dtype), axis=1)
    for to in FLOATS:
        assert same(s.means(to), np.array([round_fraction(Fraction(n, 3), to) for n in (7, 1)], to))


@given(
    st.sampled_from(FLOATS).flatmap(lambda dtype: base_arrays(dtype, (24, 3))),
    st.sampled_from(FUNCTIONS),
    st.data(),
)
def test_sums_merged_in_any_tree_are_those_of_the_whole(x, function, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(x)), max_size=5)))
    parts = [function(part, axis=0) for part in np.split(x, cuts)]
    while len(parts) > 1:
        first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        way = data.draw(st.integers(0, 2))
        if way == 0:
            merged = first + second
        elif way == 1:
            merged = pickle.loads(pickle.dumps(first))
            merged.merge(wf.ExactSums.from_bytes(bytes(second)))
        else:
            merged = sum([first, second])
        parts.append(merged)
    whole = function(x, axis=0)
    assert parts[0] == whole and not parts[0] != whole
    assert bytes(parts[0]) == bytes(whole)
    # The states are those of single sums.
    single = wf.ExactSum if function is wf.exact_sums else wf.ExactSumOfSquares
    assert bytes(whole)[16:-4] == b"".join(bytes(single(column)) for column in x.T)


def test_counts_of_merged_sums_differ_from_each_other():
    # One sum of each is known by its bytes alone.
    s = wf.exact_sums(np.ones((2, 3)), axis=1)
    other = bytearray(bytes(wf.exact_sums(np.ones((2, 1)), axis=1)))
    other[16 + 292 :] = bytes(wf.ExactSum(np.ones(5))) + bytes(4)
    other[-4:] = zlib.crc32(other[:-4]).to_bytes(4, "little")
    s.merge(wf.ExactSums.from_bytes(bytes(other)))
    assert same(s.counts(), np.array([4, 8]))
    assert same(s.values(), np.array([4.0, 8.0]))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_arrays_without_elements_or_without_sums(function, shape):
    s = function(np.empty(shape), axis=0)
    assert s == pickle.loads(pickle.dumps(s)) == s + s
    assert same(s.values(), np.zeros(shape[1])) and same(s.counts(), np.zeros(shape[1], "int64"))
    assert same(function(np.empty(shape)).values(), np.float64(0.0))
    if function is wf.exact_sums:
        assert same(s.means(), np.full(shape[1], np.nan))


def test_results_can_be_written():
    values = wf.exact_sums(np.ones((2, 3)), axis=0).values()
    values += 1
    assert values.tolist() == [3.0, 3.0, 3.0] and values.flags.c_contiguous


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_copy_is_independent(function):
    s = function(np.ones((2, 3)), axis=1)
    before = bytes(s)
    for other in (copy.copy(s), copy.deepcopy(s), s + 0, 0 + s):
        assert other == s
        other.merge(other)
        assert other != s and other.counts().tolist() == [6, 6]
    assert bytes(s) == before
    assert s != 1 and not s == "s"
    assert s != function(np.ones((1, 2, 3)), axis=2) and s != function(np.ones((2, 3), "float32"), axis=1)
    with pytest.raises(TypeError):
        operator.lt(s, s)
    with pytest.raises(TypeError, match="unhashable"):
        hash(s)


def test_what_is_merged_must_agree():
    s = wf.exact_sums(np.ones((2, 3)), axis=0)
    before = bytes(s)
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2,\)"):
        s.merge(wf.exact_sums(np.ones((2, 3)), axis=1))
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(1, 3\)"):
        s + wf.exact_sums(np.ones((2, 3)), axis=0, keepdims=True)
    with pytest.raises(TypeError, match="float64 and of float32"):
        s.merge(wf.exact_sums(np.ones((2, 3), "float32"), axis=0))
    with pytest.raises(TypeError, match='"sum" and "sum_of_squares"'):
        s.merge(wf.exact_sums_of_squares(np.ones((2, 3)), axis=0))
    for other in (1, "s", np.ones(3), wf.ExactSum()):
        with pytest.raises(TypeError, match="only another ExactSums"):
            s + other
    with pytest.raises(TypeError):
        s.merge(wf.ExactSum())
    with pytest.raises(ValueError, match="2\\^50"):
        for _ in range(51):
            s.merge(s)
    assert s.counts().tolist() == [2**50] * 3 and s.values().tolist() == [2.0**50] * 3
    assert bytes(wf.exact_sums(np.ones((2, 3)), axis=0)) == before


def test_bad_arguments():
    for dtype, remedy in (("int32", "astype"), ("complex64", "real")):
        for function in FUNCTIONS:
            with pytest.raises(TypeError, match=remedy):
                function(np.ones(3, dtype))
    for function in FUNCTIONS:
        with pytest.raises(TypeError, match="asarray"):
            function([1.0, 2.0])
        with pytest.raises(ValueError, match="axis 2"):
            function(np.ones((2, 3)), axis=2)
        with pytest.raises(ValueError, match="2\\^50"):
            function(np.broadcast_to(np.float32(1), (2**51,)))
        with pytest.raises(TypeError, match="rounded to"):
            function(np.ones(3)).values("int64")
    with pytest.raises(TypeError, match="wf.exact_sums_of_squares"):
        wf.exact_sums(np.ones(3)).norms()
    with pytest.raises(TypeError, match="wf.exact_sums"):
        wf.exact_sums_of_squares(np.ones(3)).means()
    with pytest.raises(MemoryError):
        wf.exact_sums(np.broadcast_to(np.float32(1), (2**45,)), axis=())
    with pytest.raises(TypeError):
        wf.ExactSums()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_damaged_bytes_are_refused(function):
    good = bytes(function(np.arange(6.0, dtype="float32").reshape(2, 3), axis=1, keepdims=True))
    for length in range(len(good)):
        with pytest.raises(ValueError, match="cut off"):
            wf.ExactSums.from_bytes(good[:length])
    for at in range(len(good)):
        for bit in (0, 3, 7):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            with pytest.raises(ValueError, match="no ExactSums"):
                wf.ExactSums.from_bytes(bytes(bad))
    with pytest.raises(ValueError, match="1 bytes follow"):
        wf.ExactSums.from_bytes(good + b"x")


def sealed(content):
    return bytes(content) + zlib.crc32(content).to_bytes(4, "little")


def test_bytes_of_another_version_or_kind_are_refused():
    good = bytes(wf.exact_sums(np.ones(3)))[:-4]
    assert wf.ExactSums.from_bytes(sealed(good)) == wf.exact_sums(np.ones(3))

    def refused(match, at, *values):
        bad = bytearray(good)
        bad[at : at + len(values)] = values
        with pytest.raises(ValueError, match=match):
            wf.ExactSums.from_bytes(sealed(bad))

    refused("version 2, and this package reads version 1", 4, 2)
    for code in (0, 5, 15, 32, 255):
        refused("altered", 5, code)
    refused("altered", 5, 3)
    refused("cut off", 5, 20)
    # A state of another type, of the same size.
    of_single = bytearray(bytes(wf.exact_sums(np.ones(3, "float32"))))[:-4]
    of_single[5] = 1
    with pytest.raises(ValueError, match="an exact sum of f32, expected one of f16"):
        wf.ExactSums.from_bytes(sealed(of_single))
    refused("altered|cut off", 6, 33)
    refused("version 2: this program", 8 + 4, 2)
    with pytest.raises(ValueError, match="xsms"):
        wf.ExactSums.from_bytes(bytes(wf.ExactSum(np.ones(3))))
    with pytest.raises(ValueError, match="cut off"):
        wf.ExactSums.from_bytes(b"")
    huge = bytearray(bytes(wf.exact_sums(np.ones((1, 0)), axis=0))[:-4])
    for extents in ((2**63,), (2**32, 2**32), (2**32, 2**31, 0), (2**64 - 1, 2)):
        content = huge[:6] + bytes([len(extents), 0]) + b"".join(extent.to_bytes(8, "little") for extent in extents)
        with pytest.raises(ValueError):
            wf.ExactSums.from_bytes(sealed(content))


def test_bytes_at_any_address():
    s = wf.exact_sums(np.arange(20.0).reshape(4, 5), axis=0)
    data = bytes(s)
    for offset in range(1, 9):
        memory = bytearray(offset) + data
        assert wf.ExactSums.from_bytes(memoryview(memory)[offset:]) == s
        assert wf.ExactSums.from_bytes(np.frombuffer(memory, np.uint8)[offset:]) == s
    for other in ("xsms", 3, None, np.zeros(9), memoryview(bytearray(data))[::2]):
        with pytest.raises(TypeError, match="bytes"):
            wf.ExactSums.from_bytes(other)


def test_threads_and_layouts_give_the_same_bytes():
    # More elements than one thread takes.
    x = np.random.default_rng(1).standard_normal((540, 500)) * 2.0 ** (np.arange(500) % 90)
    unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    unaligned[...] = x
    before = wf.get_num_threads()
    expected = {}
    for threads in (1, 2, 7):
        wf.set_num_threads(threads)
        for view in (x, np.asfortranarray(x), unaligned, x[::-1, ::-1][::-1, ::-1]):
            for axis in (None, 0, 1):
                states = [bytes(function(view, axis=axis)) for function in FUNCTIONS]
                assert expected.setdefault(axis, states) == states
    wf.set_num_threads(before)
    assert expected[None][0][8:-4] == bytes(wf.ExactSum(x))


def test_several_threads_merge_into_each_other():
    x = np.random.default_rng(2).standard_normal((200, 50))
    total = wf.exact_sums(x[:0], axis=0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: total.merge(wf.exact_sums(part, axis=0)), np.array_split(x, 40)))
    assert total == wf.exact_sums(x, axis=0)
    # Two threads that lock both sums, in either order, do not wait for each other.
    a, b = wf.exact_sums(x[:0], axis=0), wf.exact_sums(x[:0], axis=0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda turn: a.merge(b) if turn % 2 else b.merge(a), range(2000)))
    assert a == b


def test_the_size_in_memory_and_as_bytes():
    for dtype, sizes, of_squares in (
        ("float64", (568, 292), (1088, 552)),
        ("float32", (112, 64), (176, 96)),
        ("float16", (112, 64), (176, 96)),
    ):
        for function, (in_memory, as_bytes) in zip(FUNCTIONS, (sizes, of_squares), strict=True):
            s = function(np.ones((1000, 2), dtype), axis=1)
            assert len(bytes(s)) == 8 + 8 + 1000 * as_bytes + 4
            assert 0 <= sys.getsizeof(s) - 1000 * in_memory < 200


def test_a_repr_shows_what_it_is():
    s = wf.exact_sums_of_squares(np.ones((2, 3), BFLOAT16), axis=0)
    assert repr(s) == '<ExactSums of shape (3,), kind "sum_of_squares", bfloat16>'
