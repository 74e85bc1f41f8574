//! One value in device memory.

use std::fmt;
use std::mem::ManuallyDrop;

use super::copy::{AsyncCopyDestination, CopyDestination};
use super::{DeviceBuffer, DeviceCopy, DevicePointer};
use crate::error::{CudaResult, DropResult};
use crate::private::Sealed;
use crate::stream::Stream;

/// One value in device memory. Dropping the box frees the memory.
pub struct DeviceBox<T: DeviceCopy> {
    /// A buffer of one element.
    buffer: DeviceBuffer<T>,
}

impl<T: DeviceCopy> DeviceBox<T> {
    /// Copies a value to new memory in the current context.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn new(value: &T) -> CudaResult<Self> {
        Ok(Self { buffer: DeviceBuffer::from_slice(std::slice::from_ref(value))? })
    }

    /// Copies a value to new memory, in stream order.
    ///
    /// # Safety
    /// Until the copy has completed in the stream, the value is neither written nor freed, and the box is accessed only
    /// in that stream.
    ///
    /// # Errors
    /// No memory is left, or the device cannot allocate in stream order.
    pub unsafe fn new_async(value: &T, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: as promised by the caller.
        Ok(Self { buffer: unsafe { DeviceBuffer::from_slice_async(std::slice::from_ref(value), stream)? } })
    }

    /// Allocates memory for a value in the current context, uninitialized.
    ///
    /// # Safety
    /// The value is written before it is read.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub unsafe fn uninitialized() -> CudaResult<Self> {
        // SAFETY: as promised by the caller.
        Ok(Self { buffer: unsafe { DeviceBuffer::uninitialized(1)? } })
    }

    /// Takes ownership of the value at an address.
    ///
    /// # Safety
    /// As for [`DeviceBuffer::from_raw_parts`], with one element.
    pub unsafe fn from_device(pointer: DevicePointer<T>) -> Self {
        // SAFETY: as promised by the caller.
        Self { buffer: unsafe { DeviceBuffer::from_raw_parts(pointer, 1) } }
    }

    /// Gives up ownership of the value, and returns its address, for [`DeviceBox::from_device`]. The box no longer
    /// frees the memory or keeps its context alive.
    pub fn into_device(value: Self) -> DevicePointer<T> {
        ManuallyDrop::new(value).as_device_ptr()
    }

    /// Copies the value to the host.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn as_host_value(&self) -> CudaResult<T> {
        Ok(self.buffer.as_host_vec()?[0])
    }

    /// The address of the value; null for a type of size 0.
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        self.buffer.as_device_ptr()
    }

    /// Frees the value in stream order.
    ///
    /// # Errors
    /// As for [`DeviceBuffer::drop_async`].
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        self.buffer.drop_async(stream)
    }

    /// Frees the value.
    ///
    /// # Errors
    /// An error of the driver, together with the box.
    pub fn drop(value: Self) -> DropResult<Self> {
        DeviceBuffer::drop(value.buffer).map_err(|(error, buffer)| (error, Self { buffer }))
    }
}

#[cfg(feature = "bytemuck")]
impl<T: DeviceCopy + bytemuck::Zeroable> DeviceBox<T> {
    /// Allocates a value in the current context, with all bytes zero.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn zeroed() -> CudaResult<Self> {
        Ok(Self { buffer: DeviceBuffer::zeroed(1)? })
    }
}

impl<T: DeviceCopy> fmt::Debug for DeviceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBox({:p})", self.as_device_ptr())
    }
}

impl<T: DeviceCopy> fmt::Pointer for DeviceBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.as_device_ptr(), f)
    }
}

impl<T: DeviceCopy> Sealed for DeviceBox<T> {}

impl<T: DeviceCopy> CopyDestination<T> for DeviceBox<T> {
    fn copy_from(&mut self, source: &T) -> CudaResult<()> {
        // An array, because the source must be `AsMut`, too.
        self.buffer.copy_from(&[*source])
    }

    fn copy_to(&self, destination: &mut T) -> CudaResult<()> {
        *destination = self.as_host_value()?;
        Ok(())
    }
}

impl<T: DeviceCopy> CopyDestination<Self> for DeviceBox<T> {
    fn copy_from(&mut self, source: &Self) -> CudaResult<()> {
        self.buffer.copy_from(source.buffer.as_slice())
    }

    fn copy_to(&self, destination: &mut Self) -> CudaResult<()> {
        destination.copy_from(self)
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<T> for DeviceBox<T> {
    unsafe fn async_copy_from(&mut self, source: &T, stream: &Stream) -> CudaResult<()> {
        let (to, bytes) = (self.as_device_ptr().as_raw(), size_of::<T>());
        if bytes == 0 {
            return Ok(());
        }
        let entered = stream.context().enter()?;
        let from = std::ptr::from_ref(source).cast();
        // SAFETY: both have that many bytes; the rest is promised by the caller.
        unsafe { entered.driver().cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_inner())? };
        Ok(())
    }

    unsafe fn async_copy_to(&self, destination: &mut T, stream: &Stream) -> CudaResult<()> {
        let (from, bytes) = (self.as_device_ptr().as_raw(), size_of::<T>());
        if bytes == 0 {
            return Ok(());
        }
        let entered = stream.context().enter()?;
        let to = std::ptr::from_mut(destination).cast();
        // SAFETY: both have that many bytes; the rest is promised by the caller.
        unsafe { entered.driver().cuMemcpyDtoHAsync_v2(to, from, bytes, stream.as_inner())? };
        Ok(())
    }
}

impl<T: DeviceCopy> AsyncCopyDestination<Self> for DeviceBox<T> {
    unsafe fn async_copy_from(&mut self, source: &Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.buffer.async_copy_from(source.buffer.as_slice(), stream) }
    }

    unsafe fn async_copy_to(&self, destination: &mut Self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { destination.async_copy_from(self, stream) }
    }
}
