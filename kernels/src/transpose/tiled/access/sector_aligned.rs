//! Loads and stores of a tile by 16-byte accesses, for rows that begin and end at any address: a tile ends where a
//! sector of the output ends.
//!
//! Memory transfers sectors of 32 bytes. A sector that two blocks write parts of is written more than once: with tiles
//! that end anywhere, 8191 x 8193 elements of 4 bytes take 16.5 million sectors instead of 12.6. So in each row of the
//! output, a tile ends where a sector ends. Rows of the output begin anywhere in a sector, so these ends are in
//! different rows of the input: each column of the tile begins up to a sector's elements above or below its neighbours,
//! and the tile's upper and lower edges are staggered. A block therefore loads a halo of [`HALO_MICRO_TILES`] more rows
//! of micro-tiles than it writes, and its neighbour writes the rest of them. Only the edges of the matrix have parts of
//! vectors.
//!
//! Positions in a row of the output are counted from the start of the sector in which the row begins.
//!
//! Cutting a vector out of two takes instructions and registers. Three things save them. A tile inside the matrix needs
//! no comparisons for edges. Values that a thread's vectors share are computed once. Each lane loads the aligned
//! vectors in which its rows begin, and gets the next ones from the next lane by a shuffle. So the last lane of a row
//! loads only for the lane before it, and its columns belong to the next tile.

use cuda_std::bits::funnel_shift_vector;
use cuda_std::global::{PendingVector, issue_loads};
use cuda_std::hint::compute_anew;
use cuda_std::prelude::*;

use crate::transpose::tiled::block_tile::{Tile, TileGrid, micro_tiles, transpose_share};
use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::Layout;

/// Bytes of a sector.
const SECTOR: usize = 32;

/// Rows of micro-tiles that a tile shares with the tile above it: one sector.
pub const HALO_MICRO_TILES: u32 = SECTOR as u32 / 16;

/// Positions of a row of the output of `rows` elements of `size` bytes, which may begin anywhere in its first sector.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + SECTOR / size - 1
}

/// The base-2 logarithm of the threads that share a micro-tile, each with the same number of its columns. Two threads
/// share a micro-tile of bytes, each with half of every row, so that twice as many warps fit.
const fn log2_sharing(size: usize) -> u32 {
    (size == 1) as u32
}

/// The base-2 logarithm of the micro-tiles of a thread, one below the other. A micro-tile of 8-byte elements has only
/// two vectors, so a thread has two micro-tiles, for more loads in flight.
const fn log2_micro_tiles(size: usize) -> u32 {
    (size == 8) as u32
}

/// Rows of a thread's micro-tiles.
const fn rows_per_thread<T: Transpose>() -> usize {
    T::Vector::LEN << log2_micro_tiles(size_of::<T>())
}

/// Columns that a tile leaves to the next one: those of the last lane of a row, which loads them for the lane before
/// it.
pub const fn overlap(size: usize) -> usize {
    (16 / size) >> log2_sharing(size)
}

/// Threads of a block for a tile of `len` elements of `size` bytes.
pub const fn threads(len: usize, size: usize) -> usize {
    micro_tiles(len, size) << log2_sharing(size) >> log2_micro_tiles(size)
}

/// Whether the tile is inside the matrix, with at least a sector's worth of rows above and below it.
#[inline(always)]
pub(in crate::transpose) fn is_inside<T: Transpose>(rows: usize, shape: &Tile) -> bool {
    let sector = SECTOR / size_of::<T>();
    shape.columns == (shape.side << shape.log2_across) - overlap(size_of::<T>()) as u32
        && shape.top >= sector
        && shape.top + ((shape.side << shape.log2_down) as usize) + sector <= rows
}

/// The block's tile of `len` elements of `size` bytes.
#[inline(always)]
pub(in crate::transpose) fn tile_of_block(
    rows: usize,
    columns: usize,
    grid: TileGrid,
    len: usize,
    size: usize,
) -> Tile {
    let micro_tiles = micro_tiles(len, size);
    let (batch, row, column) = grid.of_block();
    let (side, log2_down) = (16 / size, micro_tiles.trailing_zeros() - grid.log2_across);
    let width = (side << grid.log2_across) - overlap(size);
    let (top, left) = (row as usize * side * ((1 << log2_down) - HALO_MICRO_TILES as usize), column as usize * width);
    let tile =
        Tile::at(positions(rows, size), columns, batch as usize, (top, left), (grid.log2_across, log2_down), side);
    Tile { log2_sharing: log2_sharing(size), columns: tile.columns.min(width as u32), ..tile }
}

/// Loads the thread's micro-tiles, transposes them, and stores them to shared memory. `shape.top` is the first position
/// that the tile writes; its first row is a halo above that.
#[inline(always)]
pub(in crate::transpose) fn load_tile<T: Transpose, C: Epilogue<T>, const LEN: usize>(
    input: &Global<T>,
    (rows, all_columns): (usize, usize),
    layout: &Layout,
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let (side, width, height) = (T::Vector::LEN, T::Vector::LEN >> shape.log2_sharing, rows_per_thread::<T>());
    let thread = thread::thread_idx_x();
    let (part, stack) = (thread & ((1 << shape.log2_sharing) - 1), thread >> shape.log2_sharing);
    let (x, y) = (stack & ((1 << shape.log2_across) - 1), stack >> shape.log2_across);
    let column = x * side as u32 + part * width as u32;
    let row = (shape.top + y as usize * height).wrapping_sub(SECTOR / size_of::<T>());
    let first = shape.batch * layout.batch_pitch + shape.left + column as usize;
    let index = first.wrapping_add(row.wrapping_mul(layout.pitch));
    // A row of the halo above the matrix has a wrapped index.
    let above = row.wrapping_neg();
    let above = if above <= HALO_MICRO_TILES as usize * side { above } else { 0 };
    let end = if row.wrapping_add(above) < rows { rows.wrapping_sub(row) } else { above };
    let columns = shape.columns.saturating_sub(column);
    let up_to_all = |rows: usize| if rows < height { rows as u32 } else { height as u32 };
    let (above, end, columns) = (up_to_all(above), up_to_all(end), columns.min(width as u32));
    // Columns to the end of the matrix's row, which may be in the vector that the next lane begins with.
    let columns_left = (all_columns - shape.left) as i64 - column as i64;
    let columns_left = if columns_left < width as i64 { columns_left as i32 } else { width as i32 };
    let pitch = layout.pitch;
    let rows_of_thread = RowsOfThread { input, index, pitch, above, count: end - above, columns, columns_left };
    // A separate branch, so that all loads are issued before any later instruction.
    let has_columns_after = shape.left + (shape.columns as usize) < all_columns;
    let begun = if has_columns_after && is_inside::<T>(rows, shape) {
        unroll_16(&BeginInside(&rows_of_thread))
    } else {
        unroll_16(&BeginAtEdge(&rows_of_thread))
    };
    issue_loads();
    // Recomputed: the addresses of sixteen rows would take the registers of the rows.
    let (index, pitch) = (compute_anew(rows_of_thread.index), compute_anew(rows_of_thread.pitch));
    let rows_of_thread = RowsOfThread { index, pitch, ..rows_of_thread };
    let vectors = unroll_16(&FinishLoads { rows: &rows_of_thread, begun });
    let y = y << log2_micro_tiles(size_of::<T>());
    transpose_share(&vectors, epilogue, (column, y), shape, tile);
    if log2_micro_tiles(size_of::<T>()) > 0 {
        transpose_share(&unroll_16(&SecondMicroTile { vectors }), epilogue, (column, y + 1), shape, tile);
    }
}

/// The vectors of the second of two micro-tiles, moved to the front.
struct SecondMicroTile<P> {
    vectors: [P; 16],
}

impl<P: VectorType> Unroll for SecondMicroTile<P> {
    type Output = P;

    #[inline(always)]
    fn value(&self, i: usize) -> P {
        self.vectors[(P::LEN + i) % 16]
    }
}

/// The rows of a thread's micro-tiles. Rows past the end repeat the last row; their values are ignored.
struct RowsOfThread<'a, T> {
    input: &'a Global<'a, T>,
    index: usize,
    pitch: usize,
    /// Rows above the matrix, rows inside it, and columns of the micro-tiles. In 32 bits, because they are live while
    /// the registers hold the rows.
    above: u32,
    count: u32,
    columns: u32,
    /// Columns of the matrix from the thread's first column on, at most the micro-tile's; negative past the last
    /// column.
    columns_left: i32,
}

impl<T: Transpose> RowsOfThread<'_, T> {
    #[inline(always)]
    fn index(&self, i: usize) -> usize {
        self.index.wrapping_add(i % rows_per_thread::<T>() * self.pitch)
    }

    /// Whether the matrix has row `i`.
    #[inline(always)]
    fn has(&self, i: usize) -> bool {
        // The index of a row above the matrix wraps, and is far past the end.
        ((i % rows_per_thread::<T>()) as u32).wrapping_sub(self.above) < self.count
    }
}

/// Begins the loads of rows that are inside the matrix and continue past the tile.
struct BeginInside<'a, T>(&'a RowsOfThread<'a, T>);

impl<T: Transpose> Unroll for BeginInside<'_, T> {
    type Output = PendingVector<T::Vector>;

    #[inline(always)]
    fn value(&self, i: usize) -> PendingVector<T::Vector> {
        let (index, count, left) = (self.0.index(i), self.0.columns as usize, overlap(size_of::<T>()) as i32);
        // SAFETY: inside the matrix, and so the view.
        unsafe { self.0.input.begin_unaligned_load_unchecked(index, count, left, log2_sharing(size_of::<T>()) > 0) }
    }
}

/// Begins the loads of rows at an edge of the matrix: the comparisons mask what is outside.
struct BeginAtEdge<'a, T>(&'a RowsOfThread<'a, T>);

impl<T: Transpose> Unroll for BeginAtEdge<'_, T> {
    type Output = PendingVector<T::Vector>;

    #[inline(always)]
    fn value(&self, i: usize) -> PendingVector<T::Vector> {
        // A row outside the matrix is so far past the end that no vector reaches it.
        let (count, left) =
            if self.0.has(i) { (self.0.columns, self.0.columns_left) } else { (0, i32::from(i16::MIN)) };
        // SAFETY: the matrix has these elements, and so has the view.
        unsafe {
            self.0.input.begin_unaligned_load_unchecked(
                self.0.index(i),
                count as usize,
                left,
                log2_sharing(size_of::<T>()) > 0,
            )
        }
    }
}

/// The second step of the loads: the vectors that were begun are completed by a shuffle.
struct FinishLoads<'a, T: Transpose> {
    rows: &'a RowsOfThread<'a, T>,
    begun: [PendingVector<T::Vector>; 16],
}

impl<T: Transpose> Unroll for FinishLoads<'_, T> {
    type Output = T::Vector;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Vector {
        let (begun, index) = (self.begun[i % rows_per_thread::<T>()], self.rows.index(i));
        // SAFETY: `begin_unaligned_load_unchecked` began this row. The lane after each lane with columns holds the
        // columns that follow; the last lanes of a tile have no columns.
        unsafe { self.rows.input.finish_unaligned_load_unchecked(begun, index, log2_sharing(size_of::<T>()) > 0) }
    }
}

/// Writes columns from shared memory to rows of the output.
#[inline(always)]
pub(in crate::transpose) fn store_tile<T: Transpose, const LEN: usize>(
    output: &GlobalMut<T>,
    rows: usize,
    layout: &Layout,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let thread = thread::thread_idx_x();
    let (column, k) = (thread >> shape.log2_down, thread & ((1 << shape.log2_down) - 1));
    let row = shape.batch * layout.batch_pitch + (shape.left + column as usize) * layout.pitch;
    let vectors = VectorsOfThread {
        output,
        shape,
        tile,
        rows,
        column,
        k,
        step: threads(LEN, size_of::<T>()) as u32 >> shape.log2_down,
        index: row + shape.top + k as usize * T::Vector::LEN,
        past: output.elements_past(row, SECTOR) as u32,
        pitch: layout.pitch,
    };
    if k + HALO_MICRO_TILES >= 1 << shape.log2_down {
        // The next tile writes these.
    } else if is_inside::<T>(rows, shape) {
        unroll_16(&Inside(&vectors));
    } else {
        unroll_16(&vectors);
    }
}

/// Vectors that a thread writes.
const fn vectors_per_thread<T: Transpose>() -> usize {
    rows_per_thread::<T>() >> log2_sharing(size_of::<T>())
}

/// The vectors that a thread writes: the same vector of several columns.
struct VectorsOfThread<'a, T, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
    rows: usize,
    /// The first column, the distance to the next, and the index of the vector in each.
    column: u32,
    step: u32,
    k: u32,
    /// The index of the first vector if the row began where a sector begins. The row begins `past` elements later.
    index: usize,
    past: u32,
    pitch: usize,
}

impl<T: Transpose, const LEN: usize> VectorsOfThread<'_, T, LEN> {
    /// Vector `i` of the thread, its index in the output, and the elements between its row's start and the sector's
    /// start before it.
    #[inline(always)]
    fn vector(&self, i: usize) -> (T::Vector, usize, u32) {
        let (side, sector) = (T::Vector::LEN as u32, (SECTOR / size_of::<T>()) as u32);
        let column = self.column + i as u32 * self.step;
        // Wrapping is exact, since a sector has a power of two of elements.
        let past = self.past.wrapping_add((i as u32 * self.step).wrapping_mul(self.pitch as u32)) % sector;
        // The column's vectors begin a halo above the tile.
        let begin = (self.k + HALO_MICRO_TILES) * side - past;
        let mask = (1 << self.shape.log2_down) - 1;
        // SAFETY: a vector of one of the tile's columns.
        let of_column = |q: u32| unsafe { self.tile.load_vector_unchecked(self.shape.vector(column, q & mask)) };
        let (low, high) = (of_column(begin / side), of_column(begin / side + 1));
        let index = self.index.wrapping_add(i * (self.step as usize * self.pitch)).wrapping_sub(past as usize);
        (funnel_shift_vector(low, high, (begin % side) as usize), index, past)
    }
}

/// The variant for a tile that is inside the matrix with its halo.
struct Inside<'a, E>(&'a E);

impl<T: Transpose, const LEN: usize> Unroll for Inside<'_, VectorsOfThread<'_, T, LEN>> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        if i < vectors_per_thread::<T>() && self.0.column + i as u32 * self.0.step < self.0.shape.columns {
            let (vector, index, _) = self.0.vector(i);
            // SAFETY: all of the vector is inside the row, wherever in a sector that begins; and it is aligned.
            unsafe { self.0.output.store_vector_unchecked(index, vector) };
        }
    }
}

impl<T: Transpose, const LEN: usize> Unroll for VectorsOfThread<'_, T, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        let side = T::Vector::LEN;
        if i >= vectors_per_thread::<T>() || self.column + i as u32 * self.step >= self.shape.columns {
            return;
        }
        let (vector, index, past) = self.vector(i);
        let (position, end) = (self.shape.top + self.k as usize * side, past as usize + self.rows);
        let from = (past as usize).saturating_sub(position);
        let to = if position + side <= end { side } else { end.saturating_sub(position) };
        if from < to {
            // SAFETY: elements `from..to` of the vector are inside the row, and it is aligned.
            unsafe { self.output.store_partial_unchecked(index, vector, from, to) };
        }
    }
}
