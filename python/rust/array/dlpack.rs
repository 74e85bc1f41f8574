//! Arrays by DLPack, the protocol of PyTorch, JAX and others.
//!
//! A producer's capsule owns a tensor until a consumer takes it: the consumer renames the capsule, and later calls the
//! tensor's deleter once. The structures are those of DLPack 1; capsules without a version have the older one.

use std::ffi::{CStr, c_void};
use std::slice;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::{HostArray, Owner, type_name, unsupported};
use crate::dtype::DType;
use crate::layout::{Layout, MAX_RANK};

/// The versions of DLPack that have these structures.
const MAJOR: u32 = 1;

/// Devices whose memory the host can read: the CPU, and pinned host memory.
const HOST_DEVICES: [i32; 2] = [1, 3];

const READ_ONLY: u64 = 1 << 0;
/// Several elements share a byte.
const SUB_BYTE: u64 = 1 << 2;

#[repr(C)]
struct Device {
    kind: i32,
    ordinal: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
struct RawTensor {
    data: *mut c_void,
    device: Device,
    rank: i32,
    dtype: DataType,
    extents: *const i64,
    /// In elements; null for C order.
    strides: *const i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct Legacy {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: RawTensor,
}

/// A tensor that was taken from its capsule.
pub struct Tensor(Managed);

#[derive(Clone, Copy)]
enum Managed {
    Legacy(*mut Legacy),
    Versioned(*mut Versioned),
}

// SAFETY: a tensor may be used and deleted by any thread; `drop` holds the GIL meanwhile.
unsafe impl Send for Tensor {}
// SAFETY: shared references only read fields that nobody writes.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        // A producer written in Python needs the GIL for its deleter.
        Python::attach(|_| match self.0 {
            Managed::Legacy(raw) => {
                // SAFETY: the tensor was taken from its capsule, so that it is alive, and this is the only call.
                unsafe {
                    if let Some(delete) = (*raw).deleter {
                        delete(raw);
                    }
                }
            }
            Managed::Versioned(raw) => {
                // SAFETY: as above. The place of the deleter is the same in all versions.
                unsafe {
                    if let Some(delete) = (*raw).deleter {
                        delete(raw);
                    }
                }
            }
        });
    }
}

/// The array of an object, if it has the protocol.
pub fn read(object: &Bound<'_, PyAny>) -> PyResult<Option<HostArray>> {
    let py = object.py();
    let Some(export) = object.getattr_opt(intern!(py, "__dlpack__"))? else { return Ok(None) };
    if let Some(device) = object.getattr_opt(intern!(py, "__dlpack_device__"))? {
        let (kind, _): (i32, i32) = device.call0()?.extract()?;
        refuse_device(kind, &type_name(object))?;
    }
    let versions = PyDict::new(py);
    versions.set_item(intern!(py, "max_version"), (MAJOR, 3))?;
    let capsule = match export.call((), Some(&versions)) {
        // The first producers did not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call0()?,
        result => result?,
    };
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|_| wrong("returned no capsule"))?;
    let tensor = take(&capsule)?;
    let (raw, flags) = match tensor.0 {
        // SAFETY: a capsule of this name has a pointer to such a tensor, which `tensor` keeps.
        Managed::Legacy(raw) => (unsafe { &(*raw).tensor }, 0),
        Managed::Versioned(raw) => {
            // SAFETY: as above. The version comes first in all versions.
            let (major, minor) = unsafe { ((*raw).major, (*raw).minor) };
            if major != MAJOR {
                return Err(PyBufferError::new_err(format!(
                    "the tensor has version {major}.{minor} of DLPack, and version {MAJOR} is supported"
                )));
            }
            // SAFETY: the version has these fields.
            unsafe { (&(*raw).tensor, (*raw).flags) }
        }
    };
    refuse_device(raw.device.kind, &type_name(object))?;
    let dtype = dtype(&raw.dtype, flags)?;
    let layout = layout(raw, dtype.size())?;
    let offset = usize::try_from(raw.byte_offset).map_err(|_| wrong("has an offset outside of the memory"))?;
    let address =
        (raw.data as usize).checked_add(offset).ok_or_else(|| wrong("has an offset outside of the memory"))?;
    let is_read_only = flags & READ_ONLY != 0;
    HostArray::at(address, dtype, layout, is_read_only, Owner::Dlpack { _tensor: tensor }).map(Some)
}

fn wrong(what: &str) -> PyErr {
    PyValueError::new_err(format!("`__dlpack__` {what}"))
}

fn refuse_device(kind: i32, name: &str) -> PyResult<()> {
    if HOST_DEVICES.contains(&kind) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "this array (`{name}`) is not in host memory (device type {kind} of DLPack), and this package computes on the \
         host: copy it there first, as x.cpu() does in PyTorch"
    )))
}

/// Takes the tensor out of a capsule, which is then used up.
fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Tensor> {
    if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor_versioned"))?;
        rename(capsule, c"used_dltensor_versioned")?;
        return Ok(Tensor(Managed::Versioned(pointer.as_ptr().cast())));
    }
    if capsule.is_valid_checked(Some(c"dltensor")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor"))?;
        rename(capsule, c"used_dltensor")?;
        return Ok(Tensor(Managed::Legacy(pointer.as_ptr().cast())));
    }
    let is_used =
        [c"used_dltensor", c"used_dltensor_versioned"].iter().any(|name| capsule.is_valid_checked(Some(name)));
    Err(wrong(match is_used {
        true => "returned a capsule that was already used",
        false => "returned a capsule of another kind",
    }))
}

/// Renames a capsule, so that its destructor leaves the tensor to this consumer.
fn rename(capsule: &Bound<'_, PyCapsule>, name: &'static CStr) -> PyResult<()> {
    // SAFETY: the capsule is alive, the GIL is held, and the name is never freed.
    match unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(capsule.py())),
    }
}

/// The type of the elements.
fn dtype(dtype: &DataType, flags: u64) -> PyResult<DType> {
    let DataType { code, bits, lanes } = *dtype;
    let size = usize::from(bits / 8);
    let found = match code {
        0 => DType::of_kind('i', size),
        1 => DType::of_kind('u', size),
        2 => DType::of_kind('f', size),
        4 if bits == 16 => Some(DType::BFloat16),
        5 => DType::of_kind('c', size),
        6 => DType::of_kind('b', size),
        _ => None,
    };
    match found {
        Some(dtype) if lanes == 1 && bits.is_multiple_of(8) && flags & SUB_BYTE == 0 => Ok(dtype),
        _ => Err(unsupported(
            &format!("DLPack's type {code} with {bits} bits and {lanes} lanes"),
            "convert them to float32",
        )),
    }
}

/// The layout, in bytes.
fn layout(raw: &RawTensor, size: usize) -> PyResult<Layout> {
    let rank = usize::try_from(raw.rank).ok().filter(|rank| *rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| wrong(&format!("has {} axes", raw.rank)))?;
    let numbers = |pointer: *const i64| match rank {
        // The pointers of a tensor without axes may be null.
        0 => Some(&[][..]),
        _ if pointer.is_null() => None,
        // SAFETY: a tensor has as many extents, and strides if there are any, as axes.
        _ => Some(unsafe { slice::from_raw_parts(pointer, rank) }),
    };
    let extents = numbers(raw.extents).ok_or_else(|| wrong("has no extents"))?;
    let extents: Option<Vec<usize>> = extents.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let extents = extents.ok_or_else(|| wrong("has a negative extent"))?;
    let bytes = |&stride: &i64| isize::try_from(stride).ok()?.checked_mul(size as isize);
    let strides: Option<Option<Vec<isize>>> = numbers(raw.strides).map(|strides| strides.iter().map(bytes).collect());
    if strides == Some(None) {
        return Err(wrong("has a stride outside of the address space"));
    }
    Layout::new(extents, strides.flatten(), size)
}
