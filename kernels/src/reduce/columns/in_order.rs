//! Columns of an operator that keeps an order, which is a function of the number of rows.

use cuda_std::hint::compute_anew;
use cuda_std::prelude::*;

use super::fold::ThreadRows;
use super::partials::Partials;
use super::store::store_results;
use super::thread_columns::{ThreadColumns, load_vectorized, per_column};
use super::{BLOCK, DEPENDENT_LAUNCH_BLOCKS, Matrices, Scratch, rows_in_flight};
use crate::ops::Operator;
use crate::reduce::fold::is_last_block;
use crate::reduce::tuning::order::{LEAVES, ROUNDS};

/// The order in which the rows of a column are combined.
///
/// It is a function of the number of rows and of the rows that a thread has in flight, which depend on the types. The
/// rows are divided into splits of equal length, and a split into [`Order::chains`] chains: row `i` of a split belongs
/// to chain `i % chains`. The rows of a chain are combined one after the other, and so are `passes` chains, which form
/// a leaf. The leaves are combined in a tree, and the splits' states in a few chains and a tree.
///
/// The number of threads depends on the number of columns: a thread has a chain, or `passes` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Leaves of the tree: a power of two up to 16.
    pub leaves: usize,
    /// Chains of each leaf: 1, or 4 with several splits.
    pub passes: usize,
    /// Rows of each split but the last, which has the rest; all rows if there is one split.
    pub rows_of_split: usize,
}

impl Order {
    /// The order of `rows` rows, of which a thread has `in_flight` in flight.
    ///
    /// A leaf has at least four rounds of loads, so that combining the leaves is a small part of the work. The number
    /// of splits is about a quarter of the root of the number of rows: enough to fill a device with a few columns, and
    /// few enough for one block to fold their states.
    #[inline(always)]
    pub const fn new(rows: usize, in_flight: usize) -> Self {
        let most_of_one_split = 2 * LEAVES * ROUNDS * in_flight;
        if rows < most_of_one_split {
            let rounds = rows / (ROUNDS * in_flight);
            let leaves = if rounds > 0 { 1 << rounds.ilog2() } else { 1 };
            return Self { leaves: if leaves < LEAVES { leaves } else { LEAVES }, passes: 1, rows_of_split: rows };
        }
        let (least, by_root) = (LEAVES * ROUNDS * in_flight, 4 << rows.ilog2().div_ceil(2));
        Self { leaves: LEAVES, passes: ROUNDS, rows_of_split: if by_root > least { by_root } else { least } }
    }

    /// Chains of a split.
    #[inline(always)]
    pub const fn chains(self) -> usize {
        self.leaves * self.passes
    }

    /// The number of splits of `rows` rows.
    pub const fn splits(self, rows: usize) -> usize {
        if rows <= self.rows_of_split { 1 } else { rows.div_ceil(self.rows_of_split) }
    }

    /// The lanes of a row of threads, if `needed` lanes, a power of two, cover all columns.
    ///
    /// With several splits, all threads of a block fold one split: with 16 lanes, or with 4 if most of 16 lanes would
    /// have no column.
    pub const fn lanes(self, needed: usize) -> usize {
        let most = BLOCK / self.leaves;
        if self.passes > 1 {
            return if needed > 8 { most } else { BLOCK / self.chains() };
        }
        if needed < most { needed } else { most }
    }

    /// The number of matrices of which a block folds a tile, if a row of threads has `lanes` lanes.
    pub const fn batches_of_block(self, lanes: usize) -> usize {
        BLOCK / lanes / self.rows_of_threads(BLOCK / lanes)
    }

    /// The rows of threads, of a block's `rows`, that fold a split.
    #[inline(always)]
    const fn rows_of_threads(self, rows: usize) -> usize {
        if rows >= self.chains() { self.chains() } else { self.leaves }
    }
}

/// Rows of threads that fold `splits` partials.
#[inline(always)]
pub(in crate::reduce) const fn threads_of_partials(splits: usize) -> u32 {
    if splits <= 32 { 4 } else { 16 }
}

/// The blocks of a launch; the fields are the kernel's parameters.
pub(super) struct InOrder<'a, O, S, R> {
    pub operator: O,
    pub lanes: usize,
    pub tiles: usize,
    pub splits: usize,
    pub partials: &'a GlobalMut<'a, S>,
    pub tickets: &'a GlobalMut<'a, u32>,
    pub output: &'a GlobalMut<'a, R>,
}

impl<O, S: Plain, R: Plain> InOrder<'_, O, S, R> {
    /// Folds split `split` of the columns of tile `tile`. Writes their results if the columns have no other split, or
    /// if the other splits are done. `block` is the number of the matrix, or of a group of [`Order::batches_of_block`]
    /// matrices.
    ///
    /// # Safety
    /// As for [`columns`](fn@super::columns).
    #[inline(always)]
    pub unsafe fn fold<T: Element>(
        &self,
        matrices: &Matrices<T>,
        tile: usize,
        split: usize,
        block: usize,
        scratch: &Scratch<S>,
        shared_ticket: &SharedArray<u32, 1>,
    ) where
        O: Operator<T, State = S, Output = R>,
    {
        let &Self { operator, lanes, tiles, splits, tickets, output, .. } = self;
        let &Matrices { input, rows, columns, pitch, batch_pitch } = matrices;
        let order = Order::new(rows, rows_in_flight(size_of::<T>(), size_of::<S>()));
        let thread = thread::index_in_block::<BLOCK>();
        let is_vectorized = matrices.can_vectorize(1);
        let thread_columns = ThreadColumns::of_thread(thread, tile, lanes, columns, 1, size_of::<T>(), is_vectorized);
        let height = order.rows_of_threads(thread_columns.rows);
        let (matrix, chain) = (thread_columns.row >> height.trailing_zeros(), thread_columns.row & (height - 1));
        let batch = block * (thread_columns.rows >> height.trailing_zeros()) + matrix;
        let has_matrix = batch * columns < output.len();

        let begin = split * order.rows_of_split;
        let left = if has_matrix { rows - begin } else { 0 };
        let end = begin + if left < order.rows_of_split { left } else { order.rows_of_split };
        if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS && end - begin <= 16 * order.leaves {
            thread::launch_dependents();
        }
        let own = Chains { begin, end, chain, height, order, lanes };
        let (start, at) = (batch * batch_pitch, per_column(|c| thread_columns.offset(c, pitch)));
        // A loop for each case: a branch around a load makes loads wait for each other.
        let states = if is_vectorized {
            // SAFETY: all rows are aligned, and inside the view with what an access takes of the next row.
            let load = |row: usize| unsafe { load_vectorized(input, start + row * pitch, at) };
            own.fold::<O, T>(operator, load, scratch)
        } else {
            let load = |row: usize| {
                // Recomputed: otherwise the compiler keeps the address of each element of a round.
                let row = compute_anew(start + row * pitch);
                // SAFETY: the column is in the row.
                per_column(|c| unsafe { input.load_unchecked(row + at[c]) })
            };
            own.fold::<O, T>(operator, load, scratch)
        };
        let states = own.fold_threads::<O, T>(states, scratch);
        // Recomputed, as above.
        let thread_columns =
            ThreadColumns::of_thread(compute_anew(thread), tile, lanes, columns, 1, size_of::<T>(), is_vectorized);
        if splits == 1 {
            if chain == 0 && has_matrix {
                store_results::<T, _>(
                    per_column(|c| operator.finish(states[c], rows as u64)),
                    output,
                    batch * columns,
                    &thread_columns,
                );
            }
            return;
        }

        let partials = Partials { states: self.partials, first: batch * splits, columns };
        if chain == 0 {
            thread_columns.each(|c| partials.store(split, thread_columns.column(c), states[c]));
        }
        if !is_last_block(tickets, batch * tiles + tile, splits as u32, shared_ticket) {
            return;
        }
        let (high, of_tile) = (threads_of_partials(splits), lanes * super::COLUMNS);
        let threads = (BLOCK as u32 / high, high);
        partials.fold::<O, T>(splits, tile * of_tile, of_tile, threads, scratch, |column, state| {
            output.store(batch * columns + column, operator.finish(state, rows as u64));
        });
    }
}

/// The chains of a split that a thread folds.
struct Chains {
    /// The split's rows.
    begin: usize,
    end: usize,
    /// The thread's chain, of `height` that the split's threads fold at once.
    chain: usize,
    height: usize,
    order: Order,
    lanes: usize,
}

impl Chains {
    /// This thread's states: of a chain, or of one chain in each pass.
    #[inline(always)]
    fn fold<O: Operator<T>, T: Element>(
        &self,
        operator: O,
        load: impl Fn(usize) -> [T; super::COLUMNS],
        scratch: &Scratch<O::State>,
    ) -> [O::State; super::COLUMNS] {
        let chains = self.order.chains();
        let mut chain = self.chain;
        loop {
            // Recomputed: otherwise the compiler keeps the distances of the rows in flight from pass to pass, in too
            // many registers.
            let step = compute_anew(chains);
            let first = compute_anew(self.begin + chain);
            let rows = ThreadRows { first, end: self.end, step, folded_row: [0; super::COLUMNS] };
            let further = rows.fold::<O, T>(operator, &load);
            let states = if chain < self.height {
                further
            } else {
                // The earlier states are in shared memory, since registers are full of loads.
                per_column(|c| O::combine(load_own_state(scratch, c), further[c]))
            };
            chain += self.height;
            if chain >= chains {
                return states;
            }
            store_states(scratch, states);
        }
    }

    /// The states over the split's threads, in each column's first thread.
    #[inline(always)]
    fn fold_threads<O: Operator<T>, T: Element>(
        &self,
        states: [O::State; super::COLUMNS],
        scratch: &Scratch<O::State>,
    ) -> [O::State; super::COLUMNS] {
        let Self { chain, height, lanes, order, .. } = *self;
        if height == 1 {
            return states;
        }
        let mut states = states;
        // The state of column `c` of the thread that is `rows` rows of threads further on.
        let after = |rows: usize, c: usize| scratch.load(c * BLOCK + thread::index_in_block::<BLOCK>() + rows * lanes);
        store_states(scratch, states);
        if height > order.leaves {
            thread::sync_threads();
            if chain < order.leaves {
                let mut rows = order.leaves;
                while rows < height {
                    states = per_column(|c| O::combine(states[c], after(rows, c)));
                    rows += order.leaves;
                }
                store_states(scratch, states);
            }
        }
        let mut half = order.leaves / 2;
        while half > 0 {
            thread::sync_threads();
            if chain < half {
                states = per_column(|c| O::combine(states[c], after(half, c)));
                store_states(scratch, states);
            }
            half /= 2;
        }
        states
    }
}

/// Stores this thread's states in its entries.
#[inline(always)]
fn store_states<S: Plain>(scratch: &Scratch<S>, states: [S; super::COLUMNS]) {
    per_column(|c| scratch.store(c * BLOCK + thread::index_in_block::<BLOCK>(), states[c]));
}

/// This thread's state of column `c`.
#[inline(always)]
fn load_own_state<S: Plain>(scratch: &Scratch<S>, c: usize) -> S {
    scratch.load(c * BLOCK + thread::index_in_block::<BLOCK>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_a_quarter_of_the_root_at_most() {
        let splits = |rows: usize| Order::new(rows, 4).splits(rows);
        assert_eq!([0, 1, 100, 511, 512, 1000, 1 << 12].map(splits), [1, 1, 1, 1, 2, 4, 16]);
        assert_eq!([1 << 14, 1 << 20, 1 << 22, 1 << 30].map(splits), [32, 256, 512, 8192]);
    }

    #[test]
    fn each_chain_of_a_whole_split_has_whole_rounds() {
        for in_flight in [2, 4, 8] {
            for rows in [1000, 5000, 1 << 20, (1 << 33) + 5] {
                let order = Order::new(rows, in_flight);
                let is_whole = order.rows_of_split.is_multiple_of(order.chains() * in_flight);
                assert!(order.splits(rows) == 1 || is_whole, "{rows} rows, {in_flight} in flight: {order:?}");
            }
        }
    }

    #[test]
    fn a_block_has_a_thread_for_each_leaf() {
        for rows in [0, 1, 16, 33, 500, 513, 5000, 1 << 22] {
            let order = Order::new(rows, 4);
            for needed in [1, 2, 8, 16, 256, 1 << 20] {
                let lanes = order.lanes(needed);
                assert!(lanes.is_power_of_two() && BLOCK / lanes >= order.leaves, "{rows} rows, {needed} lanes");
                let batches = order.batches_of_block(lanes);
                assert!(batches == 1 || order.splits(rows) == 1, "several blocks share one matrix");
                assert!(batches * order.leaves * lanes <= BLOCK);
            }
        }
    }
}
