//! What is written for each column.

use cuda_std::prelude::*;

use super::COLUMNS;
use super::place::Place;
use crate::ops::Operator;

/// Writes what the first row of threads has.
#[inline(always)]
fn store_outputs<O: Operator<T>, T: Element>(
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    place: &Place,
) {
    if place.row > 0 {
        return;
    }
    place.each(|c| output.store(first + place.column(c), O::finish(states[c], rows as u64)));
}

/// [`store_outputs`], those of a thread together that are neighbours, and aligned for it: of 16 rows a result is written for 16
/// elements that are read, and what is written in parts takes as many accesses of L2 as it has parts.
#[inline(always)]
pub(super) fn store_many_outputs<O: Operator<T>, T: Element>(
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    place: &Place,
) {
    // As many as an access of the input has.
    let together = if size_of::<T>() < 8 { COLUMNS } else { 2 };
    let bytes = size_of::<O::Output>() * together;
    let are_together = place.has_neighbours(together)
        && place.all.is_multiple_of(together)
        && output.is_aligned_to(first, if bytes < 16 { bytes } else { 16 })
        && first <= output.len()
        && output.len() - first >= place.all;
    if !are_together {
        store_outputs::<O, T>(states, output, first, rows, place);
    } else if place.row == 0 {
        let finish = |c: usize| O::finish(states[c], rows as u64);
        let (left, right) = (first + place.column(0), first + place.column(2));
        // SAFETY: columns are a multiple of those that are neighbours, so where the first of these is, all are, at a multiple of
        // so many behind `first`.
        unsafe {
            if together == COLUMNS && bytes <= 16 {
                if place.has_first() {
                    output.store_neighbours_unchecked(left, [finish(0), finish(1), finish(2), finish(3)]);
                }
                return;
            }
            if place.has_first() {
                output.store_neighbours_unchecked(left, [finish(0), finish(1)]);
            }
            if place.has(2) {
                output.store_neighbours_unchecked(right, [finish(2), finish(3)]);
            }
        }
    }
}
