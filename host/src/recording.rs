//! Recorded work that is started as a whole: on CUDA, a graph.
//!
//! A recording belongs to one thread and one handle. The work that this thread starts on this handle goes to a
//! recorder, a second backend. So a handle has no state that other threads could change, and the work of other threads
//! runs as usual.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use crate::backend::{Backend, Memory, Recorded};
use crate::{Error, Gpu};

/// Work recorded by [`Gpu::record`]. It keeps the memory that it uses allocated, even after the buffers are dropped.
///
/// Starting it costs the host one call for any number of launches.
pub struct Recording {
    // Fields are dropped in this order: the work before the memory that it uses.
    work: Box<dyn Recorded>,
    gpu: Gpu,
    memory: Vec<Memory>,
}

thread_local! {
    /// The recordings that this thread makes, the innermost last.
    static OPEN: RefCell<Vec<OpenRecording>> = const { RefCell::new(Vec::new()) };
}

/// A recording in progress.
struct OpenRecording {
    /// The identifier of its handle.
    handle: usize,
    recorder: Arc<dyn Backend>,
    /// The memory that it keeps.
    memory: Vec<Memory>,
}

/// A guard that ends a handle's recording when it is dropped, even by a panic.
struct OpenGuard {
    handle: usize,
}

impl OpenGuard {
    /// Removes the recording from this thread, and returns it, so that its memory is not dropped inside the borrow.
    fn close(&self) -> Option<OpenRecording> {
        OPEN.with_borrow_mut(|open| {
            let at = open.iter().position(|open| open.handle == self.handle)?;
            Some(open.remove(at))
        })
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        if let Some(open) = self.close() {
            // The recording is still open only after a panic, and its work is discarded.
            let _ = open.recorder.end_recording();
        }
    }
}

/// The backend that a handle's work goes to: its own, or the recorder while this thread records.
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
    /// Records the work that this thread starts in `work` on this handle or its clones, instead of starting it. Work
    /// that other threads start meanwhile runs as usual and is not recorded.
    ///
    /// Only work that neither allocates nor returns data to the host can be recorded: launches, copies between arrays
    /// ([`Gpu::copy_array`]), [`Reducer::start`](crate::Reducer::start). An allocation is refused, because the zeros
    /// that fill it would be recorded instead of written.
    ///
    /// ```
    /// use warpfold::{Gpu, Layout, ops::Sum};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let x = gpu.upload(&[1.0_f32, 2.0, 3.0])?;
    /// let mut y = gpu.zeroed::<f32>(1)?;
    /// let mut sum = gpu.reducer(Sum, &Layout::contiguous(&[3])?, 0)?;
    /// let recording = gpu.record(|| sum.start(&x, &mut y))?;
    /// assert_eq!(gpu.download(&y)?, [0.0]);
    /// recording.start()?;
    /// assert_eq!(gpu.download(&y)?, [6.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of `work`, a recording within a recording, or work that cannot be recorded.
    pub fn record(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Recording, Error> {
        let mut work = Some(work);
        self.record_once(&mut || work.take().map_or(Ok(()), |work| work()))
    }

    /// [`Gpu::record`] without generics: compiled once.
    fn record_once(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Recording, Error> {
        #[cfg(feature = "simt")]
        if simt::lane::is_running() {
            // The lanes of a kernel take turns on one thread, so they would share its recording.
            return Err(Error::InsideKernel { operation: "record" });
        }
        let handle = self.handle();
        if OPEN.with_borrow(|open| open.iter().any(|open| open.handle == handle)) {
            return Err(Error::Recording { operation: "record" });
        }
        let recorder = self.own_backend().recorder()?;
        OPEN.with_borrow_mut(|open| open.push(OpenRecording { handle, recorder, memory: Vec::new() }));
        let guard = OpenGuard { handle };
        let done = work();
        let OpenRecording { recorder, memory, .. } = guard.close().ok_or(Error::Recording { operation: "record" })?;
        let recorded = recorder.end_recording();
        done?;
        Ok(Recording { work: recorded?, gpu: self.clone(), memory })
    }

    /// The backend for work that this thread starts on this handle.
    pub(crate) fn backend(&self) -> Current<'_> {
        let handle = self.handle();
        let recorder = OPEN.with_borrow(|open| {
            let open = open.iter().find(|open| open.handle == handle);
            open.map(|open| open.recorder.clone())
        });
        recorder.map_or(Current::Own(self.own_backend()), Current::Recorder)
    }

    /// Refuses an operation of which nothing can be recorded, before any of it is. What waits for the device cannot be
    /// captured by another library either.
    pub(crate) fn refuse_to_record(&self, operation: &'static str) -> Result<(), Error> {
        match self.backend() {
            Current::Own(backend) if backend.capture()?.is_some() => Err(Error::Captured { operation }),
            Current::Own(_) => Ok(()),
            Current::Recorder(_) => Err(Error::Recording { operation }),
        }
    }

    /// Keeps memory allocated for this thread's open recording, or for a capture of another library.
    pub(crate) fn keep_for_graph(&self, memories: &[&Memory], operation: &'static str) -> Result<(), Error> {
        // Whoever borrows memory without an owner for work that is captured keeps it allocated.
        let kept = || memories.iter().filter(|memory| memory.is_kept()).copied();
        let handle = self.handle();
        let is_recorded = OPEN.with_borrow_mut(|open| {
            let open = open.iter_mut().find(|open| open.handle == handle)?;
            open.memory.extend(kept().cloned());
            Some(())
        });
        if is_recorded.is_some() {
            let is_complete = kept().count() == memories.len();
            return if is_complete { Ok(()) } else { Err(Error::BorrowedInRecording { operation }) };
        }
        if kept().next().is_some()
            && let Some(capture) = self.own_backend().capture()?
        {
            kept().for_each(|memory| capture.keep(memory));
        }
        Ok(())
    }
}

impl Recording {
    /// Starts all recorded work, after work started earlier on the [`Gpu`] that it was recorded on.
    ///
    /// # Errors
    /// This thread records on that [`Gpu`]: a recording cannot be a part of another. The driver refuses it, or earlier
    /// work has failed.
    pub fn start(&self) -> Result<(), Error> {
        self.memory.iter().try_for_each(Memory::clean)?;
        if let Some(capture) = self.gpu.own_backend().capture()? {
            self.memory.iter().for_each(|memory| capture.keep(memory));
        }
        // SAFETY: the recording keeps its memory.
        let started = unsafe { self.work.start(&**self.gpu.backend()) };
        if started.is_err() {
            self.memory.iter().for_each(Memory::mark_dirty);
        }
        started
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recording").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}
