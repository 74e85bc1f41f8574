"""The kinds of arrays that the tests take."""

from fake_arrays import (
    CupyArray,
    Current,
    DLPackArray,
    InterfaceArray,
    JaxArray,
    Memory,
    OldDLPackArray,
    TableArray,
    TorchTensor,
    table_class,
)

WithoutView = table_class(has_view=False)


def table(memory, stream=0):
    TableArray.stream = stream
    return TableArray(memory)


def without_view(memory, stream=0):
    WithoutView.stream = stream
    return WithoutView(memory)


def cupy(memory, stream=0):
    Current.cupy_stream = stream
    return CupyArray(memory)


def torch(memory, stream=0):
    Current.torch_stream = stream
    return TorchTensor(memory)


def interface(memory, stream=0):
    return InterfaceArray(memory, stream or None)


def dlpack(memory):
    return DLPackArray(memory)


def old_dlpack(memory):
    return OldDLPackArray(memory)


def jax(memory):
    return JaxArray(memory)


# Work goes to the library's stream.
ON_STREAM = [table, without_view, cupy, torch, interface]
# The host waits.
WAITING = [dlpack, old_dlpack, jax]
ALL = ON_STREAM + WAITING


def name(kind):
    return getattr(kind, "__name__", str(kind))


def new(kind, shape=(6, 5), dtype="float32", **arguments):
    return kind(Memory(shape, dtype, **arguments))
