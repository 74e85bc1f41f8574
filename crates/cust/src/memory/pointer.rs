//! Typed addresses of device memory and of managed memory.

use std::fmt;
use std::marker::PhantomData;

use cuda_driver::CUdeviceptr;

use super::DeviceCopy;

/// An address in device memory. The host cannot access the memory; kernels take the address as a pointer.
#[repr(transparent)]
pub struct DevicePointer<T: ?Sized> {
    address: CUdeviceptr,
    /// A function pointer, so that the type is `Send` and `Sync` for every `T`.
    pointee: PhantomData<fn() -> Box<T>>,
}

// SAFETY: plain bits, an address that devices can access.
unsafe impl<T: ?Sized> DeviceCopy for DevicePointer<T> {}

impl<T: ?Sized> Clone for DevicePointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for DevicePointer<T> {}

impl<T: ?Sized> PartialEq for DevicePointer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T: ?Sized> Eq for DevicePointer<T> {}

impl<T: ?Sized> fmt::Debug for DevicePointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePointer({:#x})", self.address)
    }
}

impl<T: ?Sized> fmt::Pointer for DevicePointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

impl<T> DevicePointer<T> {
    /// Makes a pointer from an address.
    pub const fn from_raw(address: CUdeviceptr) -> Self {
        Self { address, pointee: PhantomData }
    }

    /// The address.
    pub const fn as_raw(&self) -> CUdeviceptr {
        self.address
    }

    /// The address as a pointer, through which the host must not read.
    pub fn as_ptr(&self) -> *const T {
        std::ptr::without_provenance(self.address as usize)
    }

    /// The address as a pointer, through which the host must not access memory.
    pub fn as_mut_ptr(&self) -> *mut T {
        std::ptr::without_provenance_mut(self.address as usize)
    }

    /// The null address.
    pub const fn null() -> Self {
        Self::from_raw(0)
    }

    /// Whether the address is null.
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// The address `count` elements away.
    ///
    /// # Safety
    /// The result is in the same allocation, or at its end.
    pub const unsafe fn offset(self, count: isize) -> Self {
        self.wrapping_offset(count)
    }

    /// The address `count` elements later.
    ///
    /// # Safety
    /// The result is in the same allocation, or at its end.
    pub const unsafe fn add(self, count: usize) -> Self {
        self.wrapping_add(count)
    }

    /// The address `count` elements earlier.
    ///
    /// # Safety
    /// The result is in the same allocation.
    pub const unsafe fn sub(self, count: usize) -> Self {
        self.wrapping_sub(count)
    }

    /// The address `count` elements away, in any allocation or none.
    pub const fn wrapping_offset(self, count: isize) -> Self {
        Self::from_raw(self.address.wrapping_add_signed((count as i64).wrapping_mul(size_of::<T>() as i64)))
    }

    /// The address `count` elements later, in any allocation or none.
    pub const fn wrapping_add(self, count: usize) -> Self {
        self.wrapping_offset(count as isize)
    }

    /// The address `count` elements earlier, in any allocation or none.
    pub const fn wrapping_sub(self, count: usize) -> Self {
        self.wrapping_offset((count as isize).wrapping_neg())
    }

    /// The same address, for elements of another type.
    pub const fn cast<U>(self) -> DevicePointer<U> {
        DevicePointer::from_raw(self.address)
    }
}

/// An address in managed memory: a pointer on the host and an address for kernels.
#[repr(transparent)]
#[derive(Debug)]
pub struct UnifiedPointer<T>(*mut T);

// SAFETY: plain bits, an address that devices can access.
unsafe impl<T> DeviceCopy for UnifiedPointer<T> {}
// SAFETY: an address. Accesses through it are unsafe, and the responsibility of their code.
unsafe impl<T> Send for UnifiedPointer<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for UnifiedPointer<T> {}

impl<T> Clone for UnifiedPointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for UnifiedPointer<T> {}

impl<T> PartialEq for UnifiedPointer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for UnifiedPointer<T> {}

impl<T> UnifiedPointer<T> {
    /// Wraps a pointer.
    ///
    /// # Safety
    /// The pointer points to managed memory, or is null.
    pub const unsafe fn wrap(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// The pointer as a `*const T`.
    pub const fn as_raw(self) -> *const T {
        self.0
    }

    /// The pointer as a `*mut T`.
    pub const fn as_raw_mut(&mut self) -> *mut T {
        self.0
    }

    /// The null address.
    pub const fn null() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Whether the address is null.
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_in_elements() {
        let pointer = DevicePointer::<u32>::from_raw(0x1000);
        assert_eq!(pointer.wrapping_add(3).as_raw(), 0x100c);
        assert_eq!(pointer.wrapping_sub(1).as_raw(), 0xffc);
        assert_eq!(pointer.wrapping_offset(-2).as_raw(), 0xff8);
        assert_eq!(pointer.cast::<u8>().wrapping_add(3).as_raw(), 0x1003);
        assert_eq!(format!("{pointer:p}"), "0x1000");
        assert!(DevicePointer::<u32>::null().is_null() && !pointer.is_null());
    }

    #[test]
    fn a_pointer_has_8_bytes() {
        assert_eq!((size_of::<DevicePointer<u8>>(), size_of::<UnifiedPointer<u8>>()), (8, 8));
    }
}
