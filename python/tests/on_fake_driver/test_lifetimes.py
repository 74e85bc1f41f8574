"""Deleters run once on each path, and calls leave memory as it was. `conftest.py` counts the tensors of each test."""

import ctypes
import gc
import sys
import threading
import weakref

import fake_driver
import kinds
import numpy as np
import pytest
import warpfold as wf

from dlpack_structures import Versioned
from fake_arrays import Counts, CupyArray, DLPackArray, InterfaceArray, Managed, Memory, TableArray
from support import least_growth


def paths(kind):
    """Calls on each path of a kind of arrays: right ones, and those that fail early or late."""
    x, out = kinds.new(kind), kinds.new(kind, (5,))
    vector, offsets = kinds.new(kind, (8,)), kinds.new(kind, (3,), "int64")
    fake_driver.write(offsets.memory.address, np.array([0, 2, 5]))
    return [
        lambda: wf.sum(x),
        lambda: wf.sum(x, axis=0),
        lambda: wf.sum(x, axis=7),
        lambda: wf.sum(x, dtype="complex64"),
        lambda: wf.sum(x, axis=0, out=out),
        lambda: wf.sum(x, axis=1, out=out),
        lambda: wf.sum(x, out=x),
        lambda: wf.argmax(x, axis=0, out=out),
        lambda: wf.min_max(x),
        lambda: wf.vecdot(x, x),
        lambda: wf.vecdot(x, vector),
        lambda: wf.permute_dims(x, (1, 0)),
        lambda: wf.permute_dims(x, (1, 1)),
        lambda: wf.segment_sum(vector, offsets),
        lambda: wf.segment_sum(vector, vector),
        lambda: wf.ExactSum(x),
        lambda: wf.ExactDot(x, x),
        lambda: wf.sum(kinds.new(kind, (0,), "int8")),
        lambda: wf.max(kinds.new(kind, (0,), "int8")),
    ]


@pytest.mark.parametrize("kind", [*kinds.ALL, kinds.without_view], ids=kinds.name)
def test_each_path_deletes_its_tensors_once(kind):
    errors = 0
    for call in paths(kind):
        before = Counts.exported
        try:
            call()
        except (TypeError, ValueError, RuntimeError):
            errors += 1
        gc.collect()
        assert Counts.exported == Counts.deleted and not Managed.alive
        assert Counts.exported > before or kind in (kinds.interface, kinds.table)
    assert errors >= 5


def test_a_capsule_keeps_a_producer_that_is_freed():
    class Producer(DLPackArray):
        def __dlpack__(self, **arguments):
            capsule = super().__dlpack__(**arguments)
            # Only the tensor keeps the memory now.
            del self.memory
            return capsule

        def __dlpack_device__(self):
            return (2, 0)

    x = Producer(Memory((6, 5)))
    memory = weakref.ref(x.memory)
    y = wf.sum(x)
    gc.collect()
    assert memory() is None and y.shape == ()


def test_a_capsule_that_is_given_twice():
    class Twice(DLPackArray):
        capsule = None

        def __dlpack__(self, **arguments):
            self.capsule = self.capsule or super().__dlpack__(**arguments)
            return self.capsule

    x = Twice(Memory((6, 5)))
    wf.sum(x)
    with pytest.raises(ValueError, match="already used"):
        wf.sum(x)
    assert Counts.exported == Counts.deleted == 1


def tensor_of(capsule):
    name = b"dltensor_versioned"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Versioned.from_address(pointer(capsule, name)), name


def test_capsules_of_results_own_the_memory():
    def objects():
        gc.collect()
        return fake_driver.report()[0]

    x = InterfaceArray(Memory((6, 5)))
    wf.sum(x, axis=0)
    before = objects()
    y = wf.sum(x, axis=0)
    assert objects() == before + 1
    capsule = y.__dlpack__(max_version=(1, 1))
    tensor, _ = tensor_of(capsule)
    assert (tensor.major, tensor.flags, tensor.tensor.rank) == (1, 0, 1)
    assert tensor.tensor.shape[0] == 5 and tensor.tensor.strides[0] == 1
    assert (tensor.tensor.code, tensor.tensor.bits, tensor.tensor.device) == (2, 32, 2)
    assert tensor.tensor.data == y.__cuda_array_interface__["data"][0]
    del y
    assert objects() == before + 1, "the capsule keeps the memory"
    del capsule, tensor
    assert objects() == before, "a capsule that nobody takes frees it"

    # A consumer, which calls the deleter on a thread that Python does not know.
    capsule = wf.sum(x, axis=0).__dlpack__(max_version=(1, 1))
    tensor, name = tensor_of(capsule)
    used = ctypes.c_char_p(b"used_dltensor_versioned")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), used)
    del capsule
    assert objects() == before + 1
    thread = threading.Thread(target=lambda: tensor.deleter(ctypes.addressof(tensor)))
    thread.start()
    thread.join()
    assert objects() == before
    # Old consumers get the structure without a version.
    assert "dltensor_versioned" not in repr(wf.sum(x).__dlpack__()) and '"dltensor"' in repr(wf.sum(x).__dlpack__())


def test_errors_of_an_allocation():
    x = TableArray(Memory((6, 5)))
    TableArray.allocation_error = (b"MemoryError", b"no memory is left")
    with pytest.raises(MemoryError, match="no memory is left"):
        wf.sum(x)
    TableArray.allocation_error = (b"ValueError", b"too bad")
    with pytest.raises(RuntimeError, match="ValueError: too bad"):
        wf.sum(x)
    # The driver is not asked about new arrays.
    fake_driver.retain(1)
    TableArray.allocation_error, TableArray.allocates_on = None, 1
    with pytest.raises(RuntimeError, match="another device"):
        wf.sum(x)


def test_calls_leave_memory_as_it_was():
    calls = [call for kind in kinds.ALL for call in paths(kind)]

    def work(rounds):
        for call in calls * rounds:
            try:
                call()
            except (TypeError, ValueError, RuntimeError):
                pass
            fake_driver.take_calls()

    work(5)
    gc.collect()
    objects = fake_driver.report()[0]
    references = sys.getrefcount(TableArray), sys.getrefcount(CupyArray), sys.getrefcount(None)
    rounds = 1 + 3_400 // len(calls)
    # Without the log of calls, which the fake driver never frees.
    growth = least_growth(lambda: work(rounds), lambda: fake_driver.logged_bytes() // 1024)
    assert growth < 1000, "in KiB; 1 KiB a call would be 3,400"
    assert fake_driver.report()[0] == objects, "what exists in the driver"
    found = sys.getrefcount(TableArray), sys.getrefcount(CupyArray), sys.getrefcount(None)
    assert all(abs(a - b) < 100 for a, b in zip(references, found))


def test_classes_that_are_made_as_a_program_runs_are_forgotten():
    made = []
    for _ in range(300):
        cls = type("Made", (DLPackArray,), {})
        wf.sum(cls(Memory((3,))))
        made.append(weakref.ref(cls))
    del cls
    gc.collect()
    assert sum(reference() is not None for reference in made) <= 64
