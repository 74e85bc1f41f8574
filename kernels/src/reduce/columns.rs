//! Columns, each folded by a column of threads.

use core::ops::Range;

use cuda_std::prelude::*;
use half::{bf16, f16};

use super::fold::is_last_block;
use crate::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Operator, Product,
    Sum, SumInF64, SumOfSquares, WrappingSum,
};

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Neighbouring columns that a thread folds.
pub const COLUMNS: usize = 4;

/// Rows that a thread has in flight at once.
pub const ROWS_IN_FLIGHT: usize = 4;

/// One place for each column of each thread.
type Scratch<S> = SharedArray<S, { BLOCK * COLUMNS }>;

/// Reduces each of `columns` columns of `batches` matrices to one output: matrices of `rows` rows, each row `pitch`
/// elements behind the one before, each matrix `batch_pitch` behind the one before.
///
/// A block's threads stand in rows of `lanes` (a power of two up to the block), each over [`COLUMNS`] columns; so a block is
/// over a tile of columns, and its rows of threads take the matrix's rows in turn. `parts` blocks share the rows of a tile.
///
/// - *Neighbours read neighbours*: a row of threads reads a run of one row of the matrix, and no element is read twice.
///   Where all rows are aligned for it, a thread's columns are neighbours and one access; where not, they are a row of
///   threads apart, so that each access of a warp is a run.
/// - *Four rows are in flight* in each thread before the first is used.
/// - *States meet once*: threads over the same columns in shared memory, blocks by partials that the last of them folds.
///
/// `partials` has `parts * columns` places for each batch and `tickets` one 0 for each tile of each batch, if there is
/// more than one part. Blocks count up through tiles, then parts, then batches.
#[kernel(
    instances = [Sum, Product, Mean, SumOfSquares, Norm, Min, Max, MinMax, ArgMin, ArgMax, Any, All, CountNonzero]
        x [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]
        + [CountNan, CountFinite] x [f32, f64, f16, bf16]
        + [WrappingSum] x [i8, i16, i32, i64, u8, u16, u32, u64]
        + [SumInF64] x [f32],
    block = BLOCK,
    early
)]
pub fn columns<O: Operator<T>, T: Element>(
    input: Global<T>,
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
    lanes: u32,
    parts: u32,
    partials: GlobalMut<<O as Operator<T>>::State>,
    tickets: GlobalMut<u32>,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    let scratch = shared_array![O::State; BLOCK * COLUMNS];
    let drawn = shared_array![u32; 1];
    let tiles = columns.div_ceil(lanes as usize * COLUMNS);
    let block = thread::block_idx_x() as usize;
    let (tile, part, batch) = (block % tiles, block / tiles % parts as usize, block / tiles / parts as usize);
    // Every row of every matrix, or none: so the same access for all threads.
    let access = if size_of::<T>() < 4 { size_of::<T>() * COLUMNS } else { 16 };
    let is_wide = columns.is_multiple_of(COLUMNS)
        && input.is_aligned_to(0, access)
        && (pitch * size_of::<T>()).is_multiple_of(access)
        && (batch_pitch * size_of::<T>()).is_multiple_of(access);
    let place = Place::of_thread(tile, lanes as usize, columns, is_wide);
    let all = part * rows / parts as usize..(part + 1) * rows / parts as usize;

    let states = fold_rows::<O, T>(&input, batch * batch_pitch, pitch, all, &place, is_wide);
    let states = fold_threads::<O, T>(states, &scratch, lanes as usize);
    if parts == 1 {
        store_outputs::<O, T>(states, &output, batch * columns, rows, &place);
        return;
    }

    if place.row == 0 {
        place.each(|c| {
            partials.store_volatile((batch * parts as usize + part) * columns + place.column(c), states[c]);
        });
    }
    if !is_last_block(&tickets, batch * tiles + tile, parts, &drawn) {
        return;
    }
    let mut states = [O::NEUTRAL; COLUMNS];
    let mut part = place.row;
    while part < parts as usize {
        let of_part = (batch * parts as usize + part) * columns;
        states = four(|c| {
            // The other blocks wrote these during this launch: L1 may not answer for them.
            let other = if place.has(c) { partials.load_volatile(of_part + place.column(c)) } else { O::NEUTRAL };
            O::combine(states[c], other)
        });
        part += place.rows;
    }
    let states = fold_threads::<O, T>(states, &scratch, lanes as usize);
    store_outputs::<O, T>(states, &output, batch * columns, rows, &place);
}

/// Where a thread stands.
struct Place {
    /// Its row of threads, of `rows` in the block.
    row: usize,
    rows: usize,
    /// Its first column, and how far behind that each further one is.
    column: usize,
    step: usize,
    /// All columns of the matrix.
    all: usize,
}

impl Place {
    #[inline(always)]
    fn of_thread(tile: usize, lanes: usize, columns: usize, is_wide: bool) -> Self {
        let thread = thread::index_in_block::<BLOCK>();
        let (first, lane) = (tile * lanes * COLUMNS, thread % lanes);
        let (column, step) = if is_wide { (first + lane * COLUMNS, 1) } else { (first + lane, lanes) };
        Self { row: thread / lanes, rows: BLOCK / lanes, column, step, all: columns }
    }

    /// Column `c` of the thread's.
    #[inline(always)]
    fn column(&self, c: usize) -> usize {
        self.column + c * self.step
    }

    #[inline(always)]
    fn has(&self, c: usize) -> bool {
        self.column(c) < self.all
    }

    /// Does `work` for each of the columns that there are.
    #[inline(always)]
    fn each(&self, work: impl Fn(usize)) {
        four(|c| {
            if self.has(c) {
                work(c);
            }
        });
    }
}

/// One value for each column of a thread. Written out, because what a compiler does not unroll goes to memory.
#[inline(always)]
fn four<S>(of_column: impl Fn(usize) -> S) -> [S; COLUMNS] {
    [of_column(0), of_column(1), of_column(2), of_column(3)]
}

/// What this thread folds of these rows of the matrix that begins at `start`.
#[inline(always)]
fn fold_rows<O: Operator<T>, T: Element>(
    input: &Global<T>,
    start: usize,
    pitch: usize,
    all: Range<usize>,
    place: &Place,
    is_wide: bool,
) -> [O::State; COLUMNS] {
    let mut states = [O::NEUTRAL; COLUMNS];
    let mut row = all.start + place.row;
    let end = all.end;
    let load = |row: usize| load_columns(input, start + row * pitch, place, is_wide);
    while row + (ROWS_IN_FLIGHT - 1) * place.rows < end {
        let loaded = [load(row), load(row + place.rows), load(row + 2 * place.rows), load(row + 3 * place.rows)];
        states = four(|c| {
            let column = [loaded[0][c], loaded[1][c], loaded[2][c], loaded[3][c]];
            O::combine(states[c], O::gather(column, |k| (row + k * place.rows) as u64))
        });
        row += ROWS_IN_FLIGHT * place.rows;
    }
    while row < end {
        let loaded = load(row);
        states = four(|c| O::combine(states[c], O::lift(loaded[c], row as u64)));
        row += place.rows;
    }
    states
}

/// The thread's elements of the row that begins at `row`: any for columns that are not there, which nothing is made of.
#[inline(always)]
fn load_columns<T: Element>(input: &Global<T>, row: usize, place: &Place, is_wide: bool) -> [T; COLUMNS] {
    if is_wide {
        // The number of columns is a multiple of a thread's: it has all of them or none.
        return if place.has(0) {
            // SAFETY: all four are in the row, and aligned, as all rows are.
            unsafe { input.load_four_unchecked(row + place.column) }
        } else {
            [T::default(); COLUMNS]
        };
    }
    // SAFETY: the column is in the row.
    four(|c| if place.has(c) { unsafe { input.load_unchecked(row + place.column(c)) } } else { T::default() })
}

/// The states over each column of threads, in its first: a tree, a barrier for each of its levels.
#[inline(always)]
fn fold_threads<O: Operator<T>, T: Element>(
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
        four(|c| scratch.store(c * BLOCK + thread, states[c]));
    };
    store(states);
    let mut half = BLOCK / 2;
    while half >= lanes {
        thread::sync_threads();
        if thread < half {
            states = four(|c| O::combine(states[c], scratch.load(c * BLOCK + thread + half)));
            store(states);
        }
        half /= 2;
    }
    states
}

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
