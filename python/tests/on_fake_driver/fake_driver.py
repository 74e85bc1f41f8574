"""The fake CUDA driver, as another library in the process uses it: its context, memory, streams and captures."""

import ctypes
import os
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

library = ctypes.CDLL(os.environ["WARPFOLD_LIBCUDA"])

LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx"}
ALLOCATIONS = {"cuMemAlloc_v2", "cuMemAllocAsync"}
WAITS = {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2"}


class Call(NamedTuple):
    """A call of the driver, with the state of its thread when it began."""

    function: str
    context: int
    stream: int | None
    is_relaxed: bool
    code: int


def check(code):
    assert code == 0, f"the fake driver's code {code}"


LOGGED = [0]


def logged_bytes():
    """The size of all logs that were taken."""
    return LOGGED[0]


def take_calls():
    """The calls since the last time that this function was called."""
    length = ctypes.c_size_t()
    library.fakeTakeCalls.restype = ctypes.c_void_p
    address = library.fakeTakeCalls(ctypes.byref(length))
    text = ctypes.string_at(address, length.value).decode()
    LOGGED[0] += length.value
    calls = []
    for line in text.splitlines():
        function, context, stream, _, mode, code = line.split()
        stream = None if stream == "-" else int(stream)
        calls.append(Call(function, int(context), stream, mode == "2", int(code)))
    return calls


def report():
    """The numbers of objects, of retains of both contexts, and of waits for the legacy default stream."""
    numbers = (ctypes.c_uint64 * 5)()
    library.fakeReport(numbers)
    return tuple(numbers)[:4]


def thread_state():
    """The current context, the depth of the stack of contexts, and the capture mode."""
    numbers = (ctypes.c_uint64 * 3)()
    library.fakeThreadState(numbers)
    return tuple(numbers)


def lost_captures():
    """How many calls, in all captures, such a capture would not have survived."""
    library.fakeCapture.restype = ctypes.c_uint64
    return library.fakeCapture(ctypes.c_uint64(0))


def retain(ordinal):
    """Creates a device's primary context if there is none, and returns it."""
    check(library.cuInit(0))
    context = ctypes.c_uint64()
    check(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal))
    return context


def use_device(ordinal):
    """Makes a device's primary context current, as libraries on the CUDA runtime do."""
    check(library.cuCtxSetCurrent(retain(ordinal)))


@contextmanager
def on_device(ordinal):
    """Makes a device's primary context current for a while."""
    check(library.cuCtxPushCurrent_v2(ctypes.c_uint64(0xC0_0000 + ordinal)))
    try:
        yield
    finally:
        check(library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_uint64())))


def allocate(size, ordinal=0):
    address = ctypes.c_uint64()
    with on_device(ordinal):
        check(library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)))
    return address.value


def free(address, ordinal=0):
    with on_device(ordinal):
        check(library.cuMemFree_v2(ctypes.c_uint64(address)))


def new_stream(ordinal=0):
    stream = ctypes.c_uint64()
    with on_device(ordinal):
        check(library.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0))
    return stream.value


def destroy_stream(stream, ordinal=0):
    with on_device(ordinal):
        check(library.cuStreamDestroy_v2(ctypes.c_uint64(stream)))


@contextmanager
def capture(stream):
    """Captures a stream in the global mode. The graph is destroyed at the end."""
    graph = ctypes.c_uint64()
    check(library.cuStreamBeginCapture_v2(ctypes.c_uint64(stream), 0))
    try:
        yield
    finally:
        code = library.cuStreamEndCapture(ctypes.c_uint64(stream), ctypes.byref(graph))
        if graph.value:
            check(library.cuGraphDestroy(graph))
    check(code)


def write(address, array):
    ctypes.memmove(address, array.ctypes.data, array.nbytes)


def read(address, shape, dtype):
    count = int(np.prod(shape))
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(dtype).itemsize), dtype).reshape(shape)


def names(calls):
    return [call.function for call in calls]


def launches(calls):
    return [call for call in calls if call.function in LAUNCHES]
