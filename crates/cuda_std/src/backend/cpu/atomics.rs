//! Atomic operations on global memory.

use core::mem::size_of;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::lane::{self, Access};
use crate::atomic::{Order, Scope};

/// Executes an atomic operation and reports it to the executor's hooks. The hooks see the order as a fence before or
/// after the operation. A fence orders a little more: it also pairs with other atomic operations.
#[inline(always)]
#[track_caller]
fn hooked<T, R>(
    access: Access,
    pointer: *mut T,
    order: Order,
    scope: Scope,
    operation: impl FnOnce(Ordering) -> R,
) -> R {
    let is_of_block = scope == Scope::Block;
    if order.releases() {
        lane::fence(is_of_block, false);
    }
    let ordering = match order {
        Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcquireRelease => Ordering::AcqRel,
    };
    let result = lane::atomic(access, pointer.addr(), size_of::<T>(), is_of_block, || operation(ordering), |_| true);
    if order.acquires() {
        lane::fence(is_of_block, false);
    }
    result
}

/// The ordering of a compare-and-swap that fails, which only loads.
fn of_failure(ordering: Ordering) -> Ordering {
    match ordering {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        ordering => ordering,
    }
}

macro_rules! atomics {
    ($($name:ident: $type:ty, $atomic:ident, $method:ident;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(pointer: *mut $type, operand: $type, order: Order, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            hooked(Access::Atomic, pointer, order, scope, |ordering| atomic.$method(operand, ordering))
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
    atomic_and_u32: u32, AtomicU32, fetch_and;
    atomic_or_u32: u32, AtomicU32, fetch_or;
    atomic_xor_u32: u32, AtomicU32, fetch_xor;
    atomic_exch_u32: u32, AtomicU32, swap;
    atomic_and_u64: u64, AtomicU64, fetch_and;
    atomic_or_u64: u64, AtomicU64, fetch_or;
    atomic_xor_u64: u64, AtomicU64, fetch_xor;
    atomic_exch_u64: u64, AtomicU64, swap;
}

macro_rules! float_sums {
    ($($name:ident: $type:ty, $atomic:ident;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(pointer: *mut $type, operand: $type, order: Order, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            let sum = |bits| Some((<$type>::from_bits(bits) + operand).to_bits());
            let before = hooked(Access::Atomic, pointer, order, scope, |ordering| {
                match atomic.fetch_update(ordering, of_failure(ordering), sum) {
                    Ok(before) | Err(before) => before,
                }
            });
            <$type>::from_bits(before)
        }
    )*};
}

float_sums! {
    atomic_add_f32: f32, AtomicU32;
    atomic_add_f64: f64, AtomicU64;
}

macro_rules! counters {
    ($($name:ident: |$count:ident, $last:ident| $next:expr;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(pointer: *mut u32, $last: u32, order: Order, scope: Scope) -> u32 {
            // SAFETY: as promised by the caller.
            let counter = unsafe { &*pointer.cast::<AtomicU32>() };
            hooked(Access::Atomic, pointer, order, scope, |ordering| {
                match counter.fetch_update(ordering, of_failure(ordering), |$count| Some($next)) {
                    Ok(before) | Err(before) => before,
                }
            })
        }
    )*};
}

counters! {
    atomic_inc_u32: |count, last| if count >= last { 0 } else { count + 1 };
    atomic_dec_u32: |count, last| if count == 0 || count > last { last } else { count - 1 };
}

macro_rules! compare_and_swaps {
    ($($name:ident: $type:ty, $atomic:ident;)*) => {$(
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $name(
            pointer: *mut $type,
            expected: $type,
            new: $type,
            order: Order,
            scope: Scope,
        ) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            hooked(Access::Atomic, pointer, order, scope, |ordering| {
                match atomic.compare_exchange(expected, new, ordering, of_failure(ordering)) {
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

macro_rules! loads_and_stores {
    ($($load:ident, $store:ident: $type:ty, $atomic:ident;)*) => {$(
        /// Loads; the order is relaxed or acquires.
        ///
        /// # Safety
        /// `pointer` is valid for reads and writes of the type, aligned, and accessed only by this module meanwhile.
        #[track_caller]
        pub(crate) unsafe fn $load(pointer: *mut $type, order: Order, scope: Scope) -> $type {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            hooked(Access::Load, pointer, order, scope, |ordering| atomic.load(ordering))
        }

        /// Stores; the order is relaxed or releases.
        ///
        /// # Safety
        /// As for the load.
        #[track_caller]
        pub(crate) unsafe fn $store(pointer: *mut $type, value: $type, order: Order, scope: Scope) {
            // SAFETY: as promised by the caller.
            let atomic = unsafe { &*pointer.cast::<$atomic>() };
            hooked(Access::Store, pointer, order, scope, |ordering| atomic.store(value, ordering));
        }
    )*};
}

loads_and_stores! {
    atomic_load_u32, atomic_store_u32: u32, AtomicU32;
    atomic_load_u64, atomic_store_u64: u64, AtomicU64;
}

/// Whether an address is in the thread's local memory: a variable of the kernel.
pub(crate) fn is_private<T>(pointer: *const T) -> bool {
    lane::is_on_own_stack(pointer.addr())
}
