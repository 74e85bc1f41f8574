//! Handles of devices and streams. Each is made when it is first needed, so that a process without arrays on a GPU has
//! no CUDA context.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_driver::CUpointer_attribute;
use pyo3::prelude::*;
use warpfold::interop::StreamId;
use warpfold::{Gpu, interop};

use crate::arguments::exception;

/// The legacy default stream. Null stands for it, too.
const LEGACY: usize = 1;

/// The default stream of a thread. It waits for the legacy default stream and is waited for by it, so that work of the
/// latter comes after the thread's earlier work and before its later work.
const PER_THREAD: usize = 2;

/// The maximum number of handles that are kept.
const CAPACITY: usize = 64;

/// A handle on a stream of another library.
struct OfStream {
    device: u32,
    key: Key,
    /// The `CUstream`.
    stream: usize,
    gpu: Gpu,
}

/// What a handle is found by.
#[derive(Clone, Copy, PartialEq)]
enum Key {
    /// The legacy default stream.
    Legacy,
    /// The driver's number of the stream, which no other stream has in this process.
    Number(u64),
    /// The `CUstream`, while another library captures the stream: the driver does not tell its number then.
    OfCapture,
}

struct Handles {
    /// The handle of each device, with a stream of its own.
    devices: Vec<Option<Gpu>>,
    /// The handles on streams, the last used one at the end.
    streams: Vec<OfStream>,
}

static HANDLES: Mutex<Handles> = Mutex::new(Handles { devices: Vec::new(), streams: Vec::new() });

/// The lock is never held while Python runs, or while the driver waits.
fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The handle of a device with a stream of its own.
pub fn of_device(py: Python<'_>, device: u32) -> PyResult<Gpu> {
    let at = device as usize;
    if let Some(Some(gpu)) = handles().devices.get(at) {
        return Ok(gpu.clone());
    }
    // A context takes a while. If two threads make a handle at once, one of them is not used.
    let made = py.detach(|| Gpu::new(device)).map_err(|error| exception(&error))?;
    let mut handles = handles();
    if handles.devices.len() <= at {
        handles.devices.resize_with(at + 1, || None);
    }
    Ok(handles.devices[at].get_or_insert(made).clone())
}

/// The device whose memory has an address; device 0 if the driver does not know.
pub fn device_at(address: u64) -> u32 {
    let Ok(driver) = cuda_driver::load() else { return 0 };
    let mut ordinal: c_int = 0;
    let mut attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    let mut data: *mut c_void = (&raw mut ordinal).cast();
    // SAFETY: writes one integer, and does not access the memory at the address.
    let known = unsafe { driver.cuPointerGetAttributes(1, &raw mut attribute, &raw mut data, address) };
    // What is no memory of a device is refused later.
    known.ok().and_then(|()| u32::try_from(ordinal).ok()).unwrap_or(0)
}

/// The handle on a stream of another library.
///
/// # Safety
/// The stream exists, or is one of the default streams.
pub unsafe fn of_stream(py: Python<'_>, device: u32, stream: *mut c_void) -> PyResult<Gpu> {
    let key = match stream as usize {
        0 | LEGACY | PER_THREAD => Some(Key::Legacy),
        // SAFETY: the stream exists.
        _ => match unsafe { interop::stream_id(&of_device(py, device)?, stream) }.map_err(|error| exception(&error))? {
            StreamId::Known(id) => Some(Key::Number(id)),
            StreamId::Captured => Some(Key::OfCapture),
            // A later stream could have the same handle.
            _ => None,
        },
    };
    let stream = if key == Some(Key::Legacy) { LEGACY as *mut c_void } else { stream };
    if let Some(gpu) = key.and_then(|key| find(device, key, stream as usize)) {
        return Ok(gpu);
    }
    // SAFETY: the stream exists now. Later calls use this handle only for a stream of the same number, which is this
    // one, or while the stream of its `CUstream` is captured; and dropping a handle does not touch its stream.
    let gpu = unsafe { interop::on_stream(&of_device(py, device)?, stream) }.map_err(|error| exception(&error))?;
    let Some(key) = key else { return Ok(gpu) };
    let mut handles = handles();
    let oldest = (handles.streams.len() == CAPACITY).then(|| handles.streams.remove(0));
    handles.streams.push(OfStream { device, key, stream: stream as usize, gpu: gpu.clone() });
    drop(handles);
    // The driver may wait for the device before it frees the handle's memory.
    py.detach(|| drop(oldest));
    Ok(gpu)
}

/// The handle on a stream, which becomes the last used one. Captured work shares no memory with other work, so any
/// handle on a `CUstream` will do for it.
fn find(device: u32, key: Key, stream: usize) -> Option<Gpu> {
    let streams = &mut handles().streams;
    let is_found = |handle: &OfStream| match key {
        Key::OfCapture => handle.stream == stream,
        Key::Legacy | Key::Number(_) => handle.key == key,
    };
    let at = streams.iter().rposition(|handle| handle.device == device && is_found(handle))?;
    streams[at..].rotate_left(1);
    streams.last().map(|handle| handle.gpu.clone())
}
