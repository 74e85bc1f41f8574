//! Atomic operations on global memory.

use core::mem::size_of;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use simt::lane::{self, Access};

use crate::atomic::Scope;

/// An atomic operation, in the order that those who watch see.
#[inline(always)]
#[track_caller]
fn in_order<T>(place: *mut T, scope: Scope, operation: impl FnOnce() -> T) -> T {
    lane::atomic(Access::Atomic, place.addr(), size_of::<T>(), scope == Scope::Block, operation, |_| true)
}

macro_rules! atomics {
    ($($name:ident: $type:ty, $atomic:ident, $method:ident;)*) => {$(
        /// # Safety
        /// `place` is valid for reads and writes of the type, aligned, and used by nothing but this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(place: *mut $type, operand: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            in_order(place, scope, || unsafe { (*place.cast::<$atomic>()).$method(operand, Ordering::Relaxed) })
        }
    )*};
}

atomics! {
    atomic_add_u32: u32, AtomicU32, fetch_add;
    atomic_min_u32: u32, AtomicU32, fetch_min;
    atomic_max_u32: u32, AtomicU32, fetch_max;
    atomic_add_i32: i32, AtomicI32, fetch_add;
    atomic_min_i32: i32, AtomicI32, fetch_min;
    atomic_max_i32: i32, AtomicI32, fetch_max;
    atomic_add_u64: u64, AtomicU64, fetch_add;
    atomic_min_u64: u64, AtomicU64, fetch_min;
    atomic_max_u64: u64, AtomicU64, fetch_max;
    atomic_add_i64: i64, AtomicI64, fetch_add;
    atomic_min_i64: i64, AtomicI64, fetch_min;
    atomic_max_i64: i64, AtomicI64, fetch_max;
}

/// # Safety
/// `place` is valid for reads and writes, aligned, and used by nothing but this module meanwhile.
#[track_caller]
pub(crate) unsafe fn atomic_inc_u32(place: *mut u32, last: u32, scope: Scope) -> u32 {
    // SAFETY: as promised by the caller.
    let counter = unsafe { &*place.cast::<AtomicU32>() };
    let next = |count| Some(if count >= last { 0 } else { count + 1 });
    in_order(place, scope, || match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(before) | Err(before) => before,
    })
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $atomic:ident;)*) => {$(
        /// # Safety
        /// `place` is valid for reads and writes of the type, aligned, and used by nothing but this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(place: *mut $type, expected: $type, new: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*place.cast::<$atomic>() };
            in_order(place, scope, || {
                match atomic.compare_exchange(expected, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(before) | Err(before) => before,
                }
            })
        }
    )*};
}

compare_and_swaps! {
    atomic_cas_u32: u32, AtomicU32;
    atomic_cas_i32: i32, AtomicI32;
    atomic_cas_u64: u64, AtomicU64;
    atomic_cas_i64: i64, AtomicI64;
}
