//! The driver's functions that `cust` wraps for typed buffers only, or not at all.
//!
//! They are declared here a second time because `cust` returns their codes as a closed Rust enum, which does not know
//! all codes of today's drivers: a code outside of it would be undefined behaviour. Here a code is a number.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use cuda_driver::{Driver, DriverVersion};
use cust::sys::{
    CUdevice, CUdevice_attribute, CUdeviceptr, CUfunction, CUfunction_attribute, CUgraph, CUgraphExec, CUstream,
};

pub(crate) const OUT_OF_MEMORY: u32 = 2;
pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
/// From here to [`LAUNCH_FAILED`]: what a kernel did that it cannot do, from a broken stack to a misaligned address.
/// All lose the context.
pub(crate) const HARDWARE_STACK: u32 = 714;
pub(crate) const LAUNCH_FAILED: u32 = 719;
pub(crate) const CAPTURE_UNSUPPORTED: u32 = 900;
pub(crate) const CAPTURE_INVALIDATED: u32 = 901;
pub(crate) const CAPTURE_IMPLICIT: u32 = 906;

/// Calls that a capture does not remember are allowed meanwhile, in this thread and in others.
pub(crate) const CAPTURE_RELAXED: c_uint = 2;

/// A `CUresult` as a number.
pub(crate) type Code = c_uint;

#[allow(non_snake_case)]
unsafe extern "C" {
    pub(crate) fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice) -> Code;
    pub(crate) fn cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction) -> Code;
    pub(crate) fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        threads_per_block: c_int,
        dynamic_shared: usize,
    ) -> Code;
    pub(crate) fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) -> Code;
    pub(crate) fn cuMemFree_v2(address: CUdeviceptr) -> Code;
    pub(crate) fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> Code;
    pub(crate) fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> Code;
    pub(crate) fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> Code;
    pub(crate) fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) -> Code;
    pub(crate) fn cuMemsetD8Async(address: CUdeviceptr, byte: u8, bytes: usize, stream: CUstream) -> Code;
    pub(crate) fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        dynamic_shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Code;
    pub(crate) fn cuStreamBeginCapture_v2(stream: CUstream, mode: c_uint) -> Code;
    pub(crate) fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph) -> Code;
    pub(crate) fn cuGraphInstantiateWithFlags(executable: *mut CUgraphExec, graph: CUgraph, flags: u64) -> Code;
    pub(crate) fn cuGraphLaunch(executable: CUgraphExec, stream: CUstream) -> Code;
    pub(crate) fn cuGraphDestroy(graph: CUgraph) -> Code;
    pub(crate) fn cuGraphExecDestroy(executable: CUgraphExec) -> Code;
    fn cuGetErrorName(code: Code, name: *mut *const c_char) -> Code;
}

/// A code as a result.
pub(crate) fn check(code: Code) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(code) }
}

/// The driver's name for a code, `CUDA_ERROR_...`.
pub(crate) fn name(code: Code) -> String {
    let mut name = std::ptr::null();
    // SAFETY: writes a pointer to a string that lives as long as the driver, or leaves it null.
    unsafe {
        if cuGetErrorName(code, &mut name) == 0 && !name.is_null() {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        } else {
            format!("CUDA error {code}")
        }
    }
}

/// `cuLaunchKernelEx`, which `cust` does not know.
pub(crate) type LaunchEx = unsafe extern "C" fn(
    configuration: *const LaunchConfiguration,
    function: CUfunction,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Code;

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfiguration {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) dynamic_shared: c_uint,
    pub(crate) stream: CUstream,
    pub(crate) attributes: *mut LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute`: which one, and a union of 64 bytes.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: c_uint,
    padding: [u8; 4],
    value: [u64; 8],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`, on: the kernel may start before the one before it is
    /// done.
    pub(crate) fn early() -> Self {
        Self { id: 6, padding: [0; 4], value: [1, 0, 0, 0, 0, 0, 0, 0] }
    }
}

/// The driver's `cuLaunchKernelEx`, if early launches can be recorded with it, too: from CUDA 12.3 on.
pub(crate) fn launch_ex(driver: &Driver) -> Option<LaunchEx> {
    if driver.version() < (DriverVersion { major: 12, minor: 3 }) {
        return None;
    }
    let address = driver.function("cuLaunchKernelEx")?;
    // SAFETY: the driver's function of that name has this type.
    Some(unsafe { std::mem::transmute::<*const c_void, LaunchEx>(address.cast()) })
}
