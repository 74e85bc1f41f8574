//! Arrays on a GPU for results: new ones of the caller's library, or the argument `out`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::array::GpuArray;
use super::elements::Elements;
use super::library;
use super::owned::Array;
use super::work::Work;
use crate::array::{AnyArray, type_name};
use crate::class::Library;
use crate::dlpack::Place;
use crate::dlpack::exchange::Allocated;
use crate::dtype::DType;
use crate::layout::checked_bytes;
use crate::output::check_out;

/// An array that a function writes its result to.
pub struct Target<'py> {
    pub object: Bound<'py, PyAny>,
    pub elements: Elements,
}

impl<'py> Target<'py> {
    /// A new array in C order of the library that an input is from, with any elements.
    pub fn new(py: Python<'py>, work: &Work, like: &GpuArray, dtype: DType, extents: &[usize]) -> PyResult<Self> {
        let (class, device, place) = (like.class, like.device, Place::Gpu(like.device));
        let bytes = checked_bytes(extents, dtype.size())?;
        let Allocated { object, address } = match (class.table, class.library) {
            (Some(table), _) => table.allocate(py, place, dtype, extents)?,
            (None, Library::Torch) => library::torch_empty(py, place, dtype, extents)?,
            (None, Library::CuPy) => library::cupy_empty(py, device, dtype, extents)?,
            _ => Array::allocate(py, work, device, dtype, extents)?,
        };
        if address == 0 && bytes > 0 {
            return Err(PyValueError::new_err("the library of the input has made an array without memory"));
        }
        let elements = Elements { is_new: true, ..Elements::contiguous(address as u64, extents) };
        Ok(Self { object, elements })
    }

    /// `out`, if it is given: see [`Target::of_out`]. Otherwise a new array.
    pub fn out_or_new(
        py: Python<'py>,
        work: &Work,
        out: Option<&Out<'py>>,
        inputs: &[&GpuArray],
        dtype: DType,
        extents: &[usize],
    ) -> PyResult<Self> {
        match out {
            Some(out) => Self::of_out(out, inputs, dtype, extents),
            None => Self::new(py, work, inputs[0], dtype, extents),
        }
    }

    /// `out`, which must be writable, have this type and shape, and overlap no input. [`Work`] compares the libraries
    /// and the devices.
    pub fn of_out(out: &Out<'py>, inputs: &[&GpuArray], dtype: DType, extents: &[usize]) -> PyResult<Self> {
        let Out { object, array } = out;
        check_out(array.is_read_only, array.dtype, &array.elements.extents, dtype, extents)?;
        if inputs.iter().any(|input| array.overlaps(input)) {
            return Err(PyValueError::new_err("`out` overlaps the input: the result would change what is read"));
        }
        Ok(Self { object: object.clone(), elements: array.elements.clone() })
    }
}

/// The argument `out` of a call with arrays on a GPU.
pub struct Out<'py> {
    pub object: Bound<'py, PyAny>,
    pub array: GpuArray,
}

impl<'py> Out<'py> {
    pub fn new(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        match AnyArray::out(object)? {
            AnyArray::Gpu(array) => Ok(Self { object: object.clone(), array }),
            AnyArray::Host(_) => Err(PyTypeError::new_err(format!(
                "`out` (`{}`) is in host memory, and the input is on a GPU",
                type_name(object)
            ))),
        }
    }
}
