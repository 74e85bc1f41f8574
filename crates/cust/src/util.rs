//! Copies of values and slices of the host to the device, in one call.

use crate::error::CudaResult;
use crate::memory::{DeviceBox, DeviceBuffer, DeviceCopy, UnifiedBuffer};

/// Copies of a value.
pub trait DeviceCopyExt: DeviceCopy {
    /// A copy in device memory.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    fn as_dbox(&self) -> CudaResult<DeviceBox<Self>> {
        DeviceBox::new(self)
    }
}

impl<T: DeviceCopy> DeviceCopyExt for T {}

/// Copies of a slice.
pub trait SliceExt<T: DeviceCopy> {
    /// A copy in device memory.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>>;

    /// A copy in managed memory.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>>;
}

impl<T: DeviceCopy> SliceExt<T> for &[T] {
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>> {
        DeviceBuffer::from_slice(self)
    }

    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>> {
        UnifiedBuffer::from_slice(self)
    }
}

impl<T: DeviceCopy, const N: usize> SliceExt<T> for [T; N] {
    fn as_dbuf(&self) -> CudaResult<DeviceBuffer<T>> {
        DeviceBuffer::from_slice(self)
    }

    fn as_unified_buf(&self) -> CudaResult<UnifiedBuffer<T>> {
        UnifiedBuffer::from_slice(self)
    }
}
