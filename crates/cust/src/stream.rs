//! Streams: queues of work for a device.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use cuda_driver::CUstream;

use crate::context::{Context, CurrentContext};
use crate::error::{CudaError, CudaResult, DropResult};
use crate::function::{BlockSize, Function, GridSize};

bitflags::bitflags! {
    /// How a stream stands to the legacy default stream, which other libraries may use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamFlags: u32 {
        /// Its work is ordered with that of the legacy default stream.
        const DEFAULT = 0x00;
        /// Its work is not ordered with that of the legacy default stream.
        const NON_BLOCKING = cuda_driver::CU_STREAM_NON_BLOCKING;
    }
}

bitflags::bitflags! {
    /// How a stream waits for an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamWaitEventFlags: u32 {
        /// The only way.
        const DEFAULT = 0x0;
    }
}

/// A queue of work, which the device does in order.
#[derive(Debug)]
pub struct Stream {
    /// Null once it is destroyed.
    raw: CUstream,
    context: Context,
}

// SAFETY: the driver takes a stream's handle from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, from several at once as well.
unsafe impl Sync for Stream {}

impl Stream {
    /// A new stream in the current context. `priority` is one of
    /// [`CurrentContext::get_stream_priority_range`](crate::context::CurrentContext::get_stream_priority_range), the
    /// lowest if it is `None`; others are clamped to those.
    ///
    /// # Errors
    /// No context is current, or an error of the driver.
    pub fn new(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        let mut stream = Self { raw: ptr::null_mut(), context: CurrentContext::get_current()? };
        let entered = stream.context.enter()?;
        // SAFETY: writes a handle, which is destroyed with the value.
        unsafe {
            entered.driver().cuStreamCreateWithPriority(&mut stream.raw, flags.bits(), priority.unwrap_or(0))?;
        }
        drop(entered);
        Ok(stream)
    }

    /// Its flags.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn get_flags(&self) -> CudaResult<StreamFlags> {
        let entered = self.context.enter()?;
        let mut flags = 0;
        // SAFETY: writes one integer; the handle is alive.
        unsafe { entered.driver().cuStreamGetFlags(self.raw, &mut flags)? };
        Ok(StreamFlags::from_bits_truncate(flags))
    }

    /// Its priority.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn get_priority(&self) -> CudaResult<i32> {
        let entered = self.context.enter()?;
        let mut priority = 0;
        // SAFETY: writes one integer; the handle is alive.
        unsafe { entered.driver().cuStreamGetPriority(self.raw, &mut priority)? };
        Ok(priority)
    }

    /// Calls a closure on a thread of the driver after all work that the stream has so far. Work that comes later waits
    /// for it. Nothing in it may use the driver, which returns errors there; a panic in it is caught.
    ///
    /// If the work before it fails, the closure is neither called nor dropped.
    ///
    /// # Errors
    /// An error of the driver; then the closure is dropped.
    pub fn add_callback<T>(&self, callback: Box<T>) -> CudaResult<()>
    where
        T: FnOnce() + Send + 'static,
    {
        unsafe extern "system" fn call<T: FnOnce()>(data: *mut c_void) {
            // SAFETY: `add_callback` has made it of a box of this type, and the driver calls this once.
            let callback = unsafe { Box::from_raw(data.cast::<T>()) };
            // A panic may not leave a function that the driver calls.
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(callback)) {
                // Dropping it could panic again.
                std::mem::forget(payload);
            }
        }
        let entered = self.context.enter()?;
        let data = Box::into_raw(callback);
        // SAFETY: the handle is alive; the function takes what `data` points to, once, on any thread.
        let added = unsafe { entered.driver().cuLaunchHostFunc(self.raw, Some(call::<T>), data.cast()) };
        added.map_err(|error| {
            // SAFETY: it is from `into_raw`, and the driver has not taken it.
            drop(unsafe { Box::from_raw(data) });
            error.into()
        })
    }

    /// Waits for all of its work.
    ///
    /// # Errors
    /// The work has failed.
    pub fn synchronize(&self) -> CudaResult<()> {
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        unsafe { entered.driver().cuStreamSynchronize(self.raw)? };
        Ok(())
    }

    /// Launches a kernel: what [`launch!`](crate::launch) becomes.
    ///
    /// `arguments` are pointers to the kernel's arguments, in order. The driver reads them before this returns.
    ///
    /// # Safety
    /// - The arguments are as many as the kernel has parameters in PTX, and of the same types.
    /// - What the kernel does with them is sound: until it is done, memory that it reads is not written and memory that
    ///   it writes is not accessed by anyone else, and none of it is freed.
    ///
    /// # Errors
    /// [`CudaError::InvalidHandle`] if the kernel is of another context; an error of the launch, or of work before.
    pub unsafe fn launch<G, B>(
        &self,
        function: &Function<'_>,
        grid_size: G,
        block_size: B,
        shared_mem_bytes: u32,
        arguments: &[*mut c_void],
    ) -> CudaResult<()>
    where
        G: Into<GridSize>,
        B: Into<BlockSize>,
    {
        if !self.context.is(function.context()) {
            return Err(CudaError::InvalidHandle);
        }
        let (grid, block) = (grid_size.into(), block_size.into());
        let entered = self.context.enter()?;
        // SAFETY: both handles are alive and of one context; the rest is promised by the caller.
        unsafe {
            entered.driver().cuLaunchKernel(
                function.to_raw(),
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared_mem_bytes,
                self.raw,
                arguments.as_ptr().cast_mut(),
                ptr::null_mut(),
            )?;
        }
        Ok(())
    }

    /// Its handle. It is valid for as long as this value lives.
    #[inline]
    pub fn as_inner(&self) -> CUstream {
        self.raw
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Destroys it. Its work still ends.
    ///
    /// # Errors
    /// An error of the driver, with the stream.
    pub fn drop(mut stream: Self) -> DropResult<Self> {
        stream.destroy().map_err(|error| (error, stream))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive, and is not used again. The driver waits for its work by itself.
        unsafe { entered.driver().cuStreamDestroy_v2(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}
