"""ExactSum, ExactDot and ExactSumOfSquares."""

import copy
import math
import operator
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import warpfold as wf
from hypothesis import given
from hypothesis import strategies as st

from support import BFLOAT16, FLOATS, arrays, base_arrays, norm_of, round_fraction, same, sum_of

CLASSES = [wf.ExactSum, wf.ExactDot, wf.ExactSumOfSquares]


def state_of(kind, x):
    return kind(x, x) if kind is wf.ExactDot else kind(x)


@given(arrays(FLOATS))
def test_a_sum_is_the_exact_sum_of_any_array_rounded_once(x):
    s = wf.ExactSum(x)
    assert (s.count, s.dtype) == (x.size, x.dtype.name)
    for dtype in FLOATS:
        assert same(dtype.type(s.value(dtype)), sum_of(x, dtype))
    assert same(x.dtype.type(s.value()), sum_of(x, x.dtype))


@given(base_arrays(np.dtype("float64"), (40,)))
def test_a_sum_equals_fsum_wherever_fsum_returns(x):
    try:
        expected = math.fsum(x)
    except (OverflowError, ValueError):
        return
    assert same(wf.ExactSum(x).value(), expected)


@given(arrays(FLOATS))
def test_squares_and_norms(x):
    s = wf.ExactSumOfSquares(x)
    expected = sum_of(x, np.dtype("float64"), lambda value: value * value)
    assert same(s.value("float64"), expected)
    for dtype in FLOATS:
        assert same(dtype.type(s.norm(dtype)), norm_of(x, dtype))


@given(st.sampled_from(FLOATS).flatmap(lambda dtype: st.tuples(base_arrays(dtype, (3, 7)), base_arrays(dtype, (7, 3)))))
def test_dots_of_different_layouts(pair):
    x, y = pair[0], pair[1].T
    d = wf.ExactDot(x, y)
    values = [(float(a), float(b)) for a, b in zip(x.ravel(), y.ravel(), strict=True)]
    assert d.count == x.size
    if all(math.isfinite(a) and math.isfinite(b) for a, b in values):
        exact = sum((Fraction(a) * Fraction(b) for a, b in values), Fraction(0))
        for dtype in FLOATS:
            assert same(dtype.type(d.value(dtype)), round_fraction(exact, dtype))
    else:
        with np.errstate(all="ignore"):
            terms = [math.nan if math.isnan(a * b) else a * b for a, b in values if not math.isfinite(a * b) and
                     not (math.isfinite(a) and math.isfinite(b))]
        assert same(d.value("float64"), float(sum(terms)))


@given(st.sampled_from(FLOATS).flatmap(lambda dtype: base_arrays(dtype, (60,))), st.data())
@pytest.mark.parametrize("kind", CLASSES)
def test_states_merged_in_any_tree_are_the_state_of_the_whole(kind, x, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, x.size), max_size=6)))
    parts = [state_of(kind, part) for part in np.split(x, cuts)]
    while len(parts) > 1:
        first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        way = data.draw(st.integers(0, 2))
        if way == 0:
            merged = first + second
        elif way == 1:
            merged = pickle.loads(pickle.dumps(first))
            merged.merge(kind.from_bytes(bytes(second)))
        else:
            merged = sum([first, second], kind(dtype=x.dtype))
        parts.append(merged)
    whole = state_of(kind, x)
    assert parts[0] == whole
    assert bytes(parts[0]) == bytes(whole)
    assert hash(parts[0]) == hash(whole)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_means_are_rounded_once(dtype):
    x = np.array([1, 2, 4], dtype)
    assert wf.ExactSum(x).mean() == float(round_fraction(Fraction(7, 3), dtype))
    assert wf.ExactSum(x).mean("float64") == 7 / 3


def test_a_sum_without_elements():
    s = wf.ExactSum()
    assert (s.value(), s.count, s.dtype) == (0.0, 0, None)
    assert math.isnan(s.mean())
    assert s == pickle.loads(pickle.dumps(s)) == wf.ExactSum() + s
    with pytest.raises(ValueError, match="dtype='float64'"):
        bytes(s)
    typed = wf.ExactSum(dtype="bfloat16")
    assert typed.dtype == "bfloat16" and typed != s
    assert (s + typed).dtype == "bfloat16"
    assert wf.ExactSumOfSquares().norm() == 0.0


@pytest.mark.parametrize("kind", CLASSES)
def test_a_copy_is_independent(kind):
    s = state_of(kind, np.ones(3))
    before = bytes(s)
    for other in (copy.copy(s), copy.deepcopy(s), s + 0, 0 + s):
        assert other == s and hash(other) == hash(s)
        other.merge(other)
        assert other != s and other.count == 6
    assert bytes(s) == before
    assert s != 1 and not s == "s"
    for compare in (operator.lt, operator.ge):
        with pytest.raises(TypeError):
            compare(s, s)


@pytest.mark.parametrize("kind", CLASSES)
def test_damaged_bytes_are_refused(kind):
    good = bytes(state_of(kind, np.arange(5.0)))
    for length in range(len(good)):
        with pytest.raises(ValueError):
            kind.from_bytes(good[:length])
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1
        with pytest.raises(ValueError):
            kind.from_bytes(bytes(bad))
    with pytest.raises(ValueError, match="more bytes follow"):
        kind.from_bytes(good + b"x")
    with pytest.raises(TypeError):
        kind.from_bytes("xsum")


def test_bytes_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="products of f32"):
        wf.ExactSum.from_bytes(bytes(wf.ExactDot(dtype="float32")))
    with pytest.raises(ValueError, match="an exact sum of f16, expected one of products of f16"):
        wf.ExactDot.from_bytes(bytes(wf.ExactSum(dtype="float16")))


def test_types_must_agree():
    s = wf.ExactSum(np.ones(3, "float32"))
    with pytest.raises(TypeError, match="astype"):
        s.add(np.ones(3))
    with pytest.raises(TypeError, match="astype"):
        s.merge(wf.ExactSum(np.ones(3)))
    with pytest.raises(TypeError, match="only another ExactSum"):
        s + np.ones(3, "float32")
    with pytest.raises(TypeError):
        s.merge(wf.ExactDot())
    assert s.count == 3
    with pytest.raises(TypeError, match="astype"):
        wf.ExactDot(np.ones(3), np.ones(3, "float32"))
    with pytest.raises(ValueError, match=r"\[3\] and \[4\]"):
        wf.ExactDot(np.ones(3), np.ones(4))
    with pytest.raises(TypeError, match="two arrays"):
        wf.ExactDot(np.ones(3))
    for dtype in ("int32", "float8", "complex64", 3.5, ">f8"):
        with pytest.raises(TypeError):
            wf.ExactSum(dtype=dtype)
    with pytest.raises(TypeError, match="rounded to"):
        s.value("int64")
    for dtype in (np.float64, np.dtype("float64"), "float64", float):
        assert s.value(dtype) == 3.0


def test_more_elements_than_a_sum_can_have_are_refused():
    with pytest.raises(ValueError, match="2\\^50"):
        wf.ExactSum(np.broadcast_to(np.float32(1), (2**51,)))
    s = wf.ExactSum(np.ones(1))
    with pytest.raises(ValueError, match="2\\^50"):
        for _ in range(51):
            s.merge(s)
    assert s.count == 2**50 and s.value() == 2.0**50


def test_threads_give_the_same_bytes():
    x = np.random.default_rng(1).standard_normal((2000, 1000)) * 2.0 ** np.arange(1000)
    expected = {}
    for threads in (1, 2, 7):
        wf.set_num_threads(threads)
        for name, view in {"whole": x, "transpose": x.T, "steps": x[::2, ::-3], "column": x[:, :1]}.items():
            state = bytes(wf.ExactSum(view)), bytes(wf.ExactSumOfSquares(view)), bytes(wf.ExactDot(view, view[::-1]))
            assert expected.setdefault(name, state) == state
    for threads in (0, -1):
        with pytest.raises(ValueError):
            wf.set_num_threads(threads)
    assert wf.get_num_threads() == 7


def test_several_threads_add_to_one_sum():
    x = np.random.default_rng(2).standard_normal(200_000)
    s = wf.ExactSum(dtype="float64")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(s.add, np.array_split(x, 40)))
    assert s == wf.ExactSum(x)


def test_a_repr_shows_the_value():
    assert repr(wf.ExactSum(np.array([0.5, 1.0]))) == "<ExactSum of 2 float64: 1.5>"
    assert repr(wf.ExactDot()) == "<ExactDot of nothing>"
    assert repr(wf.ExactSum(np.array([1], BFLOAT16))) == "<ExactSum of 1 bfloat16: 1.0>"
