//! The number of threads that a function uses.

use std::env;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What `set_num_threads` was given; 0 before the first call.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// The maximum number of threads: what was set, else `WARPFOLD_THREADS`, else the number of cores.
pub fn max() -> usize {
    match CHOSEN.load(Ordering::Relaxed) {
        0 => {
            let named = env::var("WARPFOLD_THREADS").ok().and_then(|value| value.trim().parse().ok());
            let count =
                named.filter(|count| *count > 0).or_else(|| thread::available_parallelism().map(NonZero::get).ok());
            count.unwrap_or(1)
        }
        chosen => chosen,
    }
}

/// Sets the maximum number of threads that a call uses.
///
/// Before the first call of this function, it is that of the environment variable `WARPFOLD_THREADS`, or else the number
/// of cores. Results do not depend on it.
///
/// >>> import warpfold as wf
/// >>> wf.set_num_threads(2)
/// >>> wf.get_num_threads()
/// 2
#[pyfunction]
#[pyo3(signature = (n, /))]
pub fn set_num_threads(n: isize) -> PyResult<()> {
    match usize::try_from(n) {
        Ok(n) if n > 0 => {
            CHOSEN.store(n, Ordering::Relaxed);
            Ok(())
        }
        _ => Err(PyValueError::new_err(format!("{n} threads: at least 1"))),
    }
}

/// The maximum number of threads that a call uses.
///
/// >>> import warpfold as wf
/// >>> wf.get_num_threads() >= 1
/// True
#[pyfunction]
pub fn get_num_threads() -> usize {
    max()
}
