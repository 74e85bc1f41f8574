//! Events: points in a stream, to wait for and to measure time between.

use std::borrow::Borrow;
use std::ptr;
use std::time::Duration;

use cuda_driver::CUevent;

use crate::context::{Context, CurrentContext};
use crate::error::{CudaError, CudaResult, DropResult};
use crate::stream::{Stream, StreamWaitEventFlags};

bitflags::bitflags! {
    /// Options of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct EventFlags: u32 {
        /// The event records the time. A thread that waits for it spins.
        const DEFAULT = 0x0;
        /// A thread that waits for the event blocks.
        const BLOCKING_SYNC = 0x1;
        /// The event records no time, which is faster.
        const DISABLE_TIMING = 0x2;
        /// Other processes may use the event. Requires `DISABLE_TIMING`.
        const INTERPROCESS = 0x4;
    }
}

/// Whether an event has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    /// All work before the event has completed.
    Ready,
    /// Some work before the event has not completed.
    NotReady,
}

/// A point in a stream.
#[derive(Debug)]
pub struct Event {
    /// Null after the event is destroyed.
    raw: CUevent,
    context: Context,
}

// SAFETY: the driver takes an event's handle from any thread.
unsafe impl Send for Event {}
// SAFETY: as above. An event may be recorded again while other threads wait for it.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event in the current context. It counts as completed until it is recorded.
    ///
    /// # Errors
    /// No context is current, or the flags are incompatible.
    pub fn new(flags: EventFlags) -> CudaResult<Self> {
        let mut event = Self { raw: ptr::null_mut(), context: CurrentContext::get_current()? };
        let entered = event.context.enter()?;
        // SAFETY: writes a handle, which is destroyed with the value.
        unsafe { entered.driver().cuEventCreate(&mut event.raw, flags.bits())? };
        drop(entered);
        Ok(event)
    }

    /// Records the event in a stream. The event completes when all earlier work in the stream has.
    ///
    /// # Errors
    /// The stream belongs to another context, or its work has failed.
    pub fn record(&self, stream: &Stream) -> CudaResult<()> {
        let entered = self.context.enter()?;
        // SAFETY: both handles are alive.
        unsafe { entered.driver().cuEventRecord(self.raw, stream.as_inner())? };
        Ok(())
    }

    /// Whether the event has completed.
    ///
    /// # Errors
    /// The work before the event has failed.
    pub fn query(&self) -> CudaResult<EventStatus> {
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        match unsafe { entered.driver().cuEventQuery(self.raw) }.map_err(CudaError::from) {
            Ok(()) => Ok(EventStatus::Ready),
            Err(CudaError::NotReady) => Ok(EventStatus::NotReady),
            Err(error) => Err(error),
        }
    }

    /// Waits until the event has completed.
    ///
    /// # Errors
    /// The work before the event has failed.
    pub fn synchronize(&self) -> CudaResult<()> {
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive.
        unsafe { entered.driver().cuEventSynchronize(self.raw)? };
        Ok(())
    }

    /// The time from `start` to this event in milliseconds, with a resolution of about half a microsecond.
    ///
    /// # Errors
    /// [`CudaError::NotReady`] if one of the events has not completed; [`CudaError::InvalidHandle`] if one of them has
    /// not been recorded or records no time.
    pub fn elapsed_time_f32(&self, start: &Self) -> CudaResult<f32> {
        let entered = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one float; both handles are alive.
        unsafe { entered.driver().cuEventElapsedTime(&mut milliseconds, start.raw, self.raw)? };
        Ok(milliseconds)
    }

    /// The time from `start` to this event; zero if this event happened first.
    ///
    /// # Errors
    /// As for [`Event::elapsed_time_f32`].
    pub fn elapsed(&self, start: &Self) -> CudaResult<Duration> {
        let milliseconds = self.elapsed_time_f32(start)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    /// The event's handle, valid as long as this value lives.
    pub fn as_inner(&self) -> CUevent {
        self.raw
    }

    /// Destroys the event.
    ///
    /// # Errors
    /// An error of the driver, together with the event.
    pub fn drop(mut event: Self) -> DropResult<Self> {
        event.destroy().map_err(|error| (error, event))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let (entered, _relaxed) = self.context.enter_to_destroy()?;
        // SAFETY: the handle is alive, and is not used again. The driver destroys the event after it has completed.
        unsafe { entered.driver().cuEventDestroy_v2(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Stream {
    /// Makes later work in the stream wait for an event, which may be in another stream.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn wait_event(&self, event: impl Borrow<Event>, flags: StreamWaitEventFlags) -> CudaResult<()> {
        let entered = self.context().enter()?;
        // SAFETY: both handles are alive. The stream waits for the event even if it is destroyed first.
        unsafe { entered.driver().cuStreamWaitEvent(self.as_inner(), event.borrow().as_inner(), flags.bits())? };
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}
