//! Shared memory: declarations, and accesses by 32-bit shared addresses.

use core::arch::asm;
use core::mem::{size_of, transmute_copy};

use super::{SourceLocation, trap};
use crate::element::Plain;

/// A shared-memory address: an offset in the block's window.
pub(crate) type SharedAddress = u32;

/// Declares static shared memory for `LEN` elements, 16-byte aligned, and returns its address.
///
/// The declaration has function scope, without braces: if LLVM duplicated this assembly, `ptxas` would refuse the
/// second declaration of the name, and never make a second array.
#[inline(always)]
pub(crate) fn shared_declare<T, const LEN: usize, const ID: u64>() -> SharedAddress {
    let address: u32;
    // SAFETY: declares memory of this block and takes its address.
    unsafe {
        asm!(
            ".shared .align 16 .b8 shared_{id}[{bytes}];",
            "mov.u32 {address}, shared_{id};",
            id = const ID,
            bytes = const LEN * size_of::<T>(),
            address = out(reg32) address,
            options(nomem, nostack, preserves_flags),
        );
    }
    address
}

/// [`shared_declare`] for rows of `COLUMNS + PAD` elements: stable Rust cannot compute a length from const generics,
/// the assembler can.
#[inline(always)]
pub(crate) fn shared_declare_tile<T, const ROWS: usize, const COLUMNS: usize, const PAD: usize, const ID: u64>()
-> SharedAddress {
    let address: u32;
    // SAFETY: declares memory of this block and takes its address.
    unsafe {
        asm!(
            ".shared .align 16 .b8 shared_{id}[{bytes}];",
            "mov.u32 {address}, shared_{id};",
            id = const ID,
            bytes = const ROWS * (COLUMNS + PAD) * size_of::<T>(),
            address = out(reg32) address,
            options(nomem, nostack, preserves_flags),
        );
    }
    address
}

/// The address of the static array `ID`, which has the size of an `A` and is 16-byte aligned.
///
/// This code may occur many times in a kernel, so it cannot declare the array. `cuda_builder` does, at module scope, by
/// the size in the array's name.
#[inline(always)]
pub(crate) fn shared_static<A, const ID: u64>(_: SourceLocation, _element: usize) -> SharedAddress {
    let address: u32;
    // SAFETY: takes a symbol's address.
    unsafe {
        asm!(
            "mov.u32 {address}, shared_{id}_{bytes};",
            id = const ID,
            bytes = const size_of::<A>(),
            address = out(reg32) address,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    address
}

/// The position of an address in the block's shared memory, in bytes.
#[inline(always)]
pub(crate) fn shared_position(address: SharedAddress) -> usize {
    address as usize
}

/// The inverse of [`shared_position`].
#[inline(always)]
pub(crate) fn shared_at(position: usize) -> SharedAddress {
    position as SharedAddress
}

/// The address and the size in bytes of the launch's dynamic shared memory.
///
/// Its symbol can only be declared at module scope, which `asm!` here cannot do: `cuda_builder` adds the declaration.
#[inline(always)]
pub(crate) fn shared_dynamic() -> (SharedAddress, usize) {
    let (address, bytes): (u32, u32);
    // SAFETY: takes a symbol's address and reads the register that holds the launch's dynamic size.
    unsafe {
        asm!(
            "mov.u32 {address}, shared_dynamic;",
            "mov.u32 {bytes}, %dynamic_smem_size;",
            address = out(reg32) address,
            bytes = out(reg32) bytes,
            options(nomem, nostack, preserves_flags),
        );
    }
    (address, bytes as usize)
}

/// A value in shared memory.
///
/// # Safety
/// `base + offset` is inside a shared array of this block, and aligned for `T`'s accesses.
#[inline(always)]
pub(crate) unsafe fn shared_peek<T: Plain>(base: SharedAddress, offset: usize) -> T {
    // SAFETY: as promised by the caller.
    unsafe { crate::pieces::shared_load(base, offset) }
}

/// A load from shared memory; the source location is unused on a GPU.
///
/// # Safety
/// As for [`shared_peek`].
#[inline(always)]
pub(crate) unsafe fn shared_load_at<T: Plain>(_: (), base: SharedAddress, offset: usize) -> T {
    // SAFETY: as promised by the caller.
    unsafe { crate::pieces::shared_load(base, offset) }
}

/// A store to shared memory; the source location is unused on a GPU.
///
/// # Safety
/// As for [`shared_peek`].
#[inline(always)]
pub(crate) unsafe fn shared_store_at<T: Plain>(_: (), base: SharedAddress, offset: usize, value: T) {
    // SAFETY: as promised by the caller.
    unsafe { crate::pieces::shared_store(base, offset, value) }
}

/// Only the executor counts waits.
#[inline(always)]
pub(crate) fn waits() -> u32 {
    0
}

/// Only the executor counts waits.
#[inline(always)]
pub(crate) fn check_waits(_: (), _before: u32, _what: &'static str) {}

macro_rules! shared_access {
    ($load:ident, $store:ident, $mode:literal, $($options:ident),*) => {
        /// Loads from shared memory.
        ///
        /// # Safety
        /// `base + offset` is inside a shared array of this block, and a multiple of `T`'s size.
        #[inline(always)]
        pub(crate) unsafe fn $load<T: Plain>(base: SharedAddress, offset: usize) -> T {
            let address = base.wrapping_add(offset as u32);
            // SAFETY: as promised by the caller; the width read is `T`'s, and any bits are a `T` (it is `Plain`).
            unsafe {
                match size_of::<T>() {
                    1 => {
                        let bits: u16;
                        asm!(
                            concat!("ld", $mode, ".shared.u8 {}, [{}];"),
                            out(reg16) bits, in(reg32) address,
                            options($($options),*),
                        );
                        transmute_copy(&(bits as u8))
                    }
                    2 => {
                        let bits: u16;
                        asm!(
                            concat!("ld", $mode, ".shared.u16 {}, [{}];"),
                            out(reg16) bits, in(reg32) address,
                            options($($options),*),
                        );
                        transmute_copy(&bits)
                    }
                    4 => {
                        let bits: u32;
                        asm!(
                            concat!("ld", $mode, ".shared.b32 {}, [{}];"),
                            out(reg32) bits, in(reg32) address,
                            options($($options),*),
                        );
                        transmute_copy(&bits)
                    }
                    8 => {
                        let bits: u64;
                        asm!(
                            concat!("ld", $mode, ".shared.b64 {}, [{}];"),
                            out(reg64) bits, in(reg32) address,
                            options($($options),*),
                        );
                        transmute_copy(&bits)
                    }
                    16 => {
                        let (a, b, c, d): (u32, u32, u32, u32);
                        asm!(
                            concat!("ld", $mode, ".shared.v4.b32 {{{}, {}, {}, {}}}, [{}];"),
                            out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) address,
                            options($($options),*),
                        );
                        transmute_copy(&[a, b, c, d])
                    }
                    32 => {
                        let (a, b, c, d): (u64, u64, u64, u64);
                        asm!(
                            concat!("ld", $mode, ".shared.v2.b64 {{{}, {}}}, [{}];"),
                            out(reg64) a, out(reg64) b, in(reg32) address,
                            options($($options),*),
                        );
                        asm!(
                            concat!("ld", $mode, ".shared.v2.b64 {{{}, {}}}, [{}];"),
                            out(reg64) c, out(reg64) d, in(reg32) address.wrapping_add(16),
                            options($($options),*),
                        );
                        transmute_copy(&[a, b, c, d])
                    }
                    _ => trap(),
                }
            }
        }

        /// Stores to shared memory.
        ///
        /// # Safety
        /// `base + offset` is inside a shared array of this block, and a multiple of `T`'s size.
        #[inline(always)]
        pub(crate) unsafe fn $store<T: Plain>(base: SharedAddress, offset: usize, value: T) {
            let address = base.wrapping_add(offset as u32);
            // SAFETY: as promised by the caller; the width written is `T`'s.
            unsafe {
                match size_of::<T>() {
                    1 => {
                        let bits: u8 = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.u8 [{}], {};"),
                            in(reg32) address, in(reg16) u16::from(bits),
                            options(nostack, preserves_flags),
                        );
                    }
                    2 => {
                        let bits: u16 = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.u16 [{}], {};"),
                            in(reg32) address, in(reg16) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    4 => {
                        let bits: u32 = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.b32 [{}], {};"),
                            in(reg32) address, in(reg32) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    8 => {
                        let bits: u64 = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.b64 [{}], {};"),
                            in(reg32) address, in(reg64) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    16 => {
                        let [a, b, c, d]: [u32; 4] = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.v4.b32 [{}], {{{}, {}, {}, {}}};"),
                            in(reg32) address, in(reg32) a, in(reg32) b, in(reg32) c, in(reg32) d,
                            options(nostack, preserves_flags),
                        );
                    }
                    32 => {
                        let [a, b, c, d]: [u64; 4] = transmute_copy(&value);
                        asm!(
                            concat!("st", $mode, ".shared.v2.b64 [{}], {{{}, {}}};"),
                            in(reg32) address, in(reg64) a, in(reg64) b,
                            options(nostack, preserves_flags),
                        );
                        asm!(
                            concat!("st", $mode, ".shared.v2.b64 [{}], {{{}, {}}};"),
                            in(reg32) address.wrapping_add(16), in(reg64) c, in(reg64) d,
                            options(nostack, preserves_flags),
                        );
                    }
                    _ => trap(),
                }
            }
        }
    };
}

// An ordinary load may be merged with an equal one, up to the next store or barrier; a volatile load is never merged.
shared_access!(shared_load, shared_store, "", pure, readonly, nostack, preserves_flags);
shared_access!(shared_load_volatile, shared_store_volatile, ".volatile", nostack, preserves_flags);
