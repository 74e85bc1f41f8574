//! Functions of PyTorch and CuPy that are called by name. Each is looked up once.

use std::ffi::c_void;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

use crate::array::type_name;
use crate::class::{Class, Library};
use crate::dlpack::Place;
use crate::dlpack::exchange::Allocated;
use crate::dtype::{DType, TYPES};

/// A function of a module, which is imported for the first call.
struct Function {
    module: &'static str,
    /// The attributes that lead to the function.
    path: &'static [&'static str],
    found: PyOnceLock<Py<PyAny>>,
}

impl Function {
    const fn new(module: &'static str, path: &'static [&'static str]) -> Self {
        Self { module, path, found: PyOnceLock::new() }
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let found = self.found.get_or_try_init(py, || {
            let module = py.import(self.module)?.into_any();
            self.path.iter().try_fold(module, |found, name| found.getattr(*name)).map(Bound::unbind)
        })?;
        Ok(found.bind(py))
    }
}

/// The stream of a device that CuPy now uses.
pub fn cupy_stream(py: Python<'_>, device: u32) -> PyResult<*mut c_void> {
    static CURRENT: Function = Function::new("cupy", &["cuda", "get_current_stream"]);
    let stream = CURRENT.get(py)?.call1((device,))?;
    let stream: usize = stream.getattr(intern!(py, "ptr"))?.extract()?;
    Ok(stream as *mut c_void)
}

/// The stream of a device that PyTorch now uses.
pub fn torch_stream(py: Python<'_>, device: u32) -> PyResult<*mut c_void> {
    static CURRENT: Function = Function::new("torch", &["cuda", "current_stream"]);
    let stream = CURRENT.get(py)?.call1((device,))?;
    let stream: usize = stream.getattr(intern!(py, "cuda_stream"))?.extract()?;
    Ok(stream as *mut c_void)
}

/// A new array of CuPy in C order, with any elements.
pub fn cupy_empty<'py>(py: Python<'py>, device: u32, dtype: DType, extents: &[usize]) -> PyResult<Allocated<'py>> {
    static EMPTY: Function = Function::new("cupy", &["empty"]);
    static DEVICE: Function = Function::new("cupy", &["cuda", "Device"]);
    static CURRENT: Function = Function::new("cupy", &["cuda", "runtime", "getDevice"]);
    let empty = EMPTY.get(py)?;
    let make = || empty.call1((PyTuple::new(py, extents)?, dtype.to_numpy(py)?));
    let current: u32 = CURRENT.get(py)?.call0()?.extract()?;
    let object = if current == device {
        make()?
    } else {
        let device = DEVICE.get(py)?.call1((device,))?;
        device.call_method0(intern!(py, "__enter__"))?;
        let made = make();
        device.call_method1(intern!(py, "__exit__"), (py.None(), py.None(), py.None()))?;
        made?
    };
    let address = object.getattr(intern!(py, "data"))?.getattr(intern!(py, "ptr"))?.extract()?;
    Ok(Allocated { object, address })
}

/// A new tensor of PyTorch in C order, with any elements.
pub fn torch_empty<'py>(py: Python<'py>, place: Place, dtype: DType, extents: &[usize]) -> PyResult<Allocated<'py>> {
    static EMPTY: Function = Function::new("torch", &["empty"]);
    let arguments = PyDict::new(py);
    arguments.set_item(intern!(py, "dtype"), torch_dtype(py, dtype)?)?;
    if let Place::Gpu(device) = place {
        arguments.set_item(intern!(py, "device"), format!("cuda:{device}"))?;
    } else {
        arguments.set_item(intern!(py, "device"), intern!(py, "cpu"))?;
    }
    let object = EMPTY.get(py)?.call((PyTuple::new(py, extents)?,), Some(&arguments))?;
    let address = object.call_method0(intern!(py, "data_ptr"))?.extract()?;
    Ok(Allocated { object, address })
}

/// PyTorch's object for a type of elements.
fn torch_dtype(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    static OBJECTS: [PyOnceLock<Py<PyAny>>; TYPES.len()] = [const { PyOnceLock::new() }; TYPES.len()];
    let found =
        OBJECTS[dtype as usize].get_or_try_init(py, || py.import("torch")?.getattr(dtype.name()).map(Bound::unbind))?;
    Ok(found.bind(py).clone())
}

/// An array's elements, converted by its library.
pub fn converted<'py>(x: &Bound<'py, PyAny>, class: Class, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    match class.library {
        Library::Torch => x.call_method1(intern!(py, "to"), (torch_dtype(py, dtype)?,)),
        Library::CuPy | Library::Jax => x.call_method1(intern!(py, "astype"), (dtype.to_numpy(py)?,)),
        Library::Warpfold | Library::Other => {
            let (name, to) = (type_name(x), dtype.name());
            Err(PyTypeError::new_err(format!(
                "a result of {to} needs a conversion, which is not known for arrays of `{name}`: convert them to {to} \
                 with their library"
            )))
        }
    }
}

/// Copies an array to another one of the same library and of any type.
pub fn copy<'py>(to: &Bound<'py, PyAny>, from: &Bound<'py, PyAny>, class: Class) -> PyResult<()> {
    let py = to.py();
    match class.library {
        Library::Torch => to.call_method1(intern!(py, "copy_"), (from,)).map(drop),
        _ => to.set_item(py.Ellipsis(), from),
    }
}
