//! Loads and stores of a tile by 16-byte accesses, where sides, pitches and addresses are multiples of 16 bytes.

use cuda_std::global::{L2Prefetch, issue_loads};
use cuda_std::prelude::*;

use crate::transpose::tiled::block_tile::{
    Tile, transpose_micro_tiles, vector_of_micro_tiles, vector_of_thread, vectors_per_thread,
};
use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::RowMap;

/// Loads the thread's micro-tiles, transposes them, and stores them to shared memory.
///
/// If the pitch is no multiple of [`LINE_PAIR`](crate::transpose::tuning::LINE_PAIR), the tile's part of a row begins
/// and ends inside a pair of lines; so do rows of bytes, which are 128 bytes long in a tile. Then L2
/// [fetches](L2Prefetch) both lines of a pair, and the neighbouring tile finds its own line there. 16384 x 16384 bytes
/// take 133 us on an H200 instead of 137.
#[inline(always)]
pub(in crate::transpose) fn load_tile<T: Transpose, C: Epilogue<T>, R: RowMap, const LEN: usize>(
    input: &Global<T>,
    rows: R,
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let fetching = |fetch| unroll_16(&VectorsOfInput::<T, R, LEN> { input, rows, shape, fetch });
    let vectors = if size_of::<T>() == 1 || !rows.are_line_pair_aligned::<T>() {
        fetching(L2Prefetch::TwoLines)
    } else {
        fetching(L2Prefetch::Sectors)
    };
    transpose_micro_tiles(&vectors, epilogue, shape, tile);
}

/// The vectors of the thread's micro-tiles.
struct VectorsOfInput<'a, T, R, const LEN: usize> {
    input: &'a Global<'a, T>,
    rows: R,
    shape: &'a Tile,
    fetch: L2Prefetch,
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for VectorsOfInput<'_, T, R, LEN> {
    type Output = T::Vector;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Vector {
        let (row, column) = vector_of_micro_tiles::<T, LEN>(i, self.shape.log2_across);
        if i < vectors_per_thread::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            // SAFETY: inside the matrix, and so the view: the row's length is a whole number of vectors.
            unsafe { self.input.load_vector_prefetch_unchecked(self.rows.start(row) + column as usize, self.fetch) }
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
    // Vectors outside the matrix are loaded, too: conditional loads would be branches, and would wait for each other.
    let vectors = unroll_16(&VectorsOfTile { shape, tile });
    issue_loads();
    unroll_16(&VectorsOfOutput::<T, R, LEN> { output, rows, shape, vectors });
}

/// The vectors that a thread loads from shared memory.
struct VectorsOfTile<'a, T, const LEN: usize> {
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Transpose, const LEN: usize> Unroll for VectorsOfTile<'_, T, LEN> {
    type Output = T::Vector;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Vector {
        if i >= vectors_per_thread::<T, LEN>() {
            return T::Vector::splat(T::default());
        }
        let (column, q) = vector_of_thread::<T, LEN>(i, self.shape.log2_down);
        // SAFETY: a vector of one of the tile's columns.
        unsafe { self.tile.load_vector_unchecked(self.shape.vector(column, q)) }
    }
}

/// Stores the vectors to the output.
struct VectorsOfOutput<'a, T: Transpose, R, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    rows: R,
    shape: &'a Tile,
    vectors: [T::Vector; 16],
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for VectorsOfOutput<'_, T, R, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        let side = T::Vector::LEN;
        let (column, q) = vector_of_thread::<T, LEN>(i, self.shape.log2_down);
        let row = q * side as u32;
        if i < vectors_per_thread::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            let index = self.rows.start(column) + row as usize;
            // SAFETY: inside the matrix, and so the view: the row's length is a whole number of vectors.
            unsafe { self.output.store_vector_unchecked(index, self.vectors[i]) };
        }
    }
}
