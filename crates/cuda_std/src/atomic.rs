//! Atomic read-modify-write of global memory.
//!
//! Each operation is relaxed: it orders nothing but itself, and a fence ([`crate::thread::device_fence`]) makes the
//! order where one is needed. The scope says who else may use the same place at the same time.
//!
//! There are no float sums here on purpose: their order, and so their result, would differ from run to run.

use crate::backend;
use crate::element::Plain;
use crate::global::GlobalMut;

/// Who sees an atomic operation as one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// The threads of the device, other devices and the host.
    System,
}

/// Orders the thread's accesses of memory before it before those behind it, as threads of the scope see them that
/// synchronise by an atomic operation: acquire and release. Lighter than [`crate::thread::device_fence`], which is also
/// in one order with all other fences.
///
/// After a barrier of the block, one thread's fence stands for all of the block's.
#[inline(always)]
pub fn fence(scope: Scope) {
    backend::fence_acquire_release(scope);
}

/// A number that memory can combine by itself.
pub trait Atomic: Plain {
    /// Adds at `i`, wrapping; gives the value before. Traps outside of the view.
    fn fetch_add(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Keeps the lesser at `i`; gives the value before. Traps outside of the view.
    fn fetch_min(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Keeps the greater at `i`; gives the value before. Traps outside of the view.
    fn fetch_max(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Stores `new` at `i` if `expected` is there; gives the value before. Traps outside of the view.
    fn compare_and_swap(view: &GlobalMut<'_, Self>, i: usize, expected: Self, new: Self, scope: Scope) -> Self;
}

macro_rules! atomics {
    ($($type:ty, $add:ident, $min:ident, $max:ident, $cas:ident;)*) => {$(
        impl Atomic for $type {
            #[inline(always)]
            #[track_caller]
            fn fetch_add(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `place` has checked the index.
                unsafe { backend::$add(view.place(i), operand, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn fetch_min(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `place` has checked the index.
                unsafe { backend::$min(view.place(i), operand, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn fetch_max(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `place` has checked the index.
                unsafe { backend::$max(view.place(i), operand, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn compare_and_swap(view: &GlobalMut<'_, Self>, i: usize, expected: Self, new: Self, scope: Scope) -> Self {
                // SAFETY: `place` has checked the index.
                unsafe { backend::$cas(view.place(i), expected, new, scope) }
            }
        }
    )*};
}

atomics! {
    u32, atomic_add_u32, atomic_min_u32, atomic_max_u32, atomic_cas_u32;
    i32, atomic_add_i32, atomic_min_i32, atomic_max_i32, atomic_cas_i32;
    u64, atomic_add_u64, atomic_min_u64, atomic_max_u64, atomic_cas_u64;
    i64, atomic_add_i64, atomic_min_i64, atomic_max_i64, atomic_cas_i64;
}

/// Adds 1 at `i`, or goes back to 0 from `last` (and from anything above); gives the value before. Traps outside of the
/// view.
///
/// A counter of `last + 1` arrivals that is ready for the next launch by itself.
#[inline(always)]
#[track_caller]
pub fn inc(view: &GlobalMut<'_, u32>, i: usize, last: u32, scope: Scope) -> u32 {
    // SAFETY: `place` has checked the index.
    unsafe { backend::atomic_inc_u32(view.place(i), last, scope) }
}
