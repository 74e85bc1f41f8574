//! Columns, each folded by a column of threads.

mod fold;
pub mod in_order;
mod partials;
pub(in crate::reduce) mod store;
pub(in crate::reduce) mod thread_columns;

use cuda_std::prelude::*;

use super::fold::is_last_block;
pub(in crate::reduce) use super::tuning::columns::DEPENDENT_LAUNCH_BLOCKS;
pub use super::tuning::columns::{BLOCK, COLUMNS, min_blocks, rows_in_flight};
use crate::ops::builtin::*;
use crate::ops::{Operator, constant};
use fold::{SplitRows, fold_threads};
use in_order::InOrder;
use partials::{Partials, thread_shape};
use store::store_outputs;
use thread_columns::{ThreadColumns, load_vectorized, per_column};

/// The number of partials of a matrix of `columns` columns: one for each split of each column. With folded rows, there
/// is one more row of partials.
pub const fn partial_count(columns: usize, folded_rows: usize, splits: usize) -> usize {
    columns * folded_rows * partial_rows(folded_rows, splits)
}

/// The number of tickets of a matrix: one for each tile, and one more if rows are folded.
pub const fn ticket_count(tiles: usize, folded_rows: usize) -> usize {
    tiles + (folded_rows > 1) as usize
}

const fn partial_rows(folded_rows: usize, splits: usize) -> usize {
    splits + (folded_rows > 1) as usize
}

/// The matrices whose columns are reduced; the fields are the kernel's parameters.
struct Matrices<'a, T> {
    input: &'a Global<'a, T>,
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
}

impl<T: Element> Matrices<'_, T> {
    /// Whether a thread loads its columns by vectorized accesses. This holds in every row of every matrix or in none,
    /// so that all threads access memory in the same way.
    #[inline(always)]
    fn can_vectorize(&self, folded_rows: usize) -> bool {
        let &Self { input, columns, pitch, batch_pitch, .. } = self;
        let access = if size_of::<T>() < 4 { size_of::<T>() * COLUMNS } else { 16 };
        let is_even = |columns: usize, pitch: usize| {
            columns.is_multiple_of(COLUMNS) && (pitch * size_of::<T>()).is_multiple_of(access)
        };
        // Accesses may cross into the next row if no gap separates the rows.
        input.is_aligned_to(0, access)
            && (batch_pitch * size_of::<T>()).is_multiple_of(access)
            && (is_even(columns, pitch) || (pitch == columns && is_even(columns * folded_rows, pitch * folded_rows)))
    }
}

/// One entry for each column of each thread.
type Scratch<S> = SharedArray<S, { BLOCK * COLUMNS }>;

/// The arguments of [`columns`](fn@columns), and of custom kernels that call it.
#[arguments]
pub struct ColumnArgs<T: Plain, S: Plain, R: Plain> {
    /// The operator's value: [`Operator::to_word`].
    pub operator: u64,
    /// The elements.
    pub input: Global<T>,
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix.
    pub columns: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Elements from the start of a matrix to that of the next one.
    pub batch_pitch: usize,
    /// Rows that are folded into one.
    pub folded_rows: u32,
    /// Threads in a row of threads.
    pub lanes: u32,
    /// Tiles across a row.
    pub tiles: u32,
    /// Blocks that share a column: its splits.
    pub splits: u32,
    /// The states that blocks of one tile exchange.
    pub partials: GlobalMut<S>,
    /// Counts of finished blocks; all 0 before and after the launch.
    pub tickets: GlobalMut<u32>,
    /// A result for each column.
    pub output: GlobalMut<R>,
}

/// Reduces each of `columns` columns of `batches` matrices to one output.
///
/// The rows of a matrix are `pitch` elements apart, the matrices `batch_pitch`.
///
/// A block's threads form rows of `lanes` threads (a power of two, at most the block), each thread over [`COLUMNS`]
/// columns. So a block covers a tile of columns, one of `tiles`, and its rows of threads take the matrix's rows
/// round-robin. `splits` blocks share the rows of a tile.
///
/// - *Accesses are coalesced*: a row of threads reads a contiguous segment of one row of the matrix, and no element is
///   read twice. If the alignment of all rows allows it, a thread's columns are contiguous and one access; if not, they
///   are a row of threads apart, so that each access of a warp is contiguous.
/// - *Rows are folded* if one row is not a whole number of accesses, but `folded_rows` rows are. Those rows are read as
///   one folded row, in which each column occurs `folded_rows` times; the states of its occurrences are combined at the
///   end.
/// - *Many rows are in flight* in each thread before the first is used.
/// - *States are combined once*: those of threads over the same columns in shared memory, those of blocks as partials,
///   by the last of the blocks.
///
/// Operators that keep an order take the one of [`in_order`], without folded rows.
///
/// With more than one split, each batch has [`partial_count`] entries in `partials`, and [`ticket_count`] in `tickets`,
/// which are 0. Only then are rows folded, by a power of two. Block numbers count tiles first, then splits, then
/// batches.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = builtin_operators!,
    block = BLOCK,
    min_blocks = min_blocks(size_of::<<O as Operator<T>>::State>(), <O as Operator<T>>::ANY_ORDER),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn columns<O: Operator<T>, T: Element>(
    ColumnArgs {
        operator,
        input,
        rows,
        columns,
        pitch,
        batch_pitch,
        folded_rows,
        lanes,
        tiles,
        splits,
        partials,
        tickets,
        output,
    }: ColumnArgs<T, <O as Operator<T>>::State, <O as Operator<T>>::Output>,
) {
    let operator = O::from_word(operator);
    let scratch = shared_array![O::State; BLOCK * COLUMNS];
    let shared_ticket = shared_array![u32; 1];
    // Divide only if needed, and in 32 bits: 64-bit divisions would take as long as the rows of a block that has only a
    // few.
    let block = thread::block_idx_x();
    let (tile, block) = if block < tiles { (block, 0) } else { (block % tiles, block / tiles) };
    let (split, batch) = if splits == 1 { (0, block) } else { (block % splits, block / splits) };
    let (tile, split, batch) = (tile as usize, split as usize, batch as usize);
    let (lanes, folded_rows) = (lanes as usize, folded_rows as usize);
    let matrices = Matrices { input: &input, rows, columns, pitch, batch_pitch };
    if !constant!(O::ANY_ORDER) {
        let (partials, tickets, output) = (&partials, &tickets, &output);
        let blocks =
            InOrder { operator, lanes, tiles: tiles as usize, splits: splits as usize, partials, tickets, output };
        // SAFETY: as promised by the caller.
        unsafe { blocks.fold::<T>(&matrices, tile, split, batch, &scratch, &shared_ticket) };
        return;
    }
    let is_vectorized = matrices.can_vectorize(folded_rows);
    let thread = thread::index_in_block::<BLOCK>();
    let thread_columns =
        ThreadColumns::of_thread(thread, tile, lanes, columns, folded_rows, size_of::<T>(), is_vectorized);
    let at = per_column(|c| thread_columns.offset(c, pitch));
    let shift = folded_rows.trailing_zeros();
    let up_to = |split: usize| ((rows >> shift) * split / splits as usize) << shift;
    let (begin, end) = if splits == 1 { (0, rows) } else { (up_to(split), up_to(split + 1)) };

    let start = batch * batch_pitch;
    let split_rows = SplitRows { begin, end, folded_rows, thread_columns: &thread_columns };
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS && split_rows.is_short() {
        thread::launch_dependents();
    }
    // A loop for each case: a branch around a load makes loads wait for each other.
    let states = if is_vectorized {
        // SAFETY: all rows are aligned, and inside the view with what an access takes of the next row.
        let load = |row: usize| unsafe { load_vectorized(&input, start + row * pitch, at) };
        split_rows.fold::<O, T>(operator, load)
    } else {
        // SAFETY: the column is in the row.
        let load = |row: usize| per_column(|c| unsafe { input.load_unchecked(start + row * pitch + at[c]) });
        split_rows.fold::<O, T>(operator, load)
    };
    let states = if end < rows && split + 1 == splits as usize {
        // SAFETY: the matrix has rows from `end` on.
        let load = |offset: usize| unsafe { input.load_unchecked(start + end * pitch + offset) };
        split_rows.add_last_rows::<O, T>(operator, states, (rows - end) * columns, at, load)
    } else {
        states
    };
    let states = fold_threads::<O, T>(states, &scratch, lanes);
    if splits == 1 {
        store_outputs::<O, T>(operator, states, &output, batch * columns, rows, &thread_columns);
        return;
    }

    let first = batch * partial_rows(folded_rows, splits as usize);
    let partials = Partials { states: &partials, first, columns: thread_columns.folded_columns };
    if thread_columns.row == 0 {
        thread_columns.each(|c| partials.store(split, thread_columns.column(c), states[c]));
    }
    let ticket = batch * ticket_count(tiles as usize, folded_rows);
    if !is_last_block(&tickets, ticket + tile, splits, &shared_ticket) {
        return;
    }
    let splits = splits as usize;
    let of_tile = lanes * COLUMNS;
    let finish = |column: usize, state| output.store(batch * columns + column, operator.finish(state, rows as u64));
    partials.fold::<O, T>(splits, tile * of_tile, of_tile, thread_shape(of_tile), &scratch, |column, state| {
        if folded_rows == 1 {
            finish(column, state);
        } else {
            partials.store(splits, column, state);
        }
    });
    if folded_rows > 1 && is_last_block(&tickets, ticket + tiles as usize, tiles, &shared_ticket) {
        let of_folded_rows = Partials { first: (first + splits) * folded_rows, columns, ..partials };
        of_folded_rows.fold::<O, T>(folded_rows, 0, columns, thread_shape(columns), &scratch, finish);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_states_leave_registers_for_fewer_rows() {
        let rows = |size: usize| [8, 9, 16].map(|size_of_state| rows_in_flight(size, size_of_state));
        assert_eq!([rows(1), rows(2), rows(4), rows(8)], [[8, 4, 4], [8, 4, 4], [4; 3], [4, 2, 2]]);
    }
}
