//! Capsules of arrays that belong to this package.

use std::ffi::{CStr, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::{CUDA, DataType, Device, Legacy, RawTensor, VERSION, Versioned};
use crate::dtype::DType;

/// What a tensor points to.
struct Owner {
    /// Keeps the memory.
    _object: Py<PyAny>,
    extents: Vec<i64>,
    strides: Vec<i64>,
}

/// A tensor with its owner.
#[repr(C)]
struct Owned<T> {
    managed: T,
    owner: Owner,
}

/// A kind of managed tensor.
trait Managed: Sized {
    const NAME: &CStr;
    fn new(tensor: RawTensor) -> Self;
}

impl Managed for Legacy {
    const NAME: &CStr = c"dltensor";

    fn new(tensor: RawTensor) -> Self {
        Self { tensor, context: null_mut(), deleter: Some(delete::<Self>) }
    }
}

impl Managed for Versioned {
    const NAME: &CStr = c"dltensor_versioned";

    fn new(tensor: RawTensor) -> Self {
        let (major, minor) = VERSION;
        Self { major, minor, context: null_mut(), deleter: Some(delete::<Self>), flags: 0, tensor }
    }
}

/// An array in C order in the memory of a CUDA device, which `object` keeps, as a capsule.
pub fn capsule<'py>(
    object: &Bound<'py, PyAny>,
    device: u32,
    address: u64,
    dtype: DType,
    extents: &[usize],
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut stride = 1;
    let mut strides: Vec<i64> = Vec::with_capacity(extents.len());
    for &extent in extents.iter().rev() {
        strides.push(stride);
        stride *= extent.max(1) as i64;
    }
    strides.reverse();
    let extents = extents.iter().map(|&extent| extent as i64).collect();
    let owner = Owner { _object: object.clone().unbind(), extents, strides };
    let tensor = RawTensor {
        data: address as *mut c_void,
        device: Device { kind: CUDA, ordinal: device as i32 },
        rank: owner.extents.len() as i32,
        dtype: DataType::from(dtype),
        extents: owner.extents.as_ptr(),
        strides: owner.strides.as_ptr(),
        byte_offset: 0,
    };
    match is_versioned {
        true => new_capsule(object.py(), Owned { managed: Versioned::new(tensor), owner }),
        false => new_capsule(object.py(), Owned { managed: Legacy::new(tensor), owner }),
    }
}

fn new_capsule<T: Managed>(py: Python<'_>, owned: Owned<T>) -> PyResult<Bound<'_, PyAny>> {
    let pointer = Box::into_raw(Box::new(owned));
    // SAFETY: the name is never freed, and the destructor fits the pointer.
    let capsule = unsafe { ffi::PyCapsule_New(pointer.cast(), T::NAME.as_ptr(), Some(destroy::<T>)) };
    if capsule.is_null() {
        // SAFETY: no capsule has the pointer, which comes from a box.
        drop(unsafe { Box::from_raw(pointer) });
    }
    // SAFETY: the function returns a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// The destructor of a capsule: deletes the tensor if nobody has taken it.
unsafe extern "C" fn destroy<T: Managed>(capsule: *mut PyObject) {
    // SAFETY: Python calls this with the capsule, and the GIL.
    let is_used = unsafe { ffi::PyCapsule_IsValid(capsule, T::NAME.as_ptr()) } == 0;
    if !is_used {
        // SAFETY: the capsule has this name, and its pointer comes from `new_capsule`.
        unsafe { delete::<T>(ffi::PyCapsule_GetPointer(capsule, T::NAME.as_ptr()).cast()) };
    }
}

/// The deleter of a tensor, which its consumer calls once, on any thread.
unsafe extern "C" fn delete<T: Managed>(managed: *mut T) {
    // A tensor is the first field of its `Owned`.
    if let Some(owned) = NonNull::new(managed.cast::<Owned<T>>()) {
        // SAFETY: the pointer comes from the box in `new_capsule`, and this is the only call.
        let owned = ManuallyDrop::new(unsafe { Box::from_raw(owned.as_ptr()) });
        // Dropping the reference needs the GIL. While Python shuts down, it is left to the end of the process.
        let _ = Python::try_attach(|_| drop(ManuallyDrop::into_inner(owned)));
    }
}
