//! Streams and memory of another library, and its captures of work of warpfold.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cust::context::Context;
use cust::graph::CaptureMode;
use cust::memory::DeviceBuffer;
use cust::stream::{Stream, StreamFlags};
use fake_driver::{Call, in_child, take_calls};
use test_support::TEST_KERNELS;
use warpfold::interop::{self, Borrowed, StreamId};
use warpfold::{Error, Gpu, ops};

use crate::calls::call_with;
use crate::witness::{Witness, stream_of};
use crate::{LAUNCH, context_of};

/// A stream of another library in this context.
fn stream_in(context: &Context) -> Stream {
    let _entered = context.enter().unwrap();
    Stream::new(StreamFlags::NON_BLOCKING, None).unwrap()
}

/// A handle on a stream of another library, which outlives it.
fn on(gpu: &Gpu, stream: &Stream) -> Gpu {
    // SAFETY: the tests drop the handle and what was made by it before the stream, and use both on one thread.
    unsafe { interop::on_stream(gpu, stream.as_inner().cast()) }.unwrap()
}

/// Numbers of another library in the memory of the current context's device.
fn numbers(count: usize) -> DeviceBuffer<f32> {
    DeviceBuffer::from_slice(&vec![1.0; count]).unwrap()
}

/// A borrowed array of all numbers.
fn borrowed<'m>(gpu: &Gpu, numbers: &'m DeviceBuffer<f32>) -> Borrowed<'m, f32> {
    let address = numbers.as_device_ptr().as_raw();
    // SAFETY: the numbers are borrowed for the same time, and nobody writes them.
    unsafe { interop::borrow(gpu, address, &[numbers.len()], &[1]) }.unwrap()
}

/// The calls of a function since the last time.
fn calls_of(function: &str, calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.function == function).count()
}

#[test]
fn all_work_goes_to_a_borrowed_stream() {
    in_child!("borrowed::all_work_goes_to_a_borrowed_stream", fake_driver::path());
    let theirs = context_of(0);
    let stream = stream_in(&theirs);
    for is_captured in [false, true] {
        let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
        let on_theirs = on(&gpu, &stream);
        assert_eq!(stream_of(&on_theirs), stream.as_inner().addr() as u64);
        let mut witness = Witness::new(theirs.as_raw().addr() as u64, is_captured, LAUNCH);
        call_with(&mut witness, &on_theirs);
        drop(on_theirs);
        witness.verify("drop of a handle", stream.as_inner().addr() as u64);
        fake_driver::capture(false);
        assert_eq!(calls_of("cuStreamDestroy_v2", &take_calls()), 0, "the stream is theirs");
    }
    stream.synchronize().unwrap();
}

#[test]
fn the_legacy_default_stream_is_0_and_1() {
    in_child!("borrowed::the_legacy_default_stream_is_0_and_1", fake_driver::path());
    let theirs = context_of(0);
    let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
    for handle in [0, 1] {
        // SAFETY: the default stream exists always.
        let default = unsafe { interop::on_stream(&gpu, ptr::without_provenance_mut(handle)) }.unwrap();
        assert_eq!(stream_of(&default), 1);
        let mut witness = Witness::new(theirs.as_raw().addr() as u64, false, LAUNCH);
        call_with(&mut witness, &default);
    }
}

#[test]
fn streams_that_a_handle_cannot_use_are_refused() {
    in_child!("borrowed::streams_that_a_handle_cannot_use_are_refused", fake_driver::path());
    let gpu = Gpu::new(0).unwrap();
    let other = context_of(1);
    let of_other_device = stream_in(&other);
    let refused = |stream: *mut c_void| {
        // SAFETY: the handle is dropped at once.
        unsafe { interop::on_stream(&gpu, stream) }.unwrap_err()
    };
    assert!(matches!(refused(of_other_device.as_inner().cast()), Error::OtherContext));
    let error = refused(ptr::without_provenance_mut(2));
    assert!(matches!(error, Error::PerThreadStream) && error.to_string().contains("handle 2"), "{error}");
    let executor = Gpu::simt();
    // SAFETY: the executor has no streams, and refuses any.
    let refused = unsafe { interop::on_stream(&executor, of_other_device.as_inner().cast()) };
    assert!(matches!(refused, Err(Error::NoStreams { .. })));
}

#[test]
fn a_stream_is_kept_by_its_owner() {
    in_child!("borrowed::a_stream_is_kept_by_its_owner", fake_driver::path());
    let theirs = context_of(0);
    let gpu = Gpu::new(0).unwrap();
    let stream = Arc::new(stream_in(&theirs));
    // SAFETY: the owner keeps the stream.
    let on_theirs = unsafe { interop::on_stream_of(&gpu, stream.as_inner().cast(), stream.clone()) }.unwrap();
    drop(gpu);
    let x = on_theirs.upload(&[1.0_f32, 2.0]).unwrap();
    assert_eq!(Arc::strong_count(&stream), 2);
    drop(on_theirs);
    assert_eq!(Arc::strong_count(&stream), 2, "the buffer's memory is freed in the order of the stream");
    take_calls();
    drop(x);
    assert_eq!(Arc::strong_count(&stream), 1);
    assert_eq!(calls_of("cuStreamDestroy_v2", &take_calls()), 0);
    drop(Arc::into_inner(stream).unwrap());
    assert_eq!(calls_of("cuStreamDestroy_v2", &take_calls()), 1);
}

#[test]
fn a_handle_may_be_dropped_after_its_stream() {
    in_child!("borrowed::a_handle_may_be_dropped_after_its_stream", fake_driver::path());
    let theirs = context_of(0);
    let before = fake_driver::report();
    let gpu = Gpu::new(0).unwrap();
    let stream = stream_in(&theirs);
    let on_theirs = on(&gpu, &stream);
    let buffers = [on_theirs.upload(&[1.0_f32; 100]).unwrap(), on_theirs.zeroed(7).unwrap()];
    // The result is in host memory, which kernels write.
    on_theirs.sum(&buffers[0]).unwrap();
    let layout = warpfold::Layout::contiguous(&[100]).unwrap();
    let reducer = on_theirs.reducer::<_, f32, 1>(ops::Sum, &layout, 0).unwrap();
    let raw = stream.as_inner().addr() as u64;
    drop(stream);
    take_calls();
    drop((buffers, reducer, on_theirs));
    let calls = take_calls();
    assert!(calls.iter().all(|call| call.code == 0 && call.stream != Some(raw)), "{calls:?}");
    assert!(calls_of("cuMemFree_v2", &calls) > 0 && calls_of("cuMemFreeHost", &calls) == 1, "{calls:?}");
    drop(gpu);
    assert_eq!(fake_driver::report(), before);
}

#[test]
fn each_stream_has_an_identifier() {
    in_child!("borrowed::each_stream_has_an_identifier", fake_driver::path());
    let (gpu, theirs) = (Gpu::new(0).unwrap(), context_of(0));
    let streams = [stream_in(&theirs), stream_in(&theirs)];
    // SAFETY: the streams exist.
    let id = |stream: &Stream| unsafe { interop::stream_id(&gpu, stream.as_inner().cast()) }.unwrap();
    assert!(matches!(id(&streams[0]), StreamId::Known(_)));
    assert_ne!(id(&streams[0]), id(&streams[1]));
    assert_eq!(id(&streams[0]), id(&streams[0]));
    streams[0].begin_capture(CaptureMode::Global).unwrap();
    assert_eq!(id(&streams[0]), StreamId::Captured);
    streams[0].end_capture().unwrap();
}

#[test]
fn memory_that_a_handle_cannot_use_is_refused() {
    in_child!("borrowed::memory_that_a_handle_cannot_use_is_refused", fake_driver::path());
    let gpu = Gpu::new(0).unwrap();
    let (first, second) = (context_of(0), context_of(1));
    let (own, other) = {
        let own = first.enter().map(|_entered| numbers(1000)).unwrap();
        (own, second.enter().map(|_entered| numbers(1000)).unwrap())
    };
    let host = [1.0_f32; 8];
    let address = own.as_device_ptr().as_raw();
    let refused = |address: u64, extents: &[usize], strides: &[isize]| {
        // SAFETY: nothing reads the memory.
        let borrowed = unsafe { interop::borrow::<f32>(&gpu, address, extents, strides) };
        borrowed.err().map(|error| error.to_string())
    };
    let contains = |refused: Option<String>, text: &str| {
        let text_of = refused.unwrap_or_default();
        assert!(text_of.contains(text), "`{text_of}` has no `{text}`");
    };
    assert_eq!(refused(address, &[10, 100], &[100, 1]), None);
    assert_eq!(refused(address + 4 * 999, &[10, 100], &[-100, -1]), None);
    contains(refused(host.as_ptr().addr() as u64, &[8], &[1]), "no memory that the CUDA driver knows");
    contains(refused(other.as_device_ptr().as_raw(), &[1000], &[1]), "memory of device 1, not of device 0");
    contains(refused(address, &[1005], &[1]), "not inside their allocation, 4000 bytes at");
    contains(refused(address, &[2], &[1 << 40]), "not inside their allocation");
    contains(refused(address, &[1000], &[-1]), "no memory that the CUDA driver knows");
    contains(refused(4, &[1000], &[-1]), "elements outside of it");
    contains(refused(address + 2, &[10], &[1]), "not aligned for `f32`: pass a multiple of 4");
    contains(refused(address, &[10, 10], &[1]), "strides");
    contains(refused(address, &[usize::MAX, usize::MAX], &[1, 1]), "any memory could hold");
    // No element, no memory.
    assert_eq!(refused(0, &[3, 0], &[1, 1]), None);
    // SAFETY: nothing accesses the memory.
    let overlapping = unsafe { interop::borrow_mut::<f32>(&gpu, address, &[10, 10], &[1, 1]) };
    assert!(matches!(overlapping, Err(Error::Overlap { .. })));
    // The other handle's memory is refused by calls.
    let elsewhere = Gpu::new(1).unwrap();
    let x = borrowed(&gpu, &own);
    assert!(matches!(elsewhere.reduce(ops::Sum, x.view(), 0), Err(Error::OtherDevice { .. })));
}

#[test]
fn a_handle_waits_for_another_without_the_host() {
    in_child!("borrowed::a_handle_waits_for_another_without_the_host", fake_driver::path());
    for ordinal in [0, 1] {
        let gpu = Gpu::new(0).unwrap();
        let other = if ordinal == 0 { gpu.fork().unwrap() } else { Gpu::new(1).unwrap() };
        let streams = [stream_of(&gpu), stream_of(&other)];
        take_calls();
        gpu.wait_for(&other).unwrap();
        let calls = take_calls();
        let order: Vec<(&str, u64)> = calls
            .iter()
            .filter(|call| ["cuEventRecord", "cuStreamWaitEvent"].contains(&call.function))
            .map(|call| (call.function, call.stream.unwrap()))
            .collect();
        assert_eq!(order, [("cuEventRecord", streams[1]), ("cuStreamWaitEvent", streams[0])]);
        assert_eq!(calls_of("cuStreamSynchronize", &calls), 0);
        for (first, second) in [(&gpu, &other), (&other, &gpu)] {
            let recorded =
                first.record(|| second.wait_for(first)).err().or(first.record(|| first.wait_for(second)).err());
            assert!(matches!(recorded, Some(Error::Recording { .. })), "{recorded:?}");
        }
        let executor = Gpu::simt();
        gpu.wait_for(&executor).unwrap();
        take_calls();
        executor.wait_for(&gpu).unwrap();
        assert_eq!(calls_of("cuEventSynchronize", &take_calls()), 1, "the executor's work is the host's");
    }
}

#[test]
fn a_graph_of_another_library_keeps_the_memory_of_captured_work() {
    in_child!("borrowed::a_graph_of_another_library_keeps_the_memory_of_captured_work", fake_driver::path());
    let theirs = context_of(0);
    let stream = stream_in(&theirs);
    let entered = theirs.enter().unwrap();
    let x = numbers(1 << 20);
    let before = fake_driver::report();
    let gpu = Gpu::new(0).unwrap();
    let on_theirs = on(&gpu, &stream);
    // Before the capture, so that the kernel is loaded, and a workspace exists.
    let mut outside = on_theirs.zeroed::<f32>(1).unwrap();
    let sum = |output: &mut warpfold::Buffer<f32>| {
        let one = output.view_mut().reshape(&[]).unwrap();
        on_theirs.reduce_into(ops::Sum, borrowed(&on_theirs, &x).view(), 0, one)
    };
    sum(&mut outside).unwrap();
    let offsets = on_theirs.upload(&[0_u64, 1]).unwrap();
    take_calls();
    sum(&mut outside).unwrap();
    assert_eq!(calls_of("cuMemAlloc_v2", &take_calls()), 0, "the workspace is used again");

    stream.begin_capture(CaptureMode::Global).unwrap();
    let mut output = on_theirs.zeroed::<f32>(1).unwrap();
    sum(&mut output).unwrap();
    let first = take_calls();
    // The output, and four kinds of memory of a workspace.
    assert_eq!(calls_of("cuMemAlloc_v2", &first), 5, "captured work has a workspace of its own");
    sum(&mut output).unwrap();
    assert_eq!(calls_of("cuMemAlloc_v2", &take_calls()), 0, "the work of one capture shares it");
    // What waits is refused before the driver makes the capture invalid.
    let errors = [
        on_theirs.download(&output).err(),
        on_theirs.upload(&[1.0_f32]).err(),
        on_theirs.synchronize().err(),
        on_theirs.sum(&outside).err(),
        on_theirs.time(|| Ok(())).err(),
        on_theirs.exact_sum(&outside).err(),
        on_theirs.download(outside.view().reshape(&[1]).unwrap().broadcast_to(&[3]).unwrap()).err(),
        on_theirs.reduce_segments(ops::Sum, &outside, &offsets).err(),
    ];
    for error in errors {
        assert!(matches!(error, Some(Error::Captured { .. })), "{error:?}");
    }
    let graph = stream.end_capture().unwrap();
    let executable = graph.instantiate().unwrap();
    assert_eq!(graph.num_nodes().unwrap(), 2, "the launches, and no fills of new memory");

    // Other work uses the first workspace again, although the one of the capture is free.
    take_calls();
    sum(&mut outside).unwrap();
    assert_eq!(calls_of("cuMemAlloc_v2", &take_calls()), 0);
    stream.begin_capture(CaptureMode::Global).unwrap();
    sum(&mut outside).unwrap();
    assert_eq!(calls_of("cuMemAlloc_v2", &take_calls()), 4, "each capture has a workspace");
    drop(stream.end_capture().unwrap());

    // The graph runs on after everything else is gone.
    drop((output, outside, offsets));
    drop(on_theirs);
    drop(gpu);
    // SAFETY: the graph keeps the memory that its work uses.
    unsafe { executable.launch(&stream) }.unwrap();
    let kept = fake_driver::report().objects;
    drop(graph);
    assert_eq!(fake_driver::report().objects, kept - 1, "what was instantiated keeps the memory");
    drop(executable);
    // The next call of any handle frees it.
    drop(Gpu::new(0).unwrap().zeroed::<u8>(1).unwrap());
    assert_eq!(fake_driver::report(), before);
    drop((entered, x));
}

/// Counts its drops.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn graphs_keep_the_owner_of_borrowed_memory() {
    in_child!("borrowed::graphs_keep_the_owner_of_borrowed_memory", fake_driver::path());
    let theirs = context_of(0);
    let stream = stream_in(&theirs);
    let _entered = theirs.enter().unwrap();
    let x = numbers(4);
    let gpu = on(&Gpu::new(0).unwrap(), &stream);
    let mut copy = gpu.zeroed::<f32>(4).unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    // SAFETY: the numbers exist until the end of this test.
    let owned = || unsafe { borrowed(&gpu, &x).with_owner(Owner(drops.clone())) };
    let count = || drops.load(Ordering::Relaxed);

    // A recording.
    let refused = gpu.record(|| gpu.copy_array(borrowed(&gpu, &x).view(), &mut copy));
    assert!(matches!(refused, Err(Error::BorrowedInRecording { .. })), "{refused:?}");
    let array = owned();
    let recording = gpu.record(|| gpu.copy_array(array.view(), &mut copy)).unwrap();
    drop(array);
    assert_eq!(count(), 0);
    recording.start().unwrap();
    assert_eq!(gpu.download(&copy).unwrap(), [1.0; 4]);

    // A capture of the recording: its graph keeps the memory, too.
    stream.begin_capture(CaptureMode::Global).unwrap();
    recording.start().unwrap();
    let graph = stream.end_capture().unwrap();
    drop(recording);
    assert_eq!(count(), 0);
    drop(graph);
    gpu.zeroed::<u8>(1).unwrap();
    assert_eq!(count(), 1);

    // A capture of a call.
    let array = owned();
    stream.begin_capture(CaptureMode::Global).unwrap();
    gpu.copy_array(array.view(), &mut copy).unwrap();
    let graph = stream.end_capture().unwrap();
    drop(array);
    assert_eq!(count(), 1);
    drop(graph);
    gpu.zeroed::<u8>(1).unwrap();
    assert_eq!(count(), 2);

    // No graph.
    drop(owned());
    assert_eq!(count(), 3);
}

#[test]
fn a_forked_handle_joins_a_capture_by_waiting() {
    in_child!("borrowed::a_forked_handle_joins_a_capture_by_waiting", fake_driver::path());
    let theirs = context_of(0);
    let stream = stream_in(&theirs);
    let _entered = theirs.enter().unwrap();
    let gpu = on(&Gpu::new(0).unwrap(), &stream);
    let side = gpu.fork().unwrap();
    let mut copy = side.zeroed::<f32>(2).unwrap();
    let x = side.upload(&[1.0_f32, 2.0]).unwrap();
    stream.begin_capture(CaptureMode::Global).unwrap();
    side.wait_for(&gpu).unwrap();
    side.copy_array(&x, &mut copy).unwrap();
    assert!(matches!(side.synchronize(), Err(Error::Captured { .. })));
    gpu.wait_for(&side).unwrap();
    let graph = stream.end_capture().unwrap();
    assert_eq!(graph.num_nodes().unwrap(), 1);
    drop(x);
    assert_eq!(side.download(&copy).unwrap(), [0.0, 0.0], "the copy is captured");
    // SAFETY: the graph keeps the memory that its work uses.
    unsafe { graph.instantiate().unwrap().launch(&stream) }.unwrap();
    assert_eq!(side.download(&copy).unwrap(), [1.0, 2.0]);
}
