//! Modules, launches, streams and events.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::log::functions;
use super::{
    Code, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, LEGACY, Launch, NOT_FOUND, NOT_READY, Object,
    UNSUPPORTED_PTX_VERSION, context_of, with_state,
};

/// The names of the entries of a PTX text.
fn entries(ptx: &str) -> Vec<String> {
    let names = ptx.split(".entry").skip(1).filter_map(|rest| rest.split_once('('));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

functions! {
    fn cuModuleLoadDataEx(
        module: &mut u64,
        image: *const c_char,
        option_count: c_uint,
        options: *const c_uint,
        values: *const *mut c_void,
    ) {
        // SAFETY: the caller passes a nul-terminated string. A cubin is one, too: its first nul byte ends it here.
        let ptx = unsafe { CStr::from_ptr(image) }.to_str().map_err(|_| INVALID_PTX)?;
        // SAFETY: the caller passes `option_count` options and values.
        let pairs = (0..option_count as usize).map(|i| unsafe { (*options.add(i), *values.add(i)) });
        let pairs: BTreeMap<u32, *mut c_void> = pairs.collect();
        with_state(|state| {
            state.check_capture()?;
            if ptx.contains(".version 99") {
                return Err(UNSUPPORTED_PTX_VERSION);
            }
            if ptx.contains("nonsense") {
                // The buffer for the log and its size.
                if let (Some(buffer), Some(size)) = (pairs.get(&5), pairs.get(&6)) {
                    let text = b"line 2: nonsense\0";
                    assert!(text.len() <= size.addr());
                    // SAFETY: the buffer has this size, which is not less than the text's.
                    unsafe { buffer.cast::<u8>().copy_from(text.as_ptr(), text.len()) };
                }
                return Err(INVALID_PTX);
            }
            *module = state.add(Object::Module { entries: entries(ptx) })?;
            Ok(())
        })
    }

    fn cuModuleUnload(module: u64) {
        with_state(|state| {
            state.destroy(module)?;
            let is_other = |object: &Object| !matches!(object, Object::Function { module: of, .. } if *of == module);
            state.objects.retain(|_, (_, object)| is_other(object));
            Ok(())
        })
    }

    fn cuModuleGetFunction(function: &mut u64, module: u64, name: *const c_char) {
        // SAFETY: the caller passes a nul-terminated string.
        let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned();
        with_state(|state| {
            let Object::Module { entries } = state.get(module)? else { return Err(INVALID_HANDLE) };
            if !entries.contains(&name) {
                return Err(NOT_FOUND);
            }
            *function = state.add(Object::Function { name, module })?;
            Ok(())
        })
    }

    fn cuFuncGetAttribute(value: &mut c_int, attribute: c_uint, function: u64) {
        with_state(|state| {
            state.get(function)?;
            *value = attribute as c_int * 10;
            Ok(())
        })
    }

    fn cuFuncSetAttribute(function: u64, _: c_uint, _: c_int) {
        with_state(|state| state.get(function).map(|_| ()))
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: &mut c_int, function: u64, _: c_int, _: usize) {
        with_state(|state| {
            state.get(function)?;
            *blocks = 2;
            Ok(())
        })
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: &mut c_int,
        block: &mut c_int,
        function: u64,
        _: usize,
        _: usize,
        limit: c_int,
    ) {
        with_state(|state| {
            state.get(function)?;
            (*grid, *block) = (132, if limit == 0 { 1024 } else { limit });
            Ok(())
        })
    }
}

/// Launches a kernel, or adds it to the graph that its stream captures.
///
/// # Safety
/// If the function is `add`, there are five parameters of 8 bytes.
unsafe fn launch(function: u64, grid: c_uint, block: c_uint, stream: u64, parameters: *const *const u64) -> Code {
    with_state(|state| {
        if grid == 0 || block == 0 || block > 1024 {
            return Err(INVALID_VALUE);
        }
        state.check_stream(stream)?;
        let Object::Function { name, .. } = state.get(function)? else { return Err(INVALID_HANDLE) };
        let count = if name == "add" { 5 } else { 0 };
        // SAFETY: as promised by the caller.
        let launch: Launch = (name.clone(), (0..count).map(|i| unsafe { **parameters.add(i) }).collect());
        state.start(stream, launch)
    })
}

/// `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    stream: u64,
    attributes: *mut c_void,
    attribute_count: c_uint,
}

functions! {
    fn cuLaunchKernel(
        function: u64,
        grid_x: c_uint,
        _: c_uint,
        _: c_uint,
        block_x: c_uint,
        _: c_uint,
        _: c_uint,
        _: c_uint,
        stream: u64,
        parameters: *const *const u64,
        _: *mut *mut c_void,
    ) in stream {
        // SAFETY: as promised by the caller.
        unsafe { launch(function, grid_x, block_x, stream, parameters) }
    }

    fn cuLaunchKernelEx(
        config: &LaunchConfig,
        function: u64,
        parameters: *const *const u64,
        _: *mut *mut c_void,
    ) in config.stream {
        // SAFETY: as promised by the caller.
        unsafe { launch(function, config.grid[0], config.block[0], config.stream, parameters) }
    }

    fn cuStreamCreateWithPriority(stream: &mut u64, flags: c_uint, _: c_int) {
        with_state(|state| {
            *stream = state.add(Object::Stream { captured: None, flags })?;
            Ok(())
        })
    }

    fn cuStreamGetFlags(stream: u64, flags: &mut c_uint) in stream {
        with_state(|state| {
            state.refuse_captured(stream)?;
            let Object::Stream { flags: of_stream, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
            *flags = *of_stream;
            Ok(())
        })
    }

    fn cuStreamDestroy_v2(stream: u64) in stream {
        with_state(|state| state.destroy(stream))
    }

    fn cuStreamSynchronize(stream: u64) in stream {
        with_state(|state| {
            state.check_capture()?;
            state.check_stream(stream)?;
            state.refuse_captured(stream)?;
            state.waits += u64::from(stream <= LEGACY);
            Ok(())
        })
    }

    fn cuStreamWaitEvent(stream: u64, event: u64, _: c_uint) in stream with event {
        with_state(|state| {
            state.check_stream(stream)?;
            // The event may be of another device.
            let Some((_, Object::Event { captured: of_event, .. })) = state.objects.get(&event) else {
                return Err(INVALID_HANDLE);
            };
            let of_event = *of_event;
            // The stream joins the capture.
            match state.objects.get_mut(&stream) {
                Some((_, Object::Stream { captured, .. })) if of_event.is_some() => *captured = of_event,
                _ => {}
            }
            Ok(())
        })
    }

    fn cuStreamGetCtx(stream: u64, context: &mut u64) in stream {
        with_state(|state| {
            let Some((device, Object::Stream { .. })) = state.objects.get(&stream) else { return Err(INVALID_HANDLE) };
            *context = context_of(*device);
            Ok(())
        })
    }

    fn cuStreamGetId(stream: u64, id: &mut u64) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            state.refuse_captured(stream)?;
            *id = stream.max(LEGACY);
            Ok(())
        })
    }

    /// Calls the function immediately. Like a real driver, calls it on another thread.
    fn cuLaunchHostFunc(stream: u64, function: unsafe extern "system" fn(*mut c_void), data: usize) in stream {
        with_state(|state| state.check_stream(stream))?;
        // SAFETY: the caller passes a function that takes this data once, on any thread.
        let call = move || unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
        std::thread::spawn(call).join().unwrap();
        Ok(())
    }

    fn cuEventCreate(event: &mut u64, _: c_uint) {
        with_state(|state| {
            *event = state.add(Object::Event { is_recorded: false, captured: None })?;
            Ok(())
        })
    }

    fn cuEventRecord(event: u64, stream: u64) in stream with event {
        with_state(|state| {
            state.check_stream(stream)?;
            let of_stream = state.captured(stream);
            let Object::Event { is_recorded, captured } = state.get(event)? else { return Err(INVALID_HANDLE) };
            (*is_recorded, *captured) = (true, of_stream);
            Ok(())
        })
    }

    /// An event is not ready until it is recorded, so that a test sees both results.
    fn cuEventQuery(event: u64) {
        with_state(|state| {
            state.check_capture()?;
            match state.get(event)? {
                Object::Event { is_recorded: true, .. } => Ok(()),
                _ => Err(NOT_READY),
            }
        })
    }

    fn cuEventSynchronize(event: u64) with event {
        with_state(|state| {
            state.check_capture()?;
            state.get(event).map(|_| ())
        })
    }

    fn cuEventElapsedTime(milliseconds: &mut f32, start: u64, end: u64) {
        with_state(|state| {
            state.get(start)?;
            state.get(end)?;
            *milliseconds = 1.5;
            Ok(())
        })
    }

    fn cuEventDestroy_v2(event: u64) {
        with_state(|state| state.destroy(event))
    }
}
