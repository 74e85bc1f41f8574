//! A tile on its way in and out, by 16-byte accesses, where rows begin and end at any address: a tile with a slanted
//! upper and lower edge.
//!
//! Memory takes sectors of 32 bytes, and one that two blocks write parts of is written more than once: of 8191 x 8193
//! elements of 4 bytes 16.5 million sectors in place of 12.6. So here a tile ends, in each row of the output, where a
//! sector ends. As rows of the output begin at any place in a sector, those ends are not in one row of the input: each
//! column of the tile begins up to a sector's elements higher or lower than its neighbours. A block therefore loads
//! [`HALO`] more rows of squares than it writes, and leaves to its neighbour above what it does not write of them.
//! Only at the matrix' own edges are there parts of vectors.
//!
//! Positions in a row of the output are counted from the start of the sector in which it begins.
//!
//! To cut vectors out of others takes instructions and registers. So the lanes of a tile inside of the matrix do
//! without what has to be compared at its edges, what all vectors of a thread have in common is worked out once, and
//! each lane loads the aligned vectors in which its rows begin, and gets those behind from the next lane, which begins
//! there. So the last lane of a row loads for the one before it only, and its columns are the next tile's, too.

use cuda_std::bits::cut_vector;
use cuda_std::global::{Begun, issue_loads};
use cuda_std::hint::compute_anew;
use cuda_std::prelude::*;

use crate::transpose::tiled::block_tile::{Tile, TileGrid, micro_tiles, transpose_part};
use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::Layout;

/// Bytes of a sector.
const SECTOR: usize = 32;

/// Rows of squares that a tile shares with the one above it: a sector's.
pub const HALO: u32 = SECTOR as u32 / 16;

/// The positions that rows of the output of `rows` elements of `size` bytes may reach: they begin in their first
/// sector.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + SECTOR / size - 1
}

/// Threads that share a square, each with as many of its columns, as a power of two: of squares of bytes each of two
/// threads has half of each row, so that twice the warps have room.
const fn shared(size: usize) -> u32 {
    (size == 1) as u32
}

/// Squares that a thread has, one below the other, as a power of two: those of 8 bytes are of two vectors only, and
/// more of them are to be on their way.
const fn stacked(size: usize) -> u32 {
    (size == 8) as u32
}

/// Rows of a thread's squares.
const fn rows_each<T: Transpose>() -> usize {
    T::Vector::LEN << stacked(size_of::<T>())
}

/// Columns of a tile that it leaves to the next one: the last lane's of a row, which loads them for the one before it.
pub const fn overlap(size: usize) -> usize {
    (16 / size) >> shared(size)
}

/// Threads of a block for a tile of `len` elements of `size` bytes.
pub const fn threads(len: usize, size: usize) -> usize {
    micro_tiles(len, size) << shared(size) >> stacked(size)
}

/// Whether the matrix has all of the tile's rows and columns, and a sector's rows more on either side.
#[inline(always)]
pub(in crate::transpose) fn is_inside<T: Transpose>(rows: usize, shape: &Tile) -> bool {
    let sector = SECTOR / size_of::<T>();
    shape.columns == (shape.side << shape.across) - overlap(size_of::<T>()) as u32
        && shape.top >= sector
        && shape.top + ((shape.side << shape.down) as usize) + sector <= rows
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
    let (side, down) = (16 / size, micro_tiles.trailing_zeros() - grid.across);
    let width = (side << grid.across) - overlap(size);
    let (top, left) = (row as usize * side * ((1 << down) - HALO as usize), column as usize * width);
    let tile = Tile::at(positions(rows, size), columns, batch as usize, (top, left), (grid.across, down), side);
    Tile { shared: shared(size), columns: tile.columns.min(width as u32), ..tile }
}

/// Loads the thread's squares, turns them, and leaves them in shared memory. The tile's `top` is the first position
/// that it writes; its first row is a margin above.
#[inline(always)]
pub(in crate::transpose) fn load_tile<T: Transpose, C: Epilogue<T>, const LEN: usize>(
    input: &Global<T>,
    (rows, all_columns): (usize, usize),
    layout: &Layout,
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let (side, width, height) = (T::Vector::LEN, T::Vector::LEN >> shape.shared, rows_each::<T>());
    let thread = thread::thread_idx_x();
    let (part, stack) = (thread & ((1 << shape.shared) - 1), thread >> shape.shared);
    let (x, y) = (stack & ((1 << shape.across) - 1), stack >> shape.across);
    let column = x * side as u32 + part * width as u32;
    let row = (shape.top + y as usize * height).wrapping_sub(SECTOR / size_of::<T>());
    let first = shape.batch * layout.batch + shape.left + column as usize;
    let place = first.wrapping_add(row.wrapping_mul(layout.pitch));
    // A first row above the matrix is one of the margin, and wrapped.
    let above = row.wrapping_neg();
    let above = if above <= HALO as usize * side { above } else { 0 };
    let end = if row.wrapping_add(above) < rows { rows.wrapping_sub(row) } else { above };
    let columns = shape.columns.saturating_sub(column);
    let up_to_all = |rows: usize| if rows < height { rows as u32 } else { height as u32 };
    let (above, end, columns) = (up_to_all(above), up_to_all(end), columns.min(width as u32));
    // To the end of the matrix' row, which may be in a vector that a lane behind it begins with.
    let left = (all_columns - shape.left) as i64 - column as i64;
    let left = if left < width as i64 { left as i32 } else { width as i32 };
    let pitch = layout.pitch;
    let rows_of_thread = RowsOfThread { input, place, pitch, above, count: end - above, columns, left };
    // In a branch of their own, loads are on their way before anything behind it begins.
    let goes_on = shape.left + (shape.columns as usize) < all_columns;
    let begun = if goes_on && is_inside::<T>(rows, shape) {
        unroll_16(&BeginInside(&rows_of_thread))
    } else {
        unroll_16(&BeginAtEdge(&rows_of_thread))
    };
    issue_loads();
    // Addresses of unroll_16 rows would take as many registers as the rows.
    let (place, pitch) = (compute_anew(rows_of_thread.place), compute_anew(rows_of_thread.pitch));
    let rows_of_thread = RowsOfThread { place, pitch, ..rows_of_thread };
    let vectors = unroll_16(&Finish { rows: &rows_of_thread, begun });
    let y = y << stacked(size_of::<T>());
    transpose_part(&vectors, epilogue, (column, y), shape, tile);
    if stacked(size_of::<T>()) > 0 {
        transpose_part(&unroll_16(&Below { vectors }), epilogue, (column, y + 1), shape, tile);
    }
}

/// The vectors of the second of two squares, first ones.
struct Below<P> {
    vectors: [P; 16],
}

impl<P: VectorType> Unroll for Below<P> {
    type Of = P;

    #[inline(always)]
    fn of(&self, i: usize) -> P {
        self.vectors[(P::LEN + i) % 16]
    }
}

/// The rows of a thread's squares, as far as the matrix has them. Behind the last one it is that one again, which
/// nobody looks at.
struct RowsOfThread<'a, T> {
    input: &'a Global<'a, T>,
    place: usize,
    pitch: usize,
    /// How many are above the matrix, how many it has behind those, and how many columns of the squares. In 32 bits,
    /// as they are at hand while the registers are full of rows.
    above: u32,
    count: u32,
    columns: u32,
    /// How many columns the matrix has from there on, as far as the thread is concerned; negative behind the last one.
    left: i32,
}

impl<T: Transpose> RowsOfThread<'_, T> {
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        self.place.wrapping_add(i % rows_each::<T>() * self.pitch)
    }

    /// Whether the matrix has row `i`.
    #[inline(always)]
    fn has(&self, i: usize) -> bool {
        // Above the matrix it is, wrapped, far behind it.
        ((i % rows_each::<T>()) as u32).wrapping_sub(self.above) < self.count
    }
}

/// Rows of which the matrix has all, and a column more.
struct BeginInside<'a, T>(&'a RowsOfThread<'a, T>);

impl<T: Transpose> Unroll for BeginInside<'_, T> {
    type Of = Begun<T::Vector>;

    #[inline(always)]
    fn of(&self, i: usize) -> Begun<T::Vector> {
        let (place, count, left) = (self.0.place(i), self.0.columns as usize, overlap(size_of::<T>()) as i32);
        // SAFETY: inside of the matrix, and so the view.
        unsafe { self.0.input.begin_unchecked(place, count, left, shared(size_of::<T>()) > 0) }
    }
}

struct BeginAtEdge<'a, T>(&'a RowsOfThread<'a, T>);

impl<T: Transpose> Unroll for BeginAtEdge<'_, T> {
    type Of = Begun<T::Vector>;

    #[inline(always)]
    fn of(&self, i: usize) -> Begun<T::Vector> {
        // So far behind the end that no vector reaches there.
        let (count, left) = if self.0.has(i) { (self.0.columns, self.0.left) } else { (0, i32::from(i16::MIN)) };
        // SAFETY: the matrix has so many elements there, and so has the view.
        unsafe { self.0.input.begin_unchecked(self.0.place(i), count as usize, left, shared(size_of::<T>()) > 0) }
    }
}

/// Rows that have been begun.
struct Finish<'a, T: Transpose> {
    rows: &'a RowsOfThread<'a, T>,
    begun: [Begun<T::Vector>; 16],
}

impl<T: Transpose> Unroll for Finish<'_, T> {
    type Of = T::Vector;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Vector {
        let (begun, place) = (self.begun[i % rows_each::<T>()], self.rows.place(i));
        // SAFETY: begun there. Lanes with columns have those of the next lane behind them: a tile's last lanes have
        // none.
        unsafe { self.rows.input.finish_unchecked(begun, place, shared(size_of::<T>()) > 0) }
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
    let (column, k) = (thread >> shape.down, thread & ((1 << shape.down) - 1));
    let row = shape.batch * layout.batch + (shape.left + column as usize) * layout.pitch;
    let vectors = VectorsOfThread {
        output,
        shape,
        tile,
        rows,
        column,
        k,
        step: threads(LEN, size_of::<T>()) as u32 >> shape.down,
        place: row + shape.top + k as usize * T::Vector::LEN,
        past: output.elements_past(row, SECTOR) as u32,
        pitch: layout.pitch,
    };
    if k + HALO >= 1 << shape.down {
        // The next tile's.
    } else if is_inside::<T>(rows, shape) {
        unroll_16(&Inside(&vectors));
    } else {
        unroll_16(&vectors);
    }
}

/// How many vectors a thread writes.
const fn vectors_each<T: Transpose>() -> usize {
    rows_each::<T>() >> shared(size_of::<T>())
}

/// The vectors that a thread writes: the same of several columns.
struct VectorsOfThread<'a, T, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
    rows: usize,
    /// The first column, how far it is to the next, and the vector of each.
    column: u32,
    step: u32,
    k: u32,
    /// Where the first vector would go if the row began with a sector; it begins `past` elements later.
    place: usize,
    past: u32,
    pitch: usize,
}

impl<T: Transpose, const LEN: usize> VectorsOfThread<'_, T, LEN> {
    /// Vector `i` of the thread's, where it goes, and how many elements its row begins behind a sector's start.
    #[inline(always)]
    fn vector(&self, i: usize) -> (T::Vector, usize, u32) {
        let (side, sector) = (T::Vector::LEN as u32, (SECTOR / size_of::<T>()) as u32);
        let column = self.column + i as u32 * self.step;
        // Wrapping, since a sector has a power of two of elements.
        let past = self.past.wrapping_add((i as u32 * self.step).wrapping_mul(self.pitch as u32)) % sector;
        // The column's vectors begin a margin above the tile.
        let begin = (self.k + HALO) * side - past;
        let mask = (1 << self.shape.down) - 1;
        // SAFETY: a vector of one of the tile's columns.
        let of_column = |q: u32| unsafe { self.tile.load_vector_unchecked(self.shape.vector(column, q & mask)) };
        let (low, high) = (of_column(begin / side), of_column(begin / side + 1));
        let place = self.place.wrapping_add(i * (self.step as usize * self.pitch)).wrapping_sub(past as usize);
        (cut_vector(low, high, (begin % side) as usize), place, past)
    }
}

/// What is done where the tile, with its margins, is inside of the matrix.
struct Inside<'a, E>(&'a E);

impl<T: Transpose, const LEN: usize> Unroll for Inside<'_, VectorsOfThread<'_, T, LEN>> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        if i < vectors_each::<T>() && self.0.column + i as u32 * self.0.step < self.0.shape.columns {
            let (vector, place, _) = self.0.vector(i);
            // SAFETY: all of the vector is inside of the row, wherever in a sector that begins; and it is aligned.
            unsafe { self.0.output.store_vector_unchecked(place, vector) };
        }
    }
}

impl<T: Transpose, const LEN: usize> Unroll for VectorsOfThread<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let side = T::Vector::LEN;
        if i >= vectors_each::<T>() || self.column + i as u32 * self.step >= self.shape.columns {
            return;
        }
        let (vector, place, past) = self.vector(i);
        let (position, end) = (self.shape.top + self.k as usize * side, past as usize + self.rows);
        let from = (past as usize).saturating_sub(position);
        let to = if position + side <= end { side } else { end.saturating_sub(position) };
        if from < to {
            // SAFETY: so many elements of the vector are inside of the row, and it is aligned.
            unsafe { self.output.store_part_unchecked(place, vector, from, to) };
        }
    }
}
