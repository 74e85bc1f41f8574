//! Shared memory. The lanes of a block run on one core, one at a time, so ordinary reads and writes do not race.

use core::mem::size_of;

use super::global::access;
use super::lane::{self, Access, Space};
use crate::element::Plain;

/// The address of shared memory.
pub(crate) type SharedAddress = *mut u8;

#[track_caller]
pub(crate) fn shared_declare<T, const LEN: usize, const ID: u64>() -> SharedAddress {
    // A constant, so that an array larger than the address space does not compile.
    lane::shared_array(ID, const { LEN * size_of::<T>() }, size_of::<T>())
}

#[track_caller]
pub(crate) fn shared_declare_tile<T, const ROWS: usize, const COLUMNS: usize, const PAD: usize, const ID: u64>()
-> SharedAddress {
    lane::shared_array(ID, const { ROWS * (COLUMNS + PAD) * size_of::<T>() }, size_of::<T>())
}

pub(crate) fn shared_dynamic() -> (SharedAddress, usize) {
    lane::dynamic_shared()
}

/// Loads from shared memory.
///
/// # Safety
/// `base + offset` is inside a shared array of this block, and a multiple of `T`'s size.
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_load<T: Plain>(base: SharedAddress, offset: usize) -> T {
    access(Space::Shared, Access::Load, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().read() }
}

/// Stores to shared memory.
///
/// # Safety
/// As for [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_store<T: Plain>(base: SharedAddress, offset: usize, value: T) {
    access(Space::Shared, Access::Store, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().write(value) }
}

/// A volatile load from shared memory.
///
/// # Safety
/// As for [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_load_volatile<T: Plain>(base: SharedAddress, offset: usize) -> T {
    access(Space::Shared, Access::Load, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { base.add(offset).cast::<T>().read_volatile() }
}

/// A volatile store to shared memory.
///
/// # Safety
/// As for [`shared_load`].
#[inline(always)]
#[track_caller]
pub(crate) unsafe fn shared_store_volatile<T: Plain>(base: SharedAddress, offset: usize, value: T) {
    access(Space::Shared, Access::Store, base.addr() + offset, size_of::<T>());
    // SAFETY: as promised by the caller.
    unsafe { base.add(offset).cast::<T>().write_volatile(value) }
}
