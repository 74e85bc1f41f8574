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

/// [`store_outputs`], the four of a thread together where they are neighbours and aligned for it: of 16 rows a result is
/// written for 16 elements that are read, and what is written in parts takes as many accesses of L2 as it has parts.
#[inline(always)]
pub(super) fn store_many_outputs<O: Operator<T>, T: Element>(
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    place: &Place,
) {
    let bytes = size_of::<O::Output>() * COLUMNS;
    let are_together = size_of::<T>() < 8
        && place.has_neighbours()
        && place.all.is_multiple_of(COLUMNS)
        && output.is_aligned_to(first, if bytes < 16 { bytes } else { 16 })
        && first <= output.len()
        && output.len() - first >= place.all;
    if !are_together {
        store_outputs::<O, T>(states, output, first, rows, place);
    } else if place.row == 0 && place.has(0) {
        let (first, finish) = (first + place.column, |c: usize| O::finish(states[c], rows as u64));
        // SAFETY: columns are a multiple of four, so all four are there, at a multiple of four behind `first`.
        unsafe {
            if bytes <= 16 {
                output.store_neighbours_unchecked(first, [finish(0), finish(1), finish(2), finish(3)]);
            } else {
                output.store_neighbours_unchecked(first, [finish(0), finish(1)]);
                output.store_neighbours_unchecked(first + 2, [finish(2), finish(3)]);
            }
        }
    }
}
