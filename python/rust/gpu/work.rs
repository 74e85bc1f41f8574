//! The work of a call: the handle that it is launched by, and its order with that of the arrays' libraries.

use std::cell::RefCell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::{Error, Gpu};

use super::array::{GpuArray, Order};
use super::handles;
use crate::arguments::exception;
use crate::class::Library;

/// The work of a call.
pub struct Work {
    pub gpu: Gpu,
    /// The handles on other streams in which the arrays are used.
    others: RefCell<Vec<Gpu>>,
    /// Whether the host waits for the work before the call returns.
    pub waits: bool,
    is_finished: bool,
}

impl Work {
    /// The work on these arrays, of which there is at least one. It comes after what their libraries have started.
    pub fn new(py: Python<'_>, arrays: &[&GpuArray]) -> PyResult<Self> {
        let first = arrays[0];
        let gpu = handle(py, first)?;
        let mut work = Self { gpu, others: RefCell::default(), waits: false, is_finished: false };
        work.waits = matches!(first.order, Order::Wait);
        for array in &arrays[1..] {
            if array.device != first.device {
                let (a, b) = (first.device, array.device);
                return Err(PyValueError::new_err(format!(
                    "the arrays, or an array and `out`, are on two devices, {a} and {b}"
                )));
            }
            if array.class.library != first.class.library && !is_neutral(array) && !is_neutral(first) {
                return Err(PyTypeError::new_err("the arrays, or an array and `out`, are of different libraries"));
            }
            work.waits |= matches!(array.order, Order::Wait);
            let other = handle(py, array)?;
            if work.is_elsewhere(&other) {
                work.run(|gpu| gpu.wait_for(&other))?;
                work.put_before(other);
            }
        }
        Ok(work)
    }

    /// Whether the work does not yet come before that of a handle.
    fn is_elsewhere(&self, handle: &Gpu) -> bool {
        let stream = handle.cuda_stream();
        self.gpu.cuda_stream() != stream && self.others.borrow().iter().all(|gpu| gpu.cuda_stream() != stream)
    }

    /// Puts later work of a handle after this work, once this is finished.
    pub fn put_before(&self, handle: Gpu) {
        if self.is_elsewhere(&handle) {
            self.others.borrow_mut().push(handle);
        }
    }

    /// Launches.
    pub fn run<R>(&self, launch: impl FnOnce(&Gpu) -> Result<R, Error>) -> PyResult<R> {
        launch(&self.gpu).map_err(|error| exception(&error))
    }

    /// Does what the host waits for, without Python's lock.
    pub fn run_and_wait<R: Send>(
        &self,
        py: Python<'_>,
        wait: impl FnOnce(&Gpu) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let gpu = &self.gpu;
        py.detach(|| wait(gpu)).map_err(|error| exception(&error))
    }

    /// Puts what the libraries do later after this work.
    pub fn finish(mut self, py: Python<'_>) -> PyResult<()> {
        self.put_before_others(py).map_err(|error| exception(&error))
    }

    fn put_before_others(&mut self, py: Python<'_>) -> Result<(), Error> {
        self.is_finished = true;
        self.others.borrow().iter().try_for_each(|other| other.wait_for(&self.gpu))?;
        let gpu = &self.gpu;
        if self.waits { py.detach(|| gpu.synchronize()) } else { Ok(()) }
    }
}

impl Drop for Work {
    /// After an error: what was launched before it still uses the arrays.
    fn drop(&mut self) {
        if !self.is_finished {
            // The first error is reported.
            let _ = Python::attach(|py| self.put_before_others(py));
        }
    }
}

/// Whether an array's library works together with any other: it has no allocator of its own that reuses memory.
fn is_neutral(array: &GpuArray) -> bool {
    matches!(array.class.library, Library::Warpfold | Library::Other)
}

fn handle(py: Python<'_>, array: &GpuArray) -> PyResult<Gpu> {
    match &array.order {
        // SAFETY: the array's library has just named the stream as its own, so that it exists.
        Order::Stream(stream) => unsafe { handles::of_stream(py, array.device, *stream) },
        Order::Handle(gpu) => Ok(gpu.clone()),
        Order::Wait => handles::of_device(py, array.device),
    }
}
