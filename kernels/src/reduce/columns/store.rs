//! What is written for each column.

use cuda_std::prelude::*;

use super::COLUMNS;
use super::place::{Place, four};
use crate::ops::Operator;

/// Writes what is made of the states that the first row of threads has; see [`store_results`].
#[inline(always)]
pub(super) fn store_many_outputs<O: Operator<T>, T: Element>(
    operator: O,
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    place: &Place,
) {
    if place.row == 0 {
        store_results::<T, _>(four(|c| operator.finish(states[c], rows as u64)), output, first, place);
    }
}

/// Writes the results of a thread's columns, those together that are neighbours, and aligned for it. Of 16 rows a
/// result is written for 16 elements that are read, and what is written in parts takes as many accesses of L2 as it has
/// parts.
#[inline(always)]
pub(in crate::reduce) fn store_results<T: Element, R: Plain>(
    results: [R; COLUMNS],
    output: &GlobalMut<R>,
    first: usize,
    place: &Place,
) {
    // As many as an access of the input has.
    let together = if size_of::<T>() < 8 { COLUMNS } else { 2 };
    let bytes = size_of::<R>() * together;
    let are_together = place.has_neighbours(together)
        && place.all.is_multiple_of(together)
        && output.is_aligned_to(first, if bytes < 16 { bytes } else { 16 })
        && first <= output.len()
        && output.len() - first >= place.all;
    if !are_together {
        place.each(|c| output.store(first + place.column(c), results[c]));
        return;
    }
    let [a, b, c, d] = results;
    let (left, right) = (first + place.column(0), first + place.column(2));
    // SAFETY: the number of columns is a multiple of `together`, so where the first of `together` columns exists, all
    // do, and it is at a multiple of `together` behind `first`, which is aligned.
    unsafe {
        if together == COLUMNS && bytes <= 16 {
            if place.has_first() {
                output.store_neighbours_unchecked(left, results);
            }
            return;
        }
        if place.has_first() {
            output.store_neighbours_unchecked(left, [a, b]);
        }
        if place.has(2) {
            output.store_neighbours_unchecked(right, [c, d]);
        }
    }
}
