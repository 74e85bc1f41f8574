//! DLPack, the protocol of PyTorch, JAX, CuPy and others: its structures, and tensors that are taken from capsules.
//!
//! A producer's capsule owns a tensor until a consumer takes it: the consumer renames the capsule, and later calls the
//! tensor's deleter once. The structures are those of DLPack 1; capsules without a version have the older one.

pub mod exchange;
pub mod export;

use std::ffi::{CStr, c_void};
use std::slice;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::array::unsupported;
use crate::dtype::DType;
use crate::layout::{Layout, MAX_RANK};

/// The version of DLPack that has these structures.
pub const VERSION: (u32, u32) = (1, 3);

/// The memory is the host's.
pub const CPU: i32 = 1;
/// The memory is a CUDA device's.
pub const CUDA: i32 = 2;
/// The memory is the host's, pinned.
const CUDA_HOST: i32 = 3;
/// The memory moves between the host and devices.
const CUDA_MANAGED: i32 = 13;

const READ_ONLY: u64 = 1 << 0;
/// Several elements share a byte.
const SUB_BYTE: u64 = 1 << 2;

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    pub kind: i32,
    pub ordinal: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
pub struct RawTensor {
    pub data: *mut c_void,
    pub device: Device,
    pub rank: i32,
    pub dtype: DataType,
    pub extents: *const i64,
    /// In elements; null for C order.
    pub strides: *const i64,
    pub byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
pub struct Legacy {
    pub tensor: RawTensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
pub struct Versioned {
    pub major: u32,
    pub minor: u32,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Self)>,
    pub flags: u64,
    pub tensor: RawTensor,
}

/// A tensor that was taken from its capsule, or given by a table. Dropping it calls its deleter.
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
                // SAFETY: the tensor was taken from its owner, so that it is alive, and this is the only call.
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

impl Tensor {
    /// What the tensor says about its memory.
    fn description(&self) -> PyResult<Description> {
        let (raw, flags) = match self.0 {
            // SAFETY: the pointer is to such a tensor, which `self` keeps.
            Managed::Legacy(raw) => (unsafe { &(*raw).tensor }, 0),
            Managed::Versioned(raw) => {
                // SAFETY: as above. The version comes first in all versions.
                let (major, minor) = unsafe { ((*raw).major, (*raw).minor) };
                if major != VERSION.0 {
                    return Err(PyBufferError::new_err(format!(
                        "the tensor has version {major}.{minor} of DLPack, and version {} is supported",
                        VERSION.0
                    )));
                }
                // SAFETY: the version has these fields.
                unsafe { (&(*raw).tensor, (*raw).flags) }
            }
        };
        // SAFETY: the arrays of a managed tensor live as long as it does.
        unsafe { Description::of(raw, flags) }
    }
}

/// What a tensor says about its memory.
pub struct Description {
    pub place: Place,
    /// The address of the element with all indices 0.
    pub address: usize,
    pub dtype: DType,
    /// In bytes.
    pub layout: Layout,
    pub is_read_only: bool,
}

/// Where a tensor's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Host,
    /// The CUDA device of this number.
    Gpu(u32),
    /// DLPack's number of a device of another kind.
    Other(i32),
}

impl Place {
    pub fn of(device: Device) -> Self {
        match (device.kind, u32::try_from(device.ordinal)) {
            (CPU | CUDA_HOST, _) => Self::Host,
            (CUDA | CUDA_MANAGED, Ok(ordinal)) => Self::Gpu(ordinal),
            (kind, _) => Self::Other(kind),
        }
    }
}

impl Description {
    /// Reads and checks a tensor.
    ///
    /// # Safety
    /// The tensor's extents and strides are null, or arrays of as many numbers as it has axes.
    pub unsafe fn of(raw: &RawTensor, flags: u64) -> PyResult<Self> {
        let place = Place::of(raw.device);
        if let Place::Other(kind) = place {
            return Err(other_device(kind, None));
        }
        let dtype = dtype(&raw.dtype, flags)?;
        // SAFETY: as promised by the caller.
        let layout = unsafe { layout(raw, dtype.size()) }?;
        let outside = || wrong("has an offset outside of the memory");
        let offset = usize::try_from(raw.byte_offset).map_err(|_| outside())?;
        let address = (raw.data as usize).checked_add(offset).ok_or_else(outside)?;
        Ok(Self { place, address, dtype, layout, is_read_only: flags & READ_ONLY != 0 })
    }
}

/// The device that an object's `__dlpack_device__` names, if it has one.
pub fn place(object: &Bound<'_, PyAny>) -> PyResult<Option<Place>> {
    let Some(device) = object.getattr_opt(intern!(object.py(), "__dlpack_device__"))? else { return Ok(None) };
    let (kind, ordinal): (i32, i32) = device.call0()?.extract()?;
    match Place::of(Device { kind, ordinal }) {
        Place::Other(kind) => Err(other_device(kind, Some(object))),
        place => Ok(Some(place)),
    }
}

/// Calls `__dlpack__`, for a consumer whose work goes to `stream` if that is not `None`, and takes the tensor.
pub fn import(
    object: &Bound<'_, PyAny>,
    export: &Bound<'_, PyAny>,
    stream: Option<i64>,
) -> PyResult<(Tensor, Description)> {
    let py = object.py();
    let arguments = PyDict::new(py);
    if let Some(stream) = stream {
        arguments.set_item(intern!(py, "stream"), stream)?;
    }
    arguments.set_item(intern!(py, "max_version"), VERSION)?;
    let capsule = match export.call((), Some(&arguments)) {
        // The first producers did not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            arguments.del_item(intern!(py, "max_version"))?;
            export.call((), Some(&arguments)).inspect_err(|other| other.set_cause(py, Some(error)))?
        }
        result => result?,
    };
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|_| wrong("returned no capsule"))?;
    let tensor = take(&capsule)?;
    let description = tensor.description()?;
    Ok((tensor, description))
}

fn wrong(what: &str) -> PyErr {
    PyValueError::new_err(format!("`__dlpack__` {what}"))
}

fn other_device(kind: i32, object: Option<&Bound<'_, PyAny>>) -> PyErr {
    let name = object.map_or_else(String::new, |object| format!(" (`{}`)", crate::array::type_name(object)));
    PyTypeError::new_err(format!(
        "this array{name} is neither in host memory nor on a CUDA device (device type {kind} of DLPack): copy it to \
         one of them first, as x.cpu() does in PyTorch"
    ))
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

impl From<DType> for DataType {
    fn from(dtype: DType) -> Self {
        let code = match dtype {
            DType::Bool => 6,
            DType::BFloat16 => 4,
            DType::Complex64 | DType::Complex128 => 5,
            dtype if dtype.is_signed() => 0,
            dtype if dtype.is_integer() => 1,
            _ => 2,
        };
        Self { code, bits: 8 * dtype.size() as u8, lanes: 1 }
    }
}

/// The layout, in bytes.
///
/// # Safety
/// The tensor's extents and strides are null, or arrays of as many numbers as it has axes.
unsafe fn layout(raw: &RawTensor, size: usize) -> PyResult<Layout> {
    let rank = usize::try_from(raw.rank).ok().filter(|rank| *rank <= MAX_RANK);
    let rank = rank.ok_or_else(|| wrong(&format!("has {} axes", raw.rank)))?;
    let numbers = |pointer: *const i64| match rank {
        // The pointers of a tensor without axes may be null.
        0 => Some(&[][..]),
        _ if pointer.is_null() => None,
        // SAFETY: as promised by the caller.
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
