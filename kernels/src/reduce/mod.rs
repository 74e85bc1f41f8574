//! Reductions.
//!
//! | module | what is in it |
//! |---|---|
//! | [`long_rows`](mod@long_rows) | all of a buffer, long rows, equal segments: a block or several for each |
//! | [`rows`](mod@rows) | short rows: a few lanes for each |
//! | [`columns`](mod@columns) | columns: a column of threads for four |
//! | [`segments`](mod@segments) | segments by an array of offsets: a lane, a warp or blocks for each |
//! | [`pairs`](mod@pairs) | two inputs: the dot product |
//! | [`exact`] | exact sums of floats, of every shape |
//! | [`fold`] | how the states of lanes, warps and blocks become one |
//! | [`gather`] | the state of what a thread has loaded at once |
//! | `run`, `remainder` | what a thread folds of a row's tiles, and of what is in none of them |
//! | [`tuning`] | the numbers that were chosen by measurement |
//!
//! The engines take any [`Operator`](crate::ops::Operator), but for those of [`exact`], which sum floats.

pub mod columns;
pub mod exact;
pub mod fold;
pub mod gather;
pub mod long_rows;
pub mod pairs;
mod remainder;
pub mod rows;
mod run;
pub mod segments;
pub mod tuning;
