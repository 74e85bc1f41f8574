//! Transposes of elements of 1, 2, 4, 8 and 16 bytes, of any shape, pitch and alignment: what the library calls.
//!
//! # The tile
//!
//! A block turns a tile of `across` x `down` squares, powers of two; a square has as many rows and columns as 16 bytes have
//! elements. The squares of a tile are always as many ([`squares`]), so that a tile fills the same shared memory whether it
//! is square or, for a matrix with few rows or columns, a strip: how many are across is the host's choice.
//!
//! # Bank conflicts
//!
//! The tile is kept turned: column after column, each of `down` packs of 16 bytes. A 16-byte access is done for eight lanes
//! at a time, which should fall into the eight 16-byte units of the 32 banks. Pack `q` of a column in square `x` lies at
//! place `q ^ swizzle(x)`:
//!
//! | access | lanes differ in | units |
//! |---|---|---|
//! | store, of pack `y` of the columns of square `x` | `x`, and `y` where there are fewer than 8 squares across | all different, with 8 squares down or more |
//! | load, of pack `q` of a column | `q` | `q ^ swizzle`: eight different ones, likewise |

use cuda_std::prelude::*;

use super::turn::{Each, Turn, sixteen};

/// Elements of the tile of a block, by their size: 16 KiB of them, 32 KiB of small ones, whose rows would be short
/// otherwise.
pub const fn elements(size: usize) -> usize {
    let bytes = if size <= 2 { 32 << 10 } else { 16 << 10 };
    bytes / size
}

/// Squares of a tile.
pub const fn squares(size: usize) -> usize {
    let side = 16 / size;
    elements(size) / (side * side)
}

/// Threads of a block.
pub const fn threads(size: usize) -> usize {
    let squares = squares(size);
    if squares < 256 { squares } else { 256 }
}

/// Writes the transposes of matrices of `rows` x `columns` elements, whose rows begin `input_pitch` elements apart, to
/// matrices whose rows begin `output_pitch` apart; a further matrix begins `input_batch` and `output_batch` elements behind
/// the one before. `LEN` is [`elements`] of the size, and a tile is `1 << across` squares wide.
///
/// - *All accesses are 16 bytes wide*, where the sides, pitches and addresses allow it, and 64 bytes or more are on their way
///   in each thread; a thread's squares are turned in registers, small elements by permuting bytes.
/// - *Where they do not*, neighbouring lanes move neighbouring elements of the tile's rows, however short those are.
/// - *Consecutive blocks go down the input's columns*, so that blocks that run at the same time write neighbouring parts of
///   the output's rows.
///
/// The grid has a block for each tile of each matrix.
///
/// Source: the tile in shared memory, Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009); the XOR in
/// place of a column of padding, so that 16-byte accesses stay aligned, is common.
#[kernel(
    instances = [u8] x [32768] + [u16] x [16384] + [u32] x [4096] + [u64] x [2048] + [u128] x [1024],
    block = threads(size_of::<T>()),
    early
)]
pub fn tiles<T: Turn, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    input_pitch: usize,
    output_pitch: usize,
    input_batch: usize,
    output_batch: usize,
    across: u32,
) {
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let shape = Tile::of_block(rows, columns, across, size);
    let thread = thread::thread_idx_x() as usize;
    let is_wide = |start_is_aligned: bool, pitch: usize, batch: usize, side: usize| {
        start_is_aligned
            && (pitch * size).is_multiple_of(16)
            && (batch * size).is_multiple_of(16)
            && (side * size).is_multiple_of(16)
    };

    let first = shape.batch * input_batch + shape.top * input_pitch + shape.left;
    if is_wide(input.is_aligned_to(0, 16), input_pitch, input_batch, columns) {
        load_squares::<T, LEN>(&input, first, input_pitch, &shape, &tile);
    } else {
        load_elements::<T, LEN>(&input, first, input_pitch, &shape, &tile, thread);
    }
    thread::sync_threads();

    let first = shape.batch * output_batch + shape.left * output_pitch + shape.top;
    if is_wide(output.as_global().is_aligned_to(0, 16), output_pitch, output_batch, rows) {
        store_packs::<T, LEN>(&output, first, output_pitch, &shape, &tile);
    } else {
        store_elements::<T, LEN>(&output, first, output_pitch, &shape, &tile, thread);
    }
}

/// A block's tile.
struct Tile {
    batch: usize,
    /// Its first row and column in the matrix, and how many of each the matrix has from there on, up to the tile's.
    top: usize,
    left: usize,
    rows: u32,
    columns: u32,
    /// Squares, as powers of two.
    across: u32,
    down: u32,
    /// Elements along the side of a square.
    side: u32,
}

impl Tile {
    #[inline(always)]
    fn of_block(rows: usize, columns: usize, across: u32, size: usize) -> Self {
        let side = 16 / size;
        let down = squares(size).trailing_zeros() - across;
        let (height, width) = (side << down, side << across);
        let (tiles_down, tiles_across) = (rows.div_ceil(height) as u32, columns.div_ceil(width) as u32);
        let block = thread::block_idx_x();
        let (column, row) = (block / tiles_down, block % tiles_down);
        let (batch, column) = (column / tiles_across, column % tiles_across);
        let (top, left) = (row as usize * height, column as usize * width);
        let up_to = |most: usize, left: usize| if left < most { left as u32 } else { most as u32 };
        Self {
            batch: batch as usize,
            top,
            left,
            rows: up_to(height, rows - top),
            columns: up_to(width, columns - left),
            across,
            down,
            side: side as u32,
        }
    }

    /// Where pack `q` of column `column` begins in shared memory.
    #[inline(always)]
    fn pack(&self, column: u32, q: u32) -> usize {
        // With fewer than eight squares across, eight lanes store packs of several rows of squares.
        let shift = 3_u32.saturating_sub(self.across);
        let swizzle = ((column / self.side) << shift) & ((1 << self.down) - 1) & 7;
        (((column << self.down) + (q ^ swizzle)) * self.side) as usize
    }

    /// Where an element lies in shared memory.
    #[inline(always)]
    fn element(&self, row: u32, column: u32) -> usize {
        self.pack(column, row / self.side) + (row % self.side) as usize
    }
}

/// Squares that a thread has, at most.
const MOST_SQUARES: usize = 4;

/// Square `k` of the thread's: its place among those of the tile, counted along rows that have `1 << across` of them.
#[inline(always)]
fn square_of_thread<T: Turn>(k: usize, across: u32) -> (u32, u32) {
    let square = thread::thread_idx_x() + (k * threads(size_of::<T>())) as u32;
    (square & ((1 << across) - 1), square >> across)
}

/// Squares that a thread of this element's kernel has.
const fn squares_each<T: Turn>() -> usize {
    squares(size_of::<T>()) / threads(size_of::<T>())
}

/// Loads the thread's squares, turns them, and leaves them in shared memory.
#[inline(always)]
fn load_squares<T: Turn, const LEN: usize>(
    input: &Global<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let packs = sixteen(&PacksOfInput { input, first, pitch, shape });
    turn_square(&packs, 0, shape, tile);
    turn_square(&packs, 1, shape, tile);
    turn_square(&packs, 2, shape, tile);
    turn_square(&packs, 3, shape, tile);
}

/// The packs of the thread's squares.
struct PacksOfInput<'a, T> {
    input: &'a Global<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
}

impl<T: Turn> Each for PacksOfInput<'_, T> {
    type Of = T::Pack;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Pack {
        let side = T::Pack::LEN;
        let (x, y) = square_of_thread::<T>(i / side, self.shape.across);
        let (row, column) = (y * side as u32 + (i % side) as u32, x * side as u32);
        if i < squares_each::<T>() * side && row < self.shape.rows && column < self.shape.columns {
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
            unsafe { self.input.load_pack_unchecked(self.first + row as usize * self.pitch + column as usize) }
        } else {
            T::Pack::splat(T::default())
        }
    }
}

/// Turns square `k` of the thread's, if there is one, into shared memory.
#[inline(always)]
fn turn_square<T: Turn, const LEN: usize>(packs: &[T::Pack; 16], k: usize, shape: &Tile, tile: &SharedArray<T, LEN>) {
    const { assert!(squares_each::<T>() <= MOST_SQUARES) };
    if k >= squares_each::<T>() {
        return;
    }
    let (x, y) = square_of_thread::<T>(k, shape.across);
    let turned = T::turn(sixteen(&Square { packs, first: k * T::Pack::LEN }));
    sixteen(&Turned { turned, x, y, shape, tile });
}

/// The packs of one square among those of all; what is behind them is of no meaning.
struct Square<'a, P> {
    packs: &'a [P; 16],
    first: usize,
}

impl<P: Packed> Each for Square<'_, P> {
    type Of = P;

    #[inline(always)]
    fn of(&self, i: usize) -> P {
        self.packs[(self.first + i) % 16]
    }
}

/// A turned square at its place in shared memory.
struct Turned<'a, T: Turn, const LEN: usize> {
    turned: [T::Pack; 16],
    x: u32,
    y: u32,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Turn, const LEN: usize> Each for Turned<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let side = T::Pack::LEN;
        if i < side {
            self.tile.store_pack(self.shape.pack(self.x * side as u32 + i as u32, self.y), self.turned[i]);
        }
    }
}

/// Writes packs of columns from shared memory to rows of the output.
#[inline(always)]
fn store_packs<T: Turn, const LEN: usize>(
    output: &GlobalMut<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    sixteen(&PacksOfOutput { output, first, pitch, shape, tile });
}

/// The packs that a thread writes.
struct PacksOfOutput<'a, T, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Turn, const LEN: usize> Each for PacksOfOutput<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let side = T::Pack::LEN;
        let (q, x) = square_of_thread::<T>(i / side, self.shape.down);
        let (row, column) = (q * side as u32, x * side as u32 + (i % side) as u32);
        if i < squares_each::<T>() * side && row < self.shape.rows && column < self.shape.columns {
            let pack = self.tile.load_pack(self.shape.pack(column, q));
            let place = self.first + column as usize * self.pitch + row as usize;
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
            unsafe { self.output.store_pack_unchecked(place, pack) };
        }
    }
}

/// Loads single elements: neighbouring lanes take neighbours, row after row.
#[inline(always)]
fn load_elements<T: Turn, const LEN: usize>(
    input: &Global<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
    thread: usize,
) {
    let count = shape.rows * shape.columns;
    let step = threads(size_of::<T>()) as u32;
    let mut i = thread as u32;
    while i < count {
        // Four are in flight before the first is used.
        let load = |k: u32| load_element(input, first, pitch, shape, i + k * step);
        let elements = [load(0), load(1), load(2), load(3)];
        keep_element(tile, shape, i, elements[0]);
        keep_element(tile, shape, i + step, elements[1]);
        keep_element(tile, shape, i + 2 * step, elements[2]);
        keep_element(tile, shape, i + 3 * step, elements[3]);
        i += 4 * step;
    }
}

/// Element `i` of the tile, row after row, if there is one.
#[inline(always)]
fn load_element<T: Turn>(input: &Global<T>, first: usize, pitch: usize, shape: &Tile, i: u32) -> T {
    let (row, column) = (i / shape.columns, i % shape.columns);
    if row < shape.rows {
        // SAFETY: inside of the matrix, and so the view.
        unsafe { input.load_unchecked(first + row as usize * pitch + column as usize) }
    } else {
        T::default()
    }
}

/// Leaves it in shared memory.
#[inline(always)]
fn keep_element<T: Turn, const LEN: usize>(tile: &SharedArray<T, LEN>, shape: &Tile, i: u32, element: T) {
    let (row, column) = (i / shape.columns, i % shape.columns);
    if row < shape.rows {
        tile.store(shape.element(row, column), element);
    }
}

/// Writes single elements: neighbouring lanes write neighbours, row after row of the output.
#[inline(always)]
fn store_elements<T: Turn, const LEN: usize>(
    output: &GlobalMut<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
    thread: usize,
) {
    let count = shape.rows * shape.columns;
    let mut i = thread as u32;
    while i < count {
        let (column, row) = (i / shape.rows, i % shape.rows);
        let element = tile.load(shape.element(row, column));
        // SAFETY: inside of the matrix, and so the view.
        unsafe { output.store_unchecked(first + column as usize * pitch + row as usize, element) };
        i += threads(size_of::<T>()) as u32;
    }
}
