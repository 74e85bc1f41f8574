"""PyTorch, CuPy, JAX and Numba, as the tests use them: to and from the GPU, and work that takes a while."""

import os

# JAX would take most of the memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import cupy
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from numba import cuda

jax.config.update("jax_enable_x64", True)

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
FLOATS = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
NUMBERS = [np.dtype(bool), *INTEGERS, *FLOATS]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]

# About 50 ms of a GPU's clock.
CYCLES = 80_000_000


class Torch:
    name = "torch"
    dtypes = NUMBERS
    has_out = True

    @staticmethod
    def put(array):
        if array.dtype == BFLOAT16:
            return torch.from_numpy(array.view(np.int16).copy()).cuda().view(torch.bfloat16)
        return torch.from_numpy(array.copy()).cuda()

    @staticmethod
    def get(tensor):
        assert type(tensor) is torch.Tensor and tensor.is_cuda
        if tensor.dtype == torch.bfloat16:
            return tensor.view(torch.int16).cpu().numpy().view(BFLOAT16)
        return tensor.cpu().numpy()

    @staticmethod
    def stream():
        return torch.cuda.Stream()

    @staticmethod
    def handle(stream):
        return stream.cuda_stream

    @staticmethod
    def use(stream):
        return torch.cuda.stream(stream)

    @staticmethod
    def fill(array, value):
        array.fill_(value)


class Cupy:
    name = "cupy"
    dtypes = [dtype for dtype in NUMBERS if dtype != BFLOAT16]
    has_out = True

    @staticmethod
    def put(array):
        return cupy.asarray(array)

    @staticmethod
    def get(array):
        assert type(array) is cupy.ndarray
        return cupy.asnumpy(array)

    @staticmethod
    def stream():
        return cupy.cuda.Stream(non_blocking=True)

    @staticmethod
    def handle(stream):
        return stream.ptr

    @staticmethod
    def use(stream):
        return stream

    @staticmethod
    def fill(array, value):
        array.fill(value)


class Jax:
    name = "jax"
    dtypes = NUMBERS
    has_out = False

    @staticmethod
    def put(array):
        return jnp.asarray(array)

    @staticmethod
    def get(array):
        return np.asarray(jax.dlpack.from_dlpack(array))


class Numba:
    name = "numba"
    dtypes = [dtype for dtype in NUMBERS if dtype != BFLOAT16]
    has_out = True

    @staticmethod
    def put(array):
        return cuda.to_device(np.ascontiguousarray(array))

    @staticmethod
    def get(array):
        return cuda.as_cuda_array(array).copy_to_host()


ALL = [Torch, Cupy, Jax, Numba]


def delay(handle):
    """Keeps a stream busy for about 50 ms."""
    with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
        torch.cuda._sleep(CYCLES)


def elements(shape, dtype, seed=0):
    """Elements that cancel, of many magnitudes."""
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype.kind == "c":
        return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    scale = 2.0 ** random.integers(-6, 6, shape)
    return (random.standard_normal(shape) * scale).astype(dtype)


def same(found, expected):
    """Whether two arrays have the same dtype, shape and bits; any NaN equals any other."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    bits = np.dtype(f"V{found.dtype.itemsize}")
    equal = np.ascontiguousarray(found).reshape(-1).view(bits) == np.ascontiguousarray(expected).reshape(-1).view(bits)
    return bool(np.all(equal | ((found != found) & (expected != expected)).reshape(-1)))
