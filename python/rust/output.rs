//! Results: new NumPy arrays, NumPy scalars, or the argument `out`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::array::HostArray;
use crate::copy;
use crate::dtype::{DType, numpy};
use crate::layout::Layout;

/// The array that a function writes its result to.
pub struct Output<'py> {
    object: Bound<'py, PyAny>,
    array: HostArray,
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
            return Ok(Self { object, array });
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
        Ok(Self { object: out.clone(), array })
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
}

/// A scalar of NumPy with the value that these bytes have.
pub fn scalar<'py>(py: Python<'py>, dtype: DType, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // With fewer calls than by an array without axes.
    let arguments = (PyBytes::new(py, bytes), dtype.to_numpy(py)?);
    numpy(py)?.call_method1(pyo3::intern!(py, "frombuffer"), arguments)?.get_item(0)
}

/// A shape as Python writes it.
pub fn shape(extents: &[usize]) -> String {
    match extents {
        [extent] => format!("({extent},)"),
        _ => format!("({})", extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
