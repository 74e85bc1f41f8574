//! Copies between host and device.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::{CUdeviceptr, Driver};

use crate::error::CudaResult;
use crate::private::Sealed;
use crate::stream::Stream;

/// Device memory that can be copied to and from an `O` on the host or on the device.
///
/// A copy has completed when the method returns. It runs in the legacy default stream, so it waits for earlier work in
/// streams that are not [`NON_BLOCKING`](crate::stream::StreamFlags::NON_BLOCKING).
///
/// # Panics
/// Every method panics if source and destination have different lengths.
pub trait CopyDestination<O: ?Sized>: Sealed {
    /// Copies from `source` to this memory.
    ///
    /// # Errors
    /// An error of the driver.
    fn copy_from(&mut self, source: &O) -> CudaResult<()>;

    /// Copies from this memory to `destination`.
    ///
    /// # Errors
    /// An error of the driver.
    fn copy_to(&self, destination: &mut O) -> CudaResult<()>;
}

/// Device memory that can be copied asynchronously to and from an `O`, in stream order.
///
/// # Panics
/// Every method panics if source and destination have different lengths.
pub trait AsyncCopyDestination<O: ?Sized>: Sealed {
    /// Copies from `source` to this memory.
    ///
    /// # Safety
    /// Until the copy has completed in the stream, `source` is not written, this memory is not accessed, and neither is
    /// freed.
    ///
    /// # Errors
    /// An error of the driver.
    unsafe fn async_copy_from(&mut self, source: &O, stream: &Stream) -> CudaResult<()>;

    /// Copies from this memory to `destination`.
    ///
    /// # Safety
    /// Until the copy has completed in the stream, this memory is not written, `destination` is not accessed, and
    /// neither is freed.
    ///
    /// # Errors
    /// An error of the driver.
    unsafe fn async_copy_to(&self, destination: &mut O, stream: &Stream) -> CudaResult<()>;
}

/// Waits for the legacy default stream. Copies to the device, copies on the device, and fills may still be running when
/// the driver's function returns.
pub(super) fn finish(driver: &Driver) -> CudaResult<()> {
    // SAFETY: null is the legacy default stream.
    unsafe { driver.cuStreamSynchronize(ptr::null_mut())? };
    Ok(())
}

/// Copies to the device.
///
/// # Safety
/// `from` is valid for reads of `bytes` bytes, and `to` is `bytes` bytes of device memory; or `bytes` is 0.
pub(super) unsafe fn to_device(driver: &Driver, to: CUdeviceptr, from: *const c_void, bytes: usize) -> CudaResult<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: as promised by the caller.
    unsafe { driver.cuMemcpyHtoD_v2(to, from, bytes)? };
    finish(driver)
}

/// Copies from the device.
///
/// # Safety
/// `to` is valid for writes of `bytes` bytes, and `from` is `bytes` bytes of device memory; or `bytes` is 0.
pub(super) unsafe fn to_host(driver: &Driver, to: *mut c_void, from: CUdeviceptr, bytes: usize) -> CudaResult<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: as promised by the caller.
    unsafe { driver.cuMemcpyDtoH_v2(to, from, bytes)? };
    // If `to` is managed memory, the copy may be asynchronous.
    finish(driver)
}

/// Copies on the device.
///
/// # Safety
/// `to` and `from` are `bytes` bytes of device memory each, and do not overlap; or `bytes` is 0.
pub(super) unsafe fn on_device(driver: &Driver, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> CudaResult<()> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: as promised by the caller.
    unsafe { driver.cuMemcpyDtoD_v2(to, from, bytes)? };
    finish(driver)
}
