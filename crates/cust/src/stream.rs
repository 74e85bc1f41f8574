//! Streams: queues of work on a device.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use cuda_driver::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUstream};

use crate::context::{Context, CurrentContext};
use crate::error::{CudaError, CudaResult, DropResult};
use crate::function::{BlockSize, Function, GridSize};

bitflags::bitflags! {
    /// How a stream is ordered with the legacy default stream, which other libraries may use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamFlags: u32 {
        /// The stream's work and that of the legacy default stream wait for each other.
        const DEFAULT = 0x00;
        /// The stream's work and that of the legacy default stream do not wait for each other.
        const NON_BLOCKING = cuda_driver::CU_STREAM_NON_BLOCKING;
    }
}

bitflags::bitflags! {
    /// How a stream waits for an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct StreamWaitEventFlags: u32 {
        /// The only option.
        const DEFAULT = 0x0;
    }
}

/// A queue of work, which the device executes in order.
#[derive(Debug)]
pub struct Stream {
    /// Null after the stream is destroyed.
    raw: CUstream,
    /// Whether other code destroys the stream.
    is_borrowed: bool,
    context: Context,
}

// SAFETY: the driver takes a stream's handle from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above, and from several threads at once.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a stream in the current context.
    ///
    /// The priority is clamped to the range of
    /// [`CurrentContext::get_stream_priority_range`](crate::context::CurrentContext::get_stream_priority_range). `None`
    /// is priority 0, the lowest.
    ///
    /// # Errors
    /// No context is current, or an error of the driver.
    pub fn new(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        let mut stream = Self { raw: ptr::null_mut(), is_borrowed: false, context: CurrentContext::get_current()? };
        let entered = stream.context.enter()?;
        // SAFETY: writes a handle, which is destroyed with the value.
        unsafe {
            entered.driver().cuStreamCreateWithPriority(&mut stream.raw, flags.bits(), priority.unwrap_or(0))?;
        }
        drop(entered);
        Ok(stream)
    }

    /// A stream that other code has created, and will destroy. Null is the legacy default stream of `context`.
    ///
    /// # Safety
    /// `raw` is a stream of this process, and exists during each call with this value, except its drop. No thread
    /// begins or ends a capture of it during such a call.
    ///
    /// # Errors
    /// [`CudaError::InvalidContext`] if it is a stream of another context; an error of the driver.
    pub unsafe fn borrow(raw: CUstream, context: &Context) -> CudaResult<Self> {
        let raw = if raw.is_null() { CU_STREAM_LEGACY } else { raw };
        let stream = Self { raw, is_borrowed: true, context: context.clone() };
        // Each context has default streams of its own.
        if ![CU_STREAM_LEGACY, CU_STREAM_PER_THREAD].contains(&raw) {
            let entered = context.enter()?;
            let mut own = ptr::null_mut();
            // SAFETY: writes one handle; the stream exists, as promised by the caller.
            unsafe { entered.driver().cuStreamGetCtx(raw, &mut own)? };
            if own != context.as_raw() {
                return Err(CudaError::InvalidContext);
            }
        }
        Ok(stream)
    }

    /// The stream's flags.
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

    /// The stream's priority.
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

    /// Calls a closure on a thread of the driver, after the stream's earlier work. Later work waits for the closure. A
    /// call of the driver inside the closure returns an error. A panic in the closure is caught.
    ///
    /// If the earlier work fails, the closure is neither called nor dropped.
    ///
    /// # Errors
    /// An error of the driver. The closure is then dropped.
    pub fn add_callback<T>(&self, callback: Box<T>) -> CudaResult<()>
    where
        T: FnOnce() + Send + 'static,
    {
        unsafe extern "system" fn call<T: FnOnce()>(data: *mut c_void) {
            // SAFETY: `data` is from a box of this type in `add_callback`, and the driver calls this function once.
            let callback = unsafe { Box::from_raw(data.cast::<T>()) };
            // A panic must not unwind into the driver.
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(callback)) {
                // Dropping the payload could panic again.
                std::mem::forget(payload);
            }
        }
        let entered = self.context.enter()?;
        let data = Box::into_raw(callback);
        // SAFETY: the handle is alive. The driver calls the function once, and it may run on any thread.
        let added = unsafe { entered.driver().cuLaunchHostFunc(self.raw, Some(call::<T>), data.cast()) };
        added.map_err(|error| {
            // SAFETY: `data` is from `into_raw`, and the driver will not call the function.
            drop(unsafe { Box::from_raw(data) });
            error.into()
        })
    }

    /// Waits for all work of the stream.
    ///
    /// # Errors
    /// The stream's work has failed.
    pub fn synchronize(&self) -> CudaResult<()> {
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        unsafe { entered.driver().cuStreamSynchronize(self.raw)? };
        Ok(())
    }

    /// Launches a kernel. [`launch!`](crate::launch) expands to this call.
    ///
    /// `arguments` are pointers to the kernel's arguments, in order. The driver reads the arguments before this
    /// function returns.
    ///
    /// # Safety
    /// - The arguments have the number and the types of the kernel's parameters in PTX.
    /// - The kernel is sound with these arguments. Until it has completed, no other code writes memory that the kernel
    ///   reads, or accesses memory that it writes, and the memory is not freed.
    ///
    /// # Errors
    /// [`CudaError::InvalidHandle`] if the kernel belongs to another context; an error of the launch, or of earlier
    /// work.
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
        if !self.context.is_same(function.context()) {
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

    /// The stream's handle, valid as long as this value lives.
    #[inline]
    pub fn as_inner(&self) -> CUstream {
        self.raw
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// Destroys the stream, unless it is [borrowed](Stream::borrow). Its pending work still completes.
    ///
    /// # Errors
    /// An error of the driver, together with the stream.
    pub fn drop(mut stream: Self) -> DropResult<Self> {
        stream.destroy().map_err(|error| (error, stream))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() || self.is_borrowed {
            return Ok(());
        }
        let (entered, _relaxed) = self.context.enter_to_destroy()?;
        // SAFETY: the handle is alive, and is not used again. The driver destroys the stream after its work.
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
