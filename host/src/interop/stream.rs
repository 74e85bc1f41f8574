//! Streams of other libraries.

use std::any::Any;
use std::ffi::c_void;

use crate::{Error, Gpu};

/// A handle of the device of `gpu` whose work goes to a stream of another library, with the same kernels.
///
/// `stream` is a `CUstream`, which `cudaStream_t` is, too. 0 and 1 are the legacy default stream. The other library
/// keeps the stream, and destroys it.
///
/// # Safety
/// - `stream` is a stream of this process, and exists during each call of the handle, its clones, and the buffers,
///   reducers and recordings made by them, and during the first use of such a buffer by another handle. To drop these
///   values is no such call.
/// - During a call, no other thread begins or ends a capture of the stream.
///
/// # Errors
/// The stream is of another CUDA context than the device's primary one, it is the per-thread default stream (2), or
/// `gpu` is the executor.
pub unsafe fn on_stream(gpu: &Gpu, stream: *mut c_void) -> Result<Gpu, Error> {
    // SAFETY: as promised by the caller. A backend is dropped with the last of these values.
    Ok(Gpu::on(unsafe { gpu.own_backend().on_stream(stream, None)? }))
}

/// [`on_stream`] for a stream with an owner, which is dropped with the last value that uses the stream: the handle, a
/// clone, or a buffer, reducer or recording made by them; on any thread.
///
/// # Safety
/// - `stream` is a stream of this process, and exists until the owner is dropped.
/// - During a call of the handle, no other thread begins or ends a capture of the stream.
///
/// # Errors
/// As for [`on_stream`].
pub unsafe fn on_stream_of(gpu: &Gpu, stream: *mut c_void, owner: impl Any + Send + Sync) -> Result<Gpu, Error> {
    // SAFETY: as promised by the caller.
    Ok(Gpu::on(unsafe { gpu.own_backend().on_stream(stream, Some(Box::new(owner)))? }))
}

/// What the driver says about a stream: see [`stream_id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamId {
    /// The identifier, which no other stream of the process has, before or after.
    Known(u64),
    /// Another library captures the stream, and the capture would not survive the question.
    Captured,
    /// The driver is older than CUDA 12.0, and has no identifiers.
    Unknown,
}

/// The identifier of a stream, to keep the handles of [`on_stream`] by: the handle of a stream that is destroyed may
/// become that of a new one.
///
/// While a stream is captured, a handle that was kept for one with the same `CUstream` may be used for it, even if that
/// was another stream: captured work shares no memory with other work.
///
/// # Safety
/// `stream` is a stream of this process.
///
/// # Errors
/// The driver does not know the stream, or `gpu` is the executor.
pub unsafe fn stream_id(gpu: &Gpu, stream: *mut c_void) -> Result<StreamId, Error> {
    // SAFETY: as promised by the caller.
    unsafe { gpu.own_backend().stream_id(stream) }
}
