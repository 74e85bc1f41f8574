//! Sums columns with any elements, by lanes' superaccumulators, if the fast path has not summed them.

use cuda_std::global::issue_loads;
use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, warp_vote_ballot};
use exact_sum::HighestBits;

use super::column_share::{Exponents, Share};
use super::column_sums::{NOT_SUMMED, Slots, load_slot};
use super::global_superaccumulators::{GlobalSuperaccumulators, WordRange, finish_words};
use super::lane_superaccumulators::LaneSuperaccumulators;
use super::result::{ExactOperator, Results, result_of_limbs};
use super::superaccumulator::{warp_id, words};
use super::terms::{Float, Terms};
use super::unrolled::each;
use crate::reduce::columns::{BLOCK, COLUMNS};

/// Warps of a block.
const WARPS: usize = BLOCK / 32;

/// The number of elements that a thread adds while as many are in flight.
const ELEMENTS_IN_FLIGHT: usize = 8;

type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;
type Lanes<O, T> = LaneSuperaccumulators<GridOf<O, T>>;

/// Sums a block's share of the columns that are not yet summed, with any elements. The first of a column's `slots` is
/// [`NOT_SUMMED`] if it is one of them; `list` may have any contents.
///
/// The sums go to the output, or to `superaccumulators` if other blocks share the columns. Returns the range of words
/// to which this thread added. All threads must call this. Out of line.
///
/// Each superaccumulator takes a column; with few columns, several take the rows of one round-robin. Neighbouring lanes
/// have neighbouring columns, so that loads are coalesced.
#[cold]
#[inline(never)]
pub(super) fn sum_full_range<O: ExactOperator<T>, T: Element>(
    input: Global<T>,
    share: Share,
    (slots, list): (Slots, Exponents),
    rows_of_matrix: usize,
    terms: O::Terms,
    superaccumulators: Option<GlobalMut<i64>>,
    results: Results<'_, O::Terms>,
) -> WordRange {
    let all = list_columns(slots, list, share.lanes as usize);
    let Some(slot) = Lanes::<O, T>::slot(BLOCK) else {
        panic!("the launch has too little dynamic shared memory");
    };
    let of_block = slot.count();
    let thread = thread::index_in_block::<BLOCK>();
    let rows = share.whole() + usize::from(share.left > 0);
    let distance = share.folded_rows as usize * share.pitch;
    let (mut first, mut range) = (0, WordRange::EMPTY);
    while first < all {
        let columns = if all - first < of_block { all - first } else { of_block };
        let parts = of_block / columns;
        let (column, part) = (slot.index() % columns, slot.index() / columns);
        let index = list.load(first + column) as usize;
        let (of_column, c) = (share.place::<T>(index / COLUMNS), index % COLUMNS);
        let end = if part < parts { share.elements(&of_column, c) } else { 0 };
        let at = share.element(&of_column, c, 0);
        // The rows of all lanes that have this column.
        let step = parts * slot.lanes() as usize;
        let mut row = part * slot.lanes() as usize + slot.turn() as usize;
        let mut lanes = Lanes::<O, T>::begin();
        let load = |row: usize| {
            let mut items = [T::default(); ELEMENTS_IN_FLIGHT];
            each::<ELEMENTS_IN_FLIGHT>(|k| {
                let i = row + k * step;
                // SAFETY: the column has such an element, or its first, and the share is inside the input.
                items[k] = unsafe { input.load_unchecked(at + if i < end { i * distance } else { 0 }) };
            });
            items
        };
        let (mut taken, mut next) = (0, load(row));
        while taken < rows {
            let items = next;
            next = load(row + ELEMENTS_IN_FLIGHT * step);
            issue_loads();
            let mut of_items = [Float::<O::Terms>::default(); ELEMENTS_IN_FLIGHT];
            each::<ELEMENTS_IN_FLIGHT>(|k| {
                of_items[k] = terms.term(if row + k * step < end { items[k] } else { T::default() });
            });
            lanes.add(slot, of_items);
            row += ELEMENTS_IN_FLIGHT * step;
            taken += ELEMENTS_IN_FLIGHT * step;
        }
        lanes.complete(slot);
        thread::sync_threads();
        if parts > 1 {
            slot.add_parts::<BLOCK>(columns, parts);
            thread::sync_threads();
        }
        if thread < columns {
            let of_column = slot.of_index(thread);
            if parts > 1 {
                Lanes::<O, T>::propagate_carries(of_column);
            }
            let index = list.load(first + thread) as usize;
            let to = share.output(share.place::<T>(index / COLUMNS).column(index % COLUMNS));
            let word = |k| Lanes::<O, T>::limb_or_special(of_column, k);
            let count = rows_of_matrix as u64;
            if let Some(superaccumulators) = &superaccumulators {
                let (batch, columns) = (share.batch as usize, share.columns);
                let superaccumulators = GlobalSuperaccumulators::<GridOf<O, T>>::new(superaccumulators, batch, columns);
                let mut k = 0;
                while k < words::<GridOf<O, T>>() {
                    range = range.union(superaccumulators.add_word(to - batch * columns, k, word(k)));
                    k += 1;
                }
            } else if count <= HighestBits::MAX_COUNT {
                let (leading, specials) = Lanes::<O, T>::highest_bits(of_column);
                let value = result_of_limbs::<O::Terms, GridOf<O, T>>(results.finish, specials, leading, count);
                results.store(to, value);
            } else {
                results.store(
                    to,
                    finish_words::<O::Terms, GridOf<O, T>>(
                        results.finish,
                        WordRange::all::<GridOf<O, T>>(),
                        word,
                        |_| {},
                        count,
                    ),
                );
            }
        }
        // Before the superaccumulators are used for other columns.
        thread::sync_threads();
        first += columns;
    }
    range
}

/// Lists the columns to sum, in ascending order. Returns their number.
#[inline(always)]
fn list_columns(slots: Slots, list: Exponents, lanes: usize) -> usize {
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
