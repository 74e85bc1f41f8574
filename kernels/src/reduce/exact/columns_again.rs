//! Columns that have no sum yet, summed by whole warps, of any elements.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp};

use super::column_sums::{NOT_SUMMED, Slots, load_slot};
use super::columns::Share;
use super::grid::Grid;
use super::pieces::Piece;
use super::residue::Residues;
use super::rest::{Rest, warp_id};
use super::result::{ExactOperator, result_of};
use super::terms::{Summand, Terms, each};
use super::warp_sum::WarpSum;
use crate::reduce::columns::BLOCK;

/// Columns that warps take at once: two of a thread's four.
const AT_ONCE: usize = 2;

/// Warps of a block.
const WARPS: usize = BLOCK / 32;

/// Warps that share two columns, if these have many elements.
const TOGETHER: usize = 4;

/// What is summed again.
#[derive(Clone, Copy)]
pub(super) struct Again<G: Grid> {
    pub share: Share,
    /// In the first of a column's is [`NOT_SUMMED`], if it is to be summed.
    pub slots: Slots,
    pub rest: Rest<G>,
    /// Rows of the whole matrix.
    pub rows: usize,
    /// Whether other blocks have a part of the columns.
    pub is_shared: bool,
}

/// Sums a block's share of the columns that are not summed, of any elements: to the output, or, if other blocks have a
/// share of them, to the residues. All threads come here. Out of line.
#[cold]
#[inline(never)]
pub(super) fn sum_again<O: ExactOperator<T>, T: Summand>(
    input: &Global<T>,
    again: Again<<O::Terms as Terms>::Grid>,
    residues: &GlobalMut<i64>,
    output: &GlobalMut<O::Output>,
) {
    let Again { share, slots, .. } = again;
    // Few elements are summed by one warp, so that no warp waits for another one.
    const FEW: usize = 512;
    let are_few = share.whole() <= FEW;
    let (warps, of_block) = if are_few { (1, WARPS) } else { (TOGETHER, WARPS / TOGETHER) };
    // Two columns of a thread, then its other two, then those of the next.
    let mut pair = warp_id() / warps;
    let own = warp_id() % warps;
    while pair < 2 * share.lanes as usize {
        let (lane, c) = (pair / 2, AT_ONCE * (pair % 2));
        let is_again = |c: usize| load_slot(slots, c * BLOCK + lane) == NOT_SUMMED;
        let are_again = [is_again(c), is_again(c + 1)];
        let place = share.place::<T>(lane);
        each::<AT_ONCE>(|k| {
            if are_again[k] {
                sum_column::<O, T>(
                    input,
                    &again,
                    own,
                    warps,
                    k,
                    |i| share.element(&place, c + k, i),
                    share.elements(&place, c + k),
                );
            }
        });
        if !are_few {
            thread::sync_threads();
        }
        each::<AT_ONCE>(|k| {
            if are_again[k] && own == k % warps {
                finish::<O, T>(&again, warps, k, place.column(c + k), residues, output);
            }
        });
        if !are_few {
            thread::sync_threads();
        }
        pair += of_block;
    }
}

/// The superaccumulator of a warp for one of its two columns.
#[inline(always)]
fn slot(warp: usize, k: usize) -> usize {
    warp * AT_ONCE + k
}

/// Sums what a warp, one of `warps`, has of the `count` elements of a column, to its superaccumulator `k`.
#[inline(always)]
fn sum_column<O: ExactOperator<T>, T: Summand>(
    input: &Global<T>,
    again: &Again<<O::Terms as Terms>::Grid>,
    own: usize,
    warps: usize,
    k: usize,
    element: impl Fn(usize) -> usize,
    count: usize,
) {
    /// Elements that a lane has at once.
    const ELEMENTS: usize = 4;
    let rest = again.rest.at(slot(warp_id(), k)).begin();
    let mut first = own * 32 * ELEMENTS;
    while first < count {
        let mut items = [T::default(); ELEMENTS];
        each::<ELEMENTS>(|k| {
            let i = first + 32 * k + lane_id() as usize;
            if i < count {
                // SAFETY: the column has such an element, and the share is inside of the input.
                items[k] = unsafe { input.load_unchecked(element(i)) };
            }
        });
        let lowest = <<O::Terms as Terms>::Grid as Grid>::LOWEST;
        let mut sum = WarpSum::in_window(<O::Terms as Terms>::WINDOW.unwrap_or(lowest));
        sum.take_items::<O::Terms, ELEMENTS, ELEMENTS>(items, &rest);
        sum.end_in_limbs(&rest);
        first += warps * 32 * ELEMENTS;
    }
}

/// Gives out the sum of the superaccumulators `k` of the warps that had a column.
#[inline(always)]
fn finish<O: ExactOperator<T>, T: Summand>(
    again: &Again<<O::Terms as Terms>::Grid>,
    warps: usize,
    k: usize,
    column: usize,
    residues: &GlobalMut<i64>,
    output: &GlobalMut<O::Output>,
) {
    let rest = again.rest.at(slot(warp_id(), k));
    let first = slot(warp_id() / warps * warps, k);
    rest.replace(|word| rest.sum_of(first, AT_ONCE, warps, word));
    let result = again.share.output(column);
    if again.is_shared {
        let residues = Residues::<<O::Terms as Terms>::Grid>::new(residues);
        Rest::<<O::Terms as Terms>::Grid>::each_word(|word| residues.add_word(result, word, rest.word(word)));
        return;
    }
    let piece = Piece { has_limbs: true, ..Piece::ZERO };
    let value = result_of::<O::Finish, _>(piece, rest, again.rows as u64);
    if lane_id() == 0 {
        output.store(result, value);
    }
    // Before the words are another column's.
    sync_warp(FULL_MASK);
}
