//! Adds whole inputs and long rows to states, of one input or two, with one block or several for each row.

use cuda_std::prelude::*;
use cuda_std::warp::lane_id;
use half::{bf16, f16};

use super::States;
use crate::ops::{Dot, Sum, SumOfSquares};
use crate::reduce::exact::grid::Grid;
use crate::reduce::exact::long_rows::{PAIRS_IN_FLIGHT, VECTORS_IN_FLIGHT, sum_tiles};
use crate::reduce::exact::partial::{Partial, fold_block};
use crate::reduce::exact::result::{ExactOperator, ExactPairOperator};
use crate::reduce::exact::superaccumulator::{Superaccumulator, declare_superaccumulator, warp_id};
use crate::reduce::exact::superaccumulator_words::MAX_WARPS;
use crate::reduce::exact::terms::{Inputs, One, Terms, Two};
use crate::reduce::long_rows::Split;
use crate::reduce::pairs::PairRows;

/// Adds each row of `len` elements, `pitch` elements apart, to the state of the same index: the elements, or their
/// squares.
///
/// # Safety
/// As for [`long_rows`](fn@crate::reduce::long_rows::long_rows), but with a state for each row instead of an output,
/// and no tile states.
#[kernel(
    instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16],
    max_threads = crate::reduce::exact::long_rows::MAX_THREADS,
    min_blocks = 1
)]
pub unsafe fn exact_states_of_long_rows<O: ExactOperator<T>, T: Element>(
    input: Global<T>,
    len: usize,
    pitch: usize,
    splits: u32,
    tiles: u32,
    longer_splits: u32,
    states: GlobalMut<i64>,
) {
    let split = Split::of_block(splits, tiles, longer_splits);
    let start = split.row * pitch;
    add_split::<_, _, VECTORS_IN_FLIGHT>(One(&input), O::Terms::of_word(0), split, start, len, states);
}

/// The arguments of [`exact_states_of_pairs`](fn@exact_states_of_pairs).
#[arguments]
pub struct StatePairArgs<T: Plain> {
    /// The elements of one input.
    pub first: Global<T>,
    /// The elements of the other.
    pub second: Global<T>,
    /// Rows of a group.
    pub rows: u32,
    /// Elements of a row.
    pub len: usize,
    /// Elements of the first input from the start of a row to that of the next one of its group.
    pub pitch: usize,
    /// Likewise, of the second input.
    pub second_pitch: usize,
    /// Elements of the first input from the start of a group of rows to that of the next one.
    pub group_pitch: usize,
    /// Likewise, of the second input.
    pub second_group_pitch: usize,
    /// Blocks that share a row: its splits.
    pub splits: u32,
    /// Tiles of a split; the longer splits have one more. A tile has a vector for each thread of the block.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer_splits: u32,
    /// The running sums, one for each row.
    pub states: GlobalMut<i64>,
}

/// Adds the products of each row of two inputs to the state of the same index.
///
/// # Safety
/// As for [`exact_pairs`](fn@crate::reduce::exact::long_rows::exact_pairs), but with a state for each row instead of an
/// output, and no tile states.
#[kernel(
    instances = [Dot] x [f32, f64, f16, bf16],
    max_threads = crate::reduce::exact::long_rows::MAX_THREADS,
    min_blocks = 1
)]
pub unsafe fn exact_states_of_pairs<O: ExactPairOperator<T>, T: Element>(args: StatePairArgs<T>) {
    let StatePairArgs { first, second, rows, len, pitch, second_pitch, group_pitch, second_group_pitch, .. } = args;
    let StatePairArgs { splits, tiles, longer_splits, states, .. } = args;
    let split = Split::of_block(splits, tiles, longer_splits);
    let place = PairRows { rows, pitches: [pitch, second_pitch], group_pitches: [group_pitch, second_group_pitch] };
    // SAFETY: the row is inside both inputs, as promised by the caller.
    let (first, second) = unsafe { place.of_row(&first, &second, split.row) };
    // The inputs begin at the row.
    add_split::<_, _, PAIRS_IN_FLIGHT>(Two(&first, &second), O::Terms::of_word(0), split, 0, len, states);
}

/// Adds a split of the row of `len` elements from `start` on to the row's state.
#[inline(always)]
fn add_split<K: Terms, I: Inputs<K>, const VECTORS: usize>(
    inputs: I,
    terms: K,
    split: Split,
    start: usize,
    len: usize,
    states: GlobalMut<i64>,
) {
    let partials = shared_array!([u64; 2]; 2 * MAX_WARPS);
    let superacc: Superaccumulator<K::Grid> = declare_superaccumulator!();
    let superacc = superacc.begin();
    let sum = sum_tiles::<K, I, VECTORS>(inputs, terms, start, len, split.tile_range(), &superacc);
    let [of_first, of_low] = sum.of_both();
    let mut partial = fold_block(of_first, partials, &superacc, !K::Grid::HAS_LOW);
    let mut low = Partial::ZERO;
    if K::Grid::HAS_LOW {
        low = fold_block(of_low, shared_array!([u64; 2]; 2 * MAX_WARPS), &superacc, true);
        partial.has_limbs |= low.has_limbs;
    }
    if warp_id() == 0 {
        let states = States::new(states);
        if partial.has_limbs {
            superacc.gather(thread::block_dim_x() / 32, |_| 0);
        }
        states.add_partial(split.row, partial, superacc);
        if K::Grid::HAS_LOW {
            // Its limbs are added already.
            states.add_partial(split.row, Partial { has_limbs: false, ..low }, superacc);
        }
        if split.index == 0 && lane_id() == 0 {
            states.count(split.row, len);
        }
    }
}
