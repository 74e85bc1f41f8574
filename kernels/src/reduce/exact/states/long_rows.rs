//! Adds whole inputs and long rows to states, with one block or several for each row.

use cuda_std::prelude::*;
use cuda_std::warp::lane_id;
use half::{bf16, f16};

use super::States;
use crate::reduce::exact::long_rows::{VECTORS_IN_FLIGHT, sum_tiles};
use crate::reduce::exact::partial::fold_block;
use crate::reduce::exact::superaccumulator::{Superaccumulator, declare_superaccumulator, warp_id};
use crate::reduce::exact::superaccumulator_words::MAX_WARPS;
use crate::reduce::exact::terms::{Elements, One, Summand, Terms};
use crate::reduce::long_rows::Split;

/// Adds each row of `len` elements, `pitch` elements apart, to the state of the same index.
///
/// # Safety
/// As for [`long_rows`](fn@crate::reduce::long_rows::long_rows), but with a state for each row instead of an output,
/// and no tile states.
#[kernel(
    instances = [f32, f64, f16, bf16],
    max_threads = crate::reduce::exact::long_rows::MAX_THREADS,
    min_blocks = 1
)]
pub unsafe fn exact_states_of_long_rows<T: Summand>(
    input: Global<T>,
    len: usize,
    pitch: usize,
    splits: u32,
    tiles: u32,
    longer_splits: u32,
    states: GlobalMut<i64>,
) {
    let split = Split::of_block(splits, tiles, longer_splits);
    let partials = shared_array!([u64; 2]; 2 * MAX_WARPS);
    let superacc: Superaccumulator<T::Grid> = declare_superaccumulator!();
    let superacc = superacc.begin();
    let start = split.row * pitch;
    let (terms, run) = (Elements::<T>::of_word(0), split.tile_range());
    let sum = sum_tiles::<_, _, VECTORS_IN_FLIGHT>(One(&input), terms, start, len, run, &superacc);
    let partial = fold_block(sum.of_lanes(), partials, &superacc, true);
    if warp_id() == 0 {
        let states = States::new(states);
        if partial.has_limbs {
            superacc.gather(thread::block_dim_x() / 32, |_| 0);
        }
        states.add_partial(split.row, partial, superacc);
        if split.index == 0 && lane_id() == 0 {
            states.count(split.row, len);
        }
    }
}
