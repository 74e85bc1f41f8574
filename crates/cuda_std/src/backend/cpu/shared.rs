//! Shared memory. The lanes of a block run on one core, one at a time, so ordinary reads and writes do not race.

use core::mem::size_of;

use std::format;

use super::SourceLocation;
use super::global::access;
use super::lane::{self, Access, Space};
use crate::element::{Plain, access_alignment};

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

/// A value in shared memory as it is, without notifying the executor's hooks: it is only kept if the thread also loads
/// or stores it.
///
/// # Safety
/// `base + offset` is inside a shared array of this block, and aligned for `T`'s accesses.
pub(crate) unsafe fn shared_peek<T: Plain>(base: SharedAddress, offset: usize) -> T {
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().read_unaligned() }
}

/// Notifies the executor's hooks of an access of a whole value, of any size.
fn report<T>(location: SourceLocation, access: Access, base: SharedAddress, offset: usize) {
    let step = if size_of::<T>() == 32 { 16 } else { access_alignment::<T>() };
    for piece in (0..size_of::<T>()).step_by(step) {
        lane::access_at(location, Space::Shared, access, base.addr() + offset + piece, step);
    }
}

/// A load from shared memory by the code at `location`.
///
/// # Safety
/// As for [`shared_peek`].
pub(crate) unsafe fn shared_load_at<T: Plain>(location: SourceLocation, base: SharedAddress, offset: usize) -> T {
    report::<T>(location, Access::Load, base, offset);
    // SAFETY: as promised by the caller.
    unsafe { shared_peek(base, offset) }
}

/// A store to shared memory by the code at `location`; none by a thread that unwinds.
///
/// # Safety
/// As for [`shared_peek`].
pub(crate) unsafe fn shared_store_at<T: Plain>(location: SourceLocation, base: SharedAddress, offset: usize, value: T) {
    if std::thread::panicking() {
        return;
    }
    report::<T>(location, Access::Store, base, offset);
    // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
    unsafe { base.add(offset).cast::<T>().write_unaligned(value) }
}

/// A number that changes when the thread waits for others.
pub(crate) fn waits() -> u32 {
    lane::waits()
}

/// Ends the launch: the thread has waited for others while it held `what` of an element of shared memory, since
/// `before`.
pub(crate) fn check_waits(location: SourceLocation, before: u32, what: &'static str) {
    if before != lane::waits() && !std::thread::panicking() {
        held_too_long(location, what);
    }
}

#[cold]
fn held_too_long(location: SourceLocation, what: &'static str) {
    lane::fault_at(
        location,
        format!("{what} is older than a barrier, shuffle or vote: write `*array.add(i)` in one statement"),
    )
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
