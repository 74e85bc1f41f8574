//! The number of threads that a function uses.

use std::num::NonZero;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpfold::host;

/// Sets the maximum number of threads that a call uses.
///
/// Before the first call of this function, it is that of the environment variable `WARPFOLD_THREADS`, or else the
/// number of cores. Results do not depend on it.
///
/// >>> import warpfold as wf
/// >>> wf.set_num_threads(2)
/// >>> wf.get_num_threads()
/// 2
#[pyfunction]
#[pyo3(signature = (n, /))]
pub fn set_num_threads(n: isize) -> PyResult<()> {
    let threads = usize::try_from(n).ok().and_then(NonZero::new);
    host::set_max_threads(threads.ok_or_else(|| PyValueError::new_err(format!("{n} threads: at least 1")))?);
    Ok(())
}

/// The maximum number of threads that a call uses.
///
/// >>> import warpfold as wf
/// >>> wf.get_num_threads() >= 1
/// True
#[pyfunction]
pub fn get_num_threads() -> usize {
    host::max_threads().get()
}
