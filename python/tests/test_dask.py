"""warpfold.dask: the same bits for any chunks."""

import hashlib
import math
import subprocess
import sys
from fractions import Fraction

import dask
import dask.array as da
import numpy as np
import pytest
import warpfold as wf
import warpfold.dask
from hypothesis import given, settings
from hypothesis import strategies as st

from support import FLOATS, INTEGERS, arrays, norm_of, round_fraction, same, sum_of
from test_docs import run

FLOAT64 = np.dtype("float64")
# Each function with the one of arrays in memory that it equals.
PAIRS = [(warpfold.dask.sum, wf.sum), (warpfold.dask.mean, wf.mean), (warpfold.dask.norm, wf.vector_norm)]


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@st.composite
def chunks(draw, extent):
    """Any chunks of an axis, also empty ones."""
    cuts = sorted(draw(st.lists(st.integers(0, extent), max_size=5)))
    return tuple(end - start for start, end in zip([0, *cuts], [*cuts, extent], strict=True))


def check(result, expected):
    """Compares a result with that of the whole, and with what Dask says of it before it is computed."""
    assert isinstance(result, da.Array)
    computed = result.compute()
    assert same(computed, expected)
    assert result.dtype == computed.dtype and result.ndim == np.ndim(computed)
    assert result._meta.dtype == computed.dtype and result._meta.ndim == np.ndim(computed)
    if not any(math.isnan(extent) for extent in result.shape):
        assert result.shape == np.shape(computed)


@given(arrays(FLOATS, min_dims=1, max_dims=3), st.booleans(), st.sampled_from(PAIRS), st.data())
def test_results_are_those_of_the_whole(x, keepdims, pair, data):
    a = da.from_array(x, chunks=tuple(data.draw(chunks(extent)) for extent in x.shape))
    axis = data.draw(
        st.one_of(
            st.none(),
            st.integers(-x.ndim, x.ndim - 1),
            st.lists(st.integers(0, x.ndim - 1), unique=True).map(tuple),
        )
    )
    split_every = data.draw(st.one_of(st.none(), st.integers(2, 9), st.just({0: 3, 1: 2})))
    check(
        pair[0](a, axis=axis, keepdims=keepdims, split_every=split_every), pair[1](x, axis=axis, keepdims=keepdims)
    )


@settings(max_examples=40)
@given(arrays(FLOATS, min_dims=1, max_dims=2, max_side=9), st.data())
def test_results_are_exact_and_rounded_once(x, data):
    a = da.from_array(x, chunks=tuple(data.draw(chunks(extent)) for extent in x.shape))
    assert same(warpfold.dask.sum(a).compute(), sum_of(x, x.dtype))
    assert same(warpfold.dask.norm(a).compute(), norm_of(x, x.dtype))
    for dtype in FLOATS:
        if dtype.itemsize > x.dtype.itemsize:
            check(warpfold.dask.sum(a, dtype=dtype), sum_of(x, dtype))


def hashed(results):
    return hashlib.sha256(b"".join(np.asarray(result).tobytes() for result in results)).hexdigest()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_one_hash_over_all_chunkings(dtype):
    source = np.random.default_rng(5)
    width = {2: 8, 4: 60, 8: 500}[dtype.itemsize]
    x = (source.standard_normal(4000) * 2.0 ** source.integers(-width, width, 4000)).astype(dtype)
    x = np.concatenate([x, -x[::-1], x[:701]])
    hashes, sums_of_dask = set(), set()
    for blocks in (1, 2, 3, 4, 5, 7, 16, 25, 64, 125, 343, 700) if dtype == FLOAT64 else (1, 2, 19, 700):
        cuts = np.sort(source.choice(len(x) - 1, blocks - 1, replace=False)) + 1
        a = da.from_array(x, chunks=(tuple(np.diff([0, *cuts, len(x)]).tolist()),))
        assert a.numblocks == (blocks,)
        split_every = [None, 2, 5, 16, blocks][blocks % 5]
        split_every = split_every if split_every is None else max(split_every, 2)
        hashes.add(hashed(da.compute(*(function(a, split_every=split_every) for function, _ in PAIRS))))
        sums_of_dask.add(float(a.sum().compute()))
    assert hashes == {hashed([sum_of(x, dtype), round_mean(x, dtype), norm_of(x, dtype)])}
    if dtype == FLOAT64:
        assert warpfold.dask.sum(a).compute() == math.fsum(x)
    # The sums of Dask show that the order matters for these elements.
    assert len(sums_of_dask) > 1


def round_mean(x, dtype):
    return round_fraction(sum(Fraction(float(value)) for value in x) / len(x), dtype)


@pytest.mark.parametrize("split_every", [2, 3, 7, 400, {0: 2, 1: 5, 2: 2}])
def test_trees_along_several_axes(split_every):
    x = np.random.default_rng(6).standard_normal((7, 9, 5)) * 2.0 ** np.arange(7 * 5).reshape(7, 1, 5)
    a = da.from_array(x, chunks=(1, 3, 2))
    for axis in (None, 0, (0, 2), (1, 2)):
        for function, of_whole in PAIRS:
            check(function(a, axis=axis, split_every=split_every), of_whole(x, axis=axis))


def test_chunks_of_unknown_sizes():
    x = np.random.default_rng(7).standard_normal((50, 6))
    a = da.from_array(x, chunks=(9, 4))
    rows, y = a[a[:, 0] > 0], x[x[:, 0] > 0]
    assert math.isnan(rows.shape[0])
    for function, of_whole in PAIRS:
        for axis in (None, 0, 1, (0, 1)):
            for keepdims in (False, True):
                check(function(rows, axis=axis, keepdims=keepdims), of_whole(y, axis=axis, keepdims=keepdims))
        kept = function(rows, axis=1)
        assert math.isnan(kept.shape[0]) and kept.numblocks == (6,)
        # Blocks without elements, and none at all.
        check(function(a[a > 100]), of_whole(x[x > 100]))


@settings(max_examples=40)
@given(arrays([*INTEGERS, np.dtype("bool")], min_dims=1, max_dims=2), st.data())
def test_integers(x, data):
    a = da.from_array(x, chunks=tuple(data.draw(chunks(extent)) for extent in x.shape))
    axis = data.draw(st.sampled_from([None, 0, -1]))
    check(warpfold.dask.sum(a, axis=axis), wf.sum(x, axis=axis))
    check(warpfold.dask.mean(a, axis=axis), wf.mean(x, axis=axis))
    dtype = data.draw(st.sampled_from(["int16", "uint64", "float64", "float32"]))
    check(warpfold.dask.sum(a, axis=axis, dtype=dtype), wf.sum(x, axis=axis, dtype=dtype))
    if x.dtype.kind == "b":
        with pytest.raises(TypeError, match="vector_norm"):
            warpfold.dask.norm(a)
    elif x.dtype.itemsize < 8:
        check(warpfold.dask.norm(a, axis=axis), wf.vector_norm(x, axis=axis))
    else:
        check(warpfold.dask.norm(a.rechunk(-1), axis=axis), wf.vector_norm(x, axis=axis))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_means_of_integers_beyond_2_to_the_53(dtype):
    info = np.iinfo(dtype)
    for x in ([info.max, info.max - 1, info.min + 3], [info.max] * 3, [2**53 + 1], [2**62 + 1, 2**62 + 2]):
        found = warpfold.dask.mean(da.from_array(np.array([*x, 0], dtype), chunks=1)).compute()
        assert same(found, round_fraction(Fraction(sum(x), len(x) + 1), FLOAT64))


def test_norms_of_64_bit_integers_need_one_chunk():
    a = da.ones((4, 6), chunks=(2, 6), dtype="int64")
    check(warpfold.dask.norm(a, axis=1), np.full(4, math.sqrt(6)))
    with pytest.raises(TypeError, match=r"a.rechunk\(\{0: -1\}\)"):
        warpfold.dask.norm(a, axis=0)


def test_there_are_no_states_where_the_reduced_axes_are_in_one_chunk(monkeypatch):
    x = np.random.default_rng(8).standard_normal((20, 30))
    a = da.from_array(x, chunks=(3, 30))
    for name in ("exact_sums", "exact_sums_of_squares"):
        monkeypatch.delattr(warpfold.dask.wf, name)
    for function, of_whole in PAIRS:
        for keepdims in (False, True):
            result = function(a, axis=1, keepdims=keepdims)
            check(result, of_whole(x, axis=1, keepdims=keepdims))
            assert result.chunks[0] == a.chunks[0]
        check(function(a, axis=()), of_whole(x, axis=()))
        check(function(a.rechunk(-1)), of_whole(x))
        check(function(a[0, 0]), of_whole(x[0, 0, None]))
        with pytest.raises(AttributeError):
            function(a).compute()


def test_a_merge_leaves_its_parts_as_they_are():
    # Dask keeps the states that several tasks use, and those of tasks that it may run again.
    x = np.random.default_rng(9).standard_normal((40, 3))
    parts = [wf.exact_sums(part, axis=0) for part in np.split(x, 4)]
    before = [bytes(part) for part in parts]
    for _ in range(2):
        assert warpfold.dask._merged([[parts[0], parts[1]], [parts[2], parts[3]]]) == wf.exact_sums(x, axis=0)
        assert [bytes(part) for part in parts] == before


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        raise AssertionError

    a = da.ones((4, 4), chunks=2).map_blocks(fail, dtype="float64", meta=np.empty((0, 0)))
    for function, _ in PAIRS:
        result = function(a, axis=0)
        assert result.shape == (4,) and result.dtype == "float64"
        with pytest.raises(AssertionError):
            result.compute()


def test_a_result_is_a_key_of_its_arguments():
    a = da.ones(8, chunks=2)
    for function, _ in PAIRS:
        assert function(a).name == function(a).name != function(a, keepdims=True).name
    assert warpfold.dask.sum(a).name != warpfold.dask.mean(a).name
    float32 = a.astype("float32")
    assert warpfold.dask.sum(float32).name != warpfold.dask.sum(float32, dtype="float64").name


def test_errors_are_raised_before_anything_is_computed():
    a = da.ones((4, 6), chunks=2)
    for function, of_whole in PAIRS:
        with pytest.raises(TypeError, match="x.real"):
            function(a.astype("complex64"))
        with pytest.raises(TypeError, match="from_array"):
            function(np.ones(3))
        with pytest.raises(TypeError, match="MaskedArray"):
            function(da.ma.masked_equal(a, 0))
        with pytest.raises(TypeError):
            function(a.astype(object))
        with pytest.raises(ValueError, match="axis 2 of an array with 2 axes"):
            function(a, axis=2)
        with pytest.raises(ValueError, match="axis 1 is named twice"):
            function(a, axis=(1, -1))
        with pytest.raises(TypeError):
            function(a, axis=0.5)
        for split_every in (1, -3, {0: 1}):
            with pytest.raises(ValueError, match="at least 2"):
                function(a, split_every=split_every)
    for dtype in ("float32", "complex128", "int32"):
        with pytest.raises(TypeError, match="results of"):
            warpfold.dask.sum(a, dtype=dtype)


@settings(max_examples=20)
@given(arrays(FLOATS, min_dims=1, max_dims=2))
def test_blocks_are_read_where_they_lie(x):
    # Blocks of any layout, unaligned and read-only, as they arrive from other processes.
    block = np.frombuffer(bytearray(1) + np.ascontiguousarray(x).tobytes(), np.uint8)[1:].view(x.dtype)
    block = block.reshape(x.shape)
    block.flags.writeable = False
    a = da.concatenate([da.from_array(block, chunks=-1), da.from_array(x, chunks=-1)])
    check(warpfold.dask.sum(a, axis=0), wf.sum(np.concatenate([block, x]), axis=0))


@pytest.mark.parametrize("item", [warpfold.dask, warpfold.dask.sum, warpfold.dask.mean, warpfold.dask.norm])
def test_the_examples_in_the_docs(item):
    assert run(item.__doc__, item.__name__) >= 2


def test_the_module_says_what_is_missing():
    script = """
import sys, warpfold
assert "dask" not in sys.modules
sys.modules["dask"] = None
try:
    import warpfold.dask
except ImportError as error:
    print(error)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed == "warpfold.dask needs Dask: install the package dask[array]\n"
