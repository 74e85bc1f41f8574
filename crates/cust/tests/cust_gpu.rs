//! Tests of `cust` on a CUDA device, with handwritten PTX.
//!
//! Without a device, all tests are reported as ignored, and a line says why.

use std::env;
use std::process::{self, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cuda_driver::{CUlaunchAttribute, CUlaunchConfig, CUresult, DriverVersion};
use cust::context::{CurrentContext, ResourceLimit};
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::function::{BlockSize, FunctionAttribute, GridSize};
use cust::graph::CaptureMode;
use cust::memory::{AsyncCopyDestination, DeviceBox, LockedBuffer, mem_get_info};
use cust::module::{JitTarget, ModuleJitOption, OptLevel};
use cust::prelude::*;
use cust::stream::StreamWaitEventFlags;
use libtest_mimic::{Arguments, Failed, Trial};

/// `fn add(a: &[u32], b: &[u32], out: *mut u32)`, and `fn fail()`, which traps.
const PTX: &str = include_str!("kernels.ptx");

/// The environment variable that selects the test of a child process. All tests share one context, so a test that
/// destroys it runs in a child.
const CHILD: &str = "CUST_GPU_TEST_CHILD";

type Outcome = Result<(), Failed>;

fn main() {
    match env::var(CHILD).as_deref() {
        Ok("trap") => in_child(trap),
        Ok("release") => in_child(release),
        _ => {}
    }
    let arguments = Arguments::from_args();
    let found = cust::quick_init().and_then(|_context| Device::get_device(0)?.name());
    match &found {
        Ok(name) => println!("on {name}"),
        Err(error) => println!("all tests are skipped: {error}"),
    }
    let devices = Device::num_devices().unwrap_or(0);
    // The context lives for as long as the tests.
    let _context = cust::quick_init();
    let trial = |name: &str, test: fn() -> Outcome, needed: u32| {
        Trial::test(name, test).with_ignored_flag(found.is_err() || devices < needed)
    };
    if devices == 1 {
        println!("tests that need two devices are skipped");
    }
    let trials = vec![
        trial("versions, functions and attributes are plausible", machine, 1),
        trial("a kernel is launched by its name, and as a `Function`", launches, 1),
        trial("a kernel has attributes and an occupancy", functions, 1),
        trial("buffers, boxes and slices are copied", copies, 1),
        trial("a fill has completed when it returns", fills, 1),
        trial("asynchronous copies and events follow stream order", streams, 1),
        trial("callbacks run in stream order", callbacks, 1),
        trial("managed memory is shared with a kernel", managed, 1),
        trial("a captured graph is launched repeatedly", graphs, 1),
        trial("a launch takes attributes", attributes, 1),
        trial("objects are used and dropped on any thread", threads, 1),
        trial("refused PTX is an error with the compiler's messages", refused, 1),
        trial("too large an allocation is an error", out_of_memory, 1),
        trial("an invalid launch is an error", bad_launches, 1),
        trial("after a trap, every call is an error", || child("trap"), 1),
        trial("a context is released with its last object", || child("release"), 1),
        trial("an object is used while another device is current", two_devices, 2),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// Runs a test, and ends this process with exit code 0 if it passes.
fn in_child(test: fn() -> Outcome) -> ! {
    let outcome = test();
    println!("{outcome:?}");
    process::exit(i32::from(outcome.is_err()))
}

fn child(what: &str) -> Outcome {
    let output = Command::new(env::current_exe()?).env(CHILD, what).output()?;
    let text = [output.stdout, output.stderr].concat();
    ensure(output.status.success(), || String::from_utf8_lossy(&text).into_owned())
}

fn ensure(is_right: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if is_right { Ok(()) } else { Err(otherwise().into()) }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Outcome {
    ensure(found == expected, || format!("found {found:?}, expected {expected:?}"))
}

/// Makes the first device's context current on this thread, and loads the kernels.
fn module() -> Result<(Context, Module), Failed> {
    let context = cust::quick_init()?;
    Ok((context, Module::from_ptx_with_log(PTX, &[])?))
}

/// Adds two buffers in a stream.
fn add(
    module: &Module,
    stream: &Stream,
    out: &DeviceBuffer<u32>,
    a: &DeviceBuffer<u32>,
    b: &DeviceBuffer<u32>,
) -> Outcome {
    assert!(a.len() == b.len() && a.len() == out.len());
    let blocks = a.len().div_ceil(256) as u32;
    // SAFETY: the arguments match the kernel's parameters. The kernel accesses no more elements than the buffers have,
    // and the tests use the buffers only after they have waited for the stream.
    unsafe {
        launch!(module.add<<<blocks, 256, 0, stream>>>(
            a.as_device_ptr(),
            a.len(),
            b.as_device_ptr(),
            b.len(),
            out.as_device_ptr(),
        ))?;
    }
    Ok(())
}

fn machine() -> Outcome {
    let _context = cust::quick_init()?;
    let version = cust::CudaApiVersion::get()?;
    let driver = cuda_driver::load()?;
    let of_driver = driver.version();
    equal((version.major() as u32, version.minor() as u32), (of_driver.major, of_driver.minor))?;
    ensure(driver.path().is_file(), || format!("{} is not a file", driver.path().display()))?;
    let missing = cuda_driver::FUNCTIONS.iter().filter(|(name, _)| driver.function(name).is_none());
    let missing: Vec<_> = missing.filter(|(_, since)| *since <= of_driver).collect();
    ensure(missing.is_empty(), || format!("a driver of CUDA {of_driver} lacks {missing:?}"))?;
    equal(driver.error_name(CUresult::CUDA_ERROR_NO_DEVICE), Some("CUDA_ERROR_NO_DEVICE"))?;

    for device in Device::devices()? {
        let device = device?;
        let ask = |attribute| device.get_attribute(attribute);
        let capability =
            10 * ask(DeviceAttribute::ComputeCapabilityMajor)? + ask(DeviceAttribute::ComputeCapabilityMinor)?;
        ensure(capability >= 50, || format!("compute capability {capability}"))?;
        equal(ask(DeviceAttribute::WarpSize)?, 32)?;
        equal(ask(DeviceAttribute::MaxThreadsPerBlock)?, 1024)?;
        ensure(device.total_memory()? > 1 << 28, || "hardly any memory".to_owned())?;
        println!("{}: sm_{capability}", device.name()?);
    }
    let (free, total) = mem_get_info()?;
    ensure(free <= total && total <= Device::get_device(0)?.total_memory()?, || format!("{free} of {total} are free"))?;
    equal(CurrentContext::get_device()?, Device::get_device(0)?)?;
    let priorities = CurrentContext::get_stream_priority_range()?;
    ensure(priorities.greatest <= priorities.least, || format!("{priorities:?}"))?;
    ensure(CurrentContext::get_resource_limit(ResourceLimit::StackSize)? > 0, || "no stack".to_owned())?;
    CurrentContext::get_flags()?;
    CurrentContext::synchronize()?;
    let error = Device::get_device(1000).unwrap_err();
    equal(error, CudaError::InvalidDevice)
}

fn launches() -> Outcome {
    let (_context, module) = module()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    equal(stream.get_flags()?, StreamFlags::NON_BLOCKING)?;
    let n = 1_000_003_u32;
    let (a, b): (Vec<u32>, Vec<u32>) = ((0..n).collect(), (0..n).map(|i| i * 2).collect());
    let (a, b) = (a.as_slice().as_dbuf()?, b.as_slice().as_dbuf()?);
    let out = DeviceBuffer::<u32>::zeroed(n as usize)?;
    add(&module, &stream, &out, &a, &b)?;
    stream.synchronize()?;
    ensure(out.as_host_vec()?.iter().zip(0..n).all(|(sum, i)| *sum == 3 * i), || "wrong sums".to_owned())?;

    let function = module.get_function("add")?;
    let (_, block) = function.suggested_launch_configuration(0, 0.into())?;
    let (grid, block) = (GridSize::xy(n.div_ceil(block), 1), BlockSize::xyz(block, 1, 1));
    // SAFETY: as for `add`.
    unsafe {
        launch!(function<<<grid, block, 0, stream>>>(
            out.as_device_ptr(), out.len(), a.as_device_ptr(), a.len(), out.as_device_ptr()
        ))?;
    }
    stream.synchronize()?;
    ensure(out.as_host_vec()?.iter().zip(0..n).all(|(sum, i)| *sum == 4 * i), || "wrong sums again".to_owned())
}

fn functions() -> Outcome {
    let context = cust::quick_init()?;
    let options = [
        ModuleJitOption::OptLevel(OptLevel::O4),
        ModuleJitOption::MaxRegisters(32),
        ModuleJitOption::GenerateLineInfo(true),
        ModuleJitOption::DetermineTargetFromContext,
    ];
    let module = Module::from_ptx(PTX, &options)?;
    let function = module.get_function("add")?;
    let registers = function.get_attribute(FunctionAttribute::NumRegisters)?;
    ensure((1..=32).contains(&registers), || format!("{registers} registers"))?;
    equal(function.get_attribute(FunctionAttribute::SharedMemorySizeBytes)?, 0)?;
    equal(function.get_attribute(FunctionAttribute::MaxThreadsPerBlock)?, 1024)?;
    let blocks = function.max_active_blocks_per_multiprocessor(256.into(), 0)?;
    ensure((2..=32).contains(&blocks), || format!("{blocks} blocks"))?;
    let (grid, block) = function.suggested_launch_configuration(0, 128.into())?;
    ensure(grid > 0 && (32..=128).contains(&block), || format!("{grid} blocks of {block}"))?;
    let bytes = function.available_dynamic_shared_memory_per_block(1.into(), 256.into())?;
    ensure(bytes >= 16 << 10, || format!("{bytes} bytes of shared memory"))?;
    equal(module.get_function("no_such_kernel").unwrap_err(), CudaError::NotFound)?;
    equal(context.device(), Device::get_device(0)?)
}

fn copies() -> Outcome {
    let _context = cust::quick_init()?;
    let mut buffer = [1_u32, 2, 3, 4, 5].as_dbuf()?;
    let (left, right) = buffer.split_at_mut(3);
    left[1..].copy_from(&*right)?;
    equal(buffer.as_host_vec()?, vec![1, 4, 5, 4, 5])?;
    buffer[2].copy_from(&[9])?;
    let mut part = [0; 2];
    buffer.index(2..4).copy_to(&mut part)?;
    equal(part, [9, 4])?;
    let mut other = DeviceBuffer::from_slice(&[0_u32; 5])?;
    other.copy_from(&buffer)?;
    other[..1].set_32(7)?;
    other[4..].set_8(0xff)?;
    equal(other.as_host_vec()?, vec![7, 4, 9, 4, u32::MAX])?;
    let mut halves = [0_u16; 3].as_dbuf()?;
    halves[1..].set_16(0x1234)?;
    equal(halves.as_host_vec()?, vec![0, 0x1234, 0x1234])?;
    halves.set_zero()?;
    equal(halves.as_host_vec()?, vec![0; 3])?;
    let mut value = DeviceBox::new(&(1_u32, 2.5_f32))?;
    equal(value.as_host_value()?, (1, 2.5))?;
    value.copy_from(&(3, 4.5))?;
    equal(value.as_host_value()?, (3, 4.5))?;
    let large: Vec<u64> = (0..3 << 20).collect();
    let on_device = large.as_slice().as_dbuf()?;
    equal(on_device.as_host_vec()? == large, true)?;
    equal([0_u32; 0].as_dbuf()?.as_host_vec()?, Vec::new())?;
    equal(DeviceBuffer::drop(on_device).map_err(|(error, _)| error), Ok(()))
}

fn fills() -> Outcome {
    let (_context, module) = module()?;
    let streams = [Stream::new(StreamFlags::NON_BLOCKING, None)?, Stream::new(StreamFlags::DEFAULT, None)?];
    // Large buffers, so that a kernel that did not wait would read the old contents.
    let n = 16 << 20;
    let ones = vec![1_u32; n];
    for round in 0..8 {
        let stream = &streams[round % 2];
        let (mut a, b) = (DeviceBuffer::<u32>::zeroed(n)?, ones.as_slice().as_dbuf()?);
        a.set_32(round as u32)?;
        let out = DeviceBuffer::zeroed(n)?;
        add(&module, stream, &out, &a, &b)?;
        stream.synchronize()?;
        let sums = out.as_host_vec()?;
        ensure(sums.iter().all(|sum| *sum == round as u32 + 1), || format!("wrong sums in round {round}"))?;
    }
    Ok(())
}

fn streams() -> Outcome {
    let _context = cust::quick_init()?;
    let priorities = CurrentContext::get_stream_priority_range()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, Some(priorities.greatest))?;
    equal(stream.get_priority()?, priorities.greatest)?;
    let (start, end) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::BLOCKING_SYNC)?);
    let n = 8 << 20;
    let mut host = LockedBuffer::new(&7_u32, n)?;
    start.record(&stream)?;
    // SAFETY: the buffers are used after the stream is done.
    let mut buffer = unsafe { DeviceBuffer::uninitialized_async(n, &stream)? };
    // SAFETY: as above.
    unsafe { buffer.async_copy_from(&host, &stream)? };
    end.record(&stream)?;
    while end.query()? == EventStatus::NotReady {
        thread::yield_now();
    }
    let elapsed = end.elapsed(&start)?;
    ensure(elapsed > Duration::ZERO && elapsed < Duration::from_secs(10), || format!("{elapsed:?}"))?;
    host.fill(0);
    let other = Stream::new(StreamFlags::DEFAULT, None)?;
    other.wait_event(&end, StreamWaitEventFlags::DEFAULT)?;
    // SAFETY: as above.
    unsafe { buffer.async_copy_to(&mut host, &other)? };
    other.synchronize()?;
    ensure(host.iter().all(|word| *word == 7), || "a wrong copy".to_owned())?;
    buffer.drop_async(&stream)?;
    let untimed = Event::new(EventFlags::DISABLE_TIMING)?;
    untimed.record(&stream)?;
    untimed.synchronize()?;
    equal(untimed.elapsed(&start).unwrap_err(), CudaError::InvalidHandle)?;
    equal(Stream::drop(stream).map_err(|(error, _)| error), Ok(()))
}

fn callbacks() -> Outcome {
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let (send, receive) = mpsc::channel();
    for i in 0..100 {
        let send = send.clone();
        stream.add_callback(Box::new(move || send.send(i).expect("it is received")))?;
    }
    stream.synchronize()?;
    drop(send);
    equal(receive.into_iter().collect::<Vec<_>>(), (0..100).collect())
}

fn managed() -> Outcome {
    let (_context, module) = module()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let mut values = UnifiedBuffer::new(&5_u32, 1000)?;
    values[999] = 10;
    let (pointer, length) = (values.as_unified_ptr(), values.len());
    // SAFETY: as for `add`.
    unsafe { launch!(module.add<<<4, 256, 0, stream>>>(pointer, length, pointer, length, pointer))? };
    stream.synchronize()?;
    equal((values[0], values[998], values[999]), (10, 10, 20))
}

fn graphs() -> Outcome {
    let (_context, module) = module()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let (sum, one) = (DeviceBuffer::<u32>::zeroed(1000)?, vec![1_u32; 1000].as_slice().as_dbuf()?);
    for mode in [CaptureMode::Relaxed, CaptureMode::ThreadLocal] {
        stream.begin_capture(mode)?;
        add(&module, &stream, &sum, &sum, &one)?;
        add(&module, &stream, &sum, &sum, &one)?;
        let graph = stream.end_capture()?;
        equal(graph.num_nodes()?, 2)?;
        let work = graph.instantiate()?;
        drop(graph);
        for _ in 0..50 {
            // SAFETY: as for `add`.
            unsafe { work.launch(&stream)? };
        }
        stream.synchronize()?;
    }
    equal(sum.as_host_vec()?, vec![200; 1000])?;
    ensure(stream.end_capture().is_err(), || "nothing was captured".to_owned())
}

/// Tests the layouts of `CUlaunchConfig` and `CUlaunchAttribute`.
fn attributes() -> Outcome {
    let (context, module) = module()?;
    let driver = cuda_driver::load()?;
    let capability = context.device().get_attribute(DeviceAttribute::ComputeCapabilityMajor)?;
    let has_dependent_launch = capability >= 9 && driver.version() >= DriverVersion { major: 12, minor: 3 };
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let (a, out) = (vec![3_u32; 1000].as_slice().as_dbuf()?, DeviceBuffer::<u32>::zeroed(1000)?);
    let function = module.get_function("add")?;
    let mut attribute = CUlaunchAttribute::programmatic_stream_serialization();
    let config = CUlaunchConfig {
        gridDimX: 4,
        blockDimX: 256,
        hStream: stream.as_inner(),
        attrs: &mut attribute,
        numAttrs: u32::from(has_dependent_launch),
        ..CUlaunchConfig::default()
    };
    let (address, length, to) = (a.as_device_ptr(), a.len(), out.as_device_ptr());
    let mut arguments = [
        (&raw const address).cast_mut().cast(),
        (&raw const length).cast_mut().cast(),
        (&raw const address).cast_mut().cast(),
        (&raw const length).cast_mut().cast(),
        (&raw const to).cast_mut().cast(),
    ];
    // SAFETY: as for `add`. No other kernel runs in the stream, so there is nothing to wait for.
    unsafe { driver.cuLaunchKernelEx(&config, function.to_raw(), arguments.as_mut_ptr(), std::ptr::null_mut())? };
    stream.synchronize()?;
    equal(out.as_host_vec()?, vec![6; 1000])
}

fn threads() -> Outcome {
    let (context, module) = module()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let (buffer, locked) = (vec![1_u32; 1000].as_slice().as_dbuf()?, LockedBuffer::new(&1_u8, 1000)?);
    let event = Event::new(EventFlags::DEFAULT)?;
    drop(context);
    let elsewhere = thread::spawn(move || -> Outcome {
        equal(CurrentContext::get_current().map(drop), Err(CudaError::InvalidContext))?;
        add(&module, &stream, &buffer, &buffer, &buffer)?;
        event.record(&stream)?;
        event.synchronize()?;
        equal(buffer.as_host_vec()?, vec![2; 1000])?;
        equal(DeviceBuffer::drop(buffer).map_err(|(error, _)| error), Ok(()))?;
        equal(Event::drop(event).map_err(|(error, _)| error), Ok(()))?;
        equal(Stream::drop(stream).map_err(|(error, _)| error), Ok(()))?;
        equal(Module::drop(module).map_err(|(error, _)| error), Ok(()))?;
        equal(LockedBuffer::drop(locked).map_err(|(error, _)| error), Ok(()))?;
        equal(CurrentContext::get_current().map(drop), Err(CudaError::InvalidContext))
    });
    elsewhere.join().map_err(|_| Failed::from("the thread has panicked"))?
}

fn refused() -> Outcome {
    let _context = cust::quick_init()?;
    let broken = PTX.replace("setp.ge.u64", "setp.nonsense.u64");
    equal(Module::from_ptx(&broken, &[]).unwrap_err(), CudaError::InvalidPtx)?;
    let error = Module::from_ptx_with_log(&broken, &[]).unwrap_err();
    equal(error.error, CudaError::InvalidPtx)?;
    ensure(error.log.contains("nonsense"), || format!("the log is {:?}", error.log))?;
    let error = Module::from_ptx(PTX.replace(".version 6.3", ".version 99.0"), &[]).unwrap_err();
    println!("PTX of version 99.0: {error}");
    equal(error, CudaError::UnsupportedPtxVersion)?;
    let error = Module::from_ptx(PTX.replace(".version 6.3", ".version 7.8").replace("sm_75", "sm_999"), &[]);
    println!("PTX for sm_999: {}", error.unwrap_err());
    // The driver takes the option. Whether this GPU loads code for an older one depends on the GPU.
    let _ = Module::from_ptx(PTX, &[ModuleJitOption::Target(JitTarget::Compute75)]);
    equal(Module::from_ptx("\x7fELF", &[]).unwrap_err(), CudaError::InvalidPtx)
}

fn out_of_memory() -> Outcome {
    let _context = cust::quick_init()?;
    equal(DeviceBuffer::<u8>::zeroed(1 << 45).unwrap_err(), CudaError::OutOfMemory)?;
    equal(DeviceBuffer::<u64>::zeroed(usize::MAX).unwrap_err(), CudaError::InvalidMemoryAllocation)?;
    equal([1_u32].as_dbuf()?.as_host_vec()?, vec![1])
}

fn bad_launches() -> Outcome {
    let (_context, module) = module()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let buffer = [1_u32; 4].as_dbuf()?;
    let (pointer, length) = (buffer.as_device_ptr(), buffer.len());
    // SAFETY: as for `add`; neither launch succeeds.
    unsafe {
        let blocks = launch!(module.add<<<1, 4096, 0, stream>>>(pointer, length, pointer, length, pointer));
        equal(blocks, Err(CudaError::InvalidValue))?;
        let name = launch!(module.subtract<<<1, 4, 0, stream>>>(pointer, length, pointer, length, pointer));
        equal(name, Err(CudaError::NotFound))?;
    }
    stream.synchronize()?;
    equal(buffer.as_host_vec()?, vec![1; 4])
}

/// Runs in a child process, because a trap destroys the context.
fn trap() -> Outcome {
    let (_context, module) = module()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let buffer = [1_u32; 4].as_dbuf()?;
    // SAFETY: the kernel has no parameters.
    unsafe { launch!(module.fail<<<1, 1, 0, stream>>>())? };
    let error = stream.synchronize().unwrap_err();
    println!("{error}");
    ensure((700..720).contains(&error.code().0), || format!("{error:?}"))?;
    equal(buffer.as_host_vec(), Err(error))?;
    equal([1_u32].as_dbuf().map(drop), Err(error))?;
    ensure(DeviceBuffer::drop(buffer).is_err(), || "the memory is freed".to_owned())
}

/// Runs in a child process, in which no other test retains the context.
fn release() -> Outcome {
    let context = cust::quick_init()?;
    let (device, driver) = (context.device().as_raw(), cuda_driver::load()?);
    let is_active = || {
        let (mut flags, mut is_active) = (0, 0);
        // SAFETY: writes two integers.
        unsafe { driver.cuDevicePrimaryCtxGetState(device, &mut flags, &mut is_active) }.map(|()| is_active)
    };
    let again = cust::quick_init()?;
    let buffer = [1_u32; 4].as_dbuf()?;
    drop((context, again));
    equal(is_active()?, 1)?;
    equal(buffer.as_host_vec()?, vec![1; 4])?;
    drop(buffer);
    equal(is_active()?, 0)?;
    let error = [1_u32].as_dbuf().unwrap_err();
    println!("in a destroyed context: {error}");
    let _context = cust::quick_init()?;
    equal([1_u32; 4].as_dbuf()?.as_host_vec()?, vec![1; 4])
}

fn two_devices() -> Outcome {
    let (first, module) = module()?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let buffer = vec![1_u32; 1000].as_slice().as_dbuf()?;
    let second = Context::new(Device::get_device(1)?)?;
    let far = Stream::new(StreamFlags::DEFAULT, None)?;
    add(&module, &stream, &buffer, &buffer, &buffer)?;
    stream.synchronize()?;
    equal(buffer.as_host_vec()?, vec![2; 1000])?;
    let (pointer, length) = (buffer.as_device_ptr(), buffer.len());
    // SAFETY: the launch does not succeed.
    let launched = unsafe { launch!(module.add<<<4, 256, 0, far>>>(pointer, length, pointer, length, pointer)) };
    equal(launched, Err(CudaError::InvalidHandle))?;
    equal(CurrentContext::get_current()?.as_raw(), second.as_raw())?;
    drop((buffer, stream, module));
    CurrentContext::set_current(&first)?;
    equal(CurrentContext::get_device()?, first.device())
}
