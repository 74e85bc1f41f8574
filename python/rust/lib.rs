//! The extension module `warpfold._warpfold`.

mod arguments;
mod array;
mod class;
mod classes;
mod copy;
mod dlpack;
mod dtype;
mod exact_sums;
mod functions;
mod gpu;
mod info;
mod layout;
mod operators;
mod output;
mod permute;
mod rows;
mod segments;
mod states;
mod threads;
mod words;

use pyo3::prelude::*;

/// The part of the package `warpfold` that is written in Rust.
#[pymodule(gil_used = false)]
mod _warpfold {
    #[pymodule_export]
    use crate::classes::{ExactDot, ExactSum, ExactSumOfSquares};
    #[pymodule_export]
    use crate::exact_sums::{ExactSums, exact_sums, exact_sums_of_squares};
    #[pymodule_export]
    use crate::functions::{
        all, any, argmax, argmin, count_finite, count_nan, count_nonzero, max, mean, min, min_max, prod, sum,
        sum_of_squares, vecdot, vector_norm,
    };
    #[pymodule_export]
    use crate::gpu::owned::Array;
    #[pymodule_export]
    use crate::info::info;
    #[pymodule_export]
    use crate::permute::{matrix_transpose, permute_dims};
    #[pymodule_export]
    use crate::segments::segment_sum;
    #[pymodule_export]
    use crate::threads::{get_num_threads, set_num_threads};
}
