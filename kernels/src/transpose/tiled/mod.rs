//! Transposes through tiles in shared memory.
//!
//! | module | contents |
//! |---|---|
//! | [`kernels`] | large matrices: 16-byte accesses, aligned or sector-aligned, with and without an epilogue |
//! | [`narrow`] | small matrices, and matrices of few rows, at any alignment: accesses of 4 or 8 bytes |
//! | [`interleaved`] | three axes reversed, of which one is short: tiles with interleaved rows |
//! | [`in_place`] | square matrices, in place |
//! | [`block_tile`] | a block's tile: where it lies in the matrix and in shared memory |
//! | [`micro_tile`] | the part of a tile that a thread transposes in registers |
//! | `row_map` | where the rows of a tile begin in memory |
//! | [`access`] | loads and stores of a tile: aligned, unaligned, sector-aligned, by words |
//! | [`epilogue`] | a factor and the conjugate, applied between load and store |

pub mod access;
pub mod block_tile;
pub mod epilogue;
pub mod in_place;
pub mod interleaved;
pub mod kernels;
pub mod micro_tile;
pub mod narrow;
pub mod row_map;
