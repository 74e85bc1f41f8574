//! Global memory: ordinary, volatile and 16-byte accesses.

use core::arch::asm;
use core::mem::{size_of, transmute_copy};

use crate::element::Plain;

/// Reads global memory.
///
/// # Safety
/// `place` is valid for a read of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn load<T: Plain>(place: *const T) -> T {
    if size_of::<T>() == 16 {
        // LLVM would take an ordinary 16-byte load apart as soon as an unaligned path reads the same elements.
        let (a, b, c, d): (u32, u32, u32, u32);
        // SAFETY: as promised by the caller; any bits are a `T` (it is `Plain`).
        unsafe {
            asm!(
                "{{",
                ".reg .b64 global;",
                "cvta.to.global.u64 global, {place};",
                "ld.global.v4.b32 {{{a}, {b}, {c}, {d}}}, [global];",
                "}}",
                a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, place = in(reg64) place,
                options(pure, readonly, nostack, preserves_flags)
            );
            return transmute_copy(&[a, b, c, d]);
        }
    }
    // SAFETY: as promised by the caller.
    unsafe { place.read() }
}

/// Writes global memory.
///
/// # Safety
/// `place` is valid for a write of `T` on this device, and aligned.
#[inline(always)]
pub(crate) unsafe fn store<T: Plain>(place: *mut T, value: T) {
    if size_of::<T>() == 16 {
        // SAFETY: as promised by the caller.
        unsafe {
            let [a, b, c, d]: [u32; 4] = transmute_copy(&value);
            asm!(
                "{{",
                ".reg .b64 global;",
                "cvta.to.global.u64 global, {place};",
                "st.global.v4.b32 [global], {{{a}, {b}, {c}, {d}}};",
                "}}",
                a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d, place = in(reg64) place,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: as promised by the caller.
    unsafe { place.write(value) }
}

/// Reads global memory past what compiler and L1 remember of it.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub(crate) unsafe fn load_volatile<T: Plain>(place: *const T) -> T {
    // SAFETY: as promised by the caller.
    unsafe { place.read_volatile() }
}

/// Writes global memory at once.
///
/// # Safety
/// As [`store`].
#[inline(always)]
pub(crate) unsafe fn store_volatile<T: Plain>(place: *mut T, value: T) {
    // SAFETY: as promised by the caller.
    unsafe { place.write_volatile(value) }
}
