//! Buffers that the host accesses as slices, in page-locked or in managed memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

use cuda_driver::{CU_MEM_ATTACH_GLOBAL, Driver, DriverError};

use super::{DeviceCopy, DeviceMemory, DevicePointer, UnifiedPointer, bytes_of};
use crate::context::{Context, CurrentContext};
use crate::error::{CudaResult, DropResult};

/// A kind of memory that the driver allocates and the host can access.
trait MemoryKind {
    /// Allocates `bytes` bytes, which is not 0.
    fn allocate(driver: &Driver, bytes: usize) -> Result<*mut u8, DriverError>;

    /// Frees memory.
    ///
    /// # Safety
    /// The memory is from `allocate`, and is not used again.
    unsafe fn free(driver: &Driver, memory: *mut u8) -> Result<(), DriverError>;
}

/// Page-locked host memory.
enum Locked {}

impl MemoryKind for Locked {
    fn allocate(driver: &Driver, bytes: usize) -> Result<*mut u8, DriverError> {
        let mut memory = ptr::null_mut();
        // SAFETY: writes the address of new memory.
        unsafe { driver.cuMemAllocHost_v2(&mut memory, bytes)? };
        Ok(memory.cast())
    }

    unsafe fn free(driver: &Driver, memory: *mut u8) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { driver.cuMemFreeHost(memory.cast()) }
    }
}

/// Managed memory.
enum Managed {}

impl MemoryKind for Managed {
    fn allocate(driver: &Driver, bytes: usize) -> Result<*mut u8, DriverError> {
        let mut address = 0;
        // SAFETY: writes the address of new memory.
        unsafe { driver.cuMemAllocManaged(&mut address, bytes, CU_MEM_ATTACH_GLOBAL)? };
        Ok(ptr::with_exposed_provenance_mut(address as usize))
    }

    unsafe fn free(driver: &Driver, memory: *mut u8) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { driver.cuMemFree_v2(memory.addr() as u64) }
    }
}

/// Elements in memory of kind `K`, which are freed when the value is dropped.
struct Elements<T, K: MemoryKind> {
    first: NonNull<T>,
    len: usize,
    /// The context of the allocation; `None` if nothing is allocated, and after the memory is freed.
    context: Option<Context>,
    owned: PhantomData<(T, fn(K))>,
}

// SAFETY: the value owns its elements, and the driver frees memory from any thread.
unsafe impl<T: Send, K: MemoryKind> Send for Elements<T, K> {}
// SAFETY: a shared reference gives access only to a shared slice.
unsafe impl<T: Sync, K: MemoryKind> Sync for Elements<T, K> {}

impl<T: DeviceCopy, K: MemoryKind> Elements<T, K> {
    /// Allocates elements in the current context, uninitialized.
    fn allocate(len: usize) -> CudaResult<Self> {
        let bytes = bytes_of::<T>(len)?;
        let mut elements = Self { first: NonNull::dangling(), len, context: None, owned: PhantomData };
        if bytes > 0 {
            let context = CurrentContext::get_current()?;
            let entered = context.enter()?;
            if let Some(memory) = NonNull::new(K::allocate(entered.driver(), bytes)?) {
                elements.first = memory.cast();
            }
            drop(entered);
            elements.context = Some(context);
        }
        Ok(elements)
    }

    /// Allocates elements in the current context, and writes `value(i)` to each index `i`.
    fn from_fn(len: usize, value: impl Fn(usize) -> T) -> CudaResult<Self> {
        let elements = Self::allocate(len)?;
        for i in 0..len {
            // SAFETY: the element is inside the new memory, which is aligned to 256 bytes, the maximum alignment that
            // `bytes_of` accepts.
            unsafe { elements.first.add(i).write(value(i)) };
        }
        Ok(elements)
    }

    /// Takes ownership of elements in existing memory, which belongs to the current context, if one is current.
    fn from_raw_parts(pointer: *mut T, len: usize) -> Self {
        let first = NonNull::new(pointer);
        let context = first.and_then(|_| CurrentContext::get_current().ok());
        Self { first: first.unwrap_or(NonNull::dangling()), len, context, owned: PhantomData }
    }

    fn free(&mut self) -> CudaResult<()> {
        if let Some(context) = &self.context {
            let entered = context.enter()?;
            // SAFETY: the value owns the memory, which is not used again.
            unsafe { K::free(entered.driver(), self.first.as_ptr().cast())? };
            drop(entered);
            self.context = None;
        }
        (self.first, self.len) = (NonNull::dangling(), 0);
        Ok(())
    }
}

impl<T, K: MemoryKind> Drop for Elements<T, K> {
    fn drop(&mut self) {
        let Some(context) = &self.context else { return };
        if let Ok(entered) = context.enter() {
            // SAFETY: the value owns the memory, which is not used again.
            let _ = unsafe { K::free(entered.driver(), self.first.as_ptr().cast()) };
        }
    }
}

macro_rules! buffers {
    ($($(#[$doc:meta])* $name:ident of $kind:ident;)*) => {
        $(
            $(#[$doc])*
            pub struct $name<T: DeviceCopy> {
                elements: Elements<T, $kind>,
            }

            impl<T: DeviceCopy> $name<T> {
                /// Allocates `len` copies of a value in the current context.
                ///
                /// # Errors
                /// No context is current, or no memory is left.
                pub fn new(value: &T, len: usize) -> CudaResult<Self> {
                    Ok(Self { elements: Elements::from_fn(len, |_| *value)? })
                }

                /// Copies a slice to a new buffer in the current context.
                ///
                /// # Errors
                /// No context is current, or no memory is left.
                pub fn from_slice(slice: &[T]) -> CudaResult<Self> {
                    Ok(Self { elements: Elements::from_fn(slice.len(), |i| slice[i])? })
                }

                /// Allocates `len` elements in the current context, uninitialized.
                ///
                /// # Safety
                /// Each element is written before it is read, and before the buffer is borrowed as a slice.
                ///
                /// # Errors
                /// No context is current, or no memory is left.
                pub unsafe fn uninitialized(len: usize) -> CudaResult<Self> {
                    Ok(Self { elements: Elements::allocate(len)? })
                }

                /// The buffer as a slice.
                pub fn as_slice(&self) -> &[T] {
                    self
                }

                /// The buffer as a mutable slice.
                pub fn as_mut_slice(&mut self) -> &mut [T] {
                    self
                }

                /// Frees the buffer.
                ///
                /// # Errors
                /// An error of the driver, together with the buffer. Often it is the error of an earlier kernel.
                pub fn drop(mut buffer: Self) -> DropResult<Self> {
                    buffer.elements.free().map_err(|error| (error, buffer))
                }
            }

            impl<T: DeviceCopy> Deref for $name<T> {
                type Target = [T];

                fn deref(&self) -> &[T] {
                    // SAFETY: the buffer owns these elements, which are initialized, and is borrowed for the slice's
                    // lifetime.
                    unsafe { slice::from_raw_parts(self.elements.first.as_ptr(), self.elements.len) }
                }
            }

            impl<T: DeviceCopy> DerefMut for $name<T> {
                fn deref_mut(&mut self) -> &mut [T] {
                    // SAFETY: the buffer owns these elements, which are initialized, and is borrowed for the slice's
                    // lifetime.
                    unsafe { slice::from_raw_parts_mut(self.elements.first.as_ptr(), self.elements.len) }
                }
            }

            impl<T: DeviceCopy> AsRef<[T]> for $name<T> {
                fn as_ref(&self) -> &[T] {
                    self
                }
            }

            impl<T: DeviceCopy> AsMut<[T]> for $name<T> {
                fn as_mut(&mut self) -> &mut [T] {
                    self
                }
            }

            impl<T: DeviceCopy + fmt::Debug> fmt::Debug for $name<T> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.as_slice().fmt(f)
                }
            }
        )*
    };
}

buffers! {
    /// A buffer in page-locked host memory. Copies to and from the device are asynchronous only with such memory.
    /// Dropping the buffer frees the memory.
    LockedBuffer of Locked;

    /// A buffer in managed memory, which migrates between host and device as they access it. Dropping the buffer frees
    /// the memory.
    ///
    /// If [`ConcurrentManagedAccess`](crate::device::DeviceAttribute::ConcurrentManagedAccess) is 0 (Windows, and
    /// integrated devices), the host must not access managed memory while any kernel runs. The caller of each launch
    /// has to promise that.
    UnifiedBuffer of Managed;
}

impl<T: DeviceCopy> LockedBuffer<T> {
    /// Takes ownership of the `len` elements at an address. They belong to the current context, if one is current.
    /// Otherwise they are never freed.
    ///
    /// # Safety
    /// At the address are `len` initialized elements of page-locked memory. They are a whole allocation of the driver,
    /// and no other code frees them.
    pub unsafe fn from_raw_parts(pointer: *mut T, len: usize) -> Self {
        Self { elements: Elements::from_raw_parts(pointer, len) }
    }
}

impl<T: DeviceCopy> UnifiedBuffer<T> {
    /// Takes ownership of the `len` elements at an address. They belong to the current context, if one is current.
    /// Otherwise they are never freed.
    ///
    /// # Safety
    /// At the address are `len` initialized elements of managed memory. They are a whole allocation of the driver, and
    /// no other code frees them.
    pub unsafe fn from_raw_parts(pointer: UnifiedPointer<T>, len: usize) -> Self {
        Self { elements: Elements::from_raw_parts(pointer.as_raw().cast_mut(), len) }
    }

    /// The buffer's address, for a kernel or the host; null if the buffer has no bytes.
    pub fn as_unified_ptr(&mut self) -> UnifiedPointer<T> {
        let pointer = if self.elements.context.is_some() { self.elements.first.as_ptr() } else { ptr::null_mut() };
        // SAFETY: the pointer is to managed memory, or null.
        unsafe { UnifiedPointer::wrap(pointer) }
    }

    /// The buffer's address, for a kernel; null if the buffer has no bytes.
    pub fn as_device_ptr(&self) -> DevicePointer<T> {
        match self.elements.context {
            Some(_) => DevicePointer::from_raw(self.elements.first.addr().get() as u64),
            None => DevicePointer::null(),
        }
    }
}

impl<T: DeviceCopy> DeviceMemory for UnifiedBuffer<T> {
    fn as_raw_ptr(&self) -> u64 {
        self.as_device_ptr().as_raw()
    }

    fn size_in_bytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}
