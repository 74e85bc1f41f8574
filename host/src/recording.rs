//! Work that is remembered and started as one: on CUDA, a graph.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::machine::{Memory, Recorded};
use crate::{Error, Gpu};

/// Work that [`Gpu::record`] has remembered. It keeps the memory that it uses, whatever becomes of the buffers.
///
/// Starting it costs the host one call, however many launches are in it.
pub struct Recording {
    // What it uses goes after it.
    work: Box<dyn Recorded>,
    gpu: Gpu,
    _memory: Vec<Memory>,
}

/// What a recording has to keep, while it is made.
#[derive(Default)]
pub(crate) struct Tape {
    is_on: AtomicBool,
    memory: Mutex<Vec<Memory>>,
}

impl Gpu {
    /// Remembers the work that `work` starts, instead of starting it.
    ///
    /// Only work that neither allocates nor gives anything to the host can be remembered: launches, copies between buffers,
    /// [`Reducer::start`](crate::Reducer::start), [`Gpu::transpose_into`]. New memory is refused, since what fills it would be
    /// remembered, too, and not done. What other threads start meanwhile on this handle or its clones is remembered or refused
    /// too; give them a [`Gpu::fork`].
    ///
    /// ```
    /// use warpfold::{Gpu, Shape, ops::Sum};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let x = gpu.upload(&[1.0_f32, 2.0, 3.0])?;
    /// let mut y = gpu.zeroed::<f32>(1)?;
    /// let mut sum = gpu.reducer(Sum, Shape::all(3))?;
    /// let recording = gpu.record(|| sum.start(&x, &mut y))?;
    /// assert_eq!(gpu.download(&y)?, [0.0]);
    /// recording.start()?;
    /// assert_eq!(gpu.download(&y)?, [6.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`, a recording within a recording, or work that cannot be remembered.
    pub fn record(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Recording, Error> {
        let mut work = Some(work);
        self.record_once(&mut || work.take().map_or(Ok(()), |work| work()))
    }

    /// [`Gpu::record`], compiled once.
    fn record_once(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Recording, Error> {
        self.tape().start()?;
        let outcome = self.machine().begin_recording().map(|()| {
            // A panic shall not leave the handle recording.
            let done = catch_unwind(AssertUnwindSafe(work));
            (done, self.machine().end_recording())
        });
        let memory = self.tape().stop();
        let (done, recorded) = outcome?;
        done.unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(Recording { work: recorded?, gpu: self.clone(), _memory: memory })
    }

    /// Keeps memory that is used while something is recorded.
    pub(crate) fn keep_for_recording(&self, memory: &Memory) {
        self.tape().keep(memory);
    }
}

impl Tape {
    fn start(&self) -> Result<(), Error> {
        if self.is_on.swap(true, Ordering::SeqCst) { Err(Error::Recording { operation: "record" }) } else { Ok(()) }
    }

    fn keep(&self, memory: &Memory) {
        if self.is_on.load(Ordering::SeqCst) {
            self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(memory.clone());
        }
    }

    fn stop(&self) -> Vec<Memory> {
        let memory = std::mem::take(&mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner));
        self.is_on.store(false, Ordering::SeqCst);
        memory
    }
}

impl Recording {
    /// Starts all of it, behind the work that was started before on the [`Gpu`] that it was recorded on.
    ///
    /// # Errors
    /// The driver refuses it, or work before has failed.
    pub fn start(&self) -> Result<(), Error> {
        // SAFETY: the recording keeps its memory.
        unsafe { self.work.start(&**self.gpu.machine()) }
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}
