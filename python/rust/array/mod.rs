//! Arrays of Python objects, in host memory or on a GPU.
//!
//! An array is read where it lies, by the first protocol that its object has: DLPack's exchange table,
//! `__array_interface__` (NumPy), DLPack, `__cuda_array_interface__` (Numba), or the buffer protocol (`array.array`,
//! `memoryview`).

mod buffer;
mod interface;

use std::slice;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::class::{Class, Library};
use crate::dlpack::{self, Description, Place};
use crate::dtype::{DType, is_numpy_array};
use crate::gpu::array::GpuArray;
use crate::layout::Layout;

pub use interface::{dtype as dtype_of_typestr, integers};

/// The array of an object.
pub enum AnyArray {
    Host(HostArray),
    Gpu(GpuArray),
}

/// An array in host memory. The Python object keeps the memory until this value is dropped.
pub struct HostArray {
    pub dtype: DType,
    pub layout: Layout,
    pub is_read_only: bool,
    /// The library that the array is from, if its results are made by it and not by NumPy.
    pub maker: Option<Class>,
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

impl AnyArray {
    /// The array of an object. `operation` is the caller, for messages.
    pub fn new(object: &Bound<'_, PyAny>, operation: &str) -> PyResult<Self> {
        Self::read(object)?.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{operation} takes arrays (NumPy, DLPack, `__cuda_array_interface__`, or the buffer protocol), not \
                 `{}`: use numpy.asarray(x)",
                type_name(object)
            ))
        })
    }

    /// The array that is the argument `out`.
    pub fn out(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::read(object)?
            .ok_or_else(|| PyTypeError::new_err(format!("`out` is an array, not `{}`", type_name(object))))
    }

    fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        // Most objects are of this class, and need no further questions.
        if is_numpy_array(object) {
            return interface::read(object).map(|array| array.map(Self::Host));
        }
        let class = Class::of(object)?;
        if class.is_masked {
            return Err(PyTypeError::new_err(
                "masked arrays are not supported: pass x.compressed() for the elements without a mask, or \
                 x.filled(value)",
            ));
        }
        // The `__array_interface__` of a scalar has the address of memory that is already freed.
        if class.is_scalar { Ok(None) } else { Self::of_class(object, class) }
    }

    fn of_class(object: &Bound<'_, PyAny>, class: Class) -> PyResult<Option<Self>> {
        if class.library == Library::Warpfold {
            return GpuArray::of_own(object, class).map(|array| array.map(Self::Gpu));
        }
        if let Some(table) = class.table {
            let description = table.view(object)?;
            class.refuse_lazy(object, Some(description.dtype))?;
            if let Place::Gpu(device) = description.place {
                return GpuArray::of_table(object, class, table, device, description)
                    .map(|array| Some(Self::Gpu(array)));
            }
            // The tensor keeps the memory while Python's lock is released.
            let (tensor, description) = table.tensor(object)?;
            return HostArray::of_tensor(tensor, description, class).map(|array| Some(Self::Host(array)));
        }
        if let Some(array) = interface::read(object)? {
            return Ok(Some(Self::Host(array)));
        }
        if let Some(export) = object.getattr_opt(pyo3::intern!(object.py(), "__dlpack__"))? {
            class.refuse_lazy(object, None)?;
            return match dlpack::place(object)? {
                Some(Place::Gpu(device)) => {
                    GpuArray::of_dlpack(object, class, &export, device).map(|array| Some(Self::Gpu(array)))
                }
                _ => {
                    let (tensor, description) = dlpack::import(object, &export, None)?;
                    HostArray::of_tensor(tensor, description, class).map(|array| Some(Self::Host(array)))
                }
            };
        }
        if let Some(array) = GpuArray::of_interface(object, class)? {
            return Ok(Some(Self::Gpu(array)));
        }
        Ok(buffer::read(object)?.map(Self::Host))
    }

    pub fn dtype(&self) -> DType {
        match self {
            Self::Host(array) => array.dtype,
            Self::Gpu(array) => array.dtype,
        }
    }

    pub fn extents(&self) -> &[usize] {
        match self {
            Self::Host(array) => &array.layout.extents,
            Self::Gpu(array) => &array.elements.extents,
        }
    }

    /// The array, if it is in host memory. Otherwise the error says what to do: `remedy`.
    pub fn on_host(self, remedy: &str) -> PyResult<HostArray> {
        match self {
            Self::Host(array) => Ok(array),
            Self::Gpu(_) => Err(PyTypeError::new_err(format!("this array is on a GPU: {remedy}"))),
        }
    }
}

impl HostArray {
    fn of_tensor(tensor: dlpack::Tensor, description: Description, class: Class) -> PyResult<Self> {
        let Description { place, address, dtype, layout, is_read_only } = description;
        if place != Place::Host {
            return Err(PyTypeError::new_err("`__dlpack__` returned memory of another device than it had named"));
        }
        let mut array = Self::at(address, dtype, layout, is_read_only, Owner::Dlpack { _tensor: tensor })?;
        array.maker = (class.library == Library::Torch || class.table.is_some()).then_some(class);
        Ok(array)
    }

    /// An array of which `address` is that of the element with all indices 0.
    fn at(address: usize, dtype: DType, layout: Layout, is_read_only: bool, owner: Owner) -> PyResult<Self> {
        let lowest = address.checked_sub(layout.start);
        let in_memory = |lowest: &usize| *lowest > 0 && lowest.checked_add(layout.span).is_some();
        let lowest = match lowest.filter(in_memory) {
            Some(lowest) => lowest as *mut u8,
            None if layout.span == 0 => std::ptr::dangling_mut(),
            None => {
                return Err(PyValueError::new_err(format!(
                    "there is no memory for an array at address {address:#x}: a traced array has none"
                )));
            }
        };
        Ok(Self { dtype, layout, is_read_only, maker: None, lowest, _owner: owner })
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

/// The name of an object's type, with its module.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// The error of elements that no function takes.
pub fn unsupported(what: &str, remedy: &str) -> PyErr {
    PyTypeError::new_err(format!("arrays of {what} are not supported: {remedy}"))
}
