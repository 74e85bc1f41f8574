//! The device standard library: what a kernel sees of the machine that runs it.
//!
//! A kernel written against this crate compiles twice from the same lines: for `nvptx64-nvidia-cuda`, where each
//! function here is an instruction or two, and for the CPU, where each is a call into the executor ([`simt`]).
//! The only place that knows which of the two it is on is the private module `backend`.
//!
//! | module | what is in it |
//! |---|---|
//! | [`arguments`](mod@arguments) | the two sides of a launch, the kernel's and the host's |
//! | [`thread`] | indices of thread, block and grid; barriers of the block; fences |
//! | [`warp`] | shuffles, votes, reductions by `redux`, warp barriers |
//! | [`global`] | views of global memory, which know their length |
//! | [`shared`] | shared arrays, whose length and element type are in their type |
//! | [`atomic`] | atomic operations with a scope |
//! | [`tile_state`] | a word that one block leaves for another |
//! | [`element`] | what may lie in such memory, and its 16-byte vectors |
//! | [`erase`] | one compilation of a kernel for many instances, on the CPU |
//! | [`float`] | hardware conversions of `f16` and `bf16` |
//! | [`bits`] | permuting bytes |
//! | [`hint`] | keeping a loop rolled |
//! | [`launch`] | (CPU only) the typed handle of a kernel, which the host crate launches |
//!
//! On the CPU the threads of a block share an OS thread. A kernel that uses `thread_local!` or a `LazyLock` there must
//! not meet others (barriers, shuffles, votes, tile states) in the initialiser: see "What a kernel must know" in
//! [`simt`].
//!
//! Names follow Rust-CUDA's `cuda_std` where it has them, so that a kernel that stays inside the common subset
//! compiles unchanged.
//!
//! ```
//! use cuda_std::prelude::*;
//!
//! /// Adds two vectors.
//! #[kernel]
//! pub fn add(a: Global<f32>, b: Global<f32>, sum: GlobalMut<f32>) {
//!     let i = thread::index_1d() as usize;
//!     if i < sum.len() {
//!         sum.store(i, a.load(i) + b.load(i));
//!     }
//! }
//! # fn main() {}
//! ```
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_ptx, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx, allow_internal_unstable),
    allow(internal_features)
)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

pub mod arguments;
pub mod atomic;
mod backend;
pub mod bits;
pub mod element;
pub mod erase;
pub mod float;
pub mod global;
pub mod hint;
#[cfg(not(target_arch = "nvptx64"))]
pub mod launch;
pub mod shared;
pub mod thread;
pub mod tile_state;
pub mod warp;

pub use cuda_std_macros::{arguments, kernel};

/// What nearly every kernel needs, by one `use`.
pub mod prelude {
    pub use crate::element::{Element, Plain, Vector, VectorType};
    pub use crate::global::{Global, GlobalMut};
    pub use crate::shared::{SharedArray, SharedTile};
    pub use crate::{arguments, kernel, shared_array, shared_tile, thread, warp};
}

/// For the expansion of [`kernel`] and of the macros here; not for people.
#[doc(hidden)]
pub mod internal;
