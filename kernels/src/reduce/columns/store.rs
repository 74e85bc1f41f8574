//! Writes the results of columns.

use cuda_std::prelude::*;

use super::COLUMNS;
use super::thread_columns::{ThreadColumns, per_column};
use crate::ops::Operator;

/// Writes the results of the states in the first row of threads; see [`store_results`].
#[inline(always)]
pub(super) fn store_outputs<O: Operator<T>, T: Element>(
    operator: O,
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    thread_columns: &ThreadColumns,
) {
    if thread_columns.row == 0 {
        store_results::<T, _>(per_column(|c| operator.finish(states[c], rows as u64)), output, first, thread_columns);
    }
}

/// Writes the results of a thread's columns, with one access for contiguous and aligned ones. With few rows, the stores
/// matter: with 16, one result is written for every 16 elements read, and each store is an access to L2.
#[inline(always)]
pub(in crate::reduce) fn store_results<T: Element, R: Plain>(
    results: [R; COLUMNS],
    output: &GlobalMut<R>,
    first: usize,
    thread_columns: &ThreadColumns,
) {
    // The columns of an access to the input.
    let together = if size_of::<T>() < 8 { COLUMNS } else { 2 };
    let bytes = size_of::<R>() * together;
    let are_together = thread_columns.are_contiguous(together)
        && thread_columns.folded_columns.is_multiple_of(together)
        && bytes.is_power_of_two()
        && output.is_aligned_to(first, if bytes < 16 { bytes } else { 16 })
        && first <= output.len()
        && output.len() - first >= thread_columns.folded_columns;
    if !are_together {
        thread_columns.each(|c| output.store(first + thread_columns.column(c), results[c]));
        return;
    }
    let [a, b, c, d] = results;
    let (left, right) = (first + thread_columns.column(0), first + thread_columns.column(2));
    // SAFETY: the number of columns is a multiple of `together`. So if the first of `together` columns exists, all do,
    // and it is a multiple of `together` after `first`, which is aligned.
    unsafe {
        if together == COLUMNS && bytes <= 16 {
            if thread_columns.has_any() {
                output.store_contiguous_unchecked(left, results);
            }
            return;
        }
        if thread_columns.has_any() {
            output.store_contiguous_unchecked(left, [a, b]);
        }
        if thread_columns.has(2) {
            output.store_contiguous_unchecked(right, [c, d]);
        }
    }
}
