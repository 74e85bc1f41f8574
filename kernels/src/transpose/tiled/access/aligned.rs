//! A tile on its way in and out by 16-byte accesses, where sides, pitches and addresses are multiples of 16 bytes.

use cuda_std::global::{Fetch, issue_loads};
use cuda_std::prelude::*;

use crate::transpose::tiled::block_tile::{
    Tile, transpose_micro_tiles, vector_of_micro_tiles, vector_of_thread, vectors_each,
};
use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::RowMap;

/// Loads the thread's squares, turns them, and leaves them in shared memory.
///
/// Where rows begin and end inside of two lines, a tile's stretch of one does so, too; and a tile of bytes has rows of
/// 128 bytes. Then L2 [fetches](Fetch) both lines, and a neighbour finds the other's there: 16400 x 16400 of 8 bytes
/// takes 1058 us on an H200, not 1077, and 16384 x 16384 of 1 byte 133, not 137. Where nothing is gained, it is slower
/// by 0.4 %.
#[inline(always)]
pub(in crate::transpose) fn load_tile<T: Transpose, C: Epilogue<T>, R: RowMap, const LEN: usize>(
    input: &Global<T>,
    rows: R,
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let fetching = |fetch| unroll_16(&VectorsOfInput::<T, R, LEN> { input, rows, shape, fetch });
    let vectors = if size_of::<T>() == 1 || !rows.are_line_aligned::<T>() {
        fetching(Fetch::TwoLines)
    } else {
        fetching(Fetch::Sectors)
    };
    transpose_micro_tiles(&vectors, epilogue, shape, tile);
}

/// The vectors of the thread's squares.
struct VectorsOfInput<'a, T, R, const LEN: usize> {
    input: &'a Global<'a, T>,
    rows: R,
    shape: &'a Tile,
    fetch: Fetch,
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for VectorsOfInput<'_, T, R, LEN> {
    type Of = T::Vector;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Vector {
        let (row, column) = vector_of_micro_tiles::<T, LEN>(i, self.shape.across);
        if i < vectors_each::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of vectors.
            unsafe { self.input.fetch_vector_unchecked(self.rows.start(row) + column as usize, self.fetch) }
        } else {
            T::Vector::splat(T::default())
        }
    }
}

/// Writes vectors of columns from shared memory to rows of the output.
#[inline(always)]
pub(in crate::transpose) fn store_tile<T: Transpose, R: RowMap, const LEN: usize>(
    output: &GlobalMut<T>,
    rows: R,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    // Also what is outside of the matrix: a load that has to be done or not is a branch, and they would wait for each
    // other.
    let vectors = unroll_16(&VectorsOfTile { shape, tile });
    issue_loads();
    unroll_16(&VectorsOfOutput::<T, R, LEN> { output, rows, shape, vectors });
}

/// The vectors that a thread takes out of shared memory.
struct VectorsOfTile<'a, T, const LEN: usize> {
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Transpose, const LEN: usize> Unroll for VectorsOfTile<'_, T, LEN> {
    type Of = T::Vector;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Vector {
        if i >= vectors_each::<T, LEN>() {
            return T::Vector::splat(T::default());
        }
        let (column, q) = vector_of_thread::<T, LEN>(i, self.shape.down);
        // SAFETY: a vector of one of the tile's columns.
        unsafe { self.tile.load_vector_unchecked(self.shape.vector(column, q)) }
    }
}

/// Where it writes them.
struct VectorsOfOutput<'a, T: Transpose, R, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    rows: R,
    shape: &'a Tile,
    vectors: [T::Vector; 16],
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for VectorsOfOutput<'_, T, R, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let side = T::Vector::LEN;
        let (column, q) = vector_of_thread::<T, LEN>(i, self.shape.down);
        let row = q * side as u32;
        if i < vectors_each::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            let place = self.rows.start(column) + row as usize;
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of vectors.
            unsafe { self.output.store_vector_unchecked(place, self.vectors[i]) };
        }
    }
}
