//! The extension module `warpfold._warpfold`.

mod array;
mod classes;
mod copy;
mod dtype;
mod info;
mod layout;
mod output;
mod permute;
mod rows;
mod states;
mod threads;

use pyo3::prelude::*;

/// The part of the package `warpfold` that is written in Rust.
#[pymodule(gil_used = false)]
mod _warpfold {
    #[pymodule_export]
    use crate::classes::{ExactDot, ExactSum, ExactSumOfSquares};
    #[pymodule_export]
    use crate::info::info;
    #[pymodule_export]
    use crate::permute::{matrix_transpose, permute_dims};
    #[pymodule_export]
    use crate::threads::{get_num_threads, set_num_threads};
}
