"""Arrays on a GPU, by the libraries that make them. Needs a GPU, PyTorch, CuPy, JAX and Numba.

`python -m pytest python/gpu_tests` runs it, with the package on Python's path."""

import gc
import os
import resource
import subprocess
import sys

import libraries
import numpy as np
import pytest
import warpfold as wf
from libraries import ALL, COMPLEX, INTEGERS, Cupy, Jax, Numba, Torch, cuda, cupy, delay, elements, jax, jnp
from libraries import same, torch

REDUCTIONS = {
    "sum": wf.sum,
    "prod": wf.prod,
    "mean": wf.mean,
    "min": wf.min,
    "max": wf.max,
    "argmin": wf.argmin,
    "argmax": wf.argmax,
    "any": wf.any,
    "all": wf.all,
    "count_nonzero": wf.count_nonzero,
    "count_nan": wf.count_nan,
    "count_finite": wf.count_finite,
    "vector_norm": wf.vector_norm,
    "sum_of_squares": wf.sum_of_squares,
}

# Layouts that slices and transposes of NumPy, PyTorch and CuPy make in the same way.
LAYOUTS = {
    "C order": lambda x: x,
    "transposed": lambda x: x.T,
    "steps": lambda x: x[::2, 1::3],
    "a window": lambda x: x[3:, 5:90],
    "one row": lambda x: x[7],
    "one column": lambda x: x[:, 3],
}

SHAPE = (65, 130)


def outcome(call, get):
    """The results of a call on the host, or its error."""
    try:
        results = call()
    except (TypeError, ValueError) as error:
        return type(error)
    results = results if isinstance(results, tuple) else (results,)
    return [get(result) for result in results]


def agree(library, call, x, array):
    expected = outcome(lambda: call(array), np.asarray)
    found = outcome(lambda: call(x), library.get)
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found is expected


def is_rounded_by_library(library, function, dtype):
    """Only PyTorch and CuPy round the products of halves."""
    return function == "prod" and dtype.itemsize == 2 and dtype not in INTEGERS and library not in (Torch, Cupy)


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_function_of_every_dtype_and_layout(library, layout):
    transform = LAYOUTS[layout]
    for dtype in library.dtypes:
        array = elements(SHAPE, dtype)
        # Numba's own transposes need an older NumPy.
        x = cuda.as_cuda_array(transform(cupy.asarray(array))) if library is Numba else transform(library.put(array))
        array = transform(array)
        if library is Jax or (library is Numba and layout == "transposed"):
            # These are copies, and products of strided elements have another order.
            array = np.ascontiguousarray(array)
        for name, function in REDUCTIONS.items():
            if is_rounded_by_library(library, name, dtype):
                continue
            for axis in (None, 0, -1):
                for keepdims in (False, True):
                    call = lambda x: function(x, axis=axis, keepdims=keepdims)
                    assert agree(library, call, x, array), (name, dtype, axis, keepdims)
        assert agree(library, lambda x: wf.min_max(x, axis=0), x, array), dtype
        assert agree(library, lambda x: wf.min_max(x), x, array), dtype
        assert agree(library, lambda x: wf.vecdot(x, x), x, array), dtype
        if array.ndim == 2:
            assert agree(library, lambda x: wf.vecdot(x, x, axis=-2), x, array), dtype
            assert agree(library, wf.matrix_transpose, x, array), dtype
            assert agree(library, lambda x: wf.sum(x, axis=(0, 1)), x, array), dtype


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
def test_axes_of_three(library):
    for dtype in (np.dtype("float32"), np.dtype("int16"), np.dtype(bool)):
        array = elements((7, 33, 20), dtype)
        x = library.put(array)
        for axis in (0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()):
            assert agree(library, lambda x: wf.sum(x, axis=axis), x, array), (dtype, axis)
            assert agree(library, lambda x: wf.max(x, axis=axis, keepdims=True), x, array), (dtype, axis)
        for axes in ((2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1), (-1, 0, 1)):
            assert agree(library, lambda x: wf.permute_dims(x, axes), x, array), (dtype, axes)
    for dtype in COMPLEX:
        array = elements((7, 33, 20), dtype)
        assert agree(library, lambda x: wf.permute_dims(x, (2, 0, 1)), library.put(array), array), dtype


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
@pytest.mark.parametrize("length", [1, 5, 1000, (1 << 20) + 3, 1 << 24])
def test_lengths(library, length):
    for dtype in (np.dtype("float32"), np.dtype("float64"), np.dtype("int32")):
        array = elements((length,), dtype)
        x = library.put(array)
        for function in (wf.sum, wf.mean, wf.vector_norm, wf.argmin, wf.max):
            assert agree(library, function, x, array), (function, dtype)
        if dtype.kind == "f":
            assert bytes(wf.ExactSum(x)) == bytes(wf.ExactSum(array))


def test_negative_and_zero_strides():
    array = elements((60, 70), np.dtype("float32"))
    x = cupy.asarray(array)
    for transform in (lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::-2, ::-3]):
        for axis in (None, 0, 1):
            assert agree(Cupy, lambda x: wf.sum(x, axis=axis), transform(x), transform(array))
    repeated, expected = torch.from_numpy(array).cuda()[0].expand(50, 70), np.broadcast_to(array[0], (50, 70))
    for axis in (None, 0, 1):
        assert agree(Torch, lambda x: wf.sum(x, axis=axis), repeated, expected)


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
def test_dtypes_of_results(library):
    array = elements(SHAPE, np.dtype("int32"))
    x = library.put(array)
    for dtype in ("int8", "uint16", "int32", "uint64"):
        assert agree(library, lambda x: wf.sum(x, axis=0, dtype=dtype), x, array), dtype
    floats = elements(SHAPE, np.dtype("float32"))
    assert agree(library, lambda x: wf.sum(x, dtype="float64"), library.put(floats), floats)
    if library is not Numba:
        expected = wf.sum(array, axis=0, dtype="float64")
        found = wf.sum(x, axis=0, dtype="float64")
        assert same(library.get(found), expected)


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
def test_segments(library):
    offsets = np.array([0, 0, 3, 10, 5000, 5000, 9000, 10_000])
    for dtype in library.dtypes:
        array = elements((10_000,), dtype)
        x, ends = library.put(array), library.put(offsets)
        assert same(library.get(wf.segment_sum(x, ends)), wf.segment_sum(array, offsets)), dtype
    x = library.put(elements((20,), np.dtype("float32")))
    for bad in ([0, 5, 3], [0, 21], [-1, 5], [5, 4, 20]):
        with pytest.raises(ValueError):
            wf.segment_sum(x, library.put(np.array(bad)))


@pytest.mark.parametrize("library", [Torch, Cupy, Numba], ids=lambda library: library.name)
def test_out(library):
    array = elements(SHAPE, np.dtype("float32"))
    x, out = library.put(array), library.put(np.zeros(SHAPE[1], np.float32))
    assert wf.sum(x, axis=0, out=out) is out
    assert same(cupy.asnumpy(cupy.asarray(out)), wf.sum(array, axis=0))
    for bad, error in [
        (library.put(np.zeros(SHAPE[1])), TypeError),
        (library.put(np.zeros(SHAPE[0], np.float32)), ValueError),
        (np.zeros(SHAPE[1], np.float32), TypeError),
        (x[0], ValueError),
    ]:
        with pytest.raises(error):
            wf.sum(x, axis=0, out=bad)
    halves = elements(SHAPE, np.dtype("float16"))
    if library is not Numba:
        half = library.put(np.zeros(SHAPE[0], np.float16))
        wf.prod(library.put(halves), axis=1, out=half)
        assert same(library.get(half), wf.prod(halves, axis=1))


def test_tensors_in_host_memory():
    array = elements(SHAPE, np.dtype("float32"))
    x = torch.from_numpy(array.copy())
    y = wf.sum(x, axis=0)
    assert type(y) is torch.Tensor and not y.is_cuda and same(y.numpy(), wf.sum(array, axis=0))
    assert type(wf.sum(x)) is torch.Tensor and wf.sum(x).shape == ()
    halves = x.to(torch.bfloat16)
    assert wf.max(halves).dtype == torch.bfloat16


# Order.

LENGTH = 1 << 24


@pytest.mark.parametrize("library", [Torch, Cupy], ids=lambda library: library.name)
def test_work_is_in_order_on_a_side_stream(library):
    for function in (wf.sum, lambda x: wf.sum(x, axis=0), wf.matrix_transpose, lambda x: wf.min_max(x)[1]):
        stream = library.stream()
        with library.use(stream):
            x = library.put(np.zeros((1 << 12, 1 << 12), np.float32))
            function(x)
            delay(library.handle(stream))
            # Queued behind the delay, so that a call in another stream would read zeros.
            library.fill(x, 1.0)
            y = function(x)
            # Queued behind the call, so that a call that comes too late would read fives.
            library.fill(x, 5.0)
            found = library.get(y)
        assert same(found, np.asarray(function(np.ones((1 << 12, 1 << 12), np.float32))))


def test_work_is_in_order_on_the_legacy_stream():
    x = torch.zeros(LENGTH, device="cuda")
    torch.cuda._sleep(libraries.CYCLES)
    x.fill_(1.0)
    y = wf.sum(x)
    x.fill_(5.0)
    assert y.item() == LENGTH


def test_work_is_in_order_on_streams_of_numba():
    stream = cuda.stream()
    x = cuda.to_device(np.zeros(LENGTH, np.float32), stream=stream)
    ones, fives = cuda.to_device(np.ones(LENGTH, np.float32)), cuda.to_device(np.full(LENGTH, 5, np.float32))
    stream.synchronize()
    handle = x.__cuda_array_interface__["stream"]
    delay(handle)
    x.copy_to_device(ones, stream=stream)
    y = wf.sum(x)
    x.copy_to_device(fives, stream=stream)
    assert Numba.get(y) == LENGTH


def test_work_is_in_order_with_jax():
    @jax.jit
    def slow(x):
        # Several ms, which JAX does not wait for.
        product = jax.lax.fori_loop(0, 40, lambda _, m: jnp.tanh(m @ m), jnp.ones((4096, 4096), jnp.float32))
        return x + 1 + 0 * product[0, 0]

    overwrite = jax.jit(lambda x: x * 0 + 5, donate_argnums=0)
    zeros = jnp.zeros(LENGTH, jnp.float32)
    slow(zeros).block_until_ready()
    overwrite(jnp.ones(LENGTH, jnp.float32)).block_until_ready()
    for _ in range(5):
        x = slow(zeros)
        y = wf.sum(x)
        overwrite(x)
        assert Jax.get(y) == LENGTH


def test_results_are_in_order_with_their_consumers():
    stream = cuda.stream()
    x = cuda.to_device(np.ones(LENGTH, np.float32), stream=stream)
    wf.sum(x)
    for consume in (lambda y: jax.dlpack.from_dlpack(y), lambda y: torch.from_dlpack(y), cupy.asarray):
        delay(x.__cuda_array_interface__["stream"])
        y = wf.sum(x)
        assert float(consume(y)) == LENGTH


def test_the_per_thread_stream_of_cupy():
    with cupy.cuda.Stream.ptds:
        x = cupy.zeros(LENGTH, cupy.float32)
        for value in (1, 2):
            x.fill(value)
            y = wf.sum(x)
            x.fill(5)
            assert float(y) == value * LENGTH


# Graphs.


def test_a_graph_of_torch():
    x = torch.zeros(300, 1000, device="cuda")
    out = torch.zeros(300, device="cuda")
    wf.sum(x, axis=0), wf.max(x, axis=1, out=out), wf.sum(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        columns = wf.sum(x, axis=0)
        wf.max(x, axis=1, out=out)
        whole = wf.sum(x)
        transposed = wf.matrix_transpose(x)
        for refused in (lambda: wf.ExactSum(x), lambda: wf.segment_sum(x[0], torch.empty(0))):
            with pytest.raises((RuntimeError, TypeError)):
                refused()
    side, eager = torch.cuda.Stream(), torch.ones(300, 1000, device="cuda")
    for value in range(1, 6):
        x.fill_(value)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            graph.replay()
        # Beside the graph, and with the same kernels.
        calls = [wf.sum(eager) for _ in range(20)]
        torch.cuda.current_stream().wait_stream(side)
        assert [call.item() for call in calls] == [300_000] * 20
        assert whole.item() == value * 300_000
        assert (columns == value * 300).all() and (out == value).all() and (transposed == value).all()


def test_an_error_in_a_capture_names_out_and_leaves_the_capture_alone():
    x = torch.ones(1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(RuntimeError, match="out="):
            wf.ExactSum(x)
        y = wf.sum(x)
    graph.replay()
    assert y.item() == 1000


def test_handles_of_graphs_that_are_gone():
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(20):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = wf.sum(x)
        graph.replay()
        assert y.item() == 1 << 20
        del graph, y
    assert wf.sum(x).item() == 1 << 20


def run(script, **variables):
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_first_call_within_a_capture():
    run("""
import torch, warpfold as wf
x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = wf.sum(x)
graph.replay()
assert y.item() == 1 << 20
""")


def test_expandable_segments():
    script = """
import torch, warpfold as wf
for shape in [(1 << 10,), (3 << 20,), (5000, 3001), (1 << 28,)]:
    x = torch.ones(shape, device="cuda")
    assert wf.sum(x).item() == x.numel()
    assert (wf.sum(x, axis=0) == shape[0]).all()
    assert wf.matrix_transpose(x.view(1, -1)).shape == (x.numel(), 1)
"""
    run(script, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    run(script, PYTORCH_ALLOC_CONF="expandable_segments:True")


# Memory and bad input.


@pytest.mark.parametrize("library", ALL, ids=lambda library: library.name)
def test_calls_leave_memory_as_it_was(library):
    x = library.put(np.ones((100, 100), np.float32))

    def calls(count):
        for _ in range(count // 5):
            wf.sum(x), wf.sum(x, axis=0), wf.min_max(x), wf.matrix_transpose(x)
            with pytest.raises(ValueError):
                wf.sum(x, axis=5)

    def used():
        gc.collect()
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        return total - free, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    calls(1000)
    device, host = used()
    calls(10_000)
    device_after, host_after = used()
    # The pools of the libraries may take another block of 2 MiB.
    assert device_after - device <= 4 << 20
    # In KiB.
    assert host_after - host < 4000


def test_streams_that_come_and_go():
    x = torch.ones(1 << 16, device="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    for _ in range(500):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            y = wf.sum(cupy.asarray(x))
        stream.synchronize()
        assert float(y) == 1 << 16
        del stream, y
    assert before - torch.cuda.mem_get_info()[0] < 64 << 20


def wrapper():
    """A subclass without storage."""

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (3,), device="cuda", dtype=torch.float32)

        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            raise NotImplementedError

    return Wrapper()


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3, device="cuda")


BAD_TENSORS = {
    "gradient": lambda: torch.ones(3, device="cuda", requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.ones(3, device="cuda")),
    "conjugated": lambda: torch.ones(3, 2, device="cuda", dtype=torch.complex64).conj(),
    "negated": lambda: torch.ones(3, device="cuda", dtype=torch.complex64).conj().imag,
    "sparse": lambda: torch.ones(3, device="cuda").to_sparse(),
    "sparse rows": lambda: torch.ones(3, 3, device="cuda").to_sparse_csr(),
    "meta": lambda: torch.ones(3, device="meta"),
    "wrapper": wrapper,
    "fake": fake,
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "float8": lambda: torch.ones(3, device="cuda").to(torch.float8_e5m2),
    "complex": lambda: torch.ones(3, device="cuda", dtype=torch.complex64),
    "no elements": lambda: torch.empty(0, device="cuda"),
}


@pytest.mark.parametrize("name", BAD_TENSORS)
def test_tensors_that_are_refused(name):
    x = BAD_TENSORS[name]()
    with pytest.raises((TypeError, ValueError, BufferError, RuntimeError, NotImplementedError)) as error:
        wf.max(x)
    assert str(error.value)
    assert wf.sum(torch.ones(3, device="cuda")).item() == 3


def test_a_negated_tensor_is_right_once_it_is_resolved():
    x = torch.tensor([1 + 2j], device="cuda").conj().imag
    assert wf.sum(x.resolve_neg()).item() == -2
    with torch.no_grad():
        assert wf.sum(torch.ones(3, device="cuda", requires_grad=True)).item() == 3


def test_traced_arrays_are_refused():
    with pytest.raises(Exception):
        jax.jit(lambda x: wf.sum(x))(jnp.ones(3))
    with pytest.raises(Exception):
        torch.vmap(lambda x: wf.sum(x))(torch.ones(3, 4, device="cuda"))
    assert wf.sum(torch.ones(3, device="cuda")).item() == 3


def test_arrays_of_jax_are_not_written():
    with pytest.raises(ValueError, match="read-only"):
        wf.sum(jnp.ones((3, 4)), axis=0, out=jnp.zeros(4))


def test_the_current_device_is_the_one_before():
    before = torch.cuda.current_device(), cupy.cuda.runtime.getDevice()
    for library in ALL:
        wf.sum(library.put(np.ones(10, np.float32)))
    assert (torch.cuda.current_device(), cupy.cuda.runtime.getDevice()) == before


def test_two_devices():
    if torch.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU")
    x = torch.ones(1000, device="cuda:1")
    y = wf.sum(x)
    assert y.device.index == 1 and y.item() == 1000 and torch.cuda.current_device() == 0
    with cupy.cuda.Device(1):
        on_second = cupy.ones(1000, cupy.float32)
    # PyTorch may have left another device current.
    for current in (0, 1):
        cupy.cuda.runtime.setDevice(current)
        assert wf.sum(on_second).device.id == 1 and cupy.cuda.runtime.getDevice() == current
    cupy.cuda.runtime.setDevice(0)
    for call in (
        lambda: wf.vecdot(x, torch.ones(1000, device="cuda:0")),
        lambda: wf.sum(x, out=torch.zeros((), device="cuda:0")),
    ):
        with pytest.raises(ValueError, match="device"):
            call()
