//! Sums columns with any elements, by whole warps, if the fast path has not summed them.

use cuda_std::global::issue_loads;
use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, warp_vote_ballot};

use super::column_share::{Exponents, Share};
use super::column_sums::{NOT_SUMMED, Slots, load_slot};
use super::full_range_sum::{FullRangeSums, TERMS};
use super::global_superaccumulators::GlobalSuperaccumulators;
use super::grid::Grid;
use super::partial::Partial;
use super::result::{ExactOperator, Results, result_of};
use super::superaccumulator::{Superaccumulator, warp_id};
use super::terms::{Float, Terms};
use super::unrolled::each;
use crate::reduce::columns::{BLOCK, COLUMNS};

/// Warps of a block.
const WARPS: usize = BLOCK / 32;

/// The number of elements that a thread has in flight.
const AT_ONCE: usize = 8;

/// The number of elements that a block has in flight: some rows of some columns.
const CHUNK: usize = BLOCK * AT_ONCE;

/// The number of rows that a warp adds together.
const ROWS: usize = 32 * TERMS;

type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;
type Sums<O, T> = FullRangeSums<GridOf<O, T>>;

/// The shared memory used.
#[derive(Clone, Copy)]
pub(super) struct Memory<G: Grid> {
    /// [`NOT_SUMMED`] in the first of a column's slots marks a column to sum.
    pub slots: Slots,
    /// The indices of these columns.
    pub list: Exponents,
    pub superacc: Superaccumulator<G>,
}

/// Sums a block's share of the columns that are not yet summed, with any elements.
///
/// The sums go to the output, or to the superaccumulators if other blocks share the columns. All threads must call
/// this. Out of line.
///
/// Each warp takes a column; with fewer columns than warps, several warps share one. A chunk of the columns' rows is
/// loaded row by row, so that loads are coalesced, and reaches the warps through shared memory.
#[cold]
#[inline(never)]
pub(super) fn sum_again<O: ExactOperator<T>, T: Element>(
    input: Global<T>,
    share: Share,
    memory: Memory<GridOf<O, T>>,
    rows_of_matrix: usize,
    superaccumulators: Option<GlobalMut<i64>>,
    results: Results<'_, O::Terms>,
) {
    let Memory { slots, list, superacc } = memory;
    // Columns are padded by one element, so that they are in different banks.
    let staged = shared_array!(T; CHUNK + WARPS);
    let all = list_columns(&memory, share.lanes as usize);
    let sums = Sums::<O, T>::new(slots);
    let (thread, warp) = (thread::index_in_block::<BLOCK>(), warp_id() % WARPS);
    let count = share.whole() + usize::from(share.left > 0);
    let mut first = 0;
    while first < all {
        // A power of two, which avoids divisions.
        let columns = if all - first < WARPS { (all - first).next_power_of_two() } else { WARPS };
        let (columns_log, rows) = (columns.trailing_zeros(), CHUNK >> columns.trailing_zeros());
        let (together_log, together) = (WARPS.ilog2() - columns_log, WARPS >> columns_log);
        sums.begin(warp);
        // This thread loads rows of one column, `step` apart.
        let own = first + (thread & (columns - 1));
        let index = if own < all { list.load(own) as usize } else { list.load(first) as usize };
        let (place, c) = (share.place::<T>(index / COLUMNS), index % COLUMNS);
        let of_column = if own < all { share.elements(&place, c) } else { 0 };
        let at = share.start + share.begin * share.pitch + place.offset(c, share.pitch);
        let (distance, step) = (share.folded_rows as usize * share.pitch, BLOCK >> columns_log);
        let (mut begin, mut additions) = (0, 0);
        while begin < count {
            let row = (thread >> columns_log) + begin;
            let mut items = [T::default(); AT_ONCE];
            each::<AT_ONCE>(|k| {
                let i = row + k * step;
                // SAFETY: the column has such an element, or its first, and the share is inside the input.
                items[k] = unsafe { input.load_unchecked(at + if i < of_column { i * distance } else { 0 }) };
            });
            issue_loads();
            thread::sync_threads();
            each::<AT_ONCE>(|k| {
                let i = row + k * step;
                let place = (thread & (columns - 1)) * (rows + 1) + (i - begin);
                staged.store(place, if i < of_column { items[k] } else { T::default() });
            });
            thread::sync_threads();
            let place = (warp >> together_log) * (rows + 1) + (warp & (together - 1)) * ROWS + lane_id() as usize;
            let mut terms = [Float::<O::Terms>::default(); TERMS];
            each::<TERMS>(|j| terms[j] = O::Terms::term(staged.load(place + 32 * j)));
            sums.add(warp, terms);
            additions += 1;
            if additions == Sums::<O, T>::ADDITIONS {
                sums.propagate_carries(warp);
                additions = 1;
            }
            begin += rows;
        }
        let superacc = superacc.at(warp).begin();
        sums.end(warp, &superacc);
        if together > 1 {
            thread::sync_threads();
        }
        let column = first + (warp >> together_log);
        if warp & (together - 1) == 0 && column < all {
            let index = list.load(column) as usize;
            let place = share.place::<T>(index / COLUMNS);
            let to = share.output(place.column(index % COLUMNS));
            superacc.replace(|word| superacc.sum_of(warp, 1, together, word));
            if let Some(superaccumulators) = &superaccumulators {
                let superaccumulators = GlobalSuperaccumulators::<GridOf<O, T>>::new(superaccumulators);
                Superaccumulator::<GridOf<O, T>>::each_word(|word| {
                    superaccumulators.add_word(to, word, superacc.word(word))
                });
            } else {
                let partial = Partial { has_limbs: true, ..Partial::ZERO };
                let value = result_of(results.finish, partial, superacc, rows_of_matrix as u64);
                if lane_id() == 0 {
                    results.store(to, value);
                }
            }
        }
        // The loop over the next columns has a barrier before it overwrites what was read here.
        first += columns;
    }
}

/// Lists the columns to sum, in ascending order. Returns their number.
#[inline(always)]
fn list_columns<G: Grid>(memory: &Memory<G>, lanes: usize) -> usize {
    let Memory { slots, list, .. } = *memory;
    // The number of columns that each warp finds in each round.
    let found = shared_array!(u32; WARPS * COLUMNS);
    let (thread, warp) = (thread::index_in_block::<BLOCK>(), warp_id() % WARPS);
    // The column of a lane in a round: each lane has four columns.
    let number = |round: usize| round * BLOCK + thread;
    let ballot = |round: usize| {
        let number = number(round);
        let is_again =
            number < lanes * COLUMNS && load_slot(slots, number % COLUMNS * BLOCK + number / COLUMNS) == NOT_SUMMED;
        warp_vote_ballot(FULL_MASK, is_again)
    };
    let ballots = [ballot(0), ballot(1), ballot(2), ballot(3)];
    if lane_id() == 0 {
        each::<COLUMNS>(|round| found.store(round * WARPS + warp, ballots[round].count_ones()));
    }
    // All threads have read the list's memory before.
    thread::sync_threads();
    let (mut all, mut before) = (0, [0_u32; COLUMNS]);
    let mut k = 0;
    while k < (COLUMNS * WARPS) as u32 {
        k = keep_rolled(k);
        each::<COLUMNS>(|round| before[round] = if k as usize == round * WARPS + warp { all } else { before[round] });
        all += found.load(k as usize);
        k += 1;
    }
    each::<COLUMNS>(|round| {
        if ballots[round] >> lane_id() & 1 == 1 {
            let rank = (ballots[round] & ((1 << lane_id()) - 1)).count_ones();
            list.store((before[round] + rank) as usize, number(round) as u32);
        }
    });
    thread::sync_threads();
    all as usize
}
