//! Modules, launches, streams, events and graphs.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::{
    CAPTURE_UNMATCHED, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, NOT_FOUND, NOT_READY, Object,
    UNSUPPORTED_PTX_VERSION, with_state,
};

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleLoadDataEx(
    module: &mut u64,
    image: *const c_char,
    option_count: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> u32 {
    // SAFETY: the caller passes a nul-terminated string.
    let ptx = unsafe { CStr::from_ptr(image) }.to_str().unwrap();
    // SAFETY: the caller passes `option_count` options and values.
    let pairs = (0..option_count as usize).map(|i| unsafe { (*options.add(i), *values.add(i)) });
    let pairs: BTreeMap<u32, *mut c_void> = pairs.collect();
    with_state(|state| {
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
        *module = state.add(Object::Module)?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuModuleUnload(module: u64) -> u32 {
    with_state(|state| {
        state.destroy(module)?;
        let is_other = |object: &Object| !matches!(object, Object::Function { module: of, .. } if *of == module);
        state.objects.retain(|_, (_, object)| is_other(object));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "system" fn cuModuleGetFunction(function: &mut u64, module: u64, name: *const c_char) -> u32 {
    // SAFETY: the caller passes a nul-terminated string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned();
    with_state(|state| {
        state.get(module)?;
        if name != "add" {
            return Err(NOT_FOUND);
        }
        *function = state.add(Object::Function { name, module })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuFuncGetAttribute(value: &mut c_int, attribute: c_uint, function: u64) -> u32 {
    with_state(|state| {
        state.get(function)?;
        *value = attribute as c_int * 10;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuOccupancyMaxPotentialBlockSize(
    grid: &mut c_int,
    block: &mut c_int,
    function: u64,
    _: usize,
    _: usize,
    limit: c_int,
) -> u32 {
    with_state(|state| {
        state.get(function)?;
        (*grid, *block) = (132, if limit == 0 { 1024 } else { limit });
        Ok(())
    })
}

#[unsafe(no_mangle)]
#[rustfmt::skip]
unsafe extern "system" fn cuLaunchKernel(
    function: u64,
    grid_x: c_uint, _: c_uint, _: c_uint,
    block_x: c_uint, _: c_uint, _: c_uint,
    _: c_uint,
    stream: u64,
    parameters: *const *const u64,
    _: *mut *mut c_void,
) -> u32 {
    with_state(|state| {
        if grid_x == 0 || block_x == 0 || block_x > 1024 {
            return Err(INVALID_VALUE);
        }
        let Object::Function { name, .. } = state.get(function)? else { return Err(INVALID_HANDLE) };
        // SAFETY: `add`, the only kernel, has five parameters of 8 bytes.
        let launch = (name.clone(), (0..5).map(|i| unsafe { **parameters.add(i) }).collect());
        match state.get(stream)? {
            Object::Stream { captured: Some(captured), .. } => captured.push(launch),
            Object::Stream { .. } => return state.run(&launch),
            _ => return Err(INVALID_HANDLE),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamCreateWithPriority(stream: &mut u64, flags: c_uint, _: c_int) -> u32 {
    with_state(|state| {
        *stream = state.add(Object::Stream { captured: None, flags })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamGetFlags(stream: u64, flags: &mut c_uint) -> u32 {
    with_state(|state| {
        let Object::Stream { flags: of_stream, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        *flags = *of_stream;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamDestroy_v2(stream: u64) -> u32 {
    with_state(|state| state.destroy(stream))
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamSynchronize(stream: u64) -> u32 {
    with_state(|state| {
        if stream == 0 {
            state.waits += 1;
            return state.current().map(|_| ());
        }
        state.get(stream).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamWaitEvent(stream: u64, event: u64, _: c_uint) -> u32 {
    with_state(|state| {
        state.get(stream)?;
        state.get(event).map(|_| ())
    })
}

/// Calls the function immediately. Like a real driver, calls it on another thread.
#[unsafe(no_mangle)]
extern "system" fn cuLaunchHostFunc(stream: u64, function: unsafe extern "system" fn(*mut c_void), data: usize) -> u32 {
    let code = with_state(|state| state.get(stream).map(|_| ()));
    if code == 0 {
        // SAFETY: the caller passes a function that takes this data once, on any thread.
        let call = move || unsafe { function(std::ptr::with_exposed_provenance_mut(data)) };
        std::thread::spawn(call).join().unwrap();
    }
    code
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamBeginCapture_v2(stream: u64, _: c_uint) -> u32 {
    with_state(|state| {
        let Object::Stream { captured, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        *captured = Some(Vec::new());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuStreamEndCapture(stream: u64, graph: &mut u64) -> u32 {
    with_state(|state| {
        let Object::Stream { captured, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
        let launches = captured.take().ok_or(CAPTURE_UNMATCHED)?;
        *graph = state.add(Object::Graph(launches))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphGetNodes(graph: u64, _: *mut *mut c_void, count: &mut usize) -> u32 {
    with_state(|state| {
        let Object::Graph(launches) = state.get(graph)? else { return Err(INVALID_HANDLE) };
        *count = launches.len();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphInstantiateWithFlags(executable: &mut u64, graph: u64, _: u64) -> u32 {
    with_state(|state| {
        let Object::Graph(launches) = state.get(graph)? else { return Err(INVALID_HANDLE) };
        let launches = launches.clone();
        *executable = state.add(Object::Executable(launches))?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphLaunch(executable: u64, stream: u64) -> u32 {
    with_state(|state| {
        state.get(stream)?;
        let Object::Executable(launches) = state.get(executable)? else { return Err(INVALID_HANDLE) };
        launches.clone().iter().try_for_each(|launch| state.run(launch))
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphDestroy(graph: u64) -> u32 {
    with_state(|state| state.destroy(graph))
}

#[unsafe(no_mangle)]
extern "system" fn cuGraphExecDestroy(executable: u64) -> u32 {
    with_state(|state| state.destroy(executable))
}

#[unsafe(no_mangle)]
extern "system" fn cuEventCreate(event: &mut u64, _: c_uint) -> u32 {
    with_state(|state| {
        *event = state.add(Object::Event { is_recorded: false })?;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventRecord(event: u64, stream: u64) -> u32 {
    with_state(|state| {
        state.get(stream)?;
        let Object::Event { is_recorded } = state.get(event)? else { return Err(INVALID_HANDLE) };
        *is_recorded = true;
        Ok(())
    })
}

/// An event is not ready until it is recorded, so that a test sees both results.
#[unsafe(no_mangle)]
extern "system" fn cuEventQuery(event: u64) -> u32 {
    with_state(|state| match state.get(event)? {
        Object::Event { is_recorded: true } => Ok(()),
        _ => Err(NOT_READY),
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventSynchronize(event: u64) -> u32 {
    with_state(|state| state.get(event).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "system" fn cuEventElapsedTime(milliseconds: &mut f32, start: u64, end: u64) -> u32 {
    with_state(|state| {
        state.get(start)?;
        state.get(end)?;
        *milliseconds = 1.5;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "system" fn cuEventDestroy_v2(event: u64) -> u32 {
    with_state(|state| state.destroy(event))
}
