//! warpfold's kernels.
//!
//! One source, two backends: `cargo xtask build-ptx` compiles this crate to PTX, and the host crate links it to run the
//! same functions in the executor.
//!
//! | module | what is in it |
//! |---|---|
//! | [`control_flow`] | what branches, loops and barriers cost |
//! | [`ops`] | the numbers that are reduced |
//! | [`reduce`] | reductions: the [ladder](reduce::ladder) for learning, and the production kernel |
//! | [`transpose`] | transposes: the [ladder](transpose::ladder) |
#![no_std]

/// The widest grid whose blocks read their parameters while they wait for the grid before: four blocks for each
/// multiprocessor of an H200. Most blocks of a wider one find them in the cache, and each would lose the instructions
/// that it takes, up to 2 % of a reduction of short rows (`docs/notes/short-kernels.md`).
pub const PREFETCH_BLOCKS: u32 = 4 * 132;

pub mod control_flow;
mod divisor;
pub mod ops;
pub mod reduce;
pub mod transpose;
