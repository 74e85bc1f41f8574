//! An array on a GPU, and the stream in which its library works.

use std::ffi::c_void;
use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::elements::Elements;
use super::owned::Array;
use super::{handles, library};
use crate::array::{dtype_of_typestr, integers};
use crate::class::{Class, Library};
use crate::dlpack::exchange::Table;
use crate::dlpack::{self, Description, Place};
use crate::dtype::DType;
use crate::layout::Layout;

/// An array on a GPU. The Python object keeps the memory until this value is dropped.
pub struct GpuArray {
    pub dtype: DType,
    pub elements: Elements,
    pub is_read_only: bool,
    pub device: u32,
    /// The addresses from the lowest element to the end of the highest.
    pub range: Range<u64>,
    pub class: Class,
    pub order: Order,
    _owner: Owner,
}

/// How the work on an array is ordered with that of its library.
#[derive(Clone)]
pub enum Order {
    /// By this stream of the library.
    Stream(*mut c_void),
    /// By the stream of this handle.
    Handle(warpfold::Gpu),
    /// The library has put its own work before that of the device's handle. It does not know of later work, so the host
    /// waits for that before the array is released.
    Wait,
}

/// What keeps an array's memory.
enum Owner {
    Object { _object: Py<PyAny> },
    Dlpack { _tensor: dlpack::Tensor },
}

impl GpuArray {
    fn new(description: Description, class: Class, device: u32, order: Order, owner: Owner) -> PyResult<Self> {
        let Description { address, dtype, layout, is_read_only, .. } = description;
        if address == 0 && layout.count > 0 {
            return Err(PyValueError::new_err(
                "this array has no memory: it may be a tensor of a subclass without storage, or a traced one",
            ));
        }
        let lowest = (address as u64).wrapping_sub(layout.start as u64);
        let range = lowest..lowest.wrapping_add(layout.span as u64);
        let (address, strides) = (address as u64, strides(&layout, dtype)?);
        let elements = Elements { address, strides, extents: layout.extents, is_new: false };
        Ok(Self { dtype, elements, is_read_only, device, range, class, order, _owner: owner })
    }

    /// An array whose class has an exchange table, which has described it.
    pub fn of_table(
        object: &Bound<'_, PyAny>,
        class: Class,
        table: Table,
        device: u32,
        description: Description,
    ) -> PyResult<Self> {
        let order = Order::Stream(table.current_stream(object.py(), device)?);
        Self::new(description, class, device, order, Owner::Object { _object: object.clone().unbind() })
    }

    /// An array by `__dlpack__`, which is `export`.
    pub fn of_dlpack(
        object: &Bound<'_, PyAny>,
        class: Class,
        export: &Bound<'_, PyAny>,
        device: u32,
    ) -> PyResult<Self> {
        let py = object.py();
        // -1: the library is not to wait for its own work.
        let (order, stream) = match class.library {
            Library::CuPy => (Order::Stream(library::cupy_stream(py, device)?), -1),
            Library::Torch => {
                let stream = library::torch_stream(py, device)?;
                // PyTorch names the legacy default stream 1 here, and elsewhere 0.
                (Order::Stream(stream), (stream as i64).max(1))
            }
            _ => {
                let own = handles::of_device(py, device)?.cuda_stream().map_or(-1, |stream| stream as i64);
                (Order::Wait, own)
            }
        };
        let (tensor, description) = match dlpack::import(object, export, Some(stream)) {
            // CuPy divides the bytes of a negative stride as a number without a sign.
            Err(error) if class.library == Library::CuPy && error.is_instance_of::<PyValueError>(py) => {
                return Self::of_interface(object, class)?.ok_or(error);
            }
            result => result?,
        };
        if description.place != Place::Gpu(device) {
            return Err(PyTypeError::new_err("`__dlpack__` returned memory of another device than it had named"));
        }
        let mut array = Self::new(description, class, device, order, Owner::Dlpack { _tensor: tensor })?;
        // Arrays of JAX never change, though older tensors of DLPack cannot say so.
        array.is_read_only |= class.library == Library::Jax;
        Ok(array)
    }

    /// An array by `__cuda_array_interface__`, if the object has it.
    pub fn of_interface(object: &Bound<'_, PyAny>, class: Class) -> PyResult<Option<Self>> {
        let py = object.py();
        let Some(interface) = object.getattr_opt(intern!(py, "__cuda_array_interface__"))? else { return Ok(None) };
        class.refuse_lazy(object, None)?;
        let wrong = |what: &str| PyTypeError::new_err(format!("the `__cuda_array_interface__` {what}"));
        let interface = interface.cast_into::<PyDict>().map_err(|_| wrong("is not a dict"))?;
        let entry = |key: &str| Ok::<_, PyErr>(interface.get_item(key)?.filter(|value| !value.is_none()));
        let needed = |key: &str| entry(key)?.ok_or_else(|| wrong(&format!("has no `{key}`")));
        let version: i64 = needed("version")?.extract()?;
        if !(2..=3).contains(&version) {
            return Err(wrong(&format!("has version {version}: versions 2 and 3 are supported")));
        }
        if entry("mask")?.is_some() {
            return Err(wrong("has a mask, which is not supported"));
        }
        let typestr: String = needed("typestr")?.extract().map_err(|_| wrong("has a `typestr` that is no string"))?;
        let dtype = dtype_of_typestr(&typestr, object)?;
        let extents = integers(&needed("shape")?, "shape")?;
        let strides = entry("strides")?.map(|strides| integers(&strides, "strides")).transpose()?;
        let layout = Layout::new(extents, strides, dtype.size())?;
        let data = needed("data")?;
        let (address, is_read_only): (usize, bool) =
            data.extract().map_err(|_| wrong("has no address in its `data`"))?;
        let stream = match entry("stream")? {
            // Nothing is to be waited for.
            None => 0,
            Some(stream) => match stream.extract::<usize>() {
                Ok(0) | Err(_) => return Err(wrong("has a `stream` that is no stream: 0 has two meanings")),
                Ok(stream) => stream,
            },
        };
        let device = if layout.count > 0 { handles::device_at(address as u64) } else { 0 };
        let order = Order::Stream(stream as *mut c_void);
        let description = Description { place: Place::Gpu(device), address, dtype, layout, is_read_only };
        Self::new(description, class, device, order, Owner::Object { _object: object.clone().unbind() }).map(Some)
    }

    /// An array of this package.
    pub fn of_own(object: &Bound<'_, PyAny>, class: Class) -> PyResult<Option<Self>> {
        let Ok(array) = object.cast::<Array>() else { return Ok(None) };
        let (array, owner) = (array.get(), Owner::Object { _object: object.clone().unbind() });
        let layout = Layout::new(array.extents.clone(), None, array.dtype.size())?;
        let (address, dtype) = (array.address() as usize, array.dtype);
        let description = Description { place: Place::Gpu(array.device), address, dtype, layout, is_read_only: false };
        Self::new(description, class, array.device, Order::Handle(array.gpu.clone()), owner).map(Some)
    }

    /// Whether two arrays have bytes in common, or bytes of one are between elements of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.range.start < other.range.end && other.range.start < self.range.end
    }
}

/// The strides in elements.
fn strides(layout: &Layout, dtype: DType) -> PyResult<Vec<isize>> {
    let (size, name) = (dtype.size() as isize, dtype.name());
    let strides = layout.strides.iter().zip(&layout.extents);
    let stride = |(&stride, &extent): (&isize, &usize)| match stride % size {
        0 => Ok(stride / size),
        // Such a stride is never taken.
        _ if extent <= 1 => Ok(0),
        _ => Err(PyValueError::new_err(format!(
            "a stride of {stride} bytes is not a multiple of {name}'s size: copy the array to one without gaps"
        ))),
    };
    strides.map(stride).collect()
}
