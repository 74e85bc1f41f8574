"""Arrays in the fake driver's memory, of classes that are like those of PyTorch, CuPy, JAX and Numba."""

import ctypes
import sys
import types

import fake_driver
import ml_dtypes
import numpy as np
from dlpack_structures import DELETER, Legacy, Tensor, Versioned, new_capsule, numbers

CUDA = 2
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Counts:
    """How many tensors were exported, and how often a deleter was called."""

    exported = 0
    deleted = 0


class Memory:
    """An array in the fake driver's memory."""

    def __init__(self, shape, dtype="float32", ordinal=0, strides=None, offset=0, place=CUDA):
        self.shape, self.dtype, self.ordinal, self.place = tuple(shape), np.dtype(dtype), ordinal, place
        self.strides = strides or tuple(np.empty(shape, np.uint8).strides)
        self.size = max(1, int(np.prod(shape))) * self.dtype.itemsize
        if place == CUDA:
            self.base = fake_driver.allocate(self.size, ordinal)
        else:
            self.host = np.zeros(self.size + 64, np.uint8)
            self.base = self.host.ctypes.data
        self.address = self.base + offset * self.dtype.itemsize
        self.is_read_only = False
        self.changes = {}

    def __del__(self):
        if self.place == CUDA:
            fake_driver.free(self.base, self.ordinal)

    def describe(self, tensor):
        """Fills in a tensor. The arrays of numbers live as long as this object."""
        self.numbers = numbers(self.shape), numbers(self.strides)
        tensor.data, tensor.device, tensor.ordinal = self.address, self.place, self.ordinal
        tensor.rank, tensor.lanes, tensor.byte_offset = len(self.shape), 1, 0
        tensor.code = 4 if self.dtype == ml_dtypes.bfloat16 else CODES[self.dtype.kind]
        tensor.bits = 8 * self.dtype.itemsize
        tensor.shape = ctypes.cast(self.numbers[0], ctypes.POINTER(ctypes.c_int64))
        tensor.strides = ctypes.cast(self.numbers[1], ctypes.POINTER(ctypes.c_int64))
        for field, value in self.changes.items():
            setattr(tensor, field, value)

    def read(self):
        assert self.strides == tuple(np.empty(self.shape, np.uint8).strides)
        return fake_driver.read(self.address, self.shape, self.dtype)


class Managed:
    """A tensor that lives until it is deleted."""

    alive = {}

    def __init__(self, memory, versioned=True, major=1):
        self.memory, self.deletions = memory, 0
        self.structure = Versioned() if versioned else Legacy()
        if versioned:
            self.structure.major, self.structure.minor = major, 3
            self.structure.flags = int(memory.is_read_only)
        self.structure.deleter = DELETER(self.delete)
        memory.describe(self.structure.tensor)
        self.address = ctypes.addressof(self.structure)
        self.alive[self.address] = self
        Counts.exported += 1

    def delete(self, address):
        assert address == self.address and self.deletions == 0, "a deleter is called once, with its tensor"
        self.deletions += 1
        Counts.deleted += 1
        del self.alive[address]

    def capsule(self):
        name = b"dltensor_versioned" if isinstance(self.structure, Versioned) else b"dltensor"
        return new_capsule(self.address, name, None)


class Header(ctypes.Structure):
    pass


Header._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.POINTER(Header))]

SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p
)
EXPORT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
VIEW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [
        ("header", Header),
        ("allocate", ALLOCATE),
        ("to_tensor", EXPORT),
        ("to_object", EXPORT),
        ("view", VIEW),
        ("current_stream", STREAM),
    ]


def object_at(address):
    return ctypes.cast(address, ctypes.py_object).value


DTYPES = {(code, 8 * size): f"{kind}{size}" for kind, code in CODES.items() for size in (1, 2, 4, 8, 16)}
DTYPES[4, 16] = ml_dtypes.bfloat16


def table_class(major=1, has_view=True):
    """A new class with an exchange table, whose current stream is `cls.stream`."""

    class TableArray:
        stream = 0
        allocation_error = None
        # The device of new arrays, if it is not the one that is asked for.
        allocates_on = None
        fails = False
        requires_grad = False
        conjugated = negated = False

        def __init__(self, memory):
            self.memory = memory

        def is_conj(self):
            return self.conjugated

        def is_neg(self):
            return self.negated

        @property
        def shape(self):
            return self.memory.shape

        @property
        def dtype(self):
            return self.memory.dtype

    def allocate(prototype, out, context, set_error):
        prototype = prototype.contents
        if TableArray.allocation_error:
            SET_ERROR(set_error)(context, *TableArray.allocation_error)
            return -1
        shape = prototype.shape[: prototype.rank]
        assert prototype.lanes == 1 and prototype.data is None
        dtype = DTYPES[prototype.code, prototype.bits]
        ordinal = prototype.ordinal if TableArray.allocates_on is None else TableArray.allocates_on
        managed = Managed(Memory(shape, dtype, ordinal, place=prototype.device))
        out[0] = managed.address
        return 0

    def to_tensor(address, out):
        out[0] = Managed(object_at(address).memory).address
        return 0

    def to_object(address, out):
        managed = Managed.alive[address]
        made = TableArray(managed.memory)
        # The object owns the tensor.
        managed.delete(address)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
        out[0] = id(made)
        return 0

    def view(address, tensor):
        if TableArray.fails:
            return -1
        object_at(address).memory.describe(tensor.contents)
        return 0

    def current_stream(kind, ordinal, out):
        assert kind == CUDA
        out[0] = TableArray.stream
        return 0

    table = Table()
    table.header.major, table.header.minor = major, 3
    table.allocate, table.to_tensor, table.to_object = ALLOCATE(allocate), EXPORT(to_tensor), EXPORT(to_object)
    table.view, table.current_stream = VIEW(view) if has_view else VIEW(), STREAM(current_stream)
    TableArray.table = table
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    TableArray.__dlpack_c_exchange_api__ = capsule
    return TableArray


TableArray = table_class()


class DLPackArray:
    """An array that has DLPack alone, as those of JAX do, and records the streams of its consumers."""

    versioned, major = True, 1

    def __init__(self, memory):
        self.memory, self.streams = memory, []

    def __dlpack__(self, *, stream=None, max_version=None):
        assert max_version is None or max_version[0] == 1
        self.streams.append(stream)
        return Managed(self.memory, self.versioned, self.major).capsule()

    def __dlpack_device__(self):
        return (self.memory.place, self.memory.ordinal)

    @property
    def shape(self):
        return self.memory.shape

    @property
    def dtype(self):
        return self.memory.dtype


class JaxArray(DLPackArray):
    def astype(self, dtype):
        return JaxArray(Memory(self.shape, dtype))


JaxArray.__module__ = "jaxlib._jax"


class OldDLPackArray(DLPackArray):
    """Of a library that knows no versions."""

    versioned = False

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


class InterfaceArray:
    """An array that has `__cuda_array_interface__` alone, as those of Numba do."""

    def __init__(self, memory, stream=None, **changes):
        self.memory = memory
        size = memory.dtype.itemsize
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": memory.shape,
            "typestr": memory.dtype.str,
            "data": (memory.address, memory.is_read_only),
            "strides": tuple(stride * size for stride in memory.strides),
            "stream": stream,
        } | changes


class FakeStream:
    def __init__(self, handle):
        self.ptr = self.cuda_stream = handle


class CupyArray(DLPackArray):
    """Is `cupy.ndarray`."""

    @property
    def data(self):
        return FakeStream(self.memory.address)

    def astype(self, dtype):
        return CupyArray(Memory(self.shape, dtype))

    def __setitem__(self, index, value):
        assert index is Ellipsis and value.shape == self.shape
        self.assigned = value


CupyArray.__module__, CupyArray.__name__ = "cupy", "ndarray"


class TorchTensor(DLPackArray):
    """Is `torch.Tensor` without a table."""

    requires_grad = False

    def is_conj(self):
        return False

    def is_neg(self):
        return False

    def data_ptr(self):
        return self.memory.address

    def to(self, dtype):
        return TorchTensor(Memory(self.shape, dtype, self.memory.ordinal, place=self.memory.place))

    def copy_(self, other):
        assert other.shape == self.shape
        self.assigned = other


TorchTensor.__module__, TorchTensor.__name__ = "torch", "Tensor"


class Current:
    """What the fake modules say."""

    cupy_stream = cupy_device = torch_stream = 0
    is_grad_enabled = True


class CupyDevice:
    def __init__(self, ordinal):
        self.ordinal = ordinal

    def __enter__(self):
        self.before, Current.cupy_device = Current.cupy_device, self.ordinal

    def __exit__(self, *error):
        Current.cupy_device = self.before


def torch_empty(shape, *, dtype, device):
    place, ordinal = (1, 0) if device == "cpu" else (CUDA, int(device.removeprefix("cuda:")))
    return TorchTensor(Memory(shape, dtype, ordinal, place=place))


def module(name, **attributes):
    made = types.ModuleType(name)
    vars(made).update(attributes)
    sys.modules[name] = made
    return made


# Its parts are no modules that can be imported, as in CuPy.
runtime = types.SimpleNamespace(getDevice=lambda: Current.cupy_device)
cuda = types.SimpleNamespace(
    get_current_stream=lambda device: FakeStream(Current.cupy_stream),
    Device=CupyDevice,
    runtime=runtime,
)
module("cupy", empty=lambda shape, dtype: CupyArray(Memory(shape, dtype, Current.cupy_device)), cuda=cuda)
torch_cuda = types.SimpleNamespace(current_stream=lambda device: FakeStream(Current.torch_stream))
names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
names += ["bool", "float16", "float32", "float64", "complex64", "complex128"]
module(
    "torch",
    cuda=torch_cuda,
    empty=torch_empty,
    is_grad_enabled=lambda: Current.is_grad_enabled,
    bfloat16=np.dtype(ml_dtypes.bfloat16),
    **{name: np.dtype(name) for name in names},
)
