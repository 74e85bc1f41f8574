//! The device standard library: threads, warps, memory and atomics, for kernels that run on a GPU and on the CPU.
//!
//! A kernel written against this crate compiles twice from one source. For `nvptx64-nvidia-cuda` each function here is
//! an instruction or two; for the CPU each is a call into the executor, the crate `simt`. Only the private module
//! `backend` knows the target.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`](mod@arguments) | the argument types of a launch, for the kernel and for the host |
//! | [`thread`] | thread, block and grid indices; block barriers; fences |
//! | [`warp`] | shuffles, votes, matches, reductions by `redux`, warp barriers |
//! | [`global`] | views of global memory, which know their length |
//! | [`shared`] | shared arrays, with length and element type in their type |
//! | [`atomic`] | atomic operations with a scope |
//! | [`tile_state`] | publishing a value to another block of the grid (decoupled look-back) |
//! | [`element`] | the types that memory holds, and their 16-byte vectors |
//! | [`erase`] | on the CPU, one compilation of a kernel for many of its instances |
//! | [`float`] | hardware conversions of `f16` and `bf16`; functions of floats |
//! | [`bits`] | byte permutes, funnel shifts, packed integer instructions |
//! | [`hint`] | compiler hints: keep a loop rolled, compute a value here |
//! | [`mem`], [`misc`] | the size of dynamic shared memory; a clock |
//! | [`launch`] | the typed kernel handle that the host crate launches |
//!
//! On the CPU the threads of a block share an OS thread, so the initializer of a `thread_local!` or a `LazyLock` must
//! not synchronize with other threads (barriers, shuffles, votes, tile states): see "Rules for kernels" in `simt`'s
//! docs. The executor is behind the feature `simt`, which `warpfold`'s feature `simt` enables: without it, kernels
//! compile for the CPU, and nothing runs them there.
//!
//! Names follow Rust-CUDA's `cuda_std`, so that most of its kernels compile unchanged: [`rust_cuda`] says which do not,
//! and how to port them.
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
    feature(
        abi_ptx,
        abi_unadjusted,
        allow_internal_unstable,
        asm_experimental_arch,
        core_intrinsics,
        link_llvm_intrinsics,
        stdarch_nvptx
    ),
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
mod host;
pub mod launch;
pub mod mem;
pub mod misc;
mod pieces;
pub mod rust_cuda;
pub mod shared;
mod stored;
pub mod thread;
pub mod tile_state;
mod uvec;
pub mod warp;

pub use bytemuck;
pub use core::{assert_eq, assert_ne};
pub use cuda_std_macros::{Plain, address_space, arguments, externally_visible, gpu_only, kernel};
pub use float::{FloatExt, GpuFloat};
#[cfg(feature = "glam")]
pub use glam;
pub use half::{self, bf16, f16};
pub use num_complex;

/// The crate `num-traits`, where kernels for Rust-CUDA find it. `vek` itself is not here.
pub mod vek {
    pub use num_traits;
}

/// The items that nearly every kernel needs, in one `use`.
pub mod prelude {
    pub use crate::element::{Element, Plain, Vector, VectorType};
    pub use crate::global::{Global, GlobalMut};
    pub use crate::shared::{SharedArray, SharedTile};
    pub use crate::{address_space, arguments, kernel, shared_array, shared_tile, thread, warp};
}

/// For the expansion of [`kernel`] and of this crate's macros; not public API.
#[doc(hidden)]
pub mod internal;
