//! Writes the results of columns.

use cuda_std::prelude::*;

use super::COLUMNS;
use super::place::{Place, four};
use crate::ops::Operator;

/// Writes the results of the states in the first row of threads; see [`store_results`].
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

/// Writes the results of a thread's columns, with one access for contiguous and aligned ones. With 16 rows, one result
/// is written for every 16 elements read, and every access of a write costs one of L2.
#[inline(always)]
pub(in crate::reduce) fn store_results<T: Element, R: Plain>(
    results: [R; COLUMNS],
    output: &GlobalMut<R>,
    first: usize,
    place: &Place,
) {
    // As many columns as an access of the input has.
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
    // SAFETY: the number of columns is a multiple of `together`. So if the first of `together` columns exists, all do,
    // and it is a multiple of `together` after `first`, which is aligned.
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
