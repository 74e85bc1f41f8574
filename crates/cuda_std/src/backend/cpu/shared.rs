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

/// The array `ID` of the block, which has the size of an `A`, with elements of `element` bytes.
pub(crate) fn shared_static<A, const ID: u64>(declaration: SourceLocation, element: usize) -> SharedAddress {
    lane::shared_array_at(declaration, ID, size_of::<A>(), element)
}

/// The position of an address in the block's shared memory, in bytes.
pub(crate) fn shared_position(address: SharedAddress) -> usize {
    address.addr() - lane::dynamic_shared().0.addr()
}

/// The inverse of [`shared_position`]. A position of another block's array is inside this block's memory, too.
pub(crate) fn shared_at(position: usize) -> SharedAddress {
    lane::dynamic_shared().0.wrapping_add(position)
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

/// Reads a value in shared memory without notifying the executor's hooks. The caller uses it only if the thread also
/// loads or stores the element.
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

macro_rules! atomics {
    ($($name:ident: $type:ty, |$before:ident, $operand:ident| $after:expr;)*) => {$(
        /// An atomic operation on shared memory: the lanes of a block run one at a time.
        ///
        /// # Safety
        /// As for [`shared_load`].
        #[track_caller]
        pub(crate) unsafe fn $name(base: SharedAddress, offset: usize, $operand: $type) -> $type {
            lane::access(Space::Shared, Access::Atomic, base.addr() + offset, size_of::<$type>());
            // SAFETY: as promised by the caller; the lanes of a block run on one core, so this is no race.
            unsafe {
                let element = base.add(offset).cast::<$type>();
                let $before = element.read();
                element.write($after);
                $before
            }
        }
    )*};
}

/// The atomic operations of an integer type.
macro_rules! integer_atomics {
    ($(
        $type:ty: $add:ident, $min:ident, $max:ident, $and:ident, $or:ident, $xor:ident, $exchange:ident, $cas:ident;
    )*) => {$(
        atomics! {
            $add: $type, |before, operand| before.wrapping_add(operand);
            $min: $type, |before, operand| before.min(operand);
            $max: $type, |before, operand| before.max(operand);
            $and: $type, |before, operand| before & operand;
            $or: $type, |before, operand| before | operand;
            $xor: $type, |before, operand| before ^ operand;
            $exchange: $type, |before, operand| operand;
        }

        /// Stores `new` if the element is `expected`; returns the old value.
        ///
        /// # Safety
        /// As for [`shared_load`].
        #[track_caller]
        pub(crate) unsafe fn $cas(base: SharedAddress, offset: usize, expected: $type, new: $type) -> $type {
            lane::access(Space::Shared, Access::Atomic, base.addr() + offset, size_of::<$type>());
            // SAFETY: as above.
            unsafe {
                let element = base.add(offset).cast::<$type>();
                let before = element.read();
                if before == expected {
                    element.write(new);
                }
                before
            }
        }
    )*};
}

integer_atomics! {
    u32: shared_add_u32, shared_min_u32, shared_max_u32, shared_and_u32, shared_or_u32, shared_xor_u32,
        shared_exchange_u32, shared_cas_u32;
    i32: shared_add_i32, shared_min_i32, shared_max_i32, shared_and_i32, shared_or_i32, shared_xor_i32,
        shared_exchange_i32, shared_cas_i32;
    u64: shared_add_u64, shared_min_u64, shared_max_u64, shared_and_u64, shared_or_u64, shared_xor_u64,
        shared_exchange_u64, shared_cas_u64;
    i64: shared_add_i64, shared_min_i64, shared_max_i64, shared_and_i64, shared_or_i64, shared_xor_i64,
        shared_exchange_i64, shared_cas_i64;
}

atomics! {
    shared_add_f32: f32, |before, operand| before + operand;
    shared_exchange_f32: f32, |before, operand| operand;
    shared_add_f64: f64, |before, operand| before + operand;
    shared_exchange_f64: f64, |before, operand| operand;
}
