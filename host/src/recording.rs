//! Work that is remembered and started as one: on CUDA, a graph.
//!
//! Who records is a thread, on one handle: what it starts there goes to a recorder, a machine beside the handle's own.
//! So nothing has to be asked of a handle that other threads could change, and what they do meanwhile is done as
//! always.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use crate::backend::{Backend, Memory, Recorded};
use crate::{Error, Gpu};

/// Work that [`Gpu::record`] has remembered. It keeps the memory that it uses, whatever becomes of the buffers.
///
/// Starting it costs the host one call, however many launches are in it.
pub struct Recording {
    // What it uses goes after it.
    work: Box<dyn Recorded>,
    gpu: Gpu,
    memory: Vec<Memory>,
}

thread_local! {
    /// What this thread records, the innermost last.
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// A recording that is being made.
struct Open {
    /// The number of its handle.
    handle: usize,
    recorder: Arc<dyn Backend>,
    /// What it has to keep.
    memory: Vec<Memory>,
}

/// Ends the recording of a handle where it goes out of scope, after a panic too.
struct Opened {
    handle: usize,
}

impl Opened {
    /// Takes what was opened off this thread. (What it kept is given back outside of the borrow.)
    fn close(&self) -> Option<Open> {
        OPEN.with_borrow_mut(|open| {
            let at = open.iter().position(|open| open.handle == self.handle)?;
            Some(open.remove(at))
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(open) = self.close() {
            // Only after a panic is it still open: nobody wants what was remembered.
            let _ = open.recorder.end_recording();
        }
    }
}

/// The machine that a handle's work goes to: its own, or the recorder while this thread records.
pub(crate) enum Current<'a> {
    Own(&'a Arc<dyn Backend>),
    Recorder(Arc<dyn Backend>),
}

impl Deref for Current<'_> {
    type Target = Arc<dyn Backend>;

    fn deref(&self) -> &Arc<dyn Backend> {
        match self {
            Self::Own(backend) => backend,
            Self::Recorder(backend) => backend,
        }
    }
}

impl Gpu {
    /// Remembers the work that this thread starts in `work` on this handle or its clones, instead of starting it. What
    /// other threads start meanwhile is done as always, and not remembered.
    ///
    /// Only work that neither allocates nor gives anything to the host can be remembered: launches, copies between
    /// buffers, [`Reducer::start`](crate::Reducer::start), [`Gpu::transpose_into`]. New memory is refused, since what
    /// fills it would be remembered, too, and not done.
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
        if simt::lane::is_running() {
            // Lanes take turns on one thread.
            return Err(Error::InsideKernel { operation: "record" });
        }
        let handle = self.handle();
        if OPEN.with_borrow(|open| open.iter().any(|open| open.handle == handle)) {
            return Err(Error::Recording { operation: "record" });
        }
        let recorder = self.own_backend().recorder()?;
        OPEN.with_borrow_mut(|open| open.push(Open { handle, recorder, memory: Vec::new() }));
        let opened = Opened { handle };
        let done = work();
        let Open { recorder, memory, .. } = opened.close().ok_or(Error::Recording { operation: "record" })?;
        let recorded = recorder.end_recording();
        done?;
        Ok(Recording { work: recorded?, gpu: self.clone(), memory })
    }

    /// The machine that work goes to which this thread starts on this handle.
    pub(crate) fn backend(&self) -> Current<'_> {
        let handle = self.handle();
        let recorder = OPEN.with_borrow(|open| {
            let open = open.iter().find(|open| open.handle == handle);
            open.map(|open| open.recorder.clone())
        });
        recorder.map_or(Current::Own(self.own_backend()), Current::Recorder)
    }

    /// Keeps memory that is used, if this thread records.
    pub(crate) fn keep_for_recording(&self, memory: &Memory) {
        let handle = self.handle();
        OPEN.with_borrow_mut(|open| {
            if let Some(open) = open.iter_mut().find(|open| open.handle == handle) {
                open.memory.push(memory.clone());
            }
        });
    }
}

impl Recording {
    /// Starts all of it, behind the work that was started before on the [`Gpu`] that it was recorded on.
    ///
    /// # Errors
    /// This thread records on that [`Gpu`]: a recording cannot be a part of another. The driver refuses it, or work
    /// before has failed.
    pub fn start(&self) -> Result<(), Error> {
        self.memory.iter().try_for_each(Memory::make_clean)?;
        // SAFETY: the recording keeps its memory.
        let started = unsafe { self.work.start(&**self.gpu.backend()) };
        if started.is_err() {
            self.memory.iter().for_each(Memory::note_failure);
        }
        started
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}
