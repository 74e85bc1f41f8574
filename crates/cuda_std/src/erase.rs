//! Type erasure: on the CPU, one compilation of a kernel for all instances that differ only in their functions.
//!
//! A kernel that is generic over an operator has an instance for each operator and element type. On a GPU each instance
//! is compiled by itself with everything inlined, for speed. On the CPU that would compile the same kernel 150 times.
//! With `erase` in its attribute ([`kernel`](crate::kernel)), a kernel is compiled for the CPU once per combination of
//! the sizes of element, state and output: unsigned integers replace the types, and the operator calls functions from a
//! table. A lane enters the table of its instance, then runs the kernel.

use crate::backend;
use crate::element::{Element, Plain, bits};

/// The sizes in bytes of an erased kernel's types. Kernels of equal sizes share one function on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// An element: 1, 2, 4 or 8.
    pub element: usize,
    /// A state: 1, 2, 4, 8, 16 or 32.
    pub state: usize,
    /// An output: 1, 2, 4, 8 or 16.
    pub output: usize,
}

/// Erases the operator `O` on elements `T`. The `erase` of a kernel's attribute names the implementing type.
///
/// # Safety
/// [`Erase::SIZES`] are the sizes of `T` and of the states and outputs of `O`: a kernel's views are made for types of
/// these sizes.
pub unsafe trait Erase<O, T> {
    /// The sizes of the erased types.
    const SIZES: Sizes;

    /// Makes the table of `O` current on this CPU thread: calls [`enter`] with a table for elements, states and outputs
    /// of types `B`, `S` and `U`, whose sizes are [`Erase::SIZES`].
    fn enter<B: Element, S: Plain, U: Plain>();
}

/// Makes `table` current on this CPU thread: [`table`] then returns it.
pub fn enter<V: Sync>(table: &'static V) {
    backend::enter_table(table);
}

/// The current table of this CPU thread, of type `V`.
///
/// # Panics
/// If no table is current, or one of another type. On a GPU, where nothing is erased, it traps.
#[inline(always)]
pub fn table<V: Sync>() -> &'static V {
    backend::table()
}

/// Expands to the first expression on a GPU and to the second on the CPU. The first is a constant of an operator, the
/// second the function that replaces it in an erased operator. (Calling a function that returns the constant would
/// change the PTX.)
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
macro_rules! __on_gpu_or_cpu {
    ($gpu:expr, $cpu:expr) => {
        $gpu
    };
}

/// Expands to the first expression on a GPU and to the second on the CPU. The first is a constant of an operator, the
/// second the function that replaces it in an erased operator. (Calling a function that returns the constant would
/// change the PTX.)
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __on_gpu_or_cpu {
    ($gpu:expr, $cpu:expr) => {
        $cpu
    };
}

pub use __on_gpu_or_cpu as on_gpu_or_cpu;

/// Reinterprets the bits of a value as another type of the same size.
#[inline(always)]
pub fn same_bits<A: Plain, B: Plain>(value: A) -> B {
    const { assert!(size_of::<A>() == size_of::<B>()) };
    // SAFETY: the sizes are equal, no byte of an `A` is padding, and any bits are a `B` (both are `Plain`).
    unsafe { bits!(value) }
}
