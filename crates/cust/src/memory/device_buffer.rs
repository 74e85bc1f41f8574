//! Buffers of device memory.

use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::copy::{AsyncCopyDestination, CopyDestination};
use super::{DeviceCopy, DevicePointer, DeviceSlice, bytes_of};
use crate::context::{Context, CurrentContext};
use crate::driver;
use crate::error::{CudaResult, DropResult};
use crate::private::Sealed;
use crate::stream::Stream;

/// A buffer of device memory, of a fixed length. Dropping the buffer frees the memory.
pub struct DeviceBuffer<T: DeviceCopy> {
    /// Null if nothing is allocated, and after the memory is freed.
    pointer: DevicePointer<T>,
    len: usize,
    /// The context of the allocation, if it is known.
    context: Option<Context>,
    owned: PhantomData<T>,
}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// Allocates `len` elements in the current context, uninitialized.
    ///
    /// # Safety
    /// A kernel or a copy writes each element before it is read.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub unsafe fn uninitialized(len: usize) -> CudaResult<Self> {
        let bytes = bytes_of::<T>(len)?;
        if bytes == 0 {
            return Ok(Self { pointer: DevicePointer::null(), len, context: None, owned: PhantomData });
        }
        let context = CurrentContext::get_current()?;
        let mut address = 0;
        let entered = context.enter()?;
        // SAFETY: writes the address of new memory, which is freed with the value.
        unsafe { entered.driver().cuMemAlloc_v2(&mut address, bytes)? };
        drop(entered);
        Ok(Self { pointer: DevicePointer::from_raw(address), len, context: Some(context), owned: PhantomData })
    }

    /// Allocates `len` elements in stream order, uninitialized, in the stream's context.
    ///
    /// # Safety
    /// Each element is written before it is read. Until the allocation has completed in the stream, the memory is
    /// accessed only in that stream.
    ///
    /// # Errors
    /// No memory is left, or the device cannot allocate in stream order.
    pub unsafe fn uninitialized_async(len: usize, stream: &Stream) -> CudaResult<Self> {
        let bytes = bytes_of::<T>(len)?;
        let context = stream.context();
        let mut buffer = Self { pointer: DevicePointer::null(), len, context: None, owned: PhantomData };
        if bytes > 0 {
            let mut address = 0;
            let entered = context.enter()?;
            // SAFETY: writes the address of new memory, which is freed with the value.
            unsafe { entered.driver().cuMemAllocAsync(&mut address, bytes, stream.as_inner())? };
            buffer.pointer = DevicePointer::from_raw(address);
            buffer.context = Some(context.clone());
        }
        Ok(buffer)
    }

    /// Copies a slice to a new buffer in the current context.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        // SAFETY: the elements are written below. If that fails, no code reads them.
        let buffer = unsafe { Self::uninitialized(slice.len())? };
        let bytes = buffer.bytes();
        if bytes > 0 {
            let to = buffer.pointer.as_raw();
            let entered = buffer.entered()?;
            // SAFETY: both have that many bytes.
            unsafe { super::copy::to_device(driver()?, to, slice.as_ptr().cast(), bytes)? };
            drop(entered);
        }
        Ok(buffer)
    }

    /// Copies a slice to a new buffer, in stream order.
    ///
    /// # Safety
    /// Until the copy has completed in the stream, the slice is neither written nor freed, and the buffer is accessed
    /// only in that stream.
    ///
    /// # Errors
    /// No memory is left, or the device cannot allocate in stream order.
    pub unsafe fn from_slice_async(slice: &[T], stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written below, in the stream.
        let buffer = unsafe { Self::uninitialized_async(slice.len(), stream)? };
        let (to, from, bytes) = (buffer.pointer.as_raw(), slice.as_ptr().cast(), buffer.bytes());
        if bytes > 0 {
            let entered = stream.context().enter()?;
            // SAFETY: both have that many bytes; the rest is promised by the caller.
            unsafe { entered.driver().cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_inner())? };
        }
        Ok(buffer)
    }

    /// Takes ownership of the `len` elements at an address. They belong to the current context, if one is current.
    ///
    /// # Safety
    /// At the address are `len` initialized elements of device memory. They are a whole allocation of the driver, and
    /// no other code frees them. If no context is current, the allocation's context is current on the thread that drops
    /// the buffer.
    pub unsafe fn from_raw_parts(pointer: DevicePointer<T>, len: usize) -> Self {
        Self { pointer, len, context: CurrentContext::get_current().ok(), owned: PhantomData }
    }

    /// The buffer as a slice.
    pub fn as_slice(&self) -> &DeviceSlice<T> {
        self
    }

    /// The buffer as a mutable slice.
    pub fn as_mut_slice(&mut self) -> &mut DeviceSlice<T> {
        self
    }

    /// Copies the elements to the host.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn as_host_vec(&self) -> CudaResult<Vec<T>> {
        let _entered = self.entered()?;
        self.as_slice().as_host_vec()
    }

    /// Enters the buffer's context, if it is known.
    fn entered(&self) -> CudaResult<Option<crate::context::Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Frees the buffer in stream order.
    ///
    /// # Errors
    /// The buffer was not allocated in stream order, or an error of the driver. The memory is then freed as by `drop`.
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        let mut buffer = ManuallyDrop::new(self);
        if !buffer.pointer.is_null() {
            let entered = stream.context().enter()?;
            // SAFETY: nothing uses the memory later, because this function owns the buffer.
            let freed = unsafe { entered.driver().cuMemFreeAsync(buffer.pointer.as_raw(), stream.as_inner()) };
            if let Err(error) = freed {
                drop(ManuallyDrop::into_inner(buffer));
                return Err(error.into());
            }
            buffer.pointer = DevicePointer::null();
        }
        drop(ManuallyDrop::into_inner(buffer));
        Ok(())
    }

    /// Frees the buffer.
    ///
    /// # Errors
    /// An error of the driver, together with the buffer. Often it is the error of an earlier kernel.
    pub fn drop(mut buffer: Self) -> DropResult<Self> {
        buffer.free().map_err(|error| (error, buffer))
    }

    fn free(&mut self) -> CudaResult<()> {
        if self.pointer.is_null() {
            return Ok(());
        }
        let entered = self.entered()?;
        // SAFETY: the buffer owns the memory, which is not used again. The driver waits for work that uses it.
        unsafe { driver()?.cuMemFree_v2(self.pointer.as_raw())? };
        drop(entered);
        self.pointer = DevicePointer::null();
        Ok(())
    }
}

#[cfg(feature = "bytemuck")]
impl<T: DeviceCopy + bytemuck::Zeroable> DeviceBuffer<T> {
    /// Allocates `len` elements in the current context, with all bytes zero.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn zeroed(len: usize) -> CudaResult<Self> {
        // SAFETY: the elements are written below. If that fails, no code reads them.
        let mut buffer = unsafe { Self::uninitialized(len)? };
        buffer.set_zero()?;
        Ok(buffer)
    }

    /// Allocates `len` elements with all bytes zero, in stream order.
    ///
    /// # Safety
    /// Until the fill has completed in the stream, the buffer is accessed only in that stream.
    ///
    /// # Errors
    /// No memory is left, or the device cannot allocate in stream order.
    pub unsafe fn zeroed_async(len: usize, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written below, in the stream; the rest is promised by the caller.
        unsafe {
            let mut buffer = Self::uninitialized_async(len, stream)?;
            buffer.set_zero_async(stream)?;
            Ok(buffer)
        }
    }
}

impl<T: DeviceCopy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        let _ = self.free();
    }
}

impl<T: DeviceCopy> Deref for DeviceBuffer<T> {
    type Target = DeviceSlice<T>;

    fn deref(&self) -> &DeviceSlice<T> {
        // SAFETY: the buffer owns these elements, and is borrowed for the slice's lifetime.
        unsafe { DeviceSlice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for DeviceBuffer<T> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        // SAFETY: the buffer owns these elements, and is borrowed for the slice's lifetime.
        unsafe { DeviceSlice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T: DeviceCopy> Borrow<DeviceSlice<T>> for DeviceBuffer<T> {
    fn borrow(&self) -> &DeviceSlice<T> {
        self
    }
}

impl<T: DeviceCopy> BorrowMut<DeviceSlice<T>> for DeviceBuffer<T> {
    fn borrow_mut(&mut self) -> &mut DeviceSlice<T> {
        self
    }
}

impl<T: DeviceCopy> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({:p}, {} elements)", self.pointer, self.len)
    }
}

impl<T: DeviceCopy> Sealed for DeviceBuffer<T> {}

impl<T: DeviceCopy, O: ?Sized> CopyDestination<O> for DeviceBuffer<T>
where
    DeviceSlice<T>: CopyDestination<O>,
{
    fn copy_from(&mut self, source: &O) -> CudaResult<()> {
        let context = self.context.clone();
        let _entered = context.as_ref().map(Context::enter).transpose()?;
        self.as_mut_slice().copy_from(source)
    }

    fn copy_to(&self, destination: &mut O) -> CudaResult<()> {
        let _entered = self.entered()?;
        self.as_slice().copy_to(destination)
    }
}

impl<T: DeviceCopy, O: ?Sized> AsyncCopyDestination<O> for DeviceBuffer<T>
where
    DeviceSlice<T>: AsyncCopyDestination<O>,
{
    unsafe fn async_copy_from(&mut self, source: &O, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.as_mut_slice().async_copy_from(source, stream) }
    }

    unsafe fn async_copy_to(&self, destination: &mut O, stream: &Stream) -> CudaResult<()> {
        // SAFETY: as promised by the caller.
        unsafe { self.as_slice().async_copy_to(destination, stream) }
    }
}
