//! A block's tile of a matrix: where it lies, its micro-tiles, and its layout in shared memory.
//!
//! # The tile
//!
//! A block transposes a tile of micro-tiles, a power of two of them across and a power of two down. A micro-tile has as
//! many rows and columns as 16 bytes have elements. The number of micro-tiles of a tile is fixed ([`micro_tiles`]), so
//! every shape of tile fills the same shared memory. The host chooses how many are across: a square tile, or a long one
//! for a matrix with few rows or columns.
//!
//! # Bank conflicts
//!
//! The tile is stored transposed: column after column, each of one 16-byte vector for each micro-tile down. A 16-byte
//! access is served eight lanes at a time; these should access different ones of the eight 16-byte units of the 32
//! banks. Vector `q` of a column in micro-tile `x` lies at index `q ^ swizzle(x)` of that column:
//!
//! | access | lanes differ in | units |
//! |---|---|---|
//! | store of vector `y` of micro-tile `x` | `x`, and `y` with fewer than 8 across | all, with 8 down or more |
//! | store of half vectors, of a shared micro-tile | the half, `x` and `y`, 16 lanes at a time | both halves of eight |
//! | load of vector `q` of a column | `q`, and the column with fewer than 8 vectors | eight different ones |

use cuda_std::prelude::*;

use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::{Layout, PitchedRows};

/// Micro-tiles of a tile of `len` elements of `size` bytes.
pub const fn micro_tiles(len: usize, size: usize) -> usize {
    let side = 16 / size;
    len / (side * side)
}

/// Threads that share a micro-tile, each with the same number of its rows. Micro-tiles of small elements are large:
/// without sharing, a block of few micro-tiles would have few warps.
const fn sharing(len: usize, size: usize) -> usize {
    if size <= 2 && micro_tiles(len, size) < 128 { 2 } else { 1 }
}

/// Threads of a block for such a tile.
pub const fn threads(len: usize, size: usize) -> usize {
    let parts = micro_tiles(len, size) * sharing(len, size);
    if parts < 256 { parts } else { 256 }
}

/// Rows of a micro-tile that one thread has.
const fn rows_per_thread<T: Transpose, const LEN: usize>() -> usize {
    T::Vector::LEN / sharing(LEN, size_of::<T>())
}

/// Micro-tiles, or shares of them, that each thread has.
const fn shares_per_thread<T: Transpose, const LEN: usize>() -> usize {
    micro_tiles(LEN, size_of::<T>()) * sharing(LEN, size_of::<T>()) / threads(LEN, size_of::<T>())
}

/// Vectors that each thread has.
pub(in crate::transpose) const fn vectors_per_thread<T: Transpose, const LEN: usize>() -> usize {
    shares_per_thread::<T, LEN>() * rows_per_thread::<T, LEN>()
}

/// The maximum number of micro-tiles, or shares of them, that a thread has.
const MAX_SHARES: usize = 4;

/// The grid of tiles of the matrices. The host computes it, because a block would spend more time on the divisions than
/// on its tile.
#[derive(Clone, Copy)]
pub(in crate::transpose) struct TileGrid {
    /// The base-2 logarithm of the micro-tiles across a tile.
    pub log2_across: u32,
    /// Tiles down and across each matrix.
    pub tiles_down: u32,
    pub tiles_across: u32,
    /// The base-2 logarithm of the number of partitions of a row of tiles, which are taken in turn: see
    /// [`LOG2_PARTITIONED_PITCHES`](crate::transpose::tuning::LOG2_PARTITIONED_PITCHES).
    pub log2_partitions: u32,
}

impl TileGrid {
    /// A grid whose columns of tiles are traversed from left to right.
    #[inline(always)]
    pub fn in_order(log2_across: u32, tiles_down: u32, tiles_across: u32) -> Self {
        Self { log2_across, tiles_down, tiles_across, log2_partitions: 0 }
    }

    /// The block's matrix, and the row and column of its tile. Consecutive blocks go down a column of tiles, then to
    /// the current column of the next partition, and after all columns to the next matrix.
    #[inline(always)]
    pub fn of_block(self) -> (u32, u32, u32) {
        let block = thread::block_idx_x();
        let (nth, row) = (block / self.tiles_down, block % self.tiles_down);
        (nth / self.tiles_across, row, self.column(nth % self.tiles_across))
    }

    /// The `nth` column of tiles. If the partitions are not equally wide, the first ones have one column more.
    #[inline(always)]
    fn column(self, nth: u32) -> u32 {
        let mask = (1 << self.log2_partitions) - 1;
        let (partition, wider) = (nth & mask, self.tiles_across & mask);
        partition * (self.tiles_across >> self.log2_partitions) + partition.min(wider) + (nth >> self.log2_partitions)
    }
}

/// A block's tile.
pub(in crate::transpose) struct Tile {
    pub batch: usize,
    /// The first row and column in the matrix, and the numbers of rows and columns inside the matrix.
    pub top: usize,
    pub left: usize,
    pub rows: u32,
    pub columns: u32,
    /// Micro-tiles, as base-2 logarithms.
    pub log2_across: u32,
    pub log2_down: u32,
    /// Elements along the side of a micro-tile.
    pub side: u32,
    /// The base-2 logarithm of the threads that share a micro-tile, each with the same number of its columns.
    pub log2_sharing: u32,
}

impl Tile {
    /// The block's tile, in a grid of tiles of `micro_tiles` micro-tiles, `1 << log2_across` of them across.
    ///
    /// Consecutive blocks go down [a column of tiles](TileGrid::of_block), so that blocks that run at the same time
    /// write whole rows of the output. Panels of 32 or 128 rows of tiles, which read longer parts of rows, are 2 to 6 %
    /// slower.
    #[inline(always)]
    pub fn of_block(rows: usize, columns: usize, grid: TileGrid, micro_tiles: usize, size: usize) -> Self {
        let side = 16 / size;
        let (log2_across, log2_down) = (grid.log2_across, micro_tiles.trailing_zeros() - grid.log2_across);
        let (height, width) = (side << log2_down, side << log2_across);
        let (batch, row, column) = grid.of_block();
        let (top, left) = (row as usize * height, column as usize * width);
        Self::at(rows, columns, batch as usize, (top, left), (log2_across, log2_down), side)
    }

    /// The tile of matrix `batch` that begins at row `top` and column `left`.
    #[inline(always)]
    pub fn at(
        rows: usize,
        columns: usize,
        batch: usize,
        (top, left): (usize, usize),
        (log2_across, log2_down): (u32, u32),
        side: usize,
    ) -> Self {
        let up_to = |most: usize, left: usize| if left < most { left as u32 } else { most as u32 };
        let (rows, columns) = (up_to(side << log2_down, rows - top), up_to(side << log2_across, columns - left));
        Self { batch, top, left, rows, columns, log2_across, log2_down, side: side as u32, log2_sharing: 0 }
    }

    /// The tile's rows in the input.
    #[inline(always)]
    pub fn rows_of_input(&self, input: &Layout) -> PitchedRows {
        PitchedRows { first: self.batch * input.batch_pitch + self.top * input.pitch + self.left, pitch: input.pitch }
    }

    /// The rows of its transpose in the output.
    #[inline(always)]
    pub fn rows_of_output(&self, output: &Layout) -> PitchedRows {
        PitchedRows {
            first: self.batch * output.batch_pitch + self.left * output.pitch + self.top,
            pitch: output.pitch,
        }
    }

    /// Where vector `q` of column `column` begins in shared memory.
    #[inline(always)]
    pub fn vector(&self, column: u32, q: u32) -> usize {
        // With fewer than eight micro-tiles, or shares of them, across, eight lanes store vectors of several rows of
        // micro-tiles.
        let shift = 3_u32.saturating_sub(self.log2_across + self.log2_sharing);
        let swizzle = (((column << self.log2_sharing) / self.side) << shift) & ((1 << self.log2_down) - 1) & 7;
        (((column << self.log2_down) + (q ^ swizzle)) * self.side) as usize
    }
}

/// Share `k` of the thread: the column and row of its micro-tile in the tile, and which share of it. Neighbouring
/// threads share a micro-tile, so that their stores of half vectors fill whole vectors.
#[inline(always)]
fn share_of_thread<T: Transpose, const LEN: usize>(k: usize, log2_across: u32) -> (u32, u32, u32) {
    let sharing = sharing(LEN, size_of::<T>()) as u32;
    let part = thread::thread_idx_x() + (k * threads(LEN, size_of::<T>())) as u32;
    let micro_tile = part / sharing;
    (micro_tile & ((1 << log2_across) - 1), micro_tile >> log2_across, part % sharing)
}

/// Vector `i` of the thread's micro-tiles: its row and its first column in the tile.
#[inline(always)]
pub(in crate::transpose) fn vector_of_micro_tiles<T: Transpose, const LEN: usize>(
    i: usize,
    log2_across: u32,
) -> (u32, u32) {
    let (side, rows) = (T::Vector::LEN as u32, rows_per_thread::<T, LEN>());
    let (x, y, part) = share_of_thread::<T, LEN>(i / rows, log2_across);
    (y * side + part * rows as u32 + (i % rows) as u32, x * side)
}

/// Vector `i` that the thread stores to the output: its column, and its index in that column. Consecutive threads take
/// consecutive vectors of a column and then the next column, which is the order of the output in memory.
#[inline(always)]
pub(in crate::transpose) fn vector_of_thread<T: Transpose, const LEN: usize>(i: usize, log2_down: u32) -> (u32, u32) {
    let vector = thread::thread_idx_x() + (i * threads(LEN, size_of::<T>())) as u32;
    (vector >> log2_down, vector & ((1 << log2_down) - 1))
}

/// Transposes the thread's micro-tiles into shared memory and applies the epilogue. `vectors` are their rows.
#[inline(always)]
pub(in crate::transpose) fn transpose_micro_tiles<T: Transpose, C: Epilogue<T>, const LEN: usize>(
    vectors: &[T::Vector; 16],
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    const { assert!(shares_per_thread::<T, LEN>() <= MAX_SHARES) };
    let vectors = unroll_16(&AfterEpilogue { vectors, epilogue });
    transpose_micro_tile(&vectors, 0, shape, tile);
    transpose_micro_tile(&vectors, 1, shape, tile);
    transpose_micro_tile(&vectors, 2, shape, tile);
    transpose_micro_tile(&vectors, 3, shape, tile);
}

/// Vectors after the epilogue.
struct AfterEpilogue<'a, P, C> {
    vectors: &'a [P; 16],
    epilogue: C,
}

impl<T: Transpose, P: VectorType<Item = T>, C: Epilogue<T>> Unroll for AfterEpilogue<'_, P, C>
where
    T: Element<Vector = P>,
{
    type Output = P;

    #[inline(always)]
    fn value(&self, i: usize) -> P {
        self.epilogue.apply(self.vectors[i])
    }
}

/// Transposes micro-tile `k` of the thread into shared memory, if the thread has it.
#[inline(always)]
fn transpose_micro_tile<T: Transpose, const LEN: usize>(
    vectors: &[T::Vector; 16],
    k: usize,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    if k >= shares_per_thread::<T, LEN>() {
        return;
    }
    let (x, y, part) = share_of_thread::<T, LEN>(k, shape.log2_across);
    let transposed = T::transpose(unroll_16(&MicroTile { vectors, first: k * rows_per_thread::<T, LEN>() }));
    let transposed = Transposed { transposed, column: x * shape.side, y, shape, tile };
    if sharing(LEN, size_of::<T>()) == 1 {
        unroll_16(&transposed);
    } else {
        unroll_16(&Half { of: &transposed, part });
    }
}

/// [`transpose_micro_tiles`] for a thread whose share of a micro-tile is the first elements of each vector. The share
/// begins at column `column` of the tile, in row `y` of micro-tiles.
#[inline(always)]
pub(in crate::transpose) fn transpose_share<T: Transpose, C: Epilogue<T>, const LEN: usize>(
    vectors: &[T::Vector; 16],
    epilogue: C,
    (column, y): (u32, u32),
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let transposed = T::transpose(unroll_16(&AfterEpilogue { vectors, epilogue }));
    unroll_16(&Transposed { transposed, column, y, shape, tile });
}

/// The vectors of one micro-tile; the vectors past its rows are unspecified.
struct MicroTile<'a, P> {
    vectors: &'a [P; 16],
    first: usize,
}

impl<P: VectorType> Unroll for MicroTile<'_, P> {
    type Output = P;

    #[inline(always)]
    fn value(&self, i: usize) -> P {
        self.vectors[(self.first + i) % 16]
    }
}

/// A transposed micro-tile, or a share of one, with its place in shared memory.
struct Transposed<'a, T: Transpose, const LEN: usize> {
    transposed: [T::Vector; 16],
    column: u32,
    y: u32,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Transpose, const LEN: usize> Unroll for Transposed<'_, T, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        if i < T::Vector::LEN >> self.shape.log2_sharing {
            let index = self.shape.vector(self.column + i as u32, self.y);
            // SAFETY: a vector of one of the tile's columns.
            unsafe { self.tile.store_vector_unchecked(index, self.transposed[i]) };
        }
    }
}

/// One of two threads' share of a transposed micro-tile: the first half of each vector, which is a half of a vector in
/// shared memory.
struct Half<'a, 'b, T: Transpose, const LEN: usize> {
    of: &'a Transposed<'b, T, LEN>,
    part: u32,
}

impl<T: Transpose, const LEN: usize> Unroll for Half<'_, '_, T, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        let Transposed { transposed, column, y, shape, tile } = self.of;
        if i < T::Vector::LEN {
            let index = shape.vector(column + i as u32, *y) + self.part as usize * rows_per_thread::<T, LEN>();
            let [low, high, ..] = transposed[i].to_words();
            // SAFETY: half of a vector of one of the tile's columns.
            unsafe { tile.store_word_unchecked(index, u64::from(low) | u64::from(high) << 32) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of `TILES` columns of tiles.
    fn columns<const TILES: usize>(log2_partitions: u32) -> [u32; TILES] {
        let grid = TileGrid { log2_across: 0, tiles_down: 1, tiles_across: TILES as u32, log2_partitions };
        core::array::from_fn(|nth| grid.column(nth as u32))
    }

    #[test]
    fn partitions_of_rows_take_turns() {
        assert_eq!(columns(0), [0, 1, 2, 3, 4]);
        assert_eq!([0, 1, 2, 3, 4].map(|nth| TileGrid::in_order(0, 1, 5).column(nth)), columns(0));
        assert_eq!(columns(1), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(columns(2), [0, 2, 4, 6, 1, 3, 5]);
        assert_eq!(columns(3), [0, 1, 2]);
    }
}
