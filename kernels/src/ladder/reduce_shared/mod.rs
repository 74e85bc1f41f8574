//! Reductions in shared memory: the ladder of seeds 002 and 003, and on to the kernel that the library launches.
//!
//! All rungs but the last two do the same work. A block reduces a contiguous segment of the input to one number and
//! writes that to `partials` at its block's index; from [`grid_stride`](fn@grid_stride) on, a block takes elements that
//! are a grid apart. The host launches the same rung over the partials until one number is left.
//!
//! | rung | changes | removes |
//! |---|---|---|
//! | [`divergent_modulo`](fn@divergent_modulo) | | |
//! | [`strided_index`](fn@strided_index) | which threads work | divergent warps |
//! | [`sequential`](fn@sequential) | which elements they add | bank conflicts |
//! | [`first_add_on_load`](fn@first_add_on_load) | two elements per thread | threads that only load |
//! | [`unroll_last_warp`](fn@unroll_last_warp) | the last 64 elements | block barriers |
//! | [`complete_unroll`](fn@complete_unroll) | the loop | loop arithmetic |
//! | [`grid_stride`](fn@grid_stride) | few blocks, each over the whole input | block launches |
//! | [`warp_shuffle`](fn@warp_shuffle) | registers instead of shared memory | barriers |
//! | [`vectorized`](fn@vectorized) | 16-byte loads, several in flight | exposed memory latency |
//! | [`single_launch`](fn@single_launch) | the last block adds the partials | the second launch |
//! | [`exact_long_rows`] | integers instead of floats | rounding, and the order of additions |
//!
//! [`exact_long_rows`]: fn@crate::reduce::exact::long_rows::exact_long_rows
//!
//! The last rung is the kernel that the library launches for the [`Sum`](crate::ops::Sum) of a whole input of floats.
//! It has no instance for integers, because every rung's sum of integers is exact.
//!
//! The length is arbitrary: threads past the end of the input add the neutral element.

mod block_segment;
mod block_sum;
mod rung10_single_launch;
mod rung1_divergent_modulo;
mod rung2_strided_index;
mod rung3_sequential;
mod rung4_first_add_on_load;
mod rung5_unroll_last_warp;
mod rung6_complete_unroll;
mod rung7_grid_stride;
mod rung8_warp_shuffle;
mod rung9_vectorized;

pub use rung1_divergent_modulo::divergent_modulo;
pub use rung2_strided_index::strided_index;
pub use rung3_sequential::sequential;
pub use rung4_first_add_on_load::first_add_on_load;
pub use rung5_unroll_last_warp::unroll_last_warp;
pub use rung6_complete_unroll::complete_unroll;
pub use rung7_grid_stride::grid_stride;
pub use rung8_warp_shuffle::warp_shuffle;
pub use rung9_vectorized::vectorized;
pub use rung10_single_launch::{MAX_BLOCKS, SINGLE_LAUNCH_BLOCK, blocks_for, single_launch};

use cuda_std::prelude::*;

/// The arguments of each rung.
#[arguments]
pub struct FoldArgs<T: Plain> {
    /// The numbers.
    pub input: Global<T>,
    /// A partial sum for each block.
    pub partials: GlobalMut<T>,
}
