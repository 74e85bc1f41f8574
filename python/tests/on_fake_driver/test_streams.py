"""In which stream work runs, what waits for what, and whose context is current."""

import contextlib
import gc
from collections import Counter

import fake_driver
import kinds
import pytest
import warpfold as wf
from fake_arrays import Current, InterfaceArray, JaxArray, Memory, TableArray
from fake_driver import LAUNCHES, WAITS, launches, names, take_calls

LEGACY = {0, 1}

# Calls of functions, with the arrays that they take.
FUNCTIONS = {
    "sum": lambda x: wf.sum(x),
    "sum of columns": lambda x: wf.sum(x, axis=0),
    "narrow sum": lambda x: wf.sum(x, axis=0, dtype="float64"),
    "max": lambda x: wf.max(x, axis=1, keepdims=True),
    "argmax": lambda x: wf.argmax(x),
    "min_max": lambda x: wf.min_max(x, axis=0),
    "vecdot": lambda x: wf.vecdot(x, x),
    "permute_dims": lambda x: wf.permute_dims(x, (1, 0)),
    "matrix_transpose": lambda x: wf.matrix_transpose(x),
}


def own_stream():
    """The stream of the device's handle, in whose order results of this package can be used."""
    result = wf.sum(InterfaceArray(Memory((1,)), fake_driver.new_stream()))
    return result.__cuda_array_interface__["stream"]


def verify_streams(calls, allowed, waits=frozenset()):
    """Verifies that work goes to these streams; others may wait for it."""
    assert launches(calls)
    for call in calls:
        assert call.code == 0, call
        is_wait = call.function == "cuStreamWaitEvent" and call.stream in waits
        assert call.stream is None or is_wait or call.stream in allowed, call


def waiting_for(kind):
    """The streams that wait for a call on an array of this kind: its result is one of this package."""
    return {own_stream()} if kind is kinds.interface else set()


@pytest.mark.parametrize("kind", kinds.ON_STREAM, ids=kinds.name)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_work_goes_to_the_stream_of_the_library(kind, function):
    stream, waits = fake_driver.new_stream(), waiting_for(kind)
    x = kind(Memory((300, 200)), stream)
    # The first call makes a handle, whose own stream and workspaces are set to 0.
    FUNCTIONS[function](x)
    take_calls()
    FUNCTIONS[function](x)
    calls = take_calls()
    verify_streams(calls, {stream}, waits)
    if kind is not kinds.interface:
        assert not WAITS & set(names(calls)), "the host does not wait"


@pytest.mark.parametrize("kind", kinds.ON_STREAM, ids=kinds.name)
def test_work_goes_to_the_legacy_stream_if_that_is_current(kind):
    x, waits = kind(Memory((10,)), 0), waiting_for(kind)
    wf.sum(x)
    take_calls()
    wf.sum(x)
    verify_streams(take_calls(), LEGACY, waits)


@pytest.mark.parametrize("kind", [kinds.cupy, kinds.interface], ids=kinds.name)
def test_the_legacy_stream_stands_for_the_stream_of_a_thread(kind):
    x, waits = kind(Memory((10,)), 2), waiting_for(kind)
    wf.sum(x)
    take_calls()
    wf.sum(x)
    verify_streams(take_calls(), LEGACY, waits)


@pytest.mark.parametrize("kind", kinds.WAITING, ids=kinds.name)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_host_waits_for_libraries_that_do_not_know_of_the_work(kind, function):
    x = kind(Memory((30, 20)))
    FUNCTIONS[function](x)
    take_calls()
    FUNCTIONS[function](x)
    (stream,) = set(x.streams)
    calls = take_calls()
    assert stream not in LEGACY
    verify_streams(calls, {stream})
    last = max(at for at, call in enumerate(calls) if call.function in LAUNCHES)
    waits = [at for at, call in enumerate(calls) if call.function == "cuStreamSynchronize" and call.stream == stream]
    assert waits and waits[-1] > last, "the host waits after the last launch"


def test_a_library_with_a_stream_is_told_not_to_wait():
    x = kinds.cupy(Memory((10,)), fake_driver.new_stream())
    wf.sum(x)
    assert x.streams == [-1]
    x, stream = kinds.torch(Memory((10,))), fake_driver.new_stream()
    wf.sum(x)
    Current.torch_stream = stream
    wf.sum(x)
    assert x.streams == [1, stream]


def test_the_stream_is_asked_for_at_each_call():
    streams = [fake_driver.new_stream() for _ in range(3)]
    x = TableArray(Memory((10,)))
    for stream in streams + streams[::-1]:
        TableArray.stream = stream
        wf.sum(x)
        take_calls()
        wf.sum(x)
        verify_streams(take_calls(), {stream})


@pytest.mark.parametrize("function", ["sum", "sum of rows", "sum of columns", "max"])
def test_a_call_asks_the_driver_for_little(function):
    call = {"sum of rows": lambda x: wf.sum(x, axis=1)}.get(function) or FUNCTIONS[function]
    x = kinds.table(Memory((32, 32)), fake_driver.new_stream())
    call(x)
    take_calls()
    call(x)
    counts = Counter(names(take_calls()))
    # The fake library allocates by the driver.
    for of_library in ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemAlloc_v2", "cuMemFree_v2"):
        del counts[of_library]
    # The driver is asked about the input's memory, and not about that of the result.
    assert counts.pop("cuPointerGetAttributes") == 1 and counts.pop("cuStreamGetId") == 1
    assert counts.pop("cuStreamIsCapturing") <= 3 and counts.pop("cuCtxGetCurrent") <= 5
    (launch,) = counts
    assert launch in LAUNCHES and counts[launch] == 1


def test_events_order_the_work_on_arrays_of_two_streams():
    first, second = fake_driver.new_stream(), fake_driver.new_stream()
    x, y = InterfaceArray(Memory((8,)), first), InterfaceArray(Memory((8,)), second)
    wf.vecdot(x, y)
    take_calls()
    wf.vecdot(x, y)
    order = [(call.function, call.stream) for call in take_calls() if call.stream in (first, second)]
    order = [(function, stream) for function, stream in order if function in LAUNCHES or "Event" in function]
    (launch,) = [function for function, _ in order if function in LAUNCHES]
    assert order == [
        ("cuEventRecord", second),
        ("cuStreamWaitEvent", first),
        (launch, first),
        ("cuEventRecord", first),
        ("cuStreamWaitEvent", second),
        # The device's own stream waits for the result.
        ("cuEventRecord", first),
    ]


def test_events_order_the_work_on_out_of_another_library():
    first, second = fake_driver.new_stream(), fake_driver.new_stream()
    x, out = InterfaceArray(Memory((6, 5)), first), kinds.cupy(Memory((5,)), second)
    wf.sum(x, axis=0, out=out)
    take_calls()
    wf.sum(x, axis=0, out=out)
    calls = take_calls()
    assert {call.stream for call in launches(calls)} == {first}
    waits = [call.stream for call in calls if call.function == "cuStreamWaitEvent"]
    assert waits == [first, second]


@pytest.mark.parametrize("kind", kinds.ALL, ids=kinds.name)
@pytest.mark.parametrize("current", [None, 0, 1])
def test_the_current_context_is_the_one_before(kind, current):
    x = kind(Memory((30, 20)))
    entered = contextlib.nullcontext() if current is None else fake_driver.on_device(current)
    take_calls()
    with entered:
        before = fake_driver.thread_state()
        for call in FUNCTIONS.values():
            call(x)
            assert fake_driver.thread_state() == before
        with pytest.raises(ValueError):
            wf.sum(x, axis=7)
        assert fake_driver.thread_state() == before
    contexts = {call.context for call in take_calls() if call.function in LAUNCHES}
    assert contexts == {0xC0_0000}


def test_an_array_on_the_second_device_is_reduced_there():
    fake_driver.retain(1)
    for kind in kinds.ALL:
        x = kind(Memory((6, 5), ordinal=1))
        take_calls()
        y = wf.sum(x, axis=0)
        assert {call.context for call in launches(take_calls())} == {0xC0_0001}
        assert getattr(y, "memory", None) is None or y.memory.ordinal == 1


@pytest.mark.parametrize("kind", [kinds.table, kinds.cupy, kinds.torch], ids=kinds.name)
def test_a_capture_survives(kind):
    stream = fake_driver.new_stream()
    x = kind(Memory((300, 200)), stream)
    out, offsets = kind(Memory((200,)), stream), kind(Memory((3,), "int64"), stream)
    vector, sums = kind(Memory((9,)), stream), kind(Memory((2,)), stream)
    # The driver counts the calls that no capture survives; the fake libraries allocate in none.
    for when in ("first", "again"):
        with fake_driver.capture(stream):
            take_calls()
            wf.sum(x, axis=0, out=out)
            calls = take_calls()
            assert {call.stream for call in launches(calls)} == {stream}
            assert all(call.code == 0 for call in calls), when
            for refused in (lambda: wf.ExactSum(x), lambda: wf.segment_sum(vector, offsets, out=sums)):
                with pytest.raises(RuntimeError, match="out="):
                    refused()
        assert fake_driver.lost_captures() == 0
        FUNCTIONS["sum"](x)


def test_a_first_call_within_a_capture():
    stream = fake_driver.new_stream()
    x, out = kinds.table(Memory((1 << 16,)), stream), TableArray(Memory(()))
    with fake_driver.capture(stream):
        wf.sum(x, out=out)
    wf.sum(x, out=out)


def test_handles_of_streams_are_bounded():
    x, objects = TableArray(Memory((1 << 12,))), []
    for count in range(200):
        TableArray.stream = fake_driver.new_stream()
        wf.sum(x)
        fake_driver.destroy_stream(TableArray.stream)
        gc.collect()
        objects.append(fake_driver.report()[0])
    assert objects[150] == objects[-1], "memory of handles that were used long ago is freed"
    for call in take_calls():
        assert call.code == 0, call


def test_the_consumer_of_a_result_waits_for_it():
    stream, consumer, own = fake_driver.new_stream(), fake_driver.new_stream(), own_stream()
    take_calls()
    y = wf.sum(InterfaceArray(Memory((6, 5)), stream), axis=0)
    verify_streams(take_calls(), {stream}, {own})
    # The stream of the work may be destroyed before the result.
    fake_driver.destroy_stream(stream)
    assert type(y) is wf.Array and (y.shape, y.dtype) == ((5,), "float32")
    assert y.__dlpack_device__() == (2, 0)
    interface = y.__cuda_array_interface__
    assert interface["stream"] == own and interface["shape"] == (5,) and interface["typestr"] == "<f4"
    # Its first use of the stream.
    y.__dlpack__(stream=consumer)
    take_calls()
    y.__dlpack__(stream=consumer)
    events = [call for call in take_calls() if call.function in ("cuEventRecord", "cuStreamWaitEvent")]
    order = [(call.function, call.stream) for call in events]
    assert order == [("cuEventRecord", own), ("cuStreamWaitEvent", consumer)]
    for without_order in (-1, own):
        y.__dlpack__(stream=without_order)
        assert "cuEventRecord" not in names(take_calls())
    for refused in ({"stream": 0}, {"stream": -5}, {"dl_device": (1, 0)}, {"copy": True}):
        with pytest.raises((ValueError, BufferError)):
            y.__dlpack__(**refused)
    # A result is an array for this package, too.
    take_calls()
    assert type(wf.sum(y)) is wf.Array
    verify_streams(take_calls(), {own})


def test_a_result_that_was_waited_for_has_no_stream():
    y = wf.sum(JaxArray(Memory((6, 5))), axis=0)
    assert y.__cuda_array_interface__["stream"] is None
    take_calls()
    y.__dlpack__(stream=1)
    assert "cuEventRecord" not in names(take_calls())
