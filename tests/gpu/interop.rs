//! Streams, memory and captures of another library, whose part `cust` and calls of the driver play.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cust::context::Context;
use cust::device::Device;
use cust::graph::CaptureMode;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use libtest_mimic::Failed;
use warpfold::interop::{self, Borrowed, BorrowedMut, StreamId};
use warpfold::{Error, Gpu, ops};

use crate::is_sanitized;

/// The number of elements, which takes several blocks and partial sums.
const LEN: usize = 1 << 20;

/// How long a stream is kept busy, so that work which does not wait for it comes first.
const DELAY: Duration = Duration::from_millis(30);

/// The arrays and the stream of the other library.
struct Theirs {
    // Dropped before the context.
    numbers: DeviceBuffer<u32>,
    sums: DeviceBuffer<f32>,
    stream: Stream,
    context: Context,
}

impl Theirs {
    fn new() -> Result<Self, Failed> {
        let context = Context::retain(Device::get_device(0)?)?;
        let entered = context.enter()?;
        let (numbers, sums) = (DeviceBuffer::from_slice(&vec![0; LEN])?, DeviceBuffer::from_slice(&[0.0; 4])?);
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
        drop(entered);
        Ok(Self { numbers, sums, stream, context })
    }

    /// A handle on the stream.
    fn handle(&self, gpu: &Gpu) -> Result<Gpu, Error> {
        // SAFETY: the tests drop the handle first.
        unsafe { interop::on_stream(gpu, self.stream.as_inner().cast()) }
    }

    /// Sets all numbers, in the order of the stream.
    fn fill(&self, stream: &Stream, number: f32) -> Result<(), Failed> {
        let (address, driver) = (self.numbers.as_device_ptr().as_raw(), cuda_driver::load()?);
        let _entered = self.context.enter()?;
        // SAFETY: the buffer has this length, and the stream is of its context.
        unsafe { driver.cuMemsetD32Async(address, number.to_bits(), LEN, stream.as_inner())? };
        Ok(())
    }

    /// The numbers, for a handle.
    fn numbers(&self, gpu: &Gpu) -> Result<Borrowed<'_, f32>, Error> {
        let address = self.numbers.as_device_ptr().as_raw();
        // SAFETY: the buffer has the elements; all work on it is in the order of a stream.
        unsafe { interop::borrow(gpu, address, &[LEN], &[1]) }
    }

    /// Sum `at`, for a handle.
    fn sum(&self, gpu: &Gpu, at: usize) -> Result<BorrowedMut<'_, f32>, Error> {
        let address = self.sums.as_device_ptr().as_raw() + 4 * at as u64;
        // SAFETY: as in `numbers`.
        unsafe { interop::borrow_mut(gpu, address, &[], &[]) }
    }

    /// Starts a sum of the numbers to sum `at`.
    fn start_sum(&self, gpu: &Gpu, at: usize) -> Result<(), Error> {
        gpu.reduce_into(ops::Sum, self.numbers(gpu)?.view(), 0, self.sum(gpu, at)?.view_mut())
    }

    /// The sums, after the work of all streams.
    fn results(&self) -> Result<[f32; 4], Failed> {
        let _entered = self.context.enter()?;
        cust::context::CurrentContext::synchronize()?;
        let mut sums = [0.0; 4];
        self.sums.copy_to(&mut sums)?;
        Ok(sums)
    }
}

fn expect(what: &str, found: f32, expected: f32) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: the sum is {found}, not {expected}").into()) }
}

/// Work before and after a sum on the borrowed stream is in order with it, and a handle on another stream shows that
/// the test would notice if it were not.
pub fn borrowed_streams_are_in_order(gpu: &Gpu) -> Result<(), Failed> {
    let theirs = Theirs::new()?;
    let on_theirs = theirs.handle(gpu)?;
    theirs.start_sum(&on_theirs, 0)?; // Loads the kernel.
    for round in 1..=5_u8 {
        let number = f32::from(round);
        let sum_of = |handle: &Gpu, at| {
            theirs.fill(&theirs.stream, 0.0)?;
            theirs.stream.synchronize()?;
            theirs.stream.add_callback(Box::new(|| thread::sleep(DELAY)))?;
            theirs.fill(&theirs.stream, number)?;
            theirs.start_sum(handle, at)?;
            theirs.fill(&theirs.stream, 100.0)?;
            theirs.results()
        };
        expect("on their stream", sum_of(&on_theirs, 1)?[1], number * LEN as f32)?;
        // A sanitizer runs one launch after another.
        if !is_sanitized() {
            expect("on another stream, before theirs", sum_of(&gpu.fork()?, 2)?[2], 0.0)?;
        }
    }
    Ok(())
}

/// 0 is the legacy default stream.
pub fn the_default_stream_is_in_order(gpu: &Gpu) -> Result<(), Failed> {
    let theirs = Theirs::new()?;
    // SAFETY: it exists always.
    let on_default = unsafe { interop::on_stream(gpu, std::ptr::null_mut())? };
    let default = {
        // SAFETY: as above.
        unsafe { Stream::borrow(std::ptr::null_mut(), &theirs.context)? }
    };
    for round in 1..=5_u8 {
        theirs.fill(&default, f32::from(round))?;
        theirs.start_sum(&on_default, 0)?;
        theirs.fill(&default, 100.0)?;
        expect("on the default stream", theirs.results()?[0], f32::from(round) * LEN as f32)?;
    }
    Ok(())
}

/// A handle that waits for another one comes after its work; without waiting it does not.
pub fn handles_wait_for_each_other(gpu: &Gpu) -> Result<(), Failed> {
    let theirs = Theirs::new()?;
    let (on_theirs, second) = (theirs.handle(gpu)?, gpu.fork()?);
    theirs.start_sum(&second, 0)?;
    let cases: &[bool] = if is_sanitized() { &[true] } else { &[true, false] };
    for &waits in cases {
        theirs.fill(&theirs.stream, 0.0)?;
        theirs.results()?;
        theirs.stream.add_callback(Box::new(|| thread::sleep(DELAY)))?;
        theirs.fill(&theirs.stream, 2.0)?;
        if waits {
            second.wait_for(&on_theirs)?;
        }
        theirs.start_sum(&second, 1)?;
        // Their stream goes on after the sum.
        if waits {
            on_theirs.wait_for(&second)?;
        }
        theirs.fill(&theirs.stream, 100.0)?;
        expect("after waiting or not", theirs.results()?[1], if waits { 2.0 * LEN as f32 } else { 0.0 })?;
    }
    Ok(())
}

/// Captured sums are replayed on another stream beside other sums, and after the handle is gone.
pub fn captured_sums_are_replayed(gpu: &Gpu) -> Result<(), Failed> {
    let theirs = Theirs::new()?;
    let second = {
        let _entered = theirs.context.enter()?;
        Stream::new(StreamFlags::NON_BLOCKING, None)?
    };
    let on_theirs = theirs.handle(gpu)?;
    for has_run_before in [false, true] {
        if has_run_before {
            theirs.start_sum(&on_theirs, 0)?;
        }
        theirs.stream.begin_capture(CaptureMode::Global)?;
        // A copy of another layout needs memory for the copy, too.
        let captured = theirs.start_sum(&on_theirs, 1).and_then(|()| {
            let numbers = theirs.numbers(&on_theirs)?;
            let cube = numbers.view().reshape(&[128, 64, 128])?.permute_axes(&[2, 0, 1])?;
            let sums = on_theirs.reduce(ops::Sum, cube, [0, 2])?;
            let all = on_theirs.reduce(ops::Sum, &sums, 0)?;
            on_theirs.copy_array(all.view().reshape(&[])?, theirs.sum(&on_theirs, 2)?.view_mut())
        });
        let refused = on_theirs.sum(theirs.numbers(&on_theirs)?.view());
        let graph = theirs.stream.end_capture()?;
        captured?;
        if !matches!(refused, Err(Error::Captured { .. })) {
            return Err(format!("a result on the host is {refused:?}").into());
        }
        let graph = graph.instantiate()?;
        let launch = |stream: &Stream| {
            // SAFETY: the graph keeps its memory, and the other library's exists.
            unsafe { graph.launch(stream) }
        };
        for round in 1..=3_u8 {
            theirs.fill(&second, f32::from(round))?;
            second.synchronize()?;
            for _ in 0..50 {
                launch(&second)?;
                theirs.start_sum(&on_theirs, 3)?;
            }
            let [_, whole, by_axes, beside] = theirs.results()?;
            for sum in [whole, by_axes, beside] {
                expect("replayed, beside other sums", sum, f32::from(round) * LEN as f32)?;
            }
        }
        // The memory of the graph outlives the handle.
        if has_run_before {
            let kept: Arc<_> = Arc::new(on_theirs);
            drop(kept);
            let filler = gpu.upload(&vec![7_u32; 1 << 22])?;
            theirs.fill(&second, 4.0)?;
            (0..10).try_for_each(|_| launch(&second))?;
            let [_, whole, by_axes, _] = theirs.results()?;
            expect("after the handle", whole, 4.0 * LEN as f32)?;
            expect("after the handle", by_axes, 4.0 * LEN as f32)?;
            if gpu.download(&filler)?.iter().any(|&number| number != 7) {
                return Err("a graph has written to memory of another buffer".into());
            }
            return Ok(());
        }
    }
    Ok(())
}

/// The driver's answers about memory and streams are those that the checks expect.
pub fn wrong_memory_and_streams_are_refused(gpu: &Gpu) -> Result<(), Failed> {
    let theirs = Theirs::new()?;
    let address = theirs.numbers.as_device_ptr().as_raw();
    let on_host = vec![0.0_f32; 100];
    let borrow = |address: u64, len: usize| {
        // SAFETY: nothing accesses the memory.
        unsafe { interop::borrow::<f32>(gpu, address, &[len], &[1]) }
    };
    borrow(address, LEN)?;
    borrow(address + 4, LEN - 1)?;
    for (what, result) in [
        ("host memory", borrow(on_host.as_ptr().addr() as u64, 100)),
        ("too long", borrow(address, 1 << 36)),
        ("nowhere", borrow(64, 1)),
    ] {
        if !matches!(result, Err(Error::NotDeviceMemory { .. })) {
            return Err(format!("{what}: {result:?}").into());
        }
        println!("{what}: {}", result.unwrap_err());
    }
    // SAFETY: it is refused.
    let per_thread = unsafe { interop::on_stream(gpu, std::ptr::without_provenance_mut(2)) };
    if !matches!(per_thread, Err(Error::PerThreadStream)) {
        return Err(format!("the per-thread stream: {per_thread:?}").into());
    }
    // SAFETY: the stream exists.
    let id = |stream: &Stream| unsafe { interop::stream_id(gpu, stream.as_inner().cast()) };
    let other = {
        let _entered = theirs.context.enter()?;
        Stream::new(StreamFlags::DEFAULT, None)?
    };
    println!("streams {:?} and {:?}", id(&theirs.stream)?, id(&other)?);
    if id(&theirs.stream)? == id(&other)? {
        return Err("two streams have one identifier".into());
    }
    // A capture survives the question.
    theirs.stream.begin_capture(CaptureMode::Global)?;
    let captured = id(&theirs.stream);
    theirs.stream.end_capture()?;
    if captured? == StreamId::Captured { Ok(()) } else { Err("a captured stream has an identifier".into()) }
}
