"""The functions that reduce, against exact arithmetic and NumPy."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import warpfold as wf
from hypothesis import given
from hypothesis import strategies as st

from support import BFLOAT16, FLOATS, INTEGERS, OldDLPack, arrays, base_arrays, norm_of, same, sum_of, unaligned

BOOL = np.dtype(bool)
ALL = [*FLOATS, *INTEGERS, BOOL]


def axes_of(x):
    """None, an axis, or a tuple of axes, of either sign."""
    if x.ndim == 0:
        return st.sampled_from([None, ()])
    axis = st.integers(-x.ndim, x.ndim - 1)
    several = st.permutations(range(x.ndim)).flatmap(
        lambda order: st.integers(0, x.ndim).map(lambda count: tuple(order[:count]))
    )
    signed = several.flatmap(
        lambda axes: st.tuples(*[st.sampled_from([axis, axis - x.ndim]) for axis in axes])
    )
    return st.one_of(st.none(), axis, signed)


def apart(x, axis):
    """The array with the reduced axes merged into a last one, and the shape with `keepdims`."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = [x.shape[a] for a in kept]
    count = math.prod(x.shape[a] for a in axes)
    with_dims = tuple(1 if a in axes else x.shape[a] for a in range(x.ndim))
    return np.transpose(x, [*kept, *axes]).reshape(*shape, count), with_dims


def expected(x, axis, keepdims, of_row, dtype):
    """The results of a function of each row."""
    rows, with_dims = apart(x, axis)
    results = np.empty(rows.shape[:-1], dtype)
    for index in np.ndindex(results.shape):
        results[index] = of_row(rows[index])
    results = results.reshape(with_dims) if keepdims else results
    return results if results.ndim else results[()]


def wrap(number, dtype):
    """An integer in a type of fewer bits."""
    return np.array([number & (2**64 - 1)], np.uint64).view(np.int64).astype(dtype)[0]


def wide(dtype):
    return np.dtype("uint64" if dtype.kind == "u" else "int64")


@given(st.data(), st.booleans())
def test_sums_of_floats_are_exact(data, keepdims):
    x = data.draw(arrays(FLOATS))
    axis = data.draw(axes_of(x))
    result = wf.sum(x, axis=axis, keepdims=keepdims)
    assert same(result, expected(x, axis, keepdims, lambda row: sum_of(row, x.dtype), x.dtype))
    wider = {"float32": "float64", "float16": "float32", "bfloat16": "float32"}.get(x.dtype.name)
    if wider:
        wider = np.dtype(wider)
        result = wf.sum(x, axis=axis, keepdims=keepdims, dtype=wider)
        assert same(result, expected(x, axis, keepdims, lambda row: sum_of(row, wider), wider))


@given(st.data())
def test_elements_are_converted_to_a_dtype_of_floats_first(data):
    x = data.draw(arrays([*INTEGERS, BOOL, np.dtype("float16"), BFLOAT16]))
    axis = data.draw(axes_of(x))
    for to in (np.dtype("float64"), np.dtype("float32")):
        converted = x.astype(to)
        result = wf.sum(x, axis=axis, dtype=to)
        assert same(result, expected(converted, axis, False, lambda row: sum_of(row, to), to))
    assert same(wf.prod(x, axis=axis, dtype="float64"), wf.prod(x.astype("float64"), axis=axis))
    # A narrower type would round elements.
    with pytest.raises(TypeError, match="astype"):
        wf.sum(np.ones(3), dtype="float32")
    out = np.empty((), "float64")
    assert wf.sum(np.arange(4), dtype="float64", out=out) is out and out == 6.0


@given(base_arrays(np.dtype("float64"), (30,)))
def test_a_sum_equals_fsum_wherever_fsum_returns(x):
    try:
        exact = math.fsum(x)
    except (OverflowError, ValueError):
        return
    assert same(wf.sum(x), np.float64(exact + 0.0))


def test_sums_that_fsum_cannot_compute():
    assert wf.sum(np.array([1e308, 1e308, -1e308])) == 1e308
    assert np.isnan(wf.sum(np.array([np.inf, -np.inf])))
    assert wf.sum(np.array([np.inf, 1.0])) == np.inf
    assert not np.signbit(wf.sum(np.array([-0.0, -0.0])))


@given(st.data(), st.booleans())
def test_sums_and_products_of_integers_wrap(data, keepdims):
    x = data.draw(arrays([*INTEGERS, BOOL]))
    axis = data.draw(axes_of(x))
    integers = lambda row: [int(value) for value in row]
    for function, total in ((wf.sum, sum), (wf.prod, math.prod)):
        for dtype in (None, data.draw(st.sampled_from(INTEGERS))):
            to = dtype or wide(x.dtype)
            result = function(x, axis=axis, keepdims=keepdims, dtype=dtype)
            assert same(result, expected(x, axis, keepdims, lambda row: wrap(total(integers(row)), to), to))
    if x.dtype != BOOL:
        result = wf.sum_of_squares(x, axis=axis, keepdims=keepdims)
        to = wide(x.dtype)
        squares = lambda row: wrap(sum(value * value for value in integers(row)), to)
        assert same(result, expected(x, axis, keepdims, squares, to))


@given(st.data())
def test_means_are_the_exact_means_rounded_once(data):
    x = data.draw(arrays([*FLOATS, *INTEGERS, BOOL]))
    axis = data.draw(axes_of(x))
    dtype = x.dtype if x.dtype in FLOATS else np.dtype("float64")

    def mean(row):
        if row.size == 0:
            return dtype.type(math.nan)
        if row.dtype not in FLOATS:
            return float(Fraction(sum(int(value) for value in row), row.size))
        return sum_of(row, dtype, lambda value: value / row.size)

    assert same(wf.mean(x, axis=axis), expected(x, axis, False, mean, dtype))


@given(st.data())
def test_norms_and_squares_of_floats(data):
    x = data.draw(arrays(FLOATS))
    axis = data.draw(axes_of(x))
    squares = lambda row: sum_of(row, x.dtype, lambda value: value * value)
    assert same(wf.sum_of_squares(x, axis=axis), expected(x, axis, False, squares, x.dtype))
    norm = lambda row: norm_of(row, x.dtype)
    assert same(wf.vector_norm(x, axis=axis), expected(x, axis, False, norm, x.dtype))


@given(st.data(), st.booleans())
def test_logic_and_counts(data, keepdims):
    x = data.draw(arrays(ALL))
    axis = data.draw(axes_of(x))
    check = lambda function, of_row, dtype: same(
        function(x, axis=axis, keepdims=keepdims), expected(x, axis, keepdims, of_row, np.dtype(dtype))
    )
    assert check(wf.any, lambda row: any(value != 0 for value in row), bool)
    assert check(wf.all, lambda row: all(value != 0 for value in row), bool)
    assert check(wf.count_nonzero, lambda row: sum(bool(value != 0) for value in row), "int64")
    if x.dtype in FLOATS:
        assert check(wf.count_nan, lambda row: sum(math.isnan(value) for value in row), "int64")
        assert check(wf.count_finite, lambda row: sum(math.isfinite(value) for value in row), "int64")


def extreme(row, pick):
    """The value that NumPy's minimum or maximum gives; of equal zeros either."""
    floats = [float(value) for value in row] if row.dtype in FLOATS else None
    if floats and any(math.isnan(value) for value in floats):
        return row.dtype.type(math.nan)
    return pick(row.tolist() if floats is None else floats)


@given(st.data(), st.booleans())
def test_minima_and_maxima(data, keepdims):
    x = data.draw(arrays(ALL))
    axis = data.draw(axes_of(x))
    rows, _ = apart(x, axis)
    if rows.shape[-1] == 0 and rows.size == 0 and math.prod(rows.shape[:-1]):
        for function in (wf.min, wf.max, wf.min_max):
            with pytest.raises(ValueError):
                function(x, axis=axis)
        return
    smallest, largest = (wf.min(x, axis=axis, keepdims=keepdims), wf.max(x, axis=axis, keepdims=keepdims))
    both = wf.min_max(x, axis=axis, keepdims=keepdims)
    for result, pick, of_pair in ((smallest, min, both[0]), (largest, max, both[1])):
        reference = expected(x, axis, keepdims, lambda row: extreme(row, pick), x.dtype)
        # Either zero may come first.
        assert same(np.asarray(result) + x.dtype.type(0), np.asarray(reference) + x.dtype.type(0))
        assert same(result, of_pair)


def index_of(row, is_better):
    """The first NaN, else the first of the best."""
    best = 0
    for index, value in enumerate(row):
        if value != value:
            return index
        if is_better(value, row[best]):
            best = index
    return best


@given(st.data(), st.booleans())
def test_indices_of_extremes(data, keepdims):
    x = data.draw(arrays(ALL, min_dims=1))
    axis = data.draw(st.one_of(st.none(), st.integers(-x.ndim, x.ndim - 1)))
    rows, _ = apart(x, axis)
    for function, is_better in ((wf.argmin, lambda a, b: a < b), (wf.argmax, lambda a, b: a > b)):
        if rows.shape[-1] == 0:
            if math.prod(rows.shape[:-1]):
                with pytest.raises(ValueError):
                    function(x, axis=axis)
            continue
        result = function(x, axis=axis, keepdims=keepdims)
        assert same(result, expected(x, axis, keepdims, lambda row: index_of(row, is_better), np.dtype("int64")))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_of_floats(dtype):
    # Powers of two are not rounded, in any order.
    x = np.array([[2, 0.5, -4], [1, -0.25, 8]], dtype)
    for axis in (None, 0, 1, (0, 1)):
        reference = np.prod(x.astype("float64"), axis=axis).astype(dtype)
        assert same(wf.prod(x, axis=axis), reference if axis in (0, 1) else reference[()])
        assert same(wf.prod(x.T, axis=axis), np.prod(x.T.astype("float64"), axis=axis).astype(dtype))
    assert np.isnan(wf.prod(np.array([1, np.nan], dtype)))
    assert wf.prod(np.zeros(0, dtype)) == 1


@given(st.data())
def test_dot_products(data):
    dtype = data.draw(st.sampled_from([*FLOATS, *INTEGERS]))
    shapes = [((4,), (4,)), ((2, 4), (4,)), ((4,), (3, 2, 4)), ((2, 1, 4), (3, 4)), ((2, 0), (2, 0)), ((0, 3), (0, 3))]
    first, second = data.draw(st.sampled_from(shapes))
    x, y = data.draw(base_arrays(dtype, first)), data.draw(base_arrays(dtype, second))
    x = x[..., ::-1] if data.draw(st.booleans()) else x
    a, b = np.broadcast_arrays(x, y)
    reference = np.empty(a.shape[:-1], dtype)
    for index in np.ndindex(reference.shape):
        if dtype in FLOATS:
            reference[index] = wf.ExactDot(np.ascontiguousarray(a[index]), np.ascontiguousarray(b[index])).value()
        else:
            reference[index] = wrap(sum(int(v) * int(w) for v, w in zip(a[index], b[index], strict=True)), dtype)
    assert same(wf.vecdot(x, y), reference)


def test_dot_products_along_other_axes():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(6.0)[::-1].reshape(2, 3)
    assert same(wf.vecdot(x, y, axis=-2), np.vecdot(x, y, axis=-2))
    out = np.zeros(3)
    assert wf.vecdot(x, y, axis=-2, out=out) is out and same(out, np.vecdot(x, y, axis=-2))
    for bad in ({"axis": 0}, {"axis": -3}, {"axis": 2**40}):
        with pytest.raises(ValueError, match="axis"):
            wf.vecdot(x, y, **bad)
    with pytest.raises(ValueError, match="must be equal"):
        wf.vecdot(np.ones(1), np.ones(3))
    with pytest.raises(ValueError):
        wf.vecdot(np.ones((2, 3)), np.ones((4, 3)))
    with pytest.raises(ValueError):
        wf.vecdot(np.float64([1])[0:1].reshape(()), np.ones(3))
    with pytest.raises(TypeError, match="astype"):
        wf.vecdot(x, x.astype("float32"))
    with pytest.raises(TypeError, match="bool"):
        wf.vecdot(np.ones(3, bool), np.ones(3, bool))


@given(st.data())
def test_sums_of_segments(data):
    x = data.draw(arrays(ALL, min_dims=1, max_dims=1, max_side=30).filter(lambda x: x.ndim == 1))
    offsets = sorted(data.draw(st.lists(st.integers(0, x.size), min_size=1, max_size=8)))
    reference = [wf.sum(x[a:b]) for a, b in zip(offsets, offsets[1:], strict=False)]
    dtype = x.dtype if x.dtype in FLOATS else wide(x.dtype)
    for kind in ("int8", "uint16", "int64"):
        assert same(wf.segment_sum(x, np.array(offsets, kind)), np.array(reference, dtype))


@pytest.mark.parametrize(
    "offsets, error",
    [
        (np.array([0, 3, 2]), ValueError),
        (np.array([-1, 2]), ValueError),
        (np.array([0, 5]), ValueError),
        (np.array([0, 2**64 - 1], "uint64"), ValueError),
        (np.zeros((2, 2), int), ValueError),
        (np.array([], int), ValueError),
        (np.array([0.0, 2.0]), TypeError),
        ([0, 2], TypeError),
    ],
)
def test_offsets_must_rise(offsets, error):
    with pytest.raises(error):
        wf.segment_sum(np.arange(4.0), offsets)


def test_segments_are_of_vectors():
    with pytest.raises(ValueError, match="vector"):
        wf.segment_sum(np.zeros((2, 2)), np.array([0, 2]))
    with pytest.raises(TypeError, match="x.real"):
        wf.segment_sum(np.zeros(2, complex), np.array([0, 2]))


@given(st.data(), st.booleans())
def test_out_of_any_layout(data, keepdims):
    x = data.draw(arrays([np.dtype("float32"), np.dtype("int16"), BFLOAT16]))
    axis = data.draw(axes_of(x))
    result = np.asarray(wf.sum(x, axis=axis, keepdims=keepdims))
    memory = np.ones([2 * extent for extent in result.shape], result.dtype)
    # Of two elements one, backwards; a view, also without axes.
    out = memory[(*(slice(None, None, -2) for _ in result.shape), ...)]
    out = unaligned(out) if data.draw(st.booleans()) else out
    assert wf.sum(x, axis=axis, keepdims=keepdims, out=out) is out
    assert same(out, result)


def test_out_must_fit():
    x = np.arange(6.0).reshape(2, 3)
    before = x.copy()
    read_only = np.zeros(3)
    read_only.flags.writeable = False
    wrong = [
        (np.zeros(3, "float32"), TypeError, "dtype float32"),
        (np.zeros(2), ValueError, r"shape \(2,\)"),
        (np.zeros((1, 3)), ValueError, r"shape \(1, 3\)"),
        (read_only, ValueError, "read-only"),
        (x[0], ValueError, "overlaps"),
        (x[1, ::-1], ValueError, "overlaps"),
        (x.T[:, 0], ValueError, "overlaps"),
        ([0.0, 0.0, 0.0], TypeError, "an array, not `list`"),
        (memoryview(np.zeros(3)).toreadonly(), ValueError, "read-only"),
        (np.ma.zeros(3), TypeError, "masked"),
        (np.float64(0), TypeError, "an array, not `numpy.float64`"),
        (np.zeros(3, ">f8"), TypeError, "big-endian"),
    ]
    for out, error, message in wrong:
        with pytest.raises(error, match=message):
            wf.sum(x, axis=0, out=out)
    assert (x == before).all() and (read_only == 0).all()
    zero = np.zeros(())
    assert wf.sum(x, out=zero) is zero and zero == 15.0
    buffer = np.zeros(3)
    wf.sum(x, axis=0, out=memoryview(buffer))
    assert buffer.tolist() == [3.0, 5.0, 7.0]
    logical = np.zeros(2, bool)
    assert wf.any(x, axis=1, out=logical) is logical and logical.all()


WRONG_AXES = {
    "too large": (2, ValueError),
    "too small": (-3, ValueError),
    "repeated": ((0, 0), ValueError),
    "repeated with signs": ((0, -2), ValueError),
    "beyond 64 bits": (2**70, ValueError),
    "many": (tuple(range(40)), ValueError),
    "fractional": (0.5, TypeError),
    "text": ("0", TypeError),
    "nested": ((0, (1,)), TypeError),
}


@pytest.mark.parametrize("name", WRONG_AXES)
def test_wrong_axes_are_errors(name):
    axis, error = WRONG_AXES[name]
    x = np.zeros((2, 3))
    for function in (wf.sum, wf.mean, wf.min, wf.any, wf.argmax):
        # An index counts along one axis.
        with pytest.raises((error, TypeError) if isinstance(axis, tuple) else error):
            function(x, axis=axis)


def test_wrong_dtypes_are_errors():
    with pytest.raises(TypeError, match=r"astype\('float32'\)"):
        wf.sum(np.zeros(2), dtype="float32")
    with pytest.raises(TypeError, match="another type of integers or floats"):
        wf.sum(np.zeros(2, int), dtype="bool")
    with pytest.raises(TypeError, match="x.real"):
        wf.sum(np.zeros(2, complex))
    with pytest.raises(TypeError, match="there is no dtype"):
        wf.sum(np.zeros(2), dtype="M8[s]")
    for function in (wf.count_nan, wf.count_finite):
        with pytest.raises(TypeError, match="astype"):
            function(np.zeros(2, int))
    for order in (0, 1, math.inf):
        with pytest.raises(ValueError, match="Euclidean"):
            wf.vector_norm(np.zeros(2), ord=order)
    assert wf.vector_norm(np.array([3, 4]), ord=2) == 5.0


def test_many_elements_on_several_threads():
    x = np.random.default_rng(5).standard_normal((600, 700, 3)) * 2.0 ** np.arange(-300, 300)[:, None, None]
    assert wf.sum(x) == math.fsum(x.ravel())
    for axis in (0, 1, 2, (0, 2), (1, 2)):
        reference = expected(x, axis, False, math.fsum, np.dtype("float64"))
        results = []
        for threads in (1, 2, 5):
            wf.set_num_threads(threads)
            results.append(wf.sum(x, axis=axis))
        assert all(same(result, reference) for result in results)


def test_tensors_are_reduced_as_arrays_are():
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    assert same(wf.sum(OldDLPack(x.T), axis=1), wf.sum(x, axis=0))
    assert type(wf.max(memoryview(x))) is np.float32


def test_arrays_of_more_axes_than_a_reduction_takes_are_refused():
    with pytest.raises(ValueError, match="axes"):
        wf.sum(np.zeros((1,) * 33))
    assert wf.sum(np.ones((1,) * 32), keepdims=True).shape == (1,) * 32


def test_a_huge_result_is_a_memory_error():
    x = np.broadcast_to(np.float64(1), (2**58, 1))
    with pytest.raises((MemoryError, ValueError)):
        wf.sum(x, axis=1)


def test_bfloat16_results_have_the_type_of_ml_dtypes():
    x = np.array([[1.5, 2.5]], BFLOAT16)
    assert wf.sum(x, axis=0).dtype == BFLOAT16
    assert type(wf.sum(x)) is ml_dtypes.bfloat16
