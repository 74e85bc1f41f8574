//! Adds columns to states; each lane sums one column.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;
use half::{bf16, f16};

use super::States;
use super::lane_sum::{LaneSum, Sink};
use crate::reduce::exact::grid::Grid;
use crate::reduce::exact::superaccumulator_words::Special;
use crate::reduce::exact::terms::{Elements, Summand, Terms};
use crate::reduce::exact::unrolled::each;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Elements of a column that a thread has in flight and adds together.
pub const ELEMENTS_IN_FLIGHT: usize = 8;

/// The arguments of [`exact_states_of_columns`](fn@exact_states_of_columns).
#[arguments]
pub struct StateColumnArgs<T: Plain> {
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
    pub folded: u32,
    /// Rows of a split.
    pub rows_of_split: usize,
    /// Tiles across a row.
    pub tiles: u32,
    /// Blocks that share a column: its splits.
    pub splits: u32,
    /// The running sums, one for each column.
    pub states: GlobalMut<i64>,
}

/// Adds each column of `batches` matrices to the state of the same index.
///
/// A thread sums one column, or every `folded`th row of it, of one split of `rows_of_split` rows. `tiles` blocks have
/// the threads of a split, and `tiles * splits` blocks those of a matrix. Neighbouring threads load neighbouring
/// elements.
///
/// # Safety
/// The views have all elements that the arguments describe, because accesses are not checked. `tiles`, `splits`,
/// `folded` and `rows_of_split` are not 0.
#[kernel(instances = [f32, f64, f16, bf16], block = BLOCK, min_blocks = if size_of::<T>() == 8 { 3 } else { 4 })]
pub unsafe fn exact_states_of_columns<T: Summand>(
    StateColumnArgs {
        input,
        rows,
        columns,
        pitch,
        batch_pitch,
        folded,
        rows_of_split,
        tiles,
        splits,
        states,
    }: StateColumnArgs<T>,
) {
    let matrix = Matrix { rows, columns, pitch, batch_pitch, folded, rows_of_split, tiles, splits };
    add_columns(&input, matrix, States::<T::Grid>::new(states));
}

/// The kernel's parameters that describe the matrix and its division among blocks.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
    folded: u32,
    rows_of_split: usize,
    tiles: u32,
    splits: u32,
}

#[inline(always)]
fn add_columns<T: Summand>(input: &Global<T>, matrix: Matrix, states: States<'_, T::Grid>) {
    let Matrix { rows, columns, pitch, batch_pitch, folded, rows_of_split, tiles, splits } = matrix;
    let block = thread::block_idx_x();
    let (tile, rest) = (block % tiles, block / tiles);
    let (split, batch) = ((rest % splits) as usize, (rest / splits) as usize);
    let place = tile as usize * BLOCK + thread::index_in_block::<BLOCK>();
    let step = folded as usize;
    if place >= columns * step {
        return;
    }
    let (first, column) = if step == 1 { (0, place) } else { (place / columns, place % columns) };
    let begin = split * rows_of_split;
    let end = if rows - begin < rows_of_split { rows } else { begin + rows_of_split };

    let sink = ToState { states, state: batch * columns + column };
    let mut sum = LaneSum::<T::Grid>::in_window(Elements::<T>::WINDOW.unwrap_or(T::Grid::LOWEST));
    let start = batch * batch_pitch + column;
    let mut row = begin + first;
    while row < end {
        let mut items = [T::default(); ELEMENTS_IN_FLIGHT];
        each::<ELEMENTS_IN_FLIGHT>(|k| {
            let of_item = row + k * step;
            // Clamped to the first row, so that the loads need no predicate.
            let exists = of_item < end;
            // SAFETY: the row is one of the matrix, as is `row`, and the matrix is inside the input.
            let item = unsafe { input.load_unchecked(start + if exists { of_item } else { row } * pitch) };
            items[k] = if exists { item } else { T::default() };
        });
        issue_loads();
        sum.take(items.map(|item| item.float()), &sink);
        row += ELEMENTS_IN_FLIGHT * step;
    }
    sum.end(&sink);
    if split == 0 && first == 0 {
        sink.states.count(sink.state, rows);
    }
}

/// The state of a lane's column.
struct ToState<'a, G: Grid> {
    states: States<'a, G>,
    state: usize,
}

impl<G: Grid> Sink for ToState<'_, G> {
    #[inline(always)]
    fn add(&self, value: i128, position: u32) {
        self.states.add(self.state, value, position);
    }
    #[inline(always)]
    fn add_special(&self, special: Special) {
        self.states.add_special(self.state, special);
    }
}
