//! Tests of the crate without a driver, and with a fake driver, whose devices are in host memory.
//!
//! Each test runs itself again in a child process: see `fake_driver`.

use std::path::Path;
use std::thread;
use std::time::Duration;

use cust::context::CurrentContext;
use cust::device::DeviceAttribute;
use cust::error::CudaError;
use cust::function::FunctionAttribute;
use cust::graph::CaptureMode;
use cust::memory::{AsyncCopyDestination, DeviceBox, DeviceMemory, LockedBuffer, mem_get_info};
use cust::module::{ModuleJitOption, OptLevel};
use cust::prelude::*;
use cust::stream::StreamWaitEventFlags;
use fake_driver::{Report, in_child, report};

const PTX: &str = ".version 6.3\n.target sm_75\n.visible .entry add()";

#[test]
fn without_a_driver_every_call_is_an_error() {
    in_child!("without_a_driver_every_call_is_an_error", Path::new("none"));
    let error = cust::quick_init().unwrap_err();
    assert_eq!(error, CudaError::NoDriver);
    assert!(error.to_string().contains("WARPFOLD_LIBCUDA=none"), "{error}");
    assert_eq!(Device::num_devices(), Err(CudaError::NoDriver));
    assert_eq!([1_u32].as_dbuf().unwrap_err(), CudaError::NoDriver);
    assert_eq!(CudaError::OutOfMemory.name(), "CUDA_ERROR_OUT_OF_MEMORY");
}

/// The first call of a program may be one that loads a module, and its text may be wrong, too.
#[test]
fn without_a_driver_no_module_can_be_loaded() {
    in_child!("without_a_driver_no_module_can_be_loaded", Path::new("none"));
    let missing = Path::new("no/such/file.ptx");
    for text in [PTX, "", "no PTX", "nul \0 byte"] {
        let with_log = Module::from_ptx_with_log(text, &[]).unwrap_err();
        let text_as_cstr = std::ffi::CString::new(text.replace('\0', "")).unwrap();
        let errors = [
            Module::from_ptx(text, &[]).unwrap_err(),
            Module::from_ptx_cstr(&text_as_cstr, &[]).unwrap_err(),
            with_log.error,
            Module::from_file(missing).unwrap_err(),
            // SAFETY: nothing is loaded without a driver.
            unsafe { Module::from_cubin_unchecked(text, &[]) }.unwrap_err(),
            // SAFETY: as above.
            unsafe { Module::from_fatbin_unchecked(text, &[]) }.unwrap_err(),
        ];
        assert_eq!(errors, [CudaError::NoDriver; 6], "{text:?}");
        for message in [errors[0].to_string(), with_log.to_string()] {
            for part in ["no CUDA driver", "libcuda.so.1", "install the NVIDIA driver"] {
                assert!(message.contains(part), "`{part}` is not in: {message}");
            }
        }
    }
}

#[test]
fn calls_before_init_are_errors() {
    in_child!("calls_before_init_are_errors", fake_driver::path());
    assert_eq!(Device::num_devices(), Err(CudaError::NotInitialized));
    cust::init(CudaFlags::empty()).unwrap();
    cust::init(CudaFlags::empty()).unwrap();
    assert_eq!(Device::num_devices(), Ok(2));
    assert_eq!(Device::get_device(2), Err(CudaError::InvalidDevice));
    let names: Vec<_> = Device::devices().unwrap().map(|device| device.unwrap().name().unwrap()).collect();
    assert_eq!(names, ["Fake 0", "Fake 1"]);
    let device = Device::get_device(1).unwrap();
    assert_eq!(device.get_attribute(DeviceAttribute::WarpSize), Ok(1000));
    assert_eq!(cust::CudaApiVersion::get().unwrap().minor(), 4);
}

#[test]
fn without_a_context_creating_an_object_is_an_error() {
    in_child!("without_a_context_creating_an_object_is_an_error", fake_driver::path());
    cust::init(CudaFlags::empty()).unwrap();
    let errors = [
        Stream::new(StreamFlags::DEFAULT, None).map(drop),
        Event::new(EventFlags::DEFAULT).map(drop),
        Module::from_ptx(PTX, &[]).map(drop),
        [1_u32].as_dbuf().map(drop),
        [1_u32].as_unified_buf().map(drop),
        LockedBuffer::new(&1_u32, 1).map(drop),
        CurrentContext::get_current().map(drop),
        CurrentContext::synchronize(),
    ];
    assert!(errors.iter().all(|error| *error == Err(CudaError::InvalidContext)), "{errors:?}");
    // A buffer without bytes needs no memory.
    assert_eq!([0_u32; 0].as_dbuf().unwrap().as_host_vec(), Ok(Vec::new()));
    assert_eq!(LockedBuffer::new(&(), 5).unwrap().as_slice(), [(); 5]);
    assert_eq!(report(), Report { objects: 0, retains: [0, 0], waits: 0, depth: 0 });
}

#[test]
fn a_launch_runs_the_kernel() {
    in_child!("a_launch_runs_the_kernel", fake_driver::path());
    let context = cust::quick_init().unwrap();
    let options = [ModuleJitOption::OptLevel(OptLevel::O3), ModuleJitOption::MaxRegisters(64)];
    let module = Module::from_ptx(PTX, &options).unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    assert_eq!(stream.get_flags(), Ok(StreamFlags::NON_BLOCKING));
    let (a, b) = ([1_u32, 2, 3].as_dbuf().unwrap(), vec![10_u32, 20, 30].as_slice().as_dbuf().unwrap());
    let mut sums = vec![0_u32; 3];
    let out = DeviceBuffer::<u32>::zeroed(3).unwrap();

    // SAFETY: the kernel adds two slices, and no other code uses them.
    unsafe {
        launch!(module.add<<<1, 3, 0, stream>>>(
            a.as_device_ptr(),
            a.len(),
            b.as_device_ptr(),
            b.len(),
            out.as_device_ptr(),
        ))
        .unwrap();
    }
    stream.synchronize().unwrap();
    out.copy_to(&mut sums).unwrap();
    assert_eq!(sums, [11, 22, 33]);

    let add = module.get_function("add").unwrap();
    let (stream, function) = (&stream, &add);
    assert_eq!(function.get_attribute(FunctionAttribute::NumRegisters), Ok(40));
    let (_, block) = function.suggested_launch_configuration(0, 0.into()).unwrap();
    let mut evaluated = 0;
    // SAFETY: as above; `a` and the output may be the same slice.
    unsafe {
        launch!(function<<<(1, 1), (block, 1, 1), 0, stream>>>(
            {
                evaluated += 1;
                a.as_device_ptr()
            },
            2_usize,
            b.as_device_ptr(),
            2_usize,
            a.as_device_ptr()
        ))
        .unwrap();
    }
    assert_eq!((a.as_host_vec().unwrap(), evaluated), (vec![11, 22, 3], 1));

    // SAFETY: neither launch succeeds.
    unsafe {
        assert_eq!(launch!(module.subtract<<<1, 3, 0, stream>>>(1_u32)), Err(CudaError::NotFound));
        let zeros = launch!(add<<<0, 0, 0, stream>>>(0_usize, 0_usize, 0_usize, 0_usize, 0_usize));
        assert_eq!(zeros, Err(CudaError::InvalidValue));
    }
    let error = function.available_dynamic_shared_memory_per_block(1.into(), 32.into()).unwrap_err();
    assert!(matches!(error, CudaError::MissingFunction(missing) if missing.name.contains("DynamicSMem")), "{error}");
    assert!(error.to_string().contains("12.4") && error.to_string().contains("10.2"), "{error}");
    drop((context, a, b, out));
    assert_eq!(report().depth, 1);
}

#[test]
fn refused_ptx_is_an_error_with_the_compilers_messages() {
    in_child!("refused_ptx_is_an_error_with_the_compilers_messages", fake_driver::path());
    let _context = cust::quick_init().unwrap();
    assert_eq!(Module::from_ptx(".nonsense", &[]).unwrap_err(), CudaError::InvalidPtx);
    assert_eq!(Module::from_ptx(".version 6.3\0", &[]).unwrap_err(), CudaError::InvalidPtx);
    assert_eq!(Module::from_ptx("\x7fELF", &[]).unwrap_err(), CudaError::InvalidPtx);
    assert_eq!(Module::from_ptx(".version 99.0", &[]).unwrap_err(), CudaError::UnsupportedPtxVersion);
    assert_eq!(Module::from_file("/nowhere/kernels.ptx").unwrap_err(), CudaError::FileNotFound);
    let error = Module::from_ptx_with_log(".nonsense", &[ModuleJitOption::GenerateLineInfo(true)]).unwrap_err();
    assert_eq!((error.error, error.log.as_str()), (CudaError::InvalidPtx, "line 2: nonsense"));
    assert!(Module::from_ptx_with_log(PTX, &[]).is_ok());
    assert_eq!(report().objects, 0);
}

#[test]
fn copies_have_completed_when_they_return() {
    in_child!("copies_have_completed_when_they_return", fake_driver::path());
    let _context = cust::quick_init().unwrap();
    let before = report().waits;
    let mut buffer = [1_u32, 2, 3, 4, 5].as_dbuf().unwrap();
    assert_eq!(report().waits, before + 1);
    let (left, right) = buffer.split_at_mut(3);
    left[1..].copy_from(&*right).unwrap();
    assert_eq!(buffer.as_host_vec().unwrap(), [1, 4, 5, 4, 5]);
    buffer[2].copy_from(&[9]).unwrap();
    let mut part = [0; 2];
    buffer.index(2..4).copy_to(&mut part).unwrap();
    assert_eq!(part, [9, 4]);
    let mut other = DeviceBuffer::from_slice(&[0_u32; 5]).unwrap();
    other.copy_from(&buffer).unwrap();
    assert_eq!(other.as_host_vec().unwrap(), [1, 4, 9, 4, 5]);
    other[..2].set_32(7).unwrap();
    other[4..].set_8(0xff).unwrap();
    assert_eq!(other.as_host_vec().unwrap(), [7, 7, 9, 4, u32::MAX]);
    other.set_zero().unwrap();
    assert_eq!(other.as_host_vec().unwrap(), [0; 5]);
    assert_eq!([1_u8, 2, 3].as_dbuf().unwrap().set_16(1), Err(CudaError::InvalidValue));
    assert_eq!(other.size_in_bytes(), 20);

    let mut value = DeviceBox::new(&(1_u32, 2.5_f32)).unwrap();
    assert_eq!(value.as_host_value(), Ok((1, 2.5)));
    value.copy_from(&(3, 4.5)).unwrap();
    let mut on_host = (0, 0.0);
    value.copy_to(&mut on_host).unwrap();
    assert_eq!(on_host, (3, 4.5));

    let mut shared = [1_u32, 2].as_unified_buf().unwrap();
    shared[0] = 5;
    assert!(!shared.as_unified_ptr().is_null());
    assert_eq!(shared.as_slice(), [5, 2]);
    let locked = LockedBuffer::from_slice(&[7_u32; 5]).unwrap();
    buffer.copy_from(&locked).unwrap();
    assert_eq!(buffer.as_host_vec().unwrap(), [7; 5]);
}

#[test]
fn asynchronous_work_follows_stream_order() {
    in_child!("asynchronous_work_follows_stream_order", fake_driver::path());
    let _context = cust::quick_init().unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let mut host = LockedBuffer::from_slice(&[1_u32, 2, 3]).unwrap();
    let (start, end) = (Event::new(EventFlags::DEFAULT).unwrap(), Event::new(EventFlags::DEFAULT).unwrap());
    assert_eq!(start.query(), Ok(EventStatus::NotReady));
    start.record(&stream).unwrap();
    // SAFETY: no other code uses the buffers until the stream is done.
    let buffer = unsafe {
        let mut buffer = DeviceBuffer::uninitialized_async(3, &stream).unwrap();
        buffer.async_copy_from(&host, &stream).unwrap();
        host.fill(0);
        buffer.async_copy_to(&mut host, &stream).unwrap();
        buffer
    };
    end.record(&stream).unwrap();
    stream.wait_event(&end, StreamWaitEventFlags::DEFAULT).unwrap();
    end.synchronize().unwrap();
    assert_eq!((end.query(), end.elapsed(&start)), (Ok(EventStatus::Ready), Ok(Duration::from_micros(1500))));
    assert_eq!(host.as_slice(), [1, 2, 3]);
    // SAFETY: as above.
    unsafe {
        let mut zeros = DeviceBuffer::<u32>::zeroed_async(3, &stream).unwrap();
        assert_eq!(zeros.as_host_vec().unwrap(), [0; 3]);
        zeros.async_copy_from(&buffer, &stream).unwrap();
        zeros[1..].set_8_async(1, &stream).unwrap();
        assert_eq!(zeros.as_host_vec().unwrap(), [1, 0x0101_0101, 0x0101_0101]);
    }
    assert_eq!(mem_get_info(), Ok((1 << 30, 1 << 31)));
    buffer.drop_async(&stream).unwrap();
    // An error, but the memory is freed.
    assert_eq!([1_u32].as_dbuf().unwrap().drop_async(&stream), Err(CudaError::InvalidValue));

    let (send, receive) = std::sync::mpsc::channel();
    stream.add_callback(Box::new(move || send.send(1).unwrap())).unwrap();
    stream.add_callback(Box::new(|| panic!("on purpose"))).unwrap();
    assert_eq!(receive.recv(), Ok(1));
    assert_eq!(Stream::drop(stream).map_err(|(error, _)| error), Ok(()));
    assert_eq!(report().objects, 3, "the two events and the locked buffer");
}

#[test]
fn a_captured_graph_is_launched_repeatedly() {
    in_child!("a_captured_graph_is_launched_repeatedly", fake_driver::path());
    let _context = cust::quick_init().unwrap();
    let (module, stream) = (Module::from_ptx(PTX, &[]).unwrap(), Stream::new(StreamFlags::DEFAULT, None).unwrap());
    let sum = [1_u32, 1].as_dbuf().unwrap();
    let one = [1_u32, 2].as_dbuf().unwrap();
    assert_eq!(stream.end_capture().unwrap_err(), CudaError::StreamCaptureUnmatched);
    stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
    let (to, from) = (sum.as_device_ptr(), one.as_device_ptr());
    // SAFETY: the kernel adds two slices, and no other code uses them.
    unsafe { launch!(module.add<<<1, 2, 0, stream>>>(to, 2_usize, from, 2_usize, to)).unwrap() };
    let graph = stream.end_capture().unwrap();
    assert_eq!((graph.num_nodes(), sum.as_host_vec()), (Ok(1), Ok(vec![1, 1])));
    let work = graph.instantiate().unwrap();
    drop(graph);
    for _ in 0..3 {
        // SAFETY: as above.
        unsafe { work.launch(&stream).unwrap() };
    }
    assert_eq!(sum.as_host_vec(), Ok(vec![4, 7]));
    let other = Context::new(Device::get_device(1).unwrap()).unwrap();
    let elsewhere = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { work.launch(&elsewhere) }, Err(CudaError::InvalidHandle));
    drop((work, sum, one, module, stream, elsewhere, other));
    assert_eq!(report().objects, 0);
}

#[test]
fn objects_keep_their_context_and_enter_it_on_any_thread() {
    in_child!("objects_keep_their_context_and_enter_it_on_any_thread", fake_driver::path());
    let context = cust::quick_init().unwrap();
    let module = Module::from_ptx(PTX, &[]).unwrap();
    let (stream, event) = (Stream::new(StreamFlags::DEFAULT, None).unwrap(), Event::new(EventFlags::DEFAULT).unwrap());
    let buffer = [1_u32, 2].as_dbuf().unwrap();
    let (locked, shared) = (LockedBuffer::new(&1_u8, 9).unwrap(), [1_u8].as_unified_buf().unwrap());
    drop(context);
    assert_eq!(report().retains, [1, 0]);

    // Another device's context becomes current on this thread. On the other thread, none is.
    let other = Context::new(Device::get_device(1).unwrap()).unwrap();
    let far = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    assert_eq!(buffer.as_host_vec().unwrap(), [1, 2]);
    stream.synchronize().unwrap();
    event.record(&stream).unwrap();
    let add = module.get_function("add").unwrap();
    let (to, length) = (buffer.as_device_ptr(), buffer.len());
    // SAFETY: the kernel adds two slices, and no other code uses them.
    unsafe {
        assert_eq!(launch!(add<<<1, 2, 0, far>>>(to, length, to, length, to)), Err(CudaError::InvalidHandle));
        launch!(add<<<1, 2, 0, stream>>>(to, length, to, length, to)).unwrap();
    }
    assert_eq!(CurrentContext::get_device().map(|device| device.as_raw()), Ok(1));

    let on_another_thread = thread::spawn(move || {
        assert_eq!(CurrentContext::get_current().unwrap_err(), CudaError::InvalidContext);
        assert_eq!(buffer.as_host_vec().unwrap(), [2, 4]);
        assert_eq!(DeviceBuffer::drop(buffer).map_err(|(error, _)| error), Ok(()));
        drop((module, stream, event, locked, shared));
        assert_eq!(report().depth, 0);
    });
    on_another_thread.join().unwrap();
    assert_eq!(report(), Report { objects: 1, retains: [0, 1], waits: report().waits, depth: 1 });
    drop((far, other));
    assert_eq!(report().retains, [0, 0]);

    // The context that is still current on this thread has been destroyed.
    assert_eq!([1_u32].as_dbuf().unwrap_err(), CudaError::ContextIsDestroyed);
}

#[test]
fn many_contexts_of_a_device_retain_it_once() {
    in_child!("many_contexts_of_a_device_retain_it_once", fake_driver::path());
    let first = cust::quick_init().unwrap();
    let contexts: Vec<_> = (0..3).map(|_| cust::quick_init().unwrap()).collect();
    let current = CurrentContext::get_current().unwrap();
    assert_eq!((report().retains, current.as_raw()), ([1, 0], first.as_raw()));
    drop((first, contexts));
    assert_eq!(report().retains, [1, 0]);
    drop(current);
    assert_eq!(report().retains, [0, 0]);

    // A context that other code has retained, by calling the driver directly.
    let (driver, mut raw) = (cuda_driver::load().unwrap(), std::ptr::null_mut());
    // SAFETY: writes a handle, and makes it current.
    unsafe {
        driver.cuDevicePrimaryCtxRetain(&mut raw, 0).unwrap();
        driver.cuCtxSetCurrent(raw).unwrap();
    }
    let buffer = [1_u32].as_dbuf().unwrap();
    assert_eq!(report().retains, [2, 0]);
    drop(buffer);
    assert_eq!(report().retains, [1, 0]);
}

#[test]
fn threads_create_and_drop_contexts_concurrently() {
    in_child!("threads_create_and_drop_contexts_concurrently", fake_driver::path());
    cust::init(CudaFlags::empty()).unwrap();
    let work = |device: u32| {
        move || {
            for i in 0..200 {
                let context = Context::new(Device::get_device(device).unwrap()).unwrap();
                let buffer = [i; 4].as_dbuf().unwrap();
                drop(context);
                assert_eq!(buffer.as_host_vec().unwrap(), [i; 4]);
            }
        }
    };
    let threads: Vec<_> = (0..8).map(|i| thread::spawn(work(i % 2))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(report(), Report { objects: 0, retains: [0, 0], waits: report().waits, depth: 0 });
}
