//! Reductions.
//!
//! | module | contents |
//! |---|---|
//! | [`long_rows`](mod@long_rows) | whole inputs, long rows, equal segments: one or several blocks for each |
//! | [`rows`](mod@rows) | short rows: a few lanes for each |
//! | [`columns`](mod@columns) | columns: a column of threads reduces four columns |
//! | [`segments`](mod@segments) | segments by an array of offsets: a lane, a warp or blocks for each |
//! | [`pairs`](mod@pairs) | two inputs: the dot product |
//! | [`exact`] | exact sums of floats, of every shape |
//! | [`fold`] | folds of the states of lanes, warps and blocks |
//! | [`thread_reduce`] | the state of the vectors in a thread's registers |
//! | `tile_range`, `remainder` | a thread's share of a row's tiles, and of the elements outside them |
//! | [`reduction`] | operators with their kernels: what the host needs |
//! | `builtin`, `custom` | the kernels of built-in operators, and of custom ones |
//! | [`tuning`] | the constants chosen by measurement |
//!
//! The kernels accept any [`Operator`](crate::ops::Operator), except those of [`exact`], which sum floats.

cuda_std::on_host! {
    mod builtin;
}
pub mod columns;
mod custom;
pub mod exact;
pub mod fold;
pub mod long_rows;
pub mod pairs;
pub mod reduction;
mod remainder;
pub mod rows;
pub mod segments;
pub mod thread_reduce;
mod tile_range;
pub mod tuning;
