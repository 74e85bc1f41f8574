//! Atomic operations on elements of shared memory.

use core::mem::size_of;

use super::{DynamicShared, SharedArray};
use crate::backend::{self, SharedAddress};
use crate::element::Plain;

/// A number with atomic operations in shared memory: an integer or a float of 4 or 8 bytes.
pub trait SharedAtomic: Plain + private::Sealed {
    /// # Safety
    /// `base + offset` is an element of this type in a shared array of this block.
    #[doc(hidden)]
    unsafe fn add(base: SharedAddress, offset: usize, operand: Self) -> Self;
    /// # Safety
    /// As above.
    #[doc(hidden)]
    unsafe fn exchange(base: SharedAddress, offset: usize, operand: Self) -> Self;
}

/// An integer with atomic operations in shared memory.
pub trait SharedAtomicInteger: SharedAtomic {
    /// # Safety
    /// `base + offset` is an element of this type in a shared array of this block.
    #[doc(hidden)]
    unsafe fn operate(operation: Operation, base: SharedAddress, offset: usize, operand: Self) -> Self;
    /// # Safety
    /// As above.
    #[doc(hidden)]
    unsafe fn compare_and_swap(base: SharedAddress, offset: usize, expected: Self, new: Self) -> Self;
}

/// The operations that only integers have.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Operation {
    Min,
    Max,
    And,
    Or,
    Xor,
}

mod private {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($type:ty: $add:ident, $exchange:ident;)*) => {$(
        impl private::Sealed for $type {}

        impl SharedAtomic for $type {
            #[inline(always)]
            #[track_caller]
            unsafe fn add(base: SharedAddress, offset: usize, operand: Self) -> Self {
                // SAFETY: as promised by the caller.
                unsafe { backend::$add(base, offset, operand) }
            }

            #[inline(always)]
            #[track_caller]
            unsafe fn exchange(base: SharedAddress, offset: usize, operand: Self) -> Self {
                // SAFETY: as promised by the caller.
                unsafe { backend::$exchange(base, offset, operand) }
            }
        }
    )*};
}

numbers! {
    u32: shared_add_u32, shared_exchange_u32;
    i32: shared_add_i32, shared_exchange_i32;
    u64: shared_add_u64, shared_exchange_u64;
    i64: shared_add_i64, shared_exchange_i64;
    f32: shared_add_f32, shared_exchange_f32;
    f64: shared_add_f64, shared_exchange_f64;
}

macro_rules! integers {
    ($($type:ty: $min:ident, $max:ident, $and:ident, $or:ident, $xor:ident, $cas:ident;)*) => {$(
        impl SharedAtomicInteger for $type {
            #[inline(always)]
            #[track_caller]
            unsafe fn operate(operation: Operation, base: SharedAddress, offset: usize, operand: Self) -> Self {
                // SAFETY: as promised by the caller.
                unsafe {
                    match operation {
                        Operation::Min => backend::$min(base, offset, operand),
                        Operation::Max => backend::$max(base, offset, operand),
                        Operation::And => backend::$and(base, offset, operand),
                        Operation::Or => backend::$or(base, offset, operand),
                        Operation::Xor => backend::$xor(base, offset, operand),
                    }
                }
            }

            #[inline(always)]
            #[track_caller]
            unsafe fn compare_and_swap(base: SharedAddress, offset: usize, expected: Self, new: Self) -> Self {
                // SAFETY: as promised by the caller.
                unsafe { backend::$cas(base, offset, expected, new) }
            }
        }
    )*};
}

integers! {
    u32: shared_min_u32, shared_max_u32, shared_and_u32, shared_or_u32, shared_xor_u32, shared_cas_u32;
    i32: shared_min_i32, shared_max_i32, shared_and_i32, shared_or_i32, shared_xor_i32, shared_cas_i32;
    u64: shared_min_u64, shared_max_u64, shared_and_u64, shared_or_u64, shared_xor_u64, shared_cas_u64;
    i64: shared_min_i64, shared_max_i64, shared_and_i64, shared_or_i64, shared_xor_i64, shared_cas_i64;
}

/// The atomic operations of a shared array or of dynamic shared memory, whose `address` checks an index.
macro_rules! operations {
    ($array:ident, $([$($length:tt)*], $len:ident)?) => {
        impl<T: SharedAtomic $(, $($length)*)?> $array<T $(, $len)?> {
            /// Adds to the element at `i`, wrapping; returns the old value. Traps past the end.
            ///
            /// Sums of floats are not repeatable: threads add in any order.
            #[inline(always)]
            #[track_caller]
            pub fn fetch_add(&self, i: usize, operand: T) -> T {
                let (base, offset) = self.address(i);
                // SAFETY: `address` has checked the index.
                unsafe { T::add(base, offset, operand) }
            }

            /// Replaces the element at `i`; returns the old value. Traps past the end.
            #[inline(always)]
            #[track_caller]
            pub fn exchange(&self, i: usize, new: T) -> T {
                let (base, offset) = self.address(i);
                // SAFETY: as above.
                unsafe { T::exchange(base, offset, new) }
            }
        }

        impl<T: SharedAtomicInteger $(, $($length)*)?> $array<T $(, $len)?> {
            operations! {
                fetch_min, Min, "Stores the minimum of the element at `i` and the operand";
                fetch_max, Max, "Stores the maximum of the element at `i` and the operand";
                fetch_and, And, "Stores the bitwise AND of the element at `i` and the operand";
                fetch_or, Or, "Stores the bitwise OR of the element at `i` and the operand";
                fetch_xor, Xor, "Stores the bitwise XOR of the element at `i` and the operand";
            }

            /// Stores `new` at `i` if the element is `expected`; returns the old value. Traps past the end.
            #[inline(always)]
            #[track_caller]
            pub fn compare_and_swap(&self, i: usize, expected: T, new: T) -> T {
                let (base, offset) = self.address(i);
                // SAFETY: as above.
                unsafe { T::compare_and_swap(base, offset, expected, new) }
            }
        }
    };
    ($($name:ident, $operation:ident, $doc:literal;)*) => {$(
        #[doc = concat!($doc, "; returns the element before. Traps past the end.")]
        #[inline(always)]
        #[track_caller]
        pub fn $name(&self, i: usize, operand: T) -> T {
            let (base, offset) = self.address(i);
            // SAFETY: as above.
            unsafe { T::operate(Operation::$operation, base, offset, operand) }
        }
    )*};
}

operations!(SharedArray, [const LEN: usize], LEN);
operations!(DynamicShared,);

impl<T: Plain, const LEN: usize> SharedArray<T, LEN> {
    #[inline(always)]
    #[track_caller]
    fn address(&self, i: usize) -> (SharedAddress, usize) {
        Self::check(i);
        (self.base, i * size_of::<T>())
    }
}

impl<T: Plain> DynamicShared<T> {
    #[inline(always)]
    #[track_caller]
    fn address(&self, i: usize) -> (SharedAddress, usize) {
        self.check(i);
        (self.base, i * size_of::<T>())
    }
}
