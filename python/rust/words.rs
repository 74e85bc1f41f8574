//! The words of exact sums, which an engine for several processes adds.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::exact::words::WordsError;

use crate::array::{AnyArray, type_name};
use crate::dtype::DType;
use crate::output::new_array;

/// The argument `ranks`: a number of ranks whose words can be added.
pub fn ranks(ranks: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number: i128 = ranks.extract().map_err(|_| {
        PyTypeError::new_err(format!("the number of ranks must be an integer, not `{}`", type_name(ranks)))
    })?;
    let refused = || PyValueError::new_err(format!("{number} ranks: words can be added for 1 to 2^20 ranks"));
    let number = u32::try_from(number).map_err(|_| refused())?;
    warpfold::exact::words::check_ranks(number).map_err(|_| refused())?;
    Ok(number)
}

/// The exception of an error with words.
pub fn exception(error: WordsError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Words in an array of NumPy of this shape, whose elements a function replaces in place, by their sums over ranks.
pub fn replaced(py: Python<'_>, words: &[i64], extents: &[usize], reduce: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let array = new_array(py, DType::Int64, extents, bytemuck::cast_slice(words))?;
    reduce.call1((&array,))?;
    let array = AnyArray::new(&array, "all_reduce")?.on_host("the words are in host memory")?;
    if array.dtype != DType::Int64 || array.layout.extents != extents || !array.layout.is_contiguous() {
        return Err(PyValueError::new_err("`reduce` has changed the form of the array: it must write to its elements"));
    }
    Ok(array.bytes().as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect())
}
