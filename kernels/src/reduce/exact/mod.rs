//! Exact sums: the one result that is right, rounded once, whatever the order.
//!
//! | module | what is in it |
//! |---|---|
//! | [`terms`] | what is summed: elements, squares, products |
//! | [`format`](mod@format) | what terms are extracted as, and what lanes sum in |
//! | [`grid`] | the fixed-point number that a sum is |
//! | [`warp_sum`] | what a warp has summed, of any terms |
//! | [`wide_sum`] | sums of terms of any exponents by warps, in bins |
//! | [`rest`] | what has no room in its lanes' integers |
//! | [`pieces`] | how sums of lanes, warps and blocks become one |
//! | [`result`] | what is made of the sum for the output: itself, the mean or the norm, in which format |
//! | [`formula`] | how that is computed, and rounded once |
//! | [`custom`] | whole inputs and long rows of custom terms |
//! | [`long_rows`](mod@long_rows) | whole inputs and long rows, of one input or two |
//! | [`rows`] | short rows |
//! | [`columns`](mod@columns), `columns_again` | columns; columns whose elements are in no window |
//! | [`column_sums`], [`column_tile`] | what a thread sums of its columns; their elements |
//! | [`residue`] | sums that blocks share, in global memory |
//! | [`states`] | sums that stay in global memory, to which launches add |
//! | [`segments`](mod@segments), [`long_segments`](mod@long_segments) | segments of any lengths, by offsets |
//!
//! The arithmetic is that of the crate `exact_sum`.

pub mod column_sums;
pub mod column_tile;
pub mod columns;
mod columns_again;
pub mod custom;
pub mod format;
pub mod formula;
pub mod grid;
pub mod long_rows;
pub mod long_segments;
pub mod pieces;
pub mod residue;
pub mod rest;
pub mod result;
pub mod rows;
pub mod segments;
pub mod states;
pub mod terms;
pub mod warp_sum;
pub mod wide_sum;
