//! Reductions of two inputs, element by element: the dot product.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use super::long_rows::Split;
use super::remainder::{elements_per_block, stride};
use super::tile_range::TileRange;
use crate::ops::{Dot, Operator, PairOperator, constant};

/// 16-byte vectors of each input's tile that a thread folds. Both inputs together have the vectors of a tile of
/// [`long_rows`](mod@super::long_rows).
pub const VECTORS_IN_FLIGHT: usize = 2;

/// The arguments of [`pairs`](fn@pairs).
#[arguments]
pub struct PairArgs<T: Plain, R: Plain> {
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
    /// Tiles of a split; the longer splits have one more.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer_splits: u32,
    /// The tile states of the rows' splits; all 0 before and after the launch.
    pub tile_states: GlobalMut<[u64; 2]>,
    /// A result for each row.
    pub output: GlobalMut<R>,
}

/// Reduces rows of `len` pairs to one output each.
///
/// Each input has its own distances between rows, and between groups of `rows` rows. So an input whose rows, or groups,
/// are repeated is not copied. Everything else is as in [`long_rows`](fn@super::long_rows::long_rows), with tiles of
/// half the elements.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [Dot] x [i8, i16, i32, i64, u8, u16, u32, u64],
    max_threads = crate::reduce::long_rows::MAX_THREADS,
    min_blocks = 2,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn pairs<O: PairOperator<T>, T: Element>(args: PairArgs<T, <O as Operator<T>>::Output>) {
    let PairArgs { first, second, rows, len, pitch, second_pitch, group_pitch, second_group_pitch, .. } = args;
    let PairArgs { splits, tiles, longer_splits, tile_states, output, .. } = args;
    let split = Split::of_block(splits, tiles, longer_splits);
    split.launch_dependents();
    let place = PairRows { rows, pitches: [pitch, second_pitch], group_pitches: [group_pitch, second_group_pitch] };
    // SAFETY: the row is inside both inputs, as promised by the caller.
    let (first, second) = unsafe { place.of_row(&first, &second, split.row) };
    let state = fold_pair_tiles::<O, T>((&first, &second), len, split.tile_range());
    split.finish::<O, T>(O::default(), state, |state| state, len, &tile_states, &output);
}

/// Where the rows of two inputs begin.
pub(super) struct PairRows {
    /// Rows of a group.
    pub rows: u32,
    /// The distance between rows of a group, in each input.
    pub pitches: [usize; 2],
    /// The distance between groups, in each input.
    pub group_pitches: [usize; 2],
}

impl PairRows {
    /// Both inputs, from the start of a row on.
    ///
    /// # Safety
    /// The row is inside both inputs.
    #[inline(always)]
    pub unsafe fn of_row<'a, T: Element>(
        &self,
        first: &Global<'a, T>,
        second: &Global<'a, T>,
        row: usize,
    ) -> (Global<'a, T>, Global<'a, T>) {
        let (mut group, mut row) = (0, row);
        // Most launches have one group, and no use for the division. A row is the number of a block, so it fits.
        if row >= self.rows as usize {
            group = (row as u32 / self.rows) as usize;
            row = (row as u32 % self.rows) as usize;
        }
        let start = |input: usize| group * self.group_pitches[input] + row * self.pitches[input];
        // SAFETY: as promised by the caller.
        unsafe { (first.skip_unchecked(start(0)), second.skip_unchecked(start(1))) }
    }
}

/// This thread's state over a range of tiles of a row: the first `len` pairs.
#[inline(always)]
fn fold_pair_tiles<O: PairOperator<T>, T: Element>(
    (first, second): (&Global<T>, &Global<T>),
    len: usize,
    tiles: TileRange,
) -> O::State {
    let lanes = T::Vector::LEN;
    let (stride, tile) = (stride::<T>(), elements_per_block::<T>(VECTORS_IN_FLIGHT as u32));
    let own = thread::thread_idx_x() as usize * lanes;

    let (begin, end) = tiles.elements(tile, len, false);
    let (rest, whole) = if tiles.is_last { (own + end, len / lanes * lanes) } else { (0, 0) };
    let single = whole + own / lanes;
    let load_single = |input: &Global<T>| {
        // SAFETY: `single` was just compared with `len`.
        if tiles.is_last && single < len { unsafe { input.load_unchecked(single) } } else { T::default() }
    };

    let mut state = constant!(O::NEUTRAL);
    let mut i = begin + own;
    let of_tile = |a: [T::Vector; VECTORS_IN_FLIGHT], b: [T::Vector; VECTORS_IN_FLIGHT]| {
        O::combine(O::reduce_pairs(a[0], b[0]), O::reduce_pairs(a[1], b[1]))
    };
    let are_aligned = first.elements_past(0, 16) == 0 && second.elements_past(0, 16) == 0;
    while are_aligned && i + tile < end {
        let load = |input: &Global<T>, i: usize| {
            // SAFETY: both tiles are inside both rows, which begin at multiples of 16 bytes.
            unsafe { input.load_aligned_vectors_unchecked::<VECTORS_IN_FLIGHT>(i, stride) }
        };
        let (a, b, c, d) = (load(first, i), load(second, i), load(first, i + tile), load(second, i + tile));
        issue_loads();
        state = O::combine(state, of_tile(a, b));
        state = O::combine(state, of_tile(c, d));
        i += 2 * tile;
    }
    while i < end {
        // SAFETY: the tile is inside both rows.
        let (a, b) = unsafe {
            (
                first.load_vectors_unchecked::<VECTORS_IN_FLIGHT>(i, stride),
                second.load_vectors_unchecked::<VECTORS_IN_FLIGHT>(i, stride),
            )
        };
        state = O::combine(state, of_tile(a, b));
        i += tile;
    }
    if !tiles.is_last {
        return state;
    }
    // SAFETY: vectors that begin before `whole` are inside both rows.
    let (mut a, mut b) = unsafe {
        (
            first.load_vectors_before::<VECTORS_IN_FLIGHT>(rest, stride, whole),
            second.load_vectors_before::<VECTORS_IN_FLIGHT>(rest, stride, whole),
        )
    };
    let (of_first, of_second) = (load_single(first), load_single(second));
    issue_loads();
    i = rest;
    while i < whole {
        state = O::combine(state, O::reduce_pairs(a[0], b[0]));
        (a[0], b[0]) = (a[1], b[1]);
        i += stride;
    }
    if single < len {
        state = O::combine(state, O::lift_pair(of_first, of_second));
    }
    state
}
