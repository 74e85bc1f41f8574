//! Memory: of the device, of the host, and managed memory that both use.
//!
//! | type | where it is | the host accesses it |
//! |---|---|---|
//! | [`DeviceBuffer`], [`DeviceBox`] | device | by [`CopyDestination`] |
//! | [`UnifiedBuffer`] | managed by the driver | as a slice |
//! | [`LockedBuffer`] | host, page-locked: asynchronous copies need it | as a slice |
//!
//! A buffer of no elements, or of elements without a size, allocates nothing.

mod copy;
mod device_box;
mod device_buffer;
mod device_copy;
mod device_slice;
mod host;
mod pointer;

pub use copy::{AsyncCopyDestination, CopyDestination};
pub use device_box::DeviceBox;
pub use device_buffer::DeviceBuffer;
pub use device_copy::DeviceCopy;
pub use device_slice::{DeviceSlice, DeviceSliceIndex};
pub use host::{LockedBuffer, UnifiedBuffer};
pub use pointer::{DevicePointer, UnifiedPointer};

/// The derive macro.
pub use cust_derive::DeviceCopy;

#[cfg(feature = "bytemuck")]
pub use bytemuck;

use cuda_driver::CUdeviceptr;

use crate::driver;
use crate::error::{CudaError, CudaResult};

/// How the driver aligns what it allocates, at least.
const ALIGNMENT: usize = 256;

/// Memory that kernels can access.
pub trait DeviceMemory {
    /// Its address.
    fn as_raw_ptr(&self) -> CUdeviceptr;

    /// Its bytes.
    fn size_in_bytes(&self) -> usize;
}

impl<T: DeviceCopy> DeviceMemory for DeviceBox<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        size_of::<T>()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceSlice<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        self.bytes()
    }
}

impl<T: DeviceCopy> DeviceMemory for DeviceBuffer<T> {
    fn as_raw_ptr(&self) -> CUdeviceptr {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        self.bytes()
    }
}

/// Bytes of memory that are free on the current context's device, and all of its bytes.
///
/// # Errors
/// No context is current.
pub fn mem_get_info() -> CudaResult<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: writes two sizes.
    unsafe { driver()?.cuMemGetInfo_v2(&mut free, &mut total)? };
    Ok((free, total))
}

/// The bytes of `count` elements, if memory for them can be allocated.
fn bytes_of<T>(count: usize) -> CudaResult<usize> {
    let bytes = size_of::<T>().checked_mul(count).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.filter(|_| align_of::<T>() <= ALIGNMENT).ok_or(CudaError::InvalidMemoryAllocation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_memory_has_are_errors() {
        #[derive(Clone, Copy)]
        #[repr(align(512))]
        struct Wide(#[allow(dead_code)] u8);

        assert_eq!(bytes_of::<u32>(3), Ok(12));
        assert_eq!(bytes_of::<()>(usize::MAX), Ok(0));
        for too_large in [bytes_of::<u32>(usize::MAX), bytes_of::<u8>(usize::MAX), bytes_of::<Wide>(1)] {
            assert_eq!(too_large, Err(CudaError::InvalidMemoryAllocation));
        }
    }
}
