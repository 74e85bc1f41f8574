//! warpfold's kernels.
//!
//! One source, two backends: `cargo xtask build-ptx` compiles this crate to PTX, and the host crate links it to run the
//! same functions in the executor.
//!
//! | module | contents |
//! |---|---|
//! | [`ops`] | the operators of reductions |
//! | [`reduce`] | reductions: the kernels that the library launches |
//! | [`transpose`] | transposes: the kernels that the library launches |
//! | `ladder` | the teaching kernels, behind the feature `ladder` |
//!
//! The feature `ladder` is off by default, so a program that uses the library has no teaching kernels in its PTX.
#![no_std]

/// The largest grid, in blocks, whose blocks prefetch their parameters while they wait for the previous grid: four
/// blocks for each multiprocessor of an H200. In a larger grid, most blocks find the parameters in the cache, and the
/// extra instructions cost up to 2 % of a reduction of short rows (`docs/notes/short-kernels.md`).
pub const PREFETCH_BLOCKS: u32 = 4 * MULTIPROCESSORS as u32;

/// Multiprocessors of an H200, the device that grids are planned for.
pub const MULTIPROCESSORS: usize = 132;

mod divisor;
#[cfg(feature = "ladder")]
pub mod ladder;
pub mod ops;
pub mod reduce;
pub mod transpose;
