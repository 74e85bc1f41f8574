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

/// A buffer of device memory of a fixed length. It is freed when it is dropped.
pub struct DeviceBuffer<T: DeviceCopy> {
    /// Null where nothing is allocated, and once it is freed.
    pointer: DevicePointer<T>,
    len: usize,
    /// Where it is allocated, if that is known.
    context: Option<Context>,
    owned: PhantomData<T>,
}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// A buffer of `len` elements in the current context, uninitialized.
    ///
    /// # Safety
    /// The elements are written before they are read, by a kernel or by a copy.
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

    /// A buffer of `len` elements in the stream's context, uninitialized and allocated in the order of the stream.
    ///
    /// # Safety
    /// The elements are written before they are read. The memory is accessed in that stream, or after the stream has
    /// come to the allocation.
    ///
    /// # Errors
    /// No memory is left, or the device cannot do so.
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

    /// A copy of a slice, in the current context.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
        // SAFETY: the elements are written here; if that fails, nobody reads them.
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

    /// A copy of a slice, allocated and copied in the order of a stream.
    ///
    /// # Safety
    /// The slice is not written, and not freed, until the stream has come to the copy's end. Before that, the buffer is
    /// accessed in that stream only.
    ///
    /// # Errors
    /// No memory is left, or the device cannot do so.
    pub unsafe fn from_slice_async(slice: &[T], stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written here, in the stream.
        let buffer = unsafe { Self::uninitialized_async(slice.len(), stream)? };
        let (to, from, bytes) = (buffer.pointer.as_raw(), slice.as_ptr().cast(), buffer.bytes());
        if bytes > 0 {
            let entered = stream.context().enter()?;
            // SAFETY: both have that many bytes; the rest is promised by the caller.
            unsafe { entered.driver().cuMemcpyHtoDAsync_v2(to, from, bytes, stream.as_inner())? };
        }
        Ok(buffer)
    }

    /// The buffer of `len` elements at an address, in the current context if there is one.
    ///
    /// # Safety
    /// It is that many initialized elements of device memory, a whole allocation of the driver's, and nobody else frees
    /// it. Without a current context, the thread that drops the buffer has the right one current.
    pub unsafe fn from_raw_parts(pointer: DevicePointer<T>, len: usize) -> Self {
        Self { pointer, len, context: CurrentContext::get_current().ok(), owned: PhantomData }
    }

    /// The buffer as a slice.
    pub fn as_slice(&self) -> &DeviceSlice<T> {
        self
    }

    /// The buffer as a slice.
    pub fn as_mut_slice(&mut self) -> &mut DeviceSlice<T> {
        self
    }

    /// A copy on the host.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn as_host_vec(&self) -> CudaResult<Vec<T>> {
        let _entered = self.entered()?;
        self.as_slice().as_host_vec()
    }

    /// Its context, entered, if it is known.
    fn entered(&self) -> CudaResult<Option<crate::context::Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    /// Frees it in the order of a stream.
    ///
    /// # Errors
    /// The buffer was not allocated in the order of a stream, or an error of the driver. The memory is then freed as by
    /// a `drop`.
    pub fn drop_async(self, stream: &Stream) -> CudaResult<()> {
        let mut buffer = ManuallyDrop::new(self);
        if !buffer.pointer.is_null() {
            let entered = stream.context().enter()?;
            // SAFETY: nothing uses it later in the stream, as the buffer is taken.
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

    /// Frees it.
    ///
    /// # Errors
    /// An error of the driver, with the buffer: often that of a kernel before.
    pub fn drop(mut buffer: Self) -> DropResult<Self> {
        buffer.free().map_err(|error| (error, buffer))
    }

    fn free(&mut self) -> CudaResult<()> {
        if self.pointer.is_null() {
            return Ok(());
        }
        let entered = self.entered()?;
        // SAFETY: it is the buffer's own, and is not used again. The driver waits for work that uses it.
        unsafe { driver()?.cuMemFree_v2(self.pointer.as_raw())? };
        drop(entered);
        self.pointer = DevicePointer::null();
        Ok(())
    }
}

#[cfg(feature = "bytemuck")]
impl<T: DeviceCopy + bytemuck::Zeroable> DeviceBuffer<T> {
    /// A buffer of `len` elements of zero bytes, in the current context.
    ///
    /// # Errors
    /// No context is current, or no memory is left.
    pub fn zeroed(len: usize) -> CudaResult<Self> {
        // SAFETY: the elements are written here; if that fails, nobody reads them.
        let mut buffer = unsafe { Self::uninitialized(len)? };
        buffer.set_zero()?;
        Ok(buffer)
    }

    /// A buffer of `len` elements of zero bytes, allocated and filled in the order of a stream.
    ///
    /// # Safety
    /// Until the stream has come to the fill's end, the buffer is accessed in that stream only.
    ///
    /// # Errors
    /// No memory is left, or the device cannot do so.
    pub unsafe fn zeroed_async(len: usize, stream: &Stream) -> CudaResult<Self> {
        // SAFETY: the elements are written here, in the stream; the rest is promised by the caller.
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
        // SAFETY: the buffer's own elements, borrowed as the buffer is.
        unsafe { DeviceSlice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for DeviceBuffer<T> {
    fn deref_mut(&mut self) -> &mut DeviceSlice<T> {
        // SAFETY: the buffer's own elements, borrowed as the buffer is.
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
