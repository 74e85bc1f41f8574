//! Atomic operations on global memory.

use core::mem::size_of;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::lane::{self, Access};
use crate::atomic::Scope;

/// Executes an atomic operation, in the order that the executor's hooks see.
#[inline(always)]
#[track_caller]
fn hooked<T>(pointer: *mut T, scope: Scope, operation: impl FnOnce() -> T) -> T {
    lane::atomic(Access::Atomic, pointer.addr(), size_of::<T>(), scope == Scope::Block, operation, |_| true)
}

macro_rules! atomics {
    ($($name:ident: $type:ty, $atomic:ident, $method:ident;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(pointer: *mut $type, operand: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            hooked(pointer, scope, || unsafe { (*pointer.cast::<$atomic>()).$method(operand, Ordering::Relaxed) })
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
/// `pointer` is valid for reads and writes, aligned, and accessed only by this module meanwhile.
#[track_caller]
pub(crate) unsafe fn atomic_inc_u32(pointer: *mut u32, last: u32, scope: Scope) -> u32 {
    // SAFETY: as promised by the caller.
    let counter = unsafe { &*pointer.cast::<AtomicU32>() };
    let next = |count| Some(if count >= last { 0 } else { count + 1 });
    hooked(pointer, scope, || match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
        Ok(before) | Err(before) => before,
    })
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $atomic:ident;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(pointer: *mut $type, expected: $type, new: $type, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            hooked(pointer, scope, || {
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
