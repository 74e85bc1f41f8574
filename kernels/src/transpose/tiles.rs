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

use super::turn::Turn;

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

/// Packs that a thread holds at once, at most.
pub(super) const PACKS: usize = 16;

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
        load_squares::<T, LEN>(&input, first, input_pitch, &shape, &tile, thread);
    } else {
        load_elements::<T, LEN>(&input, first, input_pitch, &shape, &tile, thread);
    }
    thread::sync_threads();

    let first = shape.batch * output_batch + shape.left * output_pitch + shape.top;
    if is_wide(output.as_global().is_aligned_to(0, 16), output_pitch, output_batch, rows) {
        store_packs::<T, LEN>(&output, first, output_pitch, &shape, &tile, thread);
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

/// Loads the thread's squares, turns them, and leaves them in shared memory.
#[inline(always)]
fn load_squares<T: Turn, const LEN: usize>(
    input: &Global<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
    thread: usize,
) {
    let side = T::Pack::LEN;
    let each = squares(size_of::<T>()) / threads(size_of::<T>());
    let place = |k: usize| {
        let square = (thread + k * threads(size_of::<T>())) as u32;
        (square & ((1 << shape.across) - 1), square >> shape.across)
    };
    let mut packs = [T::Pack::splat(T::default()); PACKS];
    let mut k = 0;
    while k < each {
        let (x, y) = place(k);
        let mut i = 0;
        while i < side {
            let (row, column) = (y * side as u32 + i as u32, x * side as u32);
            if row < shape.rows && column < shape.columns {
                // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
                packs[k * side + i] =
                    unsafe { input.load_pack_unchecked(first + row as usize * pitch + column as usize) };
            }
            i += 1;
        }
        k += 1;
    }
    let mut k = 0;
    while k < each {
        let (x, y) = place(k);
        let mut square = [T::Pack::splat(T::default()); PACKS];
        let mut i = 0;
        while i < side {
            square[i] = packs[k * side + i];
            i += 1;
        }
        let turned = T::turn(square);
        let mut i = 0;
        while i < side {
            tile.store_pack(shape.pack(x * side as u32 + i as u32, y), turned[i]);
            i += 1;
        }
        k += 1;
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
    thread: usize,
) {
    let side = T::Pack::LEN;
    let mut k = 0;
    while k < squares(size_of::<T>()) / threads(size_of::<T>()) {
        let square = (thread + k * threads(size_of::<T>())) as u32;
        let (q, x) = (square & ((1 << shape.down) - 1), square >> shape.down);
        let mut i = 0;
        while i < side {
            let (row, column) = (q * side as u32, x * side as u32 + i as u32);
            if row < shape.rows && column < shape.columns {
                let pack = tile.load_pack(shape.pack(column, q));
                // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of packs.
                unsafe { output.store_pack_unchecked(first + column as usize * pitch + row as usize, pack) };
            }
            i += 1;
        }
        k += 1;
    }
}

/// Elements that a thread has in flight, where it moves them one by one.
const SINGLES: usize = 8;

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
    let place = |i: u32| (i / shape.columns, i % shape.columns);
    let mut i = thread as u32;
    while i < count {
        let mut elements = [T::default(); SINGLES];
        let mut k = 0;
        while k < SINGLES {
            let (row, column) = place(i + k as u32 * step);
            if i + k as u32 * step < count {
                // SAFETY: inside of the matrix, and so the view.
                elements[k] = unsafe { input.load_unchecked(first + row as usize * pitch + column as usize) };
            }
            k += 1;
        }
        let mut k = 0;
        while k < SINGLES {
            let (row, column) = place(i + k as u32 * step);
            if i + (k as u32) * step < count {
                tile.store(shape.element(row, column), elements[k]);
            }
            k += 1;
        }
        i += SINGLES as u32 * step;
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
