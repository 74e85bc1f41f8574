//! Results: new NumPy arrays, NumPy scalars, or the argument `out`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::HostArray;
use crate::copy;
use crate::dtype::{DType, numpy};
use crate::layout::Layout;

/// The array that a function writes its result to.
pub struct Output<'py> {
    object: Bound<'py, PyAny>,
    array: HostArray,
    /// Whether the caller gave the array.
    is_given: bool,
}

impl<'py> Output<'py> {
    /// A new array, or `out`, which must be writable, have this type and shape, and overlap no input.
    pub fn new(
        py: Python<'py>,
        out: Option<&Bound<'py, PyAny>>,
        dtype: DType,
        extents: &[usize],
        inputs: &[&HostArray],
    ) -> PyResult<Self> {
        let Some(out) = out else {
            let arguments = (PyTuple::new(py, extents)?, dtype.to_numpy(py)?);
            let object = numpy(py)?.call_method1(pyo3::intern!(py, "empty"), arguments)?;
            let array = HostArray::of_numpy(&object, "`out`")?;
            return Ok(Self { object, array, is_given: false });
        };
        let array = HostArray::of_numpy(out, "`out`")?;
        if array.is_read_only {
            return Err(PyValueError::new_err("`out` is read-only"));
        }
        if array.dtype != dtype {
            let (expected, found) = (dtype.name(), array.dtype.name());
            return Err(PyTypeError::new_err(format!("`out` has dtype {found}, and the result has {expected}")));
        }
        if array.layout.extents != extents {
            let (found, extents) = (shape(&array.layout.extents), shape(extents));
            return Err(PyValueError::new_err(format!("`out` has shape {found}, and the result has {extents}")));
        }
        if inputs.iter().any(|input| array.overlaps(input)) {
            return Err(PyValueError::new_err("`out` overlaps the input: the result would change what is read"));
        }
        Ok(Self { object: out.clone(), array, is_given: true })
    }

    /// Writes elements, which lie in `from` as `layout` says. Their type is that of the result.
    pub fn write(&mut self, from: &[u8], layout: &Layout) {
        let own = self.array.layout.clone();
        let to = self.array.bytes_mut();
        self.object.py().detach(|| copy::copy(to, &own, from, layout));
    }

    /// The array.
    pub fn into_array(self) -> Bound<'py, PyAny> {
        self.object
    }

    /// What a reduction returns: `out`, or a new array, or a scalar instead of a new array without axes.
    pub fn into_result(self) -> PyResult<Bound<'py, PyAny>> {
        let py = self.object.py();
        match self.array.layout.extents.is_empty() && !self.is_given {
            true => self.object.get_item(PyTuple::empty(py)),
            false => Ok(self.object),
        }
    }
}

/// A shape as Python writes it.
pub fn shape(extents: &[usize]) -> String {
    match extents {
        [extent] => format!("({extent},)"),
        _ => format!("({})", extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
