//! Captures: a stream's work, added to a graph instead of being executed.
//!
//! Another library may capture a stream to which this process also sends work. The graph may be executed at any later
//! time, so it has to keep what that work uses.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use cuda_driver::{CU_GRAPH_USER_OBJECT_MOVE, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUgraph, CUstreamCaptureStatus};

use crate::context::Context;
use crate::error::CudaResult;
use crate::stream::Stream;

/// A capture in progress.
#[derive(Debug)]
pub struct Capture {
    id: u64,
    graph: CUgraph,
    context: Context,
}

impl Stream {
    /// Whether a capture is in progress to which the stream's work goes, valid or not.
    ///
    /// # Errors
    /// An error of the driver: the stream is the legacy default stream, and a stream that waits for it is captured.
    #[inline]
    pub fn is_captured(&self) -> CudaResult<bool> {
        let entered = self.context().enter()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes one integer; the handle is alive.
        unsafe { entered.driver().cuStreamIsCapturing(self.as_inner(), &mut status)? };
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// The capture to which the stream's work goes, if it is valid.
    ///
    /// # Errors
    /// As for [`Stream::is_captured`].
    pub fn capture(&self) -> CudaResult<Option<Capture>> {
        let entered = self.context().enter()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, ptr::null_mut());
        let (dependencies, count) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: writes an integer and two handles; the other pointers may be null. The stream's handle is alive.
        unsafe {
            entered.driver().cuStreamGetCaptureInfo_v2(
                self.as_inner(),
                &mut status,
                &mut id,
                &mut graph,
                dependencies,
                count,
            )?;
        }
        let is_valid = status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        Ok(is_valid.then(|| Capture { id, graph, context: self.context().clone() }))
    }
}

impl Capture {
    /// The capture's identifier, which no other capture of the process has, before or after.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Keeps a value until the graph is destroyed, and all that was instantiated or cloned from it.
    ///
    /// The value is then dropped on a thread of the driver. A call of the driver inside the drop returns an error, or
    /// never returns. A panic in it is caught.
    ///
    /// # Safety
    /// The capture is still in progress.
    ///
    /// # Errors
    /// An error of the driver. The value is then dropped.
    pub unsafe fn keep<T: Send + 'static>(&self, value: Box<T>) -> CudaResult<()> {
        unsafe extern "system" fn destroy<T>(data: *mut c_void) {
            // SAFETY: `data` is from a box of this type in `keep`, and the driver calls this function once.
            let value = unsafe { Box::from_raw(data.cast::<T>()) };
            // A panic must not unwind into the driver.
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(value))) {
                // Dropping the payload could panic again.
                std::mem::forget(payload);
            }
        }
        let entered = self.context.enter()?;
        let (driver, data) = (entered.driver(), Box::into_raw(value));
        let mut object = ptr::null_mut();
        let flags = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
        // SAFETY: writes a handle with one reference. The driver calls the function once, after the last reference.
        let created = unsafe { driver.cuUserObjectCreate(&mut object, data.cast(), Some(destroy::<T>), 1, flags) };
        if let Err(error) = created {
            // SAFETY: `data` is from `into_raw`, and the driver will not call the function.
            drop(unsafe { Box::from_raw(data) });
            return Err(error.into());
        }
        // SAFETY: the graph exists, because its capture is in progress, as promised by the caller. The graph takes over
        // the one reference.
        let retained = unsafe { driver.cuGraphRetainUserObject(self.graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) };
        retained.inspect_err(|_| {
            // SAFETY: the reference is still this function's.
            let _ = unsafe { driver.cuUserObjectRelease(object, 1) };
        })?;
        Ok(())
    }
}
