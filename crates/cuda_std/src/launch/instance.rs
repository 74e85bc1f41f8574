//! The instances of a kernel: what `#[kernel]` generates for each.

use super::NamedParameter;
use crate::element::{Element, Plain};
use crate::erase::{Erase, Sizes};

/// An instance of a generic kernel: implemented for the arguments that `#[kernel(instances = ...)]` lists.
#[diagnostic::on_unimplemented(
    message = "the kernel has no instance `{Self}`",
    label = "not among the instances that `#[kernel(instances = ...)]` lists for it",
    note = "choose one of the listed element types and block sizes, or add this one to the list"
)]
///
/// # Safety
/// [`Instance::THREAD`] runs this instance, [`Instance::PARAMETERS`] describe it, and [`Instance::ENTRY`] is its PTX
/// entry.
#[doc(hidden)]
pub unsafe trait Instance {
    /// The PTX entry.
    const ENTRY: &'static str;
    /// The block, if the kernel's type fixes it; else `[0; 3]`.
    const BLOCK: [u32; 3];
    /// The kernel's parameters, in order.
    const PARAMETERS: &'static [NamedParameter];
    /// Runs one thread of the instance on the CPU, from the slots of its arguments.
    const THREAD: unsafe fn(&[u64]);
}

/// For the expansion of `#[kernel]`: expands to the code that runs a kernel on the CPU, or to nothing where there is no
/// executor. So a kernel's instances are compiled for the CPU only if the feature `simt` of this crate is on.
#[cfg(feature = "simt")]
#[macro_export]
#[doc(hidden)]
macro_rules! __for_executor {
    ($($code:tt)*) => { $($code)* };
}

/// For the expansion of `#[kernel]`: expands to the code that runs a kernel on the CPU, or to nothing where there is no
/// executor. So a kernel's instances are compiled for the CPU only if the feature `simt` of this crate is on.
#[cfg(not(feature = "simt"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __for_executor {
    ($($code:tt)*) => {};
}

/// For the expansion of `#[kernel]`: the given function where there is an executor, else one that panics.
#[cfg(feature = "simt")]
#[macro_export]
#[doc(hidden)]
macro_rules! __thread {
    ($thread:expr) => {
        $thread
    };
}

/// For the expansion of `#[kernel]`: the given function where there is an executor, else one that panics.
#[cfg(not(feature = "simt"))]
#[macro_export]
#[doc(hidden)]
macro_rules! __thread {
    ($thread:expr) => {
        $crate::launch::no_executor
    };
}

/// Stands in for the function that runs one thread of a kernel, where no executor could call it.
#[cfg(not(feature = "simt"))]
#[doc(hidden)]
pub fn no_executor(_slots: &[u64]) {
    panic!("there is no executor: enable the feature `simt` of `cuda_std`, or of `warpfold`");
}

/// A kernel that is compiled once per sizes of its element, state and output: see [`crate::erase`].
#[doc(hidden)]
pub trait ErasedKernel {
    /// Runs one thread of it from the slots of its arguments, with the current table.
    ///
    /// # Safety
    /// The slots hold the arguments of an instance whose types have the sizes of `T`, `S` and `U`.
    unsafe fn thread<T: Element, S: Plain, U: Plain>(slots: &[u64]);
}

/// The function that runs one thread of the instance of `K` for the operator `O` on elements `T`: enters the operator's
/// table, then runs the function for its sizes.
#[doc(hidden)]
pub const fn erased_thread<K: ErasedKernel, E: Erase<O, T>, O, T>() -> unsafe fn(&[u64]) {
    match E::SIZES.element {
        1 => by_state::<K, E, O, T, u8>(E::SIZES),
        2 => by_state::<K, E, O, T, u16>(E::SIZES),
        4 => by_state::<K, E, O, T, u32>(E::SIZES),
        8 => by_state::<K, E, O, T, u64>(E::SIZES),
        _ => panic!("an erased kernel's elements have 1, 2, 4 or 8 bytes"),
    }
}

const fn by_state<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element>(sizes: Sizes) -> unsafe fn(&[u64]) {
    match sizes.state {
        1 => by_output::<K, E, O, T, B, u8>(sizes),
        2 => by_output::<K, E, O, T, B, u16>(sizes),
        4 => by_output::<K, E, O, T, B, u32>(sizes),
        8 => by_output::<K, E, O, T, B, u64>(sizes),
        16 => by_output::<K, E, O, T, B, u128>(sizes),
        _ => by_output::<K, E, O, T, B, [u64; 4]>(sizes),
    }
}

const fn by_output<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element, S: Plain>(sizes: Sizes) -> unsafe fn(&[u64]) {
    match sizes.output {
        1 => by_table::<K, E, O, T, B, S, u8>,
        2 => by_table::<K, E, O, T, B, S, u16>,
        4 => by_table::<K, E, O, T, B, S, u32>,
        8 => by_table::<K, E, O, T, B, S, u64>,
        _ => by_table::<K, E, O, T, B, S, u128>,
    }
}

/// # Safety
/// As for [`ErasedKernel::thread`].
unsafe fn by_table<K: ErasedKernel, E: Erase<O, T>, O, T, B: Element, S: Plain, U: Plain>(slots: &[u64]) {
    E::enter::<B, S, U>();
    // SAFETY: as promised by the caller.
    unsafe { K::thread::<B, S, U>(slots) }
}
