//! Type erasure: on the CPU, one compilation of a kernel for all instances that differ in functions alone.
//!
//! A kernel that is generic over an operator has an instance for each operator and each type of element. On a GPU each
//! is compiled by itself, everything inlined: that is what makes it fast. On the CPU that would be the same engine
//! compiled 150 times over. With `erase` in its attribute ([`kernel`](crate::kernel)), a kernel is compiled there once
//! for each combination of the sizes of element, state and output, with unsigned integers in their places and an
//! operator that calls functions from a table. A lane enters the table of its instance before it runs the kernel.

use crate::backend;
use crate::element::{Element, Plain};

/// Sizes in bytes of what an erased kernel has in memory. Kernels of the same sizes are one function on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of an element: 1, 2, 4 or 8.
    pub element: usize,
    /// Of a state: 1, 2, 4, 8, 16 or 32.
    pub state: usize,
    /// Of an output: 1, 2, 4, 8 or 16.
    pub output: usize,
}

/// What erases the operator `O` of elements `T`; `erase` in a kernel's attribute names it.
///
/// # Safety
/// [`Erase::SIZES`] are those of `T`, and of the states and outputs of `O`: a kernel's views are made for types of
/// these sizes.
pub unsafe trait Erase<O, T> {
    /// The sizes that remain.
    const SIZES: Sizes;

    /// Makes the table of `O` that of this thread of the CPU: [`enter`] with a table for elements, states and outputs
    /// of the types `B`, `S` and `U`, which have the sizes.
    fn enter<B: Element, S: Plain, U: Plain>();
}

/// Makes `table` the one that [`table`] finds on this thread of the CPU from now on.
pub fn enter<V: Sync>(table: &'static V) {
    backend::enter_table(table);
}

/// The table of type `V` that this thread of the CPU has entered.
///
/// # Panics
/// It has entered none, or last one of another type. On a GPU, where nothing is erased, it traps.
#[inline(always)]
pub fn table<V: Sync>() -> &'static V {
    backend::table()
}

/// The first expression on a GPU, the second on the CPU: a constant of an operator, and the function that an erased one
/// has in its place. (A call of a function that gives the constant is other PTX.)
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
macro_rules! __on_gpu_or_cpu {
    ($gpu:expr, $cpu:expr) => {
        $gpu
    };
}

/// The first expression on a GPU, the second on the CPU: a constant of an operator, and the function that an erased one
/// has in its place. (A call of a function that gives the constant is other PTX.)
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __on_gpu_or_cpu {
    ($gpu:expr, $cpu:expr) => {
        $cpu
    };
}

pub use __on_gpu_or_cpu as on_gpu_or_cpu;

/// The value of the same bits.
#[inline(always)]
pub fn same_bits<A: Plain, B: Plain>(value: A) -> B {
    const { assert!(size_of::<A>() == size_of::<B>()) };
    B::from_four_words(value.to_four_words())
}
