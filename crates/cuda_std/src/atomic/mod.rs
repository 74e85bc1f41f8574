//! Atomic read-modify-write.
//!
//! [`Atomic`] has operations on elements of a [`GlobalMut`]. Each is relaxed: it orders no other access. Where order is
//! needed, add a fence ([`crate::thread::device_fence`]). The scope says which other threads may access the same
//! address at the same time.
//!
//! The types ([`AtomicU32`], [`BlockAtomicF64`], ...) are those of Rust-CUDA: the scope is part of the name, and each
//! operation takes an [`Ordering`](core::sync::atomic::Ordering).
//!
//! **Sums of floats are not repeatable.** The threads add in any order, and each order rounds in its own way, so the
//! result may differ from run to run. [`AtomicF32`] and [`AtomicF64`] are for kernels that tolerate it.

use crate::backend;
use crate::element::Plain;
use crate::global::GlobalMut;

mod types;

pub use types::{
    AtomicF32, AtomicF64, AtomicI32, AtomicI64, AtomicU32, AtomicU64, BlockAtomicF32, BlockAtomicF64, BlockAtomicI32,
    BlockAtomicI64, BlockAtomicU32, BlockAtomicU64, SystemAtomicF32, SystemAtomicF64, SystemAtomicI32, SystemAtomicI64,
    SystemAtomicU32, SystemAtomicU64,
};

/// The threads for which an atomic operation is indivisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// The threads of the device, other devices and the host.
    System,
}

/// How an atomic operation orders the other accesses of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
}

impl Order {
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    pub(crate) fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }
}

/// An acquire-release fence: orders the thread's earlier memory accesses before its later ones, for threads of the
/// scope that synchronize through an atomic operation. Cheaper than [`crate::thread::device_fence`], which is
/// sequentially consistent.
///
/// After a block barrier, one thread's fence covers the accesses of the whole block.
#[inline(always)]
pub fn fence(scope: Scope) {
    backend::fence_acquire_release(scope);
}

/// An integer type with atomic read-modify-write operations.
pub trait Atomic: Plain {
    /// Adds at `i`, wrapping; returns the old value. Traps outside the view.
    fn fetch_add(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Stores the minimum at `i`; returns the old value. Traps outside the view.
    fn fetch_min(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Stores the maximum at `i`; returns the old value. Traps outside the view.
    fn fetch_max(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self;
    /// Stores `new` at `i` if the old value equals `expected`; returns the old value. Traps outside the view.
    fn compare_and_swap(view: &GlobalMut<'_, Self>, i: usize, expected: Self, new: Self, scope: Scope) -> Self;
}

macro_rules! atomics {
    ($($type:ty, $add:ident, $min:ident, $max:ident, $cas:ident;)*) => {$(
        impl Atomic for $type {
            #[inline(always)]
            #[track_caller]
            fn fetch_add(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `pointer` has checked the index.
                unsafe { backend::$add(view.pointer(i), operand, Order::Relaxed, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn fetch_min(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `pointer` has checked the index.
                unsafe { backend::$min(view.pointer(i), operand, Order::Relaxed, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn fetch_max(view: &GlobalMut<'_, Self>, i: usize, operand: Self, scope: Scope) -> Self {
                // SAFETY: `pointer` has checked the index.
                unsafe { backend::$max(view.pointer(i), operand, Order::Relaxed, scope) }
            }
            #[inline(always)]
            #[track_caller]
            fn compare_and_swap(view: &GlobalMut<'_, Self>, i: usize, expected: Self, new: Self, scope: Scope) -> Self {
                // SAFETY: `pointer` has checked the index.
                unsafe { backend::$cas(view.pointer(i), expected, new, Order::Relaxed, scope) }
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

/// Adds 1 at `i`, or resets to 0 from `last` or more (`atomicInc`); returns the old value. Traps outside the view.
///
/// A counter of `last + 1` arrivals that resets itself for the next launch.
#[inline(always)]
#[track_caller]
pub fn inc(view: &GlobalMut<'_, u32>, i: usize, last: u32, scope: Scope) -> u32 {
    // SAFETY: `pointer` has checked the index.
    unsafe { backend::atomic_inc_u32(view.pointer(i), last, Order::Relaxed, scope) }
}
