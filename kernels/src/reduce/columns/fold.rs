//! Folds elements to states, and states to one state for each column.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use super::thread_columns::{ThreadColumns, per_column};
use super::{BLOCK, COLUMNS, Scratch, rows_in_flight};
use crate::ops::{Operator, constant};

/// The folded rows that a block reduces, each identified by the first of its `folded_rows` rows.
pub(super) struct SplitRows<'a> {
    pub(super) begin: usize,
    pub(super) end: usize,
    pub(super) folded_rows: usize,
    pub(super) thread_columns: &'a ThreadColumns,
}

impl SplitRows<'_> {
    /// Whether a thread folds few rows, so that the block ends soon.
    #[inline(always)]
    pub(super) fn is_short(&self) -> bool {
        const FEW: usize = 16;
        self.end - self.begin <= FEW * self.thread_columns.rows * self.folded_rows
    }

    /// The states of this thread's elements; `load` loads those of one folded row.
    #[inline(always)]
    pub(super) fn fold<O: Operator<T>, T: Element>(
        &self,
        operator: O,
        load: impl Fn(usize) -> [T; COLUMNS],
    ) -> [O::State; COLUMNS] {
        let rows = ThreadRows {
            first: self.begin + self.thread_columns.row * self.folded_rows,
            end: self.end,
            step: self.thread_columns.rows * self.folded_rows,
            folded_row: per_column(|c| self.thread_columns.folded_row(c)),
        };
        rows.fold::<O, T>(operator, load)
    }

    /// Adds the last rows, which are too few for a folded row, to `states`. They have `left` elements in total, which
    /// the first row of threads folds. `load` loads an element by its offset from the first of them.
    #[inline(always)]
    pub(super) fn add_last_rows<O: Operator<T>, T: Element>(
        &self,
        operator: O,
        states: [O::State; COLUMNS],
        left: usize,
        at: [usize; COLUMNS],
        load: impl Fn(usize) -> T,
    ) -> [O::State; COLUMNS] {
        let is_left = |c: usize| self.thread_columns.row == 0 && self.thread_columns.column(c) < left;
        let loaded = per_column(|c| load(if is_left(c) { at[c] } else { 0 }));
        issue_loads();
        let index = |c: usize| (self.end + self.thread_columns.folded_row(c)) as u64;
        per_column(|c| if is_left(c) { O::combine(states[c], operator.lift(loaded[c], index(c))) } else { states[c] })
    }
}

/// Rows that a thread folds: every `step`-th from the first on.
pub(super) struct ThreadRows {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) step: usize,
    /// For each of the thread's columns, its row within the folded row.
    pub(super) folded_row: [usize; COLUMNS],
}

impl ThreadRows {
    /// The states of the rows' elements; `load` loads the thread's elements of one row.
    #[inline(always)]
    pub(super) fn fold<O: Operator<T>, T: Element>(
        self,
        operator: O,
        load: impl Fn(usize) -> [T; COLUMNS],
    ) -> [O::State; COLUMNS] {
        let Self { mut first, end, step, folded_row } = self;
        let mut states = [constant!(O::NEUTRAL); COLUMNS];
        let in_flight = rows_in_flight(size_of::<T>(), size_of::<O::State>());
        while in_flight == 8 && first + 7 * step < end {
            let row = |k: usize| first + k * step;
            let load = |k: usize| load(row(k));
            let loaded = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
            issue_loads();
            states = per_column(|c| {
                let of = |k: usize| loaded[k][c];
                let column = [of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)];
                O::combine(states[c], operator.reduce_elements(column, |k| (row(k) + folded_row[c]) as u64))
            });
            first += 8 * step;
        }
        while in_flight >= 4 && first + 3 * step < end {
            let row = |k: usize| first + k * step;
            let loaded = [load(row(0)), load(row(1)), load(row(2)), load(row(3))];
            issue_loads();
            states = per_column(|c| {
                let column = [loaded[0][c], loaded[1][c], loaded[2][c], loaded[3][c]];
                O::combine(states[c], operator.reduce_elements(column, |k| (row(k) + folded_row[c]) as u64))
            });
            first += 4 * step;
        }
        while in_flight == 2 && first + step < end {
            let row = |k: usize| first + k * step;
            let loaded = [load(row(0)), load(row(1))];
            issue_loads();
            states = per_column(|c| {
                let column = [loaded[0][c], loaded[1][c]];
                O::combine(states[c], operator.reduce_elements(column, |k| (row(k) + folded_row[c]) as u64))
            });
            first += 2 * step;
        }
        while first < end {
            let loaded = load(first);
            states = per_column(|c| O::combine(states[c], operator.lift(loaded[c], (first + folded_row[c]) as u64)));
            first += step;
        }
        states
    }
}

/// The states over each column of threads, in its first thread: a tree with a barrier for each level.
#[inline(always)]
pub(super) fn fold_threads<O: Operator<T>, T: Element>(
    states: [O::State; COLUMNS],
    scratch: &Scratch<O::State>,
    lanes: usize,
) -> [O::State; COLUMNS] {
    if lanes == BLOCK {
        return states;
    }
    let thread = thread::index_in_block::<BLOCK>();
    let mut states = states;
    let store = |states: [O::State; COLUMNS]| {
        per_column(|c| scratch.store(c * BLOCK + thread, states[c]));
    };
    store(states);
    let mut half = BLOCK / 2;
    while half >= lanes {
        thread::sync_threads();
        if thread < half {
            states = per_column(|c| O::combine(states[c], scratch.load(c * BLOCK + thread + half)));
            store(states);
        }
        half /= 2;
    }
    states
}
