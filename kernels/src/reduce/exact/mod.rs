//! Exact sums, rounded once: the same result in any order.
//!
//! | module | contents |
//! |---|---|
//! | [`terms`] | the terms of a sum: elements, squares, products |
//! | [`format`](mod@format) | the floats in which terms are extracted, the integers in which lanes sum |
//! | [`grid`] | the fixed-point formats of sums |
//! | [`warp_sum`] | a warp's sum, of any terms |
//! | [`superaccumulator`] | superaccumulators in shared memory, for bits that do not fit in lanes' integers |
//! | [`lane_superaccumulators`] | superaccumulators of a few lanes each, for terms of any exponents |
//! | [`superaccumulator_words`] | the words of a superaccumulator in shared memory |
//! | [`partial`] | combines the sums of lanes, warps and blocks |
//! | [`result`] | the results of a sum (the sum, the mean or the norm), and their format |
//! | [`formula`] | the computation of a result, rounded once |
//! | `builtin`, [`custom`] | the kernels of built-in sums; sums of custom terms |
//! | [`long_rows`](mod@long_rows) | whole inputs and long rows, of one input or two |
//! | [`rows`], `full_range_rows` | short rows; short rows whose elements are not in their warp's window |
//! | `lane_rows` | the sums of a lane's share of its rows |
//! | `loaded` | the elements of a row that a lane loads |
//! | [`columns`](mod@columns), `columns_full_range` | columns; columns whose elements do not fit in a window |
//! | [`few_rows`], [`few_columns`] | columns of few rows; rows of few elements |
//! | `few_sums`, [`few_terms`] | what these have in common; sums of a few numbers in one or two `f64` |
//! | `column_share` | a block's share of a matrix |
//! | [`column_sums`], [`column_tile`] | a thread's sums of its columns; the elements of its columns |
//! | [`global_superaccumulators`] | sums that blocks share, in global memory |
//! | [`states`] | sums that stay in global memory, to which launches add |
//! | [`segments`](mod@segments), [`long_segments`](mod@long_segments) | segments of any lengths, by offsets |
//!
//! The crate `exact_sum` has the arithmetic.

cuda_std::on_host! {
    mod builtin;
}
mod column_share;
pub mod column_sums;
pub mod column_tile;
pub mod columns;
mod columns_full_range;
pub mod custom;
pub mod few_columns;
pub mod few_rows;
mod few_sums;
pub mod few_terms;
pub mod format;
pub mod formula;
mod full_range_rows;
pub mod global_superaccumulators;
pub mod grid;
pub mod lane_memory;
mod lane_rows;
pub mod lane_superaccumulators;
mod loaded;
pub mod long_rows;
pub mod long_segments;
pub mod partial;
pub mod result;
pub mod rows;
pub mod segments;
pub mod states;
pub mod superaccumulator;
pub mod superaccumulator_words;
pub mod terms;
pub(crate) mod unrolled;
pub mod warp_sum;
