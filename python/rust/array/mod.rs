//! Arrays in host memory that belong to Python objects.
//!
//! An array is read where it lies. It comes from the first of three protocols that its object has:
//! `__array_interface__` (NumPy), DLPack (PyTorch, JAX, CuPy), or the buffer protocol (`array.array`, `memoryview`).

mod buffer;
mod dlpack;
mod interface;

use std::slice;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dtype::{DType, is_numpy_array};
use crate::layout::Layout;

/// An array in host memory. The Python object keeps the memory until this value is dropped.
pub struct HostArray {
    pub dtype: DType,
    pub layout: Layout,
    pub is_read_only: bool,
    /// The lowest element's address; dangling if there are no elements.
    lowest: *mut u8,
    _owner: Owner,
}

/// What keeps an array's memory.
enum Owner {
    Object { _object: Py<PyAny> },
    Buffer { _buffer: pyo3::buffer::PyUntypedBuffer },
    Dlpack { _tensor: dlpack::Tensor },
}

impl HostArray {
    /// The array of an object. `operation` is the caller, for messages.
    pub fn new(object: &Bound<'_, PyAny>, operation: &str) -> PyResult<Self> {
        // Most objects are of this class, and need no further questions.
        if !is_numpy_array(object) {
            refuse_masked(object)?;
            if is_numpy_scalar(object)? {
                return Err(no_array(object, operation));
            }
        }
        for read in [interface::read, dlpack::read, buffer::read] {
            if let Some(array) = read(object)? {
                return Ok(array);
            }
        }
        Err(no_array(object, operation))
    }

    /// The array of an object of NumPy's kind. `operation` is the caller, for messages.
    pub fn of_numpy(object: &Bound<'_, PyAny>, operation: &str) -> PyResult<Self> {
        let is_scalar = !is_numpy_array(object) && {
            refuse_masked(object)?;
            is_numpy_scalar(object)?
        };
        let array = if is_scalar { None } else { interface::read(object)? };
        array.ok_or_else(|| PyTypeError::new_err(format!("{operation} is a NumPy array, not `{}`", type_name(object))))
    }

    /// An array of which `address` is that of the element with all indices 0.
    fn at(address: usize, dtype: DType, layout: Layout, is_read_only: bool, owner: Owner) -> PyResult<Self> {
        let lowest = address.checked_sub(layout.start);
        let in_memory = |lowest: &usize| *lowest > 0 && lowest.checked_add(layout.span).is_some();
        let lowest = match lowest.filter(in_memory) {
            Some(lowest) => lowest as *mut u8,
            None if layout.span == 0 => std::ptr::dangling_mut(),
            None => return Err(PyValueError::new_err(format!("there is no memory for an array at address {address}"))),
        };
        Ok(Self { dtype, layout, is_read_only, lowest, _owner: owner })
    }

    /// The bytes from the lowest element to the end of the highest. The element with all indices 0 is at
    /// `layout.start`.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the object's owner has promised, by the protocol, that the array's elements are in memory that can be
        // read, and the owner in `self` keeps them. The bytes between elements belong to the same allocation. That
        // nobody writes meanwhile is the caller's part, as with NumPy's own functions.
        unsafe { slice::from_raw_parts(self.lowest, self.layout.span) }
    }

    /// The same bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_read_only, "a read-only array cannot be written");
        // SAFETY: as in `bytes`; the memory is writable, as the owner says, and `self` is borrowed mutably. That nobody
        // else uses the array meanwhile is the caller's part, as with NumPy's argument `out`.
        unsafe { slice::from_raw_parts_mut(self.lowest, self.layout.span) }
    }

    /// Whether two arrays have bytes in common, or bytes of one are between elements of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (self.lowest as usize, other.lowest as usize);
        self.layout.count > 0 && other.layout.count > 0 && a < b + other.layout.span && b < a + self.layout.span
    }
}

/// The error of an object without an array.
fn no_array(object: &Bound<'_, PyAny>, operation: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{operation} takes arrays (NumPy, DLPack on the CPU, or the buffer protocol), not `{}`: use numpy.asarray(x)",
        type_name(object)
    ))
}

/// The name of an object's type, with its module.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// Refuses masked arrays, whose `__array_interface__` does not show the mask.
fn refuse_masked(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_instance_of(object, "numpy.ma", "MaskedArray")? {
        return Err(PyTypeError::new_err(
            "masked arrays are not supported: pass x.compressed() for the elements without a mask, or x.filled(value)",
        ));
    }
    Ok(())
}

/// Whether an object is a scalar of NumPy. Its `__array_interface__` has the address of memory that is already freed.
fn is_numpy_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    is_instance_of(object, "numpy", "generic")
}

/// Whether an object has this class or one derived from it. Its module is not imported for that: if it was not, no
/// object has the class.
fn is_instance_of(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    let modules =
        object.py().import(pyo3::intern!(object.py(), "sys"))?.getattr(pyo3::intern!(object.py(), "modules"))?;
    let module = modules.call_method1(pyo3::intern!(object.py(), "get"), (module,))?;
    match module.getattr_opt(class)? {
        Some(class) => object.is_instance(&class),
        None => Ok(false),
    }
}

/// The error of elements that no function takes.
fn unsupported(what: &str, remedy: &str) -> PyErr {
    PyTypeError::new_err(format!("arrays of {what} are not supported: {remedy}"))
}
