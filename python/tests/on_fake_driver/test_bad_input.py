"""Bad input is a clear error, and leaves the process and the driver as they were."""

import fake_driver
import kinds
import numpy as np
import pytest
import warpfold as wf
from fake_arrays import (
    Current,
    DLPackArray,
    InterfaceArray,
    JaxArray,
    Memory,
    TableArray,
    table_class,
)
from fake_driver import launches, take_calls


@pytest.fixture(autouse=True)
def no_failed_call():
    yield
    for call in take_calls():
        # The driver may be asked for what is no device, and for what is no stream.
        assert call.code == 0 or call.function in ("cuDeviceGet", "cuStreamIsCapturing", "cuStreamGetCtx"), call


KINDS_WITH_OUT = [kinds.table, kinds.cupy, kinds.torch, kinds.interface, kinds.dlpack]


@pytest.mark.parametrize("kind", KINDS_WITH_OUT, ids=kinds.name)
def test_a_wrong_out(kind):
    x = kinds.new(kind)
    read_only = kinds.new(kind, (5,))
    read_only.memory.is_read_only = True
    if kind is kinds.interface:
        read_only = InterfaceArray(read_only.memory)
    cases = [
        (kinds.new(kind, (5,), "float64"), TypeError, "`out` has dtype float64, and the result has float32"),
        (kinds.new(kind, (6,)), ValueError, r"`out` has shape \(6,\), and the result has \(5,\)"),
        (kinds.new(kind, (1, 5)), ValueError, "shape"),
        (kind(Memory((5,), strides=(0,))), (ValueError, RuntimeError), "share|same"),
        (np.zeros(5, "float32"), TypeError, "host memory"),
        ([0.0] * 5, TypeError, "an array, not `list`"),
    ]
    if kind in (kinds.cupy, kinds.torch):
        other = kinds.new(kinds.torch if kind is kinds.cupy else kinds.cupy, (5,))
        cases.append((other, TypeError, "different libraries"))
    # The exchange table has no flag for that.
    if kind is not kinds.table:
        cases.append((read_only, ValueError, "read-only"))
    for out, error, message in cases:
        take_calls()
        with pytest.raises(error, match=message):
            wf.sum(x, axis=0, out=out)
        assert not launches(take_calls())


class View(Memory):
    """A part of other memory."""

    def __init__(self, memory, shape, start, strides):
        vars(self).update(vars(memory))
        self.owner, self.shape, self.strides = memory, shape, strides
        self.address = memory.base + memory.dtype.itemsize * start

    def __del__(self):
        pass


@pytest.mark.parametrize("kind", KINDS_WITH_OUT, ids=kinds.name)
def test_out_that_overlaps_the_input(kind):
    memory = Memory((100,))
    x = kind(View(memory, (6, 5), 20, (5, 1)))
    for start, strides in [(20, (1,)), (16, (1,)), (49, (1,)), (53, (-1,)), (0, (6,)), (16, (10,))]:
        with pytest.raises(ValueError, match="overlaps"):
            wf.sum(x, axis=0, out=kind(View(memory, (5,), start, strides)))
    for start, strides in [(15, (1,)), (50, (1,)), (54, (-1,)), (19, (-1,))]:
        wf.sum(x, axis=0, out=kind(View(memory, (5,), start, strides)))
    # The second input counts, too.
    with pytest.raises(ValueError, match="overlaps"):
        wf.vecdot(kinds.new(kind), x, out=kind(View(memory, (6,), 22, (1,))))


def test_out_on_another_device():
    fake_driver.retain(1)
    with pytest.raises(ValueError, match="two devices|device"):
        wf.sum(kinds.new(kinds.table), axis=0, out=kinds.new(kinds.table, (5,), ordinal=1))
    with pytest.raises(ValueError, match="two devices"):
        wf.vecdot(kinds.new(kinds.table), kinds.new(kinds.table, ordinal=1))


def test_jax_arrays_never_change():
    with pytest.raises(ValueError, match="read-only"):
        wf.sum(JaxArray(Memory((6, 5))), axis=0, out=JaxArray(Memory((5,))))


def test_arrays_of_two_libraries_or_places():
    x = kinds.new(kinds.table)
    with pytest.raises(TypeError, match="different libraries"):
        wf.vecdot(kinds.new(kinds.cupy), kinds.new(kinds.torch))
    with pytest.raises(TypeError, match="host memory"):
        wf.vecdot(x, np.ones((6, 5), "float32"))
    with pytest.raises(TypeError, match="host memory"):
        wf.segment_sum(kinds.new(kinds.table, (6,)), np.array([0, 6]))
    with pytest.raises(TypeError, match="on a GPU"):
        wf.sum(np.ones((6, 5), "float32"), axis=0, out=kinds.new(kinds.table, (5,)))
    with pytest.raises(TypeError, match="on a GPU: copy one"):
        wf.ExactDot(x, np.ones((6, 5), "float32"))
    with pytest.raises(TypeError, match="the other on a GPU"):
        wf.exact_sums(x, axis=0).merge(wf.exact_sums(np.ones((6, 5), "float32"), axis=0))


def test_a_device_that_does_not_exist():
    for kind in (kinds.table, kinds.cupy, kinds.dlpack):
        x = kind(Memory((3,)))
        x.memory.ordinal = 5
        with pytest.raises((RuntimeError, ValueError), match="5|device"):
            wf.sum(x)
        x.memory.ordinal = 0


def test_memory_of_another_device_than_is_named():
    fake_driver.retain(1)
    x = TableArray(Memory((3,), ordinal=1))
    x.memory.changes["ordinal"] = 0
    with pytest.raises((RuntimeError, ValueError), match="device 1"):
        wf.sum(x)

    class Lies(DLPackArray):
        def __dlpack_device__(self):
            return (2, 1)

    with pytest.raises(TypeError, match="another device"):
        wf.sum(Lies(Memory((3,))))


def test_a_stream_of_another_context():
    fake_driver.retain(1)
    stream = fake_driver.new_stream(ordinal=1)
    with pytest.raises(RuntimeError, match="context|stream"):
        wf.sum(kinds.table(Memory((3,)), stream))


@pytest.mark.parametrize("kind", kinds.ALL, ids=kinds.name)
def test_memory_that_is_none(kind):
    host = np.zeros(8, "float32")
    for address in (0, host.ctypes.data, 64, 2**64 - 4):
        memory = Memory((3,))
        memory.address = address
        with pytest.raises((ValueError, RuntimeError), match="memory"):
            wf.sum(kind(memory))


@pytest.mark.parametrize("kind", kinds.ALL, ids=kinds.name)
def test_elements_outside_of_their_allocation(kind):
    for shape, strides, offset in [((1000,), (1,), 0), ((3,), (1,), 2), ((2,), (-1,), 0), ((2, 2), (2**40, 1), 0)]:
        memory = Memory((3,))
        memory.shape, memory.strides = shape, strides
        memory.address += 4 * offset
        with pytest.raises((ValueError, RuntimeError), match="allocation|memory|address space"):
            wf.sum(kind(memory))


@pytest.mark.parametrize("kind", kinds.ALL, ids=kinds.name)
def test_memory_that_is_not_aligned(kind):
    memory = Memory((8,))
    memory.shape, memory.strides = (3,), (1,)
    memory.address += 2
    with pytest.raises((ValueError, RuntimeError), match="aligned"):
        wf.sum(kind(memory))


BAD_TENSORS = {
    "several lanes": (TypeError, {"lanes": 2}),
    "half a byte": (TypeError, {"bits": 4}),
    "float8": (TypeError, {"code": 10, "bits": 8}),
    "unknown code": (TypeError, {"code": 77}),
    "negative rank": (ValueError, {"rank": -1}),
    "many axes": (ValueError, {"rank": 65}),
    "OpenCL": (TypeError, {"device": 4}),
    "ROCm": (TypeError, {"device": 10}),
    "a negative device": (TypeError, {"ordinal": -1}),
    "an offset beyond the memory": (ValueError, {"byte_offset": 2**64 - 8}),
}


@pytest.mark.parametrize("kind", [kind for kind in kinds.ALL if kind is not kinds.interface], ids=kinds.name)
@pytest.mark.parametrize("case", BAD_TENSORS)
def test_a_wrong_tensor(kind, case):
    error, changes = BAD_TENSORS[case]
    x = kinds.new(kind)
    x.memory.changes = changes
    with pytest.raises(error):
        wf.sum(x)


BAD_INTERFACES = {
    "version 1": {"version": 1},
    "version 4": {"version": 4},
    "no version": {"version": None},
    "stream 0": {"stream": 0},
    "a text as stream": {"stream": "text"},
    "a mask": {"mask": np.zeros(30, bool)},
    "no shape": {"shape": None},
    "a list as shape": {"shape": [6, 5]},
    "no data": {"data": None},
    "big-endian": {"typestr": ">f4"},
    "strides between elements": {"strides": (21, 4)},
    "too many strides": {"strides": (20, 4, 4)},
    "a negative extent": {"shape": (-6, 5)},
    "a structure": {"typestr": "|V12"},
}


@pytest.mark.parametrize("case", BAD_INTERFACES)
def test_a_wrong_interface(case):
    with pytest.raises((TypeError, ValueError)):
        wf.sum(InterfaceArray(Memory((6, 5)), **BAD_INTERFACES[case]))
    x = InterfaceArray(Memory((6, 5)))
    x.__cuda_array_interface__ = "text"
    with pytest.raises(TypeError, match="dict"):
        wf.sum(x)


def test_another_major_version():
    x = DLPackArray(Memory((3,)))
    x.major = 2
    with pytest.raises(BufferError, match="version 2.3"):
        wf.sum(x)
    # A class whose table has another version is read as if it had none.
    other = table_class(major=2)(Memory((3,)))
    with pytest.raises(TypeError, match="takes arrays"):
        wf.sum(other)


def test_a_table_of_an_older_version_is_found():
    newer = table_class(major=2)
    older = table_class(major=1)
    newer.table.header.previous = fake_driver.ctypes.pointer(older.table.header)
    older.stream = stream = fake_driver.new_stream()
    wf.sum(newer(Memory((3,))), out=newer(Memory(())))
    assert {call.stream for call in launches(take_calls())} == {stream}


def test_a_table_that_fails_without_an_exception():
    TableArray.fails = True
    with pytest.raises(TypeError, match="no elements in memory that can be read .*did not say why"):
        wf.sum(kinds.new(kinds.table))


class RaisesOnAccess:
    """A JAX tracer has the attribute, and raises its own error."""

    @property
    def __dlpack__(self):
        raise RuntimeError("a traced array has no memory")


class NoStorage(DLPackArray):
    """A tensor without storage: sparse, meta, or a subclass."""

    def __dlpack__(self, **arguments):
        raise BufferError("it has no storage")


def test_errors_of_the_library_are_passed_on():
    with pytest.raises(RuntimeError, match="no memory"):
        wf.sum(RaisesOnAccess())
    with pytest.raises(BufferError, match="no storage"):
        wf.sum(NoStorage(Memory((3,))))

    class NoCapsule(DLPackArray):
        def __dlpack__(self, **arguments):
            return 1

    with pytest.raises(ValueError, match="no capsule"):
        wf.sum(NoCapsule(Memory((3,))))
    with pytest.raises(TypeError, match="takes arrays"):
        wf.sum(type(kinds.new(kinds.table)))


LAZY = {
    "requires_grad": ("float32", "detach"),
    "negated": ("float32", "resolve_neg"),
    "conjugated": ("complex64", "resolve_conj"),
}


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("flag", LAZY)
def test_tensors_that_are_not_what_memory_has(flag, place):
    dtype, message = LAZY[flag]
    x = kinds.new(kinds.table, dtype=dtype, place=place)
    setattr(x, flag, True)
    calls = [wf.matrix_transpose, lambda x: wf.permute_dims(x, (1, 0))]
    if dtype == "float32":
        calls += [wf.sum, wf.ExactSum, lambda x: wf.sum(x, out=kinds.new(kinds.table, ()))]
        calls += [lambda x: wf.sum(kinds.new(kinds.table, (7, 6, 5), place=place), axis=0, out=x)]
    for call in calls:
        with pytest.raises(TypeError, match=message):
            call(x)
    Current.is_grad_enabled = False
    if flag == "requires_grad":
        wf.sum(x)


def test_offsets():
    x = kinds.new(kinds.table, (8,))
    for offsets, error, message in [
        (kinds.new(kinds.table, (3,), "int32"), TypeError, "int64 or uint64, not int32"),
        (kinds.new(kinds.table, (3,), "float64"), TypeError, "int64 or uint64, not float64"),
        (kinds.new(kinds.table, (3, 1), "int64"), ValueError, "vector"),
        (kinds.new(kinds.table, (0,), "int64"), ValueError, "no offsets"),
    ]:
        with pytest.raises(error, match=message):
            wf.segment_sum(x, offsets)
    with pytest.raises(ValueError, match="vector"):
        wf.segment_sum(kinds.new(kinds.table), kinds.new(kinds.table, (3,), "int64"))


def test_more_axes_than_a_reduction_takes():
    x = TableArray(Memory((1,) * 40))
    with pytest.raises(ValueError, match="at most 32"):
        wf.sum(x)
