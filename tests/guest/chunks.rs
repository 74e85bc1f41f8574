//! The order of copies and kernels of chunks, by the log of the fake driver.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use fake_driver::{Call, fail, in_child, report, take_calls};
use test_support::TEST_KERNELS;
use warpfold::{Error, Gpu};

use crate::LAUNCH;

/// The copy, or the kernel, of the chunk of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Copy(usize),
    Kernel(usize),
}

/// The work that is known to be done.
type Done = BTreeSet<Work>;

/// What is done before a copy or a kernel begins: on the host, which has filled the buffer, and in its stream.
struct Begun {
    work: Work,
    host: Done,
    stream: Done,
}

/// The copies and kernels of calls, each with what the streams, events and waits say is done before it.
fn in_order(calls: &[Call]) -> Vec<Begun> {
    let (mut host, mut begun) = (Done::new(), Vec::new());
    let (mut streams, mut events) = (BTreeMap::<u64, Done>::new(), BTreeMap::<u64, Done>::new());
    let (mut copies, mut kernels) = (0.., 0..);
    for call in calls {
        let stream = streams.entry(call.stream.unwrap_or(u64::MAX)).or_default();
        // Work that is started comes after what the host knows to be done.
        stream.extend(&host);
        let mut begin = |work| {
            begun.push(Begun { work, host: host.clone(), stream: stream.clone() });
            stream.insert(work);
        };
        match call.function {
            "cuMemcpyHtoDAsync_v2" => begin(Work::Copy(copies.next().unwrap())),
            LAUNCH => begin(Work::Kernel(kernels.next().unwrap())),
            "cuEventRecord" => drop(events.insert(call.event.unwrap(), stream.clone())),
            // An event of earlier calls is after none of this work.
            "cuStreamWaitEvent" => stream.extend(events.get(&call.event.unwrap()).into_iter().flatten()),
            "cuEventSynchronize" => host.extend(events.get(&call.event.unwrap()).into_iter().flatten()),
            "cuStreamSynchronize" => host.extend(&*stream),
            _ => {}
        }
    }
    begun
}

/// Verifies the order of chunks, of which each two share a buffer.
fn verify(calls: &[Call], chunks: usize) -> Result<(), String> {
    let begun = in_order(calls);
    if begun.len() != 2 * chunks {
        return Err(format!("a copy and a kernel for each of {chunks} chunks: {calls:?}"));
    }
    for Begun { work, host, stream } in begun {
        let is_wrong = match work {
            Work::Kernel(chunk) if !stream.contains(&Work::Copy(chunk)) => "begins before its copy is done",
            Work::Copy(chunk @ 2..) if !host.contains(&Work::Copy(chunk - 2)) => "is of a buffer filled too early",
            Work::Copy(chunk @ 2..) if !stream.contains(&Work::Kernel(chunk - 2)) => "overwrites what a kernel reads",
            Work::Copy(chunk @ 1..) if stream.contains(&Work::Kernel(chunk - 1)) => "waits for the kernel before",
            Work::Copy(chunk @ 1..) if host.contains(&Work::Copy(chunk - 1)) => "waits for the copy before",
            Work::Copy(_) | Work::Kernel(_) => continue,
        };
        return Err(format!("{work:?} {is_wrong}"));
    }
    Ok(())
}

/// Verifies calls of several chunks, and that they are wrong without any one kind of their waits.
fn verify_with_counter_proof(calls: &[Call], chunks: usize) {
    verify(calls, chunks).unwrap();
    let streams: BTreeSet<_> = calls.iter().filter_map(|call| call.stream).collect();
    assert_eq!(streams.len(), 2, "a stream for copies, and one for kernels");
    let waits = streams.into_iter().map(|stream| ("cuStreamWaitEvent", Some(stream)));
    for (function, stream) in waits.chain([("cuEventSynchronize", None)]) {
        let is_kept = |call: &&Call| (call.function, call.stream) != (function, stream);
        let without: Vec<Call> = calls.iter().filter(is_kept).copied().collect();
        assert!(verify(&without, chunks).is_err(), "{function} for {stream:?} is missed by nothing");
    }
}

#[test]
fn copies_and_kernels_wait_for_each_other() {
    in_child!("chunks::copies_and_kernels_wait_for_each_other", fake_driver::path());
    let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
    let mut sums = gpu.exact_sums::<f32>(1).unwrap();
    let mut buffers = gpu.staging_buffers::<f32>(100).unwrap();
    take_calls();
    for len in [100, 5, 100, 1, 7, 100, 100] {
        buffers.next_buffer().unwrap().submit(len, |chunk| sums.add(chunk, 0)).unwrap();
    }
    verify_with_counter_proof(&take_calls(), 7);
    // Also after an error of the work, some of which may have been started.
    for i in 0..5 {
        let started = buffers.next_buffer().unwrap().submit(9, |chunk| {
            sums.add(chunk, 0)?;
            if i % 2 == 0 { Err(Error::Forked) } else { Ok(()) }
        });
        assert_eq!(started.is_err(), i % 2 == 0);
    }
    verify_with_counter_proof(&take_calls(), 5);
}

#[test]
fn chunks_are_summed_in_two_buffers() {
    in_child!("chunks::chunks_are_summed_in_two_buffers", fake_driver::path());
    let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
    gpu.sum_chunks([Ok([0.0_f32])]).unwrap();
    let before = report();
    take_calls();
    // Each fills a buffer of 16 MiB.
    let chunk = vec![0.0_f32; 4 << 20];
    gpu.sum_chunks((0..5).map(|_| Ok(&chunk))).unwrap();
    let calls = take_calls();
    verify_with_counter_proof(&calls, 5);
    let count = |function: &str| calls.iter().filter(|call| call.function == function).count();
    assert_eq!((count("cuMemAllocHost_v2"), count("cuMemFreeHost")), (2, 2));
    // A chunk that cannot be read, while copies and kernels run.
    let failing = (0..4).map(|i| if i < 3 { Ok(&chunk) } else { Err(io::ErrorKind::TimedOut.into()) });
    let error = gpu.sum_chunks(failing).unwrap_err();
    assert!(matches!(error, Error::Chunk { index: 3, .. }), "{error}");
    assert_eq!(report(), before, "what the sums have used is freed");
}

#[test]
fn memory_for_one_buffer_alone_is_freed() {
    in_child!("chunks::memory_for_one_buffer_alone_is_freed", fake_driver::path());
    let gpu = Gpu::with_libraries(0, &[&TEST_KERNELS]).unwrap();
    gpu.staging_buffers::<u8>(1).unwrap();
    let before = report();
    for failing in ["cuMemAlloc_v2", "cuMemAllocHost_v2"] {
        for calls_before in [0, 1] {
            fail(failing, calls_before);
            let error = gpu.staging_buffers::<f32>(1000).unwrap_err();
            let is_expected = matches!(error, Error::OutOfMemory { operation: "allocate staging buffers", .. });
            assert!(is_expected, "{failing}: {error}");
            assert_eq!(report(), before, "{failing}, after {calls_before} others");
        }
    }
    fail("no function", 0);
    gpu.staging_buffers::<f32>(1000).unwrap();
}
