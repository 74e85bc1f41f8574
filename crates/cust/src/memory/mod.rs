//! Device memory, page-locked host memory, and managed memory, which both access.
//!
//! | type | memory | how the host accesses it |
//! |---|---|---|
//! | [`DeviceBuffer`], [`DeviceBox`] | device | by [`CopyDestination`] |
//! | [`UnifiedBuffer`] | managed: migrates between host and device | as a slice |
//! | [`LockedBuffer`] | host, page-locked, for asynchronous copies | as a slice |
//!
//! A buffer without elements, or with elements of size 0, allocates nothing.

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

/// Derives [`DeviceCopy`](trait@DeviceCopy) for a type whose fields all implement it.
pub use cust_derive::DeviceCopy;

#[cfg(feature = "bytemuck")]
pub use bytemuck;

use cuda_driver::CUdeviceptr;

use crate::driver;
use crate::error::{CudaError, CudaResult};

/// The minimum alignment of the driver's allocations.
const ALIGNMENT: usize = 256;

/// Memory that kernels can access.
pub trait DeviceMemory {
    /// The address of the memory.
    fn as_raw_ptr(&self) -> CUdeviceptr;

    /// The size of the memory in bytes.
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

/// The free and the total memory of the current context's device, in bytes.
///
/// # Errors
/// No context is current.
pub fn mem_get_info() -> CudaResult<(usize, usize)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: writes two sizes.
    unsafe { driver()?.cuMemGetInfo_v2(&mut free, &mut total)? };
    Ok((free, total))
}

/// The size of `count` elements in bytes, or an error if it, or their alignment, is too large.
fn bytes_of<T>(count: usize) -> CudaResult<usize> {
    let bytes = size_of::<T>().checked_mul(count).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.filter(|_| align_of::<T>() <= ALIGNMENT).ok_or(CudaError::InvalidMemoryAllocation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_large_sizes_and_alignments_are_errors() {
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
