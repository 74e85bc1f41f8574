//! warpfold's kernels.
//!
//! One source, two machines: `cargo xtask build-ptx` compiles this crate to PTX, and the host crate links it to run the
//! same functions in the executor.
//!
//! | module | what is in it |
//! |---|---|
//! | [`control_flow`] | what branches, loops and barriers cost |
//! | [`ops`] | the numbers that are reduced |
//! | [`reduce`] | reductions: the [ladder](reduce::ladder) for learning, and the production kernel |
//! | [`transpose`] | transposes: the [ladder](transpose::ladder) |
#![no_std]

pub mod control_flow;
mod divisor;
pub mod ops;
pub mod reduce;
pub mod transpose;
