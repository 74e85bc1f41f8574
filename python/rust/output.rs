//! Results in host memory: new arrays of NumPy or of the input's library, NumPy scalars, or the argument `out`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::array::{AnyArray, HostArray};
use crate::copy;
use crate::dlpack::Place;
use crate::dtype::{DType, numpy};
use crate::gpu::library;
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
            let object = empty(py, dtype, extents, inputs.first().copied())?;
            let array = AnyArray::out(&object)?.on_host("its library has made the result there")?;
            return Ok(Self { object, array });
        };
        let remedy = "`out` must be in host memory, as the input is";
        let array = AnyArray::out(out)?.on_host(remedy)?;
        check_out(array.is_read_only, array.dtype, &array.layout.extents, dtype, extents)?;
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

/// A new array in C order, with any elements, of the library of an input or of NumPy.
fn empty<'py>(
    py: Python<'py>,
    dtype: DType,
    extents: &[usize],
    like: Option<&HostArray>,
) -> PyResult<Bound<'py, PyAny>> {
    match like.and_then(|like| like.maker) {
        Some(class) => match class.table {
            Some(table) => Ok(table.allocate(py, Place::Host, dtype, extents)?.object),
            None => Ok(library::torch_empty(py, Place::Host, dtype, extents)?.object),
        },
        None => {
            let arguments = (PyTuple::new(py, extents)?, dtype.to_numpy(py)?);
            numpy(py)?.call_method1(pyo3::intern!(py, "empty"), arguments)
        }
    }
}

/// Refuses `out` unless it can be written, and has the type and the shape of the result.
pub fn check_out(
    is_read_only: bool,
    found: DType,
    found_extents: &[usize],
    dtype: DType,
    extents: &[usize],
) -> PyResult<()> {
    if is_read_only {
        return Err(PyValueError::new_err("`out` is read-only"));
    }
    if found != dtype {
        let (expected, found) = (dtype.name(), found.name());
        return Err(PyTypeError::new_err(format!("`out` has dtype {found}, and the result has {expected}")));
    }
    if found_extents != extents {
        let (found, extents) = (shape(found_extents), shape(extents));
        return Err(PyValueError::new_err(format!("`out` has shape {found}, and the result has {extents}")));
    }
    Ok(())
}

/// The result of a reduction to one element, which has these bytes: a scalar of NumPy, or an array without axes of the
/// library of the input.
pub fn scalar<'py>(py: Python<'py>, dtype: DType, bytes: &[u8], like: &HostArray) -> PyResult<Bound<'py, PyAny>> {
    if like.maker.is_some() {
        let mut output = Output::new(py, None, dtype, &[], &[like])?;
        output.write(bytes, &Layout::spread(&[], dtype.size(), dtype.size()));
        return Ok(output.into_array());
    }
    numpy_scalar(py, dtype, bytes)
}

/// A scalar of NumPy that has these bytes.
fn numpy_scalar<'py>(py: Python<'py>, dtype: DType, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // With fewer calls than by an array without axes.
    let arguments = (PyBytes::new(py, bytes), dtype.to_numpy(py)?);
    numpy(py)?.call_method1(pyo3::intern!(py, "frombuffer"), arguments)?.get_item(0)
}

/// An array of NumPy in C order, or a scalar if there are no axes, that has these bytes.
pub fn new_array<'py>(py: Python<'py>, dtype: DType, extents: &[usize], bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if extents.is_empty() {
        return numpy_scalar(py, dtype, bytes);
    }
    let mut output = Output::new(py, None, dtype, extents, &[])?;
    output.write(bytes, &Layout::spread(extents, dtype.size(), dtype.size()));
    Ok(output.into_array())
}

/// A shape as Python writes it.
pub fn shape(extents: &[usize]) -> String {
    match extents {
        [extent] => format!("({extent},)"),
        _ => format!("({})", extents.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}
