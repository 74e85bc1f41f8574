//! Columns, each folded by a column of threads.

use core::ops::Range;

use cuda_std::global::issue_loads;
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

/// Rows that a thread has in flight at once, if elements have `size` bytes: 64 bytes' worth, but of short
/// ones 32, and less where large states leave fewer registers.
pub const fn rows_in_flight(size: usize, size_of_state: usize) -> usize {
    match size {
        1 if size_of_state <= 8 => 8,
        8 => 2,
        _ => 4,
    }
}

/// One place for each column of each thread.
type Scratch<S> = SharedArray<S, { BLOCK * COLUMNS }>;

/// Reduces each of `columns` columns of `batches` matrices to one output: matrices of `rows` rows, each row `pitch`
/// elements behind the one before, each matrix `batch_pitch` behind the one before.
///
/// A block's threads stand in rows of `lanes` (a power of two up to the block), each over [`COLUMNS`] columns; so a block is
/// over a tile of columns, of which there are `tiles`, and its rows of threads take the matrix's rows in turn. `parts` blocks
/// share the rows of a tile.
///
/// - *Neighbours read neighbours*: a row of threads reads a run of one row of the matrix, and no element is read twice.
///   Where all rows are aligned for it, a thread's columns are neighbours and one access; where not, they are a row of
///   threads apart, so that each access of a warp is a run.
/// - *Many rows are in flight* in each thread before the first is used.
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
    min_blocks = 4,
    early
)]
pub fn columns<O: Operator<T>, T: Element>(
    input: Global<T>,
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
    lanes: u32,
    tiles: u32,
    parts: u32,
    partials: GlobalMut<<O as Operator<T>>::State>,
    tickets: GlobalMut<u32>,
    output: GlobalMut<<O as Operator<T>>::Output>,
) {
    let scratch = shared_array![O::State; BLOCK * COLUMNS];
    let drawn = shared_array![u32; 1];
    // Divisions only where there is something to divide, and of 32 bits: a block of a few rows would need as long for those
    // of 64 as for its rows.
    let block = thread::block_idx_x();
    let (tile, block) = if block < tiles { (block, 0) } else { (block % tiles, block / tiles) };
    let (part, batch) = if parts == 1 { (0, block) } else { (block % parts, block / parts) };
    let (tile, part, batch) = (tile as usize, part as usize, batch as usize);
    let lanes = lanes as usize;
    // Every row of every matrix, or none: so the same access for all threads.
    let access = if size_of::<T>() < 4 { size_of::<T>() * COLUMNS } else { 16 };
    let is_wide = columns.is_multiple_of(COLUMNS)
        && input.is_aligned_to(0, access)
        && (pitch * size_of::<T>()).is_multiple_of(access)
        && (batch_pitch * size_of::<T>()).is_multiple_of(access);
    let place = Place::of_thread(tile, lanes, columns, size_of::<T>(), is_wide);
    let all = if parts == 1 { 0..rows } else { part * rows / parts as usize..(part + 1) * rows / parts as usize };

    let start = batch * batch_pitch;
    // A loop for each, since a branch around a load makes loads wait for each other.
    let states = if is_wide {
        // SAFETY: all rows are aligned.
        let load = |row: usize| unsafe { place.load_wide(&input, start + row * pitch) };
        fold_rows::<O, T>(all, &place, load)
    } else {
        let columns = four(|c| place.column_to_load(c));
        // SAFETY: the column is in the row.
        let load = |row: usize| four(|c| unsafe { input.load_unchecked(start + row * pitch + columns[c]) });
        fold_rows::<O, T>(all, &place, load)
    };
    let states = fold_threads::<O, T>(states, &scratch, lanes);
    if parts == 1 {
        store_many_outputs::<O, T>(states, &output, batch * columns, rows, &place);
        return;
    }

    if place.row == 0 {
        place.each(|c| {
            partials.store_volatile((batch * parts as usize + part) * columns + place.column(c), states[c]);
        });
    }
    if !is_last_block(&tickets, batch * tiles as usize + tile, parts, &drawn) {
        return;
    }
    let states = fold_partials::<O, T>(&partials, batch * parts as usize, parts as usize, &place);
    let states = fold_threads::<O, T>(states, &scratch, lanes);
    store_outputs::<O, T>(states, &output, batch * columns, rows, &place);
}

/// Where a thread stands.
struct Place {
    /// Its row of threads, of `rows` in the block.
    row: usize,
    rows: usize,
    /// Its first column, how far behind that the second is, and the third; the fourth is as far behind the third.
    column: usize,
    second: usize,
    third: usize,
    /// All columns there are.
    all: usize,
}

impl Place {
    /// That of the thread in a tile of `columns` columns of `size` bytes: by wide accesses, a thread's columns are neighbours
    /// as far as an access reaches.
    #[inline(always)]
    fn of_thread(tile: usize, lanes: usize, columns: usize, size: usize, is_wide: bool) -> Self {
        let thread = thread::index_in_block::<BLOCK>();
        let (first, lane) = (tile * lanes * COLUMNS, thread % lanes);
        let (each, second, third) = match (is_wide, size) {
            (true, 8) => (2, 1, 2 * lanes),
            (true, _) => (4, 1, 2),
            (false, _) => (1, lanes, 2 * lanes),
        };
        let (row, rows) = (thread / lanes, BLOCK / lanes);
        Self { row, rows, column: first + lane * each, second, third, all: columns }
    }

    /// Column `c` of the thread's.
    #[inline(always)]
    fn column(&self, c: usize) -> usize {
        self.column + c % 2 * self.second + c / 2 * self.third
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

    /// Column `c` of the thread's, or, if there is none, the first: a load that has to be done or not is a branch.
    #[inline(always)]
    fn column_to_load(&self, c: usize) -> usize {
        if self.has(c) { self.column(c) } else { 0 }
    }

    /// By wide accesses the thread's elements of the row that begins at `row`: any for columns that are not there, which
    /// nothing is made of.
    ///
    /// # Safety
    /// Columns are a multiple of four, all of the row is inside of the view, and it begins at a multiple of an access's size.
    #[inline(always)]
    unsafe fn load_wide<T: Element>(&self, input: &Global<T>, row: usize) -> [T; COLUMNS] {
        // The number of columns is a multiple of a thread's: it has all of an access or none.
        if size_of::<T>() < 8 {
            // SAFETY: as promised by the caller.
            return unsafe { input.load_four_unchecked(row + self.column_to_load(0)) };
        }
        // SAFETY: as promised by the caller.
        let pack = |c: usize| unsafe { input.load_pack_unchecked(row + self.column_to_load(c)) };
        let (first, second) = (pack(0), pack(2));
        [first.get(0), first.get(1), second.get(0), second.get(1)]
    }
}

/// One value for each column of a thread. Written out, because what a compiler does not unroll goes to memory.
#[inline(always)]
fn four<S>(of_column: impl Fn(usize) -> S) -> [S; COLUMNS] {
    [of_column(0), of_column(1), of_column(2), of_column(3)]
}

/// What this thread folds of these rows; `load` loads its elements of one.
#[inline(always)]
fn fold_rows<O: Operator<T>, T: Element>(
    all: Range<usize>,
    place: &Place,
    load: impl Fn(usize) -> [T; COLUMNS],
) -> [O::State; COLUMNS] {
    let mut states = [O::NEUTRAL; COLUMNS];
    let mut first = all.start + place.row;
    let in_flight = rows_in_flight(size_of::<T>(), size_of::<O::State>());
    while in_flight == 8 && first + 7 * place.rows < all.end {
        let row = |k: usize| first + k * place.rows;
        let load = |k: usize| load(row(k));
        let loaded = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        issue_loads();
        states = four(|c| {
            let of = |k: usize| loaded[k][c];
            let column = [of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)];
            O::combine(states[c], O::gather(column, |k| row(k) as u64))
        });
        first += 8 * place.rows;
    }
    while in_flight >= 4 && first + 3 * place.rows < all.end {
        let row = |k: usize| first + k * place.rows;
        let loaded = [load(row(0)), load(row(1)), load(row(2)), load(row(3))];
        issue_loads();
        states = four(|c| {
            let column = [loaded[0][c], loaded[1][c], loaded[2][c], loaded[3][c]];
            O::combine(states[c], O::gather(column, |k| row(k) as u64))
        });
        first += 4 * place.rows;
    }
    while in_flight == 2 && first + place.rows < all.end {
        let row = |k: usize| first + k * place.rows;
        let loaded = [load(row(0)), load(row(1))];
        issue_loads();
        states = four(|c| O::combine(states[c], O::gather([loaded[0][c], loaded[1][c]], |k| row(k) as u64)));
        first += 2 * place.rows;
    }
    while first < all.end {
        let loaded = load(first);
        states = four(|c| O::combine(states[c], O::lift(loaded[c], first as u64)));
        first += place.rows;
    }
    states
}

/// What this thread folds of the partials of `parts` blocks, the first of which is the `first`-th of all. Of several blocks at
/// once, as far as registers reach: what a block has left is as far away as the input.
#[inline(always)]
fn fold_partials<O: Operator<T>, T: Element>(
    partials: &GlobalMut<O::State>,
    first: usize,
    parts: usize,
    place: &Place,
) -> [O::State; COLUMNS] {
    // Behind the last column it is that one, which is the tile's, since a load that has to be done or not is a branch.
    let columns = four(|c| if place.has(c) { place.column(c) } else { place.all - 1 });
    let load = |part: usize| {
        let start = (first + part) * place.all;
        // The other blocks wrote these during this launch: L1 may not answer for them.
        // SAFETY: the host has made room for each column of each part of each batch.
        four(|c| unsafe { partials.load_volatile_unchecked(start + columns[c]) })
    };
    let with = |states: [O::State; COLUMNS], part: [O::State; COLUMNS]| four(|c| O::combine(states[c], part[c]));
    let mut states = [O::NEUTRAL; COLUMNS];
    let mut part = place.row;
    while size_of::<O::State>() <= 8 && part + 3 * place.rows < parts {
        let nth = |k: usize| part + k * place.rows;
        let loaded = [load(nth(0)), load(nth(1)), load(nth(2)), load(nth(3))];
        states = with(with(with(with(states, loaded[0]), loaded[1]), loaded[2]), loaded[3]);
        part += 4 * place.rows;
    }
    while size_of::<O::State>() > 8 && part + place.rows < parts {
        let loaded = [load(part), load(part + place.rows)];
        states = with(with(states, loaded[0]), loaded[1]);
        part += 2 * place.rows;
    }
    while part < parts {
        states = with(states, load(part));
        part += place.rows;
    }
    states
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

/// [`store_outputs`], the four of a thread together where they are neighbours and aligned for it: of 16 rows a result is
/// written for 16 elements that are read, and what is written in parts takes as many accesses of L2 as it has parts.
#[inline(always)]
fn store_many_outputs<O: Operator<T>, T: Element>(
    states: [O::State; COLUMNS],
    output: &GlobalMut<O::Output>,
    first: usize,
    rows: usize,
    place: &Place,
) {
    let bytes = size_of::<O::Output>() * COLUMNS;
    let are_together = size_of::<T>() < 8
        && place.second == 1
        && place.third == 2
        && place.all.is_multiple_of(COLUMNS)
        && output.is_aligned_to(first, if bytes < 16 { bytes } else { 16 })
        && first <= output.len()
        && output.len() - first >= place.all;
    if !are_together {
        store_outputs::<O, T>(states, output, first, rows, place);
    } else if place.row == 0 && place.has(0) {
        let (first, finish) = (first + place.column, |c: usize| O::finish(states[c], rows as u64));
        // SAFETY: columns are a multiple of four, so all four are there, at a multiple of four behind `first`.
        unsafe {
            if bytes <= 16 {
                output.store_neighbours_unchecked(first, [finish(0), finish(1), finish(2), finish(3)]);
            } else {
                output.store_neighbours_unchecked(first, [finish(0), finish(1)]);
                output.store_neighbours_unchecked(first + 2, [finish(2), finish(3)]);
            }
        }
    }
}
