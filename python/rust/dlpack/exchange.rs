//! DLPack's exchange table: functions of a library for its arrays, which a class has as a capsule.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::ffi::PyObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};

use super::{CPU, CUDA, DataType, Description, Device, Managed, Place, RawTensor, Tensor, VERSION, Versioned};
use crate::array::type_name;
use crate::dtype::DType;

/// `DLPackExchangeAPIHeader`.
#[repr(C)]
struct Header {
    major: u32,
    minor: u32,
    /// The table of an older version, or null.
    previous: *const Self,
}

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// `DLPackExchangeAPI` of version 1.
#[repr(C)]
struct Functions {
    header: Header,
    allocate: Option<unsafe extern "C" fn(*mut RawTensor, *mut *mut Versioned, *mut c_void, SetError) -> c_int>,
    to_tensor: Option<unsafe extern "C" fn(*mut PyObject, *mut *mut Versioned) -> c_int>,
    to_object: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut PyObject) -> c_int>,
    /// The only one that a library may leave out.
    view: Option<unsafe extern "C" fn(*mut PyObject, *mut RawTensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// The exchange table of a class.
#[derive(Clone, Copy)]
pub struct Table(NonNull<Functions>);

// SAFETY: a table is never written, and lives as long as the process.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// A new array.
pub struct Allocated<'py> {
    pub object: Bound<'py, PyAny>,
    pub address: usize,
}

impl Table {
    /// The table of a class, if it has one of version 1.
    pub fn of(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let attribute = class.getattr_opt(intern!(class.py(), "__dlpack_c_exchange_api__"))?;
        let Some(Ok(capsule)) = attribute.map(Bound::cast_into::<PyCapsule>) else { return Ok(None) };
        let mut header: *const Header = match capsule.pointer_checked(Some(c"dlpack_exchange_api")) {
            Ok(pointer) => pointer.as_ptr().cast(),
            Err(_) => return Ok(None),
        };
        while !header.is_null() {
            // SAFETY: the capsule's pointer is to a table, which begins with a header and lives as long as the process;
            // so are those that headers point to.
            let found = unsafe { &*header };
            if found.major == VERSION.0 {
                // SAFETY: a header of this version is that of a table.
                let functions = unsafe { &*header.cast::<Functions>() };
                let is_complete = functions.allocate.is_some()
                    && functions.to_tensor.is_some()
                    && functions.to_object.is_some()
                    && functions.current_stream.is_some();
                return Ok(is_complete.then(|| Self(NonNull::from(functions))));
            }
            header = found.previous;
        }
        Ok(None)
    }

    fn functions(self) -> &'static Functions {
        // SAFETY: a table lives as long as the process, and is never written.
        unsafe { self.0.as_ref() }
    }

    /// What an array says about its memory, which nobody keeps: the array must.
    pub fn view(self, object: &Bound<'_, PyAny>) -> PyResult<Description> {
        let Some(view) = self.functions().view else {
            return self.tensor(object).map(|(_, description)| description);
        };
        let mut raw = RawTensor::empty();
        // SAFETY: the table is that of the object's class, the GIL is held, and `raw` is written.
        let code = unsafe { view(object.as_ptr(), &raw mut raw) };
        check(object.py(), code, "describe an array").map_err(|error| no_memory(object, error))?;
        // SAFETY: the function has set the extents and strides, which belong to the object.
        unsafe { Description::of(&raw, 0) }
    }

    /// An array as a tensor that keeps the memory.
    pub fn tensor(self, object: &Bound<'_, PyAny>) -> PyResult<(Tensor, Description)> {
        let export = self.functions().to_tensor.expect("a complete table");
        let mut managed = null_mut();
        // SAFETY: the table is that of the object's class, the GIL is held, and `managed` is written.
        let code = unsafe { export(object.as_ptr(), &raw mut managed) };
        check(object.py(), code, "export an array").map_err(|error| no_memory(object, error))?;
        if managed.is_null() {
            return Err(PyRuntimeError::new_err("an exchange table of DLPack gave no tensor"));
        }
        let tensor = Tensor(Managed::Versioned(managed));
        let description = tensor.description()?;
        Ok((tensor, description))
    }

    /// The stream of a device that the library would now use.
    pub fn current_stream(self, py: Python<'_>, device: u32) -> PyResult<*mut c_void> {
        let current = self.functions().current_stream.expect("a complete table");
        let mut stream = null_mut();
        // SAFETY: the GIL is held, and `stream` is written.
        let code = unsafe { current(CUDA, device as i32, &raw mut stream) };
        check(py, code, "name its stream").map(|()| stream)
    }

    /// A new array of the library, in C order, with any elements.
    pub fn allocate<'py>(
        self,
        py: Python<'py>,
        place: Place,
        dtype: DType,
        extents: &[usize],
    ) -> PyResult<Allocated<'py>> {
        let (allocate, to_object) = (self.functions().allocate, self.functions().to_object);
        let extents: Vec<i64> = extents.iter().map(|&extent| extent as i64).collect();
        let device = match place {
            Place::Gpu(ordinal) => Device { kind: CUDA, ordinal: ordinal as i32 },
            _ => Device { kind: CPU, ordinal: 0 },
        };
        let mut prototype = RawTensor {
            device,
            rank: extents.len() as i32,
            dtype: DataType::from(dtype),
            extents: extents.as_ptr(),
            ..RawTensor::empty()
        };
        let (mut managed, mut error) = (null_mut(), None::<PyErr>);
        let context = (&raw mut error).cast();
        let allocate = allocate.expect("a complete table");
        // SAFETY: the prototype is complete, `managed` is written, and `set_error` is called with this context at most
        // before the call returns.
        let code = unsafe { allocate(&raw mut prototype, &raw mut managed, context, set_error) };
        if let Some(error) = error {
            return Err(error);
        }
        check(py, code, "make an array")?;
        if managed.is_null() {
            return Err(PyRuntimeError::new_err("an exchange table of DLPack made no array"));
        }
        // SAFETY: the tensor is alive until it is given away below.
        let (on, data, offset) = unsafe {
            let tensor = &(*managed).tensor;
            (Place::of(tensor.device), tensor.data as usize, tensor.byte_offset as usize)
        };
        if on != place {
            drop(Tensor(Managed::Versioned(managed)));
            return Err(PyRuntimeError::new_err("an exchange table of DLPack made an array on another device"));
        }
        let mut object = null_mut();
        // SAFETY: the GIL is held; the tensor is given away, and `object` is written.
        let code = unsafe { to_object.expect("a complete table")(managed, &raw mut object) };
        check(py, code, "make an array")?;
        // SAFETY: the function returns a new reference.
        let object = unsafe { Bound::from_owned_ptr_or_err(py, object) }?;
        Ok(Allocated { object, address: data.wrapping_add(offset) })
    }
}

impl RawTensor {
    /// A tensor whose fields are null or 0.
    fn empty() -> Self {
        Self {
            data: null_mut(),
            device: Device { kind: 0, ordinal: 0 },
            rank: 0,
            dtype: DataType { code: 0, bits: 0, lanes: 0 },
            extents: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        }
    }
}

/// The error of an array that its library cannot describe, with the first line of the library's own.
fn no_memory(object: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = object.py();
    let text = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let (name, why) = (type_name(object), text.lines().next().unwrap_or_default());
    let clearer = PyTypeError::new_err(format!(
        "this array (`{name}`) has no elements in memory that can be read ({why}): sparse and nested arrays, those on \
         no device and those that are traced have none"
    ));
    clearer.set_cause(py, Some(error));
    clearer
}

/// The exception that a function of a table has set, if it has failed.
fn check(py: Python<'_>, code: c_int, what: &str) -> PyResult<()> {
    if code == 0 {
        return Ok(());
    }
    Err(PyErr::take(py).unwrap_or_else(|| {
        PyRuntimeError::new_err(format!("the exchange table of an array's class could not {what}, and did not say why"))
    }))
}

/// Writes an error of an allocation to the `Option<PyErr>` at `context`.
unsafe extern "C" fn set_error(context: *mut c_void, kind: *const c_char, message: *const c_char) {
    let text = |text: *const c_char| match text.is_null() {
        true => String::new(),
        // SAFETY: a library passes nul-terminated strings.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    let (kind, message) = (text(kind), text(message));
    let error = match kind.as_str() {
        "MemoryError" => PyMemoryError::new_err(message),
        _ => PyRuntimeError::new_err(format!("{kind}: {message}")),
    };
    // SAFETY: the context is the place of the error in `allocate`, which waits for this call.
    unsafe { *context.cast::<Option<PyErr>>() = Some(error) };
}
