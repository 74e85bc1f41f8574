//! The partials that blocks exchange if they share the rows of a tile.
//!
//! A thread folds one column at a time here, with many of the column's states in flight: loading a state has the
//! latency of loading the input, and a column may have hundreds of states.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use super::{BLOCK, Scratch};
use crate::ops::{Operator, constant};

/// States of `columns` columns, a row from each of several blocks, from row `first` on.
pub(super) struct Partials<'a, S> {
    pub(super) states: &'a GlobalMut<'a, S>,
    pub(super) first: usize,
    pub(super) columns: usize,
}

impl<S: Plain> Partials<'_, S> {
    /// The state of a column in a row.
    ///
    /// # Safety
    /// The row and the column exist.
    #[inline(always)]
    pub(super) unsafe fn load(&self, row: usize, column: usize) -> S {
        // The other blocks wrote these during this launch: L1 may be stale.
        // SAFETY: as promised by the caller.
        unsafe { self.states.load_volatile_unchecked((self.first + row) * self.columns + column) }
    }

    #[inline(always)]
    pub(super) fn store(&self, row: usize, column: usize, state: S) {
        self.states.store_volatile((self.first + row) * self.columns + column, state);
    }

    /// Folds `rows` rows of states, and calls `work` with each column and its state.
    ///
    /// The columns are up to `width` from `begin` on. All threads of the block must call this: `high` rows (a power of
    /// two) of `wide` threads fold `wide` columns at once; the last threads may have none.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "which states, and by which threads")]
    pub(super) fn fold<O: Operator<T, State = S>, T: Element>(
        &self,
        rows: usize,
        begin: usize,
        width: usize,
        (wide, high): (u32, u32),
        scratch: &Scratch<S>,
        work: impl Fn(usize, S),
    ) {
        let thread = thread::index_in_block::<BLOCK>() as u32;
        let (row, lane) = (thread / wide, (thread % wide) as usize);
        let mut past = 0;
        while past < width {
            let column = begin + past + lane;
            let has = row < high && past + lane < width && column < self.columns;
            let state =
                if has { self.fold_column::<O, T>(column, row, high, rows as u32) } else { constant!(O::NEUTRAL) };
            let state = fold_rows_of_threads::<O, T>(state, scratch, row, wide, high);
            if has && row == 0 {
                work(column, state);
            }
            past += wide as usize;
            if high > 1 && past < width {
                // Before the threads' states in shared memory are overwritten.
                thread::sync_threads();
            }
        }
    }

    /// The state of a thread in row `row` of `high` over a column's `rows` states. In 32 bits, as registers are full of
    /// states.
    #[inline(always)]
    fn fold_column<O: Operator<T, State = S>, T: Element>(&self, column: usize, row: u32, high: u32, rows: u32) -> S {
        let mut row = row;
        // Rows past the end repeat the last row, since a conditional load would be a branch.
        let within = |row: u32| if row < rows { row } else { rows - 1 } as usize;
        let mut state = constant!(O::NEUTRAL);
        while row < rows {
            let nth = |k: u32| row + k * high;
            // SAFETY: in each row there is a state for each column.
            let load = |k: u32| unsafe { self.load(within(nth(k)), column) };
            let first = [load(0), load(1), load(2), load(3)];
            // Short states leave registers for more loads.
            let is_short = size_of::<S>() <= 8;
            let second = if is_short { [load(4), load(5), load(6), load(7)] } else { [constant!(O::NEUTRAL); 4] };
            issue_loads();
            let with = |state: S, k: u32, loaded: S| if nth(k) < rows { O::combine(state, loaded) } else { state };
            state = with(with(with(with(state, 0, first[0]), 1, first[1]), 2, first[2]), 3, first[3]);
            if is_short {
                state = with(with(with(with(state, 4, second[0]), 5, second[1]), 6, second[2]), 7, second[3]);
            }
            row += if is_short { 8 } else { 4 } * high;
        }
        state
    }
}

/// The width and the height of the threads over up to `width` columns: a thread for each column, at most a block of
/// them, and the rows of threads that fit, a power of two.
#[inline(always)]
pub(super) fn thread_shape(width: usize) -> (u32, u32) {
    let wide = if width < BLOCK { width as u32 } else { BLOCK as u32 };
    (wide, 1 << (BLOCK as u32 / wide).ilog2())
}

/// The states over each column of threads, in the column's first: a tree with a barrier for each level.
///
/// The threads form `high` rows (a power of two) of `wide`.
#[inline(always)]
fn fold_rows_of_threads<O: Operator<T>, T: Element>(
    state: O::State,
    scratch: &Scratch<O::State>,
    row: u32,
    wide: u32,
    high: u32,
) -> O::State {
    if high == 1 {
        return state;
    }
    let thread = thread::index_in_block::<BLOCK>();
    let mut state = state;
    scratch.store(thread, state);
    let mut half = high / 2;
    while half > 0 {
        thread::sync_threads();
        if row < half {
            state = O::combine(state, scratch.load(thread + (half * wide) as usize));
            scratch.store(thread, state);
        }
        half /= 2;
    }
    state
}
