"""The class, dtype and shape of results, `out`, and which functions take which dtypes: as for arrays on the host."""

import fake_driver
import kinds
import ml_dtypes
import numpy as np
import pytest
import warpfold as wf
from fake_arrays import CupyArray, Current, Memory, TableArray, TorchTensor
from fake_driver import ALLOCATIONS, launches, names, take_calls

DTYPES = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
DTYPES += ["bool", "float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128"]

REDUCTIONS = [
    "sum", "prod", "mean", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero", "count_nan",
    "count_finite", "vector_norm", "sum_of_squares", "min_max",
]  # fmt: skip

CLASSES = {
    kinds.table: TableArray,
    kinds.cupy: CupyArray,
    kinds.torch: TorchTensor,
    kinds.interface: wf.Array,
    kinds.dlpack: wf.Array,
    kinds.jax: wf.Array,
}


def outcome(call):
    """The results of a call, or its error."""
    try:
        results = call()
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    results = results if isinstance(results, tuple) else (results,)
    return [(np.dtype(result.dtype).name, tuple(result.shape)) for result in results]


@pytest.mark.parametrize("function", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_each_function_takes_the_dtypes_that_it_takes_on_the_host(function, dtype):
    call = getattr(wf, function)
    host = np.ones((6, 5), dtype)
    for axis in (None, 0, 1):
        expected = outcome(lambda: call(host, axis=axis))
        x = TableArray(Memory((6, 5), dtype))
        if function == "prod" and np.dtype(dtype).name in ("float16", "bfloat16"):
            # PyTorch rounds those; here, only its functions are known.
            continue
        take_calls()
        assert outcome(lambda: call(x, axis=axis)) == expected
        assert bool(launches(take_calls())) == isinstance(expected, list)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_other_functions_take_the_dtypes_that_they_take_on_the_host(dtype):
    calls = [
        lambda x, _: wf.vecdot(x, x),
        lambda x, _: wf.vecdot(x, x, axis=-2),
        lambda x, _: wf.permute_dims(x, (1, 0)),
        lambda x, _: wf.matrix_transpose(x),
        lambda x, offsets: wf.segment_sum(x[0] if type(x) is np.ndarray else TableArray(Memory((5,), dtype)), offsets),
    ]
    offsets = TableArray(Memory((3,), "int64"))
    fake_driver.write(offsets.memory.address, np.array([0, 2, 5]))
    for call in calls:
        expected = outcome(lambda: call(np.ones((6, 5), dtype), np.array([0, 2, 5])))
        take_calls()
        assert outcome(lambda: call(TableArray(Memory((6, 5), dtype)), offsets)) == expected
        assert bool(launches(take_calls())) == isinstance(expected, list)


@pytest.mark.parametrize("axis", [None, (), 0, -1, (0, 2), [1, -1], (2, 1, 0), 3, -4, (0, -3), (1, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_mean_what_they_mean_on_the_host(axis, keepdims):
    shape = (2, 3, 4)
    expected = outcome(lambda: wf.sum(np.ones(shape), axis=axis, keepdims=keepdims))
    x = TableArray(Memory(shape, "float64"))
    assert outcome(lambda: wf.sum(x, axis=axis, keepdims=keepdims)) == expected
    if axis in (None, 0, -1):
        assert outcome(lambda: wf.argmax(x, axis=axis, keepdims=keepdims))[0][1] == expected[0][1]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1,), (1, 1, 1)])
def test_arrays_without_axes_or_elements(shape):
    along = (lambda x: wf.sum(x, axis=-1), lambda x: wf.min(x, axis=0))
    for call in (wf.sum, wf.max, wf.mean, wf.matrix_transpose, *along):
        expected = outcome(lambda: call(np.ones(shape, "float32")))
        for kind in (kinds.table, kinds.cupy, kinds.jax, kinds.interface):
            found = outcome(lambda: call(kinds.new(kind, shape)))
            assert found == expected or (found[0], expected[0]) == (ValueError, ValueError)


@pytest.mark.parametrize("kind", CLASSES, ids=kinds.name)
def test_results_are_of_the_library_of_the_array(kind):
    x = kinds.new(kind)
    expected = CLASSES[kind]
    assert type(wf.sum(x)) is expected and wf.sum(x).shape == ()
    results = [wf.sum(x, axis=0), wf.argmax(x, axis=1), *wf.min_max(x), wf.vecdot(x, x), wf.permute_dims(x, (1, 0))]
    assert {type(result) for result in results} == {expected}
    assert [result.shape for result in results] == [(5,), (6,), (), (), (6,), (5, 6)]
    assert [np.dtype(result.dtype).name for result in results[:2]] == ["float32", "int64"]


def test_results_are_on_the_device_of_the_array():
    fake_driver.retain(1)
    for kind in (kinds.table, kinds.cupy, kinds.torch):
        assert wf.sum(kinds.new(kind, ordinal=1)).memory.ordinal == 1
        assert Current.cupy_device == 0


@pytest.mark.parametrize("kind", [kinds.table, kinds.cupy, kinds.torch, kinds.interface, kinds.dlpack], ids=kinds.name)
def test_out_is_written_and_nothing_is_allocated(kind):
    x, out = kinds.new(kind), kinds.new(kind, (5,))
    wf.sum(x, axis=0, out=out)
    take_calls()
    assert wf.sum(x, axis=0, out=out) is out
    calls = take_calls()
    assert launches(calls) and not ALLOCATIONS & set(names(calls))
    for call in (
        lambda: wf.vecdot(x, x, out=kinds.new(kind, (6,))),
        lambda: wf.argmin(x, axis=1, out=kinds.new(kind, (6,), "int64")),
        lambda: wf.any(x, axis=1, out=kinds.new(kind, (6,), "bool")),
        lambda: wf.sum(x, out=kinds.new(kind, ())),
        lambda: wf.sum(x, axis=0, keepdims=True, out=kinds.new(kind, (1, 5))),
        lambda: wf.sum(kinds.new(kind, (6, 5), "int64"), axis=0, dtype="int8", out=kinds.new(kind, (5,), "int8")),
    ):
        call()
    # With gaps, in Fortran order, and backwards.
    wf.max(kinds.new(kind, (6, 5, 4)), axis=0, out=kind(Memory((5, 4), strides=(1, 5))))
    wf.max(x, axis=0, out=kind(Memory((5,), strides=(-1,), offset=4)))


@pytest.mark.parametrize("kind", [kinds.cupy, kinds.torch], ids=kinds.name)
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_products_of_halves_are_rounded_by_the_library(kind, dtype):
    x = kinds.new(kind, dtype=dtype)
    y = wf.prod(x, axis=0)
    assert type(y) is CLASSES[kind] and y.dtype == np.dtype(dtype) and y.shape == (5,)
    out = kinds.new(kind, (5,), dtype)
    assert wf.prod(x, axis=0, out=out) is out
    assert out.assigned.dtype == "float32"
    assert wf.prod(x, dtype="float32").dtype == "float32"


@pytest.mark.parametrize("kind", [kinds.cupy, kinds.torch, kinds.jax], ids=kinds.name)
def test_integers_are_converted_to_floats_by_the_library(kind):
    x = kinds.new(kind, dtype="int32")
    y = wf.sum(x, axis=0, dtype="float64")
    assert type(y) is CLASSES[kind] and np.dtype(y.dtype) == "float64"


def test_a_conversion_that_no_library_makes_is_an_error():
    for kind in (kinds.interface, kinds.dlpack, kinds.table):
        with pytest.raises(TypeError, match="convert"):
            wf.sum(kinds.new(kind, dtype="int32"), dtype="float64")
        with pytest.raises(TypeError, match="convert"):
            wf.prod(kinds.new(kind, dtype="float16"))


def test_integers_are_cut_to_narrower_ones():
    for dtype in ("int8", "uint16", "int32", "uint64"):
        x = TableArray(Memory((6, 5), "int64"))
        y = wf.sum(x, axis=0, dtype=dtype)
        assert y.dtype == dtype and y.shape == (5,)


@pytest.mark.parametrize("strides", [(5, 1), (1, 6), (-5, -1), (10, 2), (5, -1)])
def test_layouts_are_read_without_a_copy(strides):
    size = 1 + sum(abs(stride) * (extent - 1) for stride, extent in zip(strides, (6, 5)))
    memory = Memory((size,))
    memory.shape, memory.strides = (6, 5), strides
    memory.address += sum(-stride * (extent - 1) for stride, extent in zip(strides, (6, 5)) if stride < 0) * 4
    x = TableArray(memory)
    wf.sum(x), wf.sum(x, axis=0), wf.sum(x, axis=1)
    take_calls()
    wf.sum(x, out=TableArray(Memory(())))
    assert len(launches(take_calls())) == 1
    assert wf.permute_dims(x, (1, 0)).shape == (5, 6)


def test_vecdot_broadcasts():
    right = [((3, 4), (4,), -1), ((3, 1, 4), (1, 5, 4), -1), ((4, 3), (4, 1), -2)]
    wrong = [((2, 3), (3, 3), -1), ((2, 3), (2, 4), -1), ((2, 3), (2, 3), 0), ((2, 3), (3,), -2)]
    for a, b, axis in right + wrong:
        expected = outcome(lambda: wf.vecdot(np.ones(a), np.ones(b), axis=axis))
        x, y = TableArray(Memory(a, "float64")), TableArray(Memory(b, "float64"))
        found = outcome(lambda: wf.vecdot(x, y, axis=axis))
        assert found == expected or (found[0], expected[0]) == (ValueError, ValueError)


def filled(kind, values):
    """An array in host memory of a class with other libraries' protocols."""
    memory = Memory(values.shape, values.dtype, place=1)
    memory.host[: values.nbytes] = np.frombuffer(values.tobytes(), np.uint8)
    return kind(memory)


@pytest.mark.parametrize("kind", [TableArray, TorchTensor])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float16"])
def test_tensors_in_host_memory_give_tensors_in_host_memory(kind, dtype):
    values = np.arange(30).reshape(6, 5).astype(dtype)
    x = filled(kind, values)
    for call in (
        wf.sum,
        lambda x: wf.sum(x, axis=0),
        lambda x: wf.max(x, axis=1, keepdims=True),
        lambda x: wf.vecdot(x, x),
        wf.matrix_transpose,
        lambda x: wf.min_max(x)[1],
        lambda x: wf.prod(x, axis=0),
    ):
        y, expected = call(x), np.asarray(call(values))
        assert type(y) is kind and y.memory.place == 1
        assert y.dtype == expected.dtype and y.memory.read().tobytes() == expected.tobytes()
    out = filled(kind, np.zeros(5, np.result_type(wf.sum(values))))
    assert wf.sum(x, axis=0, out=out) is out
    assert out.memory.read().tobytes() == wf.sum(values, axis=0).tobytes()
    # Any array in host memory may be `out`.
    out = np.zeros(5, out.dtype)
    assert wf.sum(x, axis=0, out=out) is out and out.tobytes() == wf.sum(values, axis=0).tobytes()
    assert launches(take_calls()) == []
    assert wf.ExactSum(filled(kind, values.astype("float64"))).value() == values.astype("float64").sum()


def test_exact_sums_of_arrays_on_a_gpu():
    x = TableArray(Memory((6, 5), "float64"))
    s = wf.ExactSum(x)
    assert launches(take_calls())
    assert s.dtype == "float64"
    with pytest.raises(TypeError, match="float64 and of float32"):
        s.add(TableArray(Memory((3,))))
    take_calls()
    wf.ExactDot(x, x)
    assert launches(take_calls())
    with pytest.raises(TypeError, match="float64 and of float32"):
        wf.ExactDot(x, TableArray(Memory((6, 5))))
    with pytest.raises(ValueError, match="must be equal"):
        wf.ExactDot(x, TableArray(Memory((5, 6), "float64")))
    take_calls()
    wf.ExactSumOfSquares(x)
    assert launches(take_calls())
    with pytest.raises(TypeError, match="int64"):
        wf.ExactSum(TableArray(Memory((3,), "int64")))


def test_sums_that_stay_on_a_gpu():
    x = TableArray(Memory((6, 5), "float64"))
    take_calls()
    sums = wf.exact_sums(x, axis=0)
    squares = wf.exact_sums_of_squares(x, axis=0, keepdims=True)
    assert launches(take_calls())
    assert (sums.shape, sums.dtype, sums.kind, sums.words.memory.shape) == ((5,), "float64", "sum", (5, 72))
    assert (squares.shape, squares.kind, squares.words.memory.shape) == ((1, 5), "sum_of_squares", (1, 5, 138))
    for result in (sums.values(), sums.means(), squares.norms()):
        assert isinstance(result, TableArray)
    assert sums.values().memory.shape == (5,)
    assert wf.exact_sums(TableArray(Memory((6, 5))), axis=1).values("float64").memory.shape == (6,)
    with pytest.raises(TypeError, match="not to float32"):
        sums.values("float32")
    with pytest.raises(TypeError, match='kind "sum_of_squares"'):
        sums.norms()
    take_calls()
    sums.merge(wf.exact_sums(x, axis=0))
    assert (sums + sums).shape == (5,)
    assert launches(take_calls())
    with pytest.raises(ValueError, match="ranks"):
        sums.all_reduce(0, lambda words: None)
    seen = []
    sums.all_reduce(2, seen.append)
    assert seen[0] is sums.words
    assert launches(take_calls())

    def fails(words):
        raise RuntimeError("the engine has failed")

    with pytest.raises(RuntimeError, match="engine"):
        sums.all_reduce(2, fails)
    for use in (sums.values, sums.counts, lambda: sums.words, lambda: bytes(sums), lambda: sums + sums):
        with pytest.raises(ValueError, match="unusable"):
            use()
