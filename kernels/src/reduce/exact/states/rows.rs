//! Adds short rows to states, with a few lanes for each row.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_vote_any, warp_vote_ballot};
use half::{bf16, f16};

use super::States;
use crate::ops::Sum;
use crate::reduce::exact::partial::fold_warp;
use crate::reduce::exact::rows::{BLOCK, Rows, VECTORS, sum_items, sum_rows};
use crate::reduce::exact::superaccumulator::{Superaccumulator, declare_superaccumulator};
use crate::reduce::exact::terms::{Elements, Summand, Terms};

/// Adds each row to the state of the same index.
///
/// # Safety
/// As for [`exact_rows`](fn@crate::reduce::exact::rows::exact_rows), but with a state for each row instead of an
/// output.
#[kernel(instances = [f32, f64, f16, bf16], block = BLOCK, min_blocks = 2)]
pub unsafe fn exact_states_of_rows<T: Summand>(
    input: Global<T>,
    rows: usize,
    len: usize,
    pitch: usize,
    lanes_log: u32,
    vectors_log: u32,
    has_singles: u32,
    states: GlobalMut<i64>,
) {
    let superacc: Superaccumulator<T::Grid> = declare_superaccumulator!();
    // One step.
    let rows_log = VECTORS.ilog2() - vectors_log;
    let rows = Rows::of_warp(rows, len, pitch, lanes_log, vectors_log, rows_log);
    let put = |row: usize, [(value, position), _]: [(i128, u32); 2]| {
        let states = States::<T::Grid>::new(states);
        states.add(row, value, position);
        states.count(row, rows.len);
    };
    // Two functions, since code that only one of them needs would slow the other.
    let again = match has_singles {
        0 => sum_rows::<Sum, T, false>(&input, &rows, Elements::of_word(0), &put),
        _ => sum_rows::<Sum, T, true>(&input, &rows, Elements::of_word(0), &put),
    };
    if warp_vote_any(FULL_MASK, again != 0) {
        let Rows { rows, len, pitch, lanes_log, vectors_log, .. } = rows;
        add_again::<T>(input, rows, len, pitch, lanes_log, vectors_log, again, superacc, states);
    }
}

/// Adds rows that do not fit in a window, with any elements, by all lanes of a warp. Out of line.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
fn add_again<T: Summand>(
    input: Global<T>,
    rows: usize,
    len: usize,
    pitch: usize,
    lanes_log: u32,
    vectors_log: u32,
    again: u32,
    superacc: Superaccumulator<T::Grid>,
    states: GlobalMut<i64>,
) {
    let rows = Rows::of_warp(rows, len, pitch, lanes_log, vectors_log, VECTORS.ilog2() - vectors_log);
    let states = States::<T::Grid>::new(states);
    let mut k = 0;
    while k < VECTORS {
        // The lanes of the rows to add again.
        let mut not_exact = warp_vote_ballot(FULL_MASK, again >> k & 1 == 1);
        while not_exact != 0 {
            let group = not_exact.trailing_zeros() >> rows.lanes_log;
            let row = rows.row(k, group);
            let (start, len) = rows.place_of(row);
            let superacc = superacc.begin();
            let sum = sum_items::<Sum, T, 4>(&input, start, len, Elements::of_word(0), &superacc);
            let partial = fold_warp(sum.of_lanes(), &superacc);
            states.add_partial(row, partial, superacc);
            if lane_id() == 0 {
                states.count(row, len);
            }
            // Before another row overwrites the words.
            sync_warp(FULL_MASK);
            not_exact &= !rows.mask(group);
        }
        k += 1;
    }
}
