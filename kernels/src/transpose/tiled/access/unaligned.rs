//! Loads and stores of a tile whose rows begin and end at any address.
//!
//! Accesses to memory are still 16 bytes wide. A vector of the input is cut out of the two aligned vectors that it lies
//! in. A row of the output is written in aligned vectors, each cut out of two neighbouring vectors of shared memory.
//! Only the two ends of a row are parts of vectors, which are stored in words and elements.

use cuda_std::bits::funnel_shift_vector;
use cuda_std::prelude::*;

use crate::transpose::tiled::block_tile::{
    Tile, threads, transpose_micro_tiles, vector_of_micro_tiles, vector_of_thread, vectors_per_thread,
};
use crate::transpose::tiled::epilogue::Epilogue;
use crate::transpose::tiled::micro_tile::{Transpose, Unroll, unroll_16};
use crate::transpose::tiled::row_map::RowMap;

/// Loads the thread's micro-tiles, transposes them, and stores them to shared memory.
#[inline(always)]
pub(in crate::transpose) fn load_tile<T: Transpose, C: Epilogue<T>, R: RowMap, const LEN: usize>(
    input: &Global<T>,
    rows: R,
    epilogue: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let vectors = unroll_16(&PartsOfInput::<T, R, LEN> { input, rows, shape });
    transpose_micro_tiles(&vectors, epilogue, shape, tile);
}

/// The rows of the thread's micro-tiles, as far as they are inside the matrix.
struct PartsOfInput<'a, T, R, const LEN: usize> {
    input: &'a Global<'a, T>,
    rows: R,
    shape: &'a Tile,
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for PartsOfInput<'_, T, R, LEN> {
    type Output = T::Vector;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Vector {
        let side = T::Vector::LEN;
        let (row, column) = vector_of_micro_tiles::<T, LEN>(i, self.shape.log2_across);
        if i < vectors_per_thread::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            let left = (self.shape.columns - column) as usize;
            let index = self.rows.start(row) + column as usize;
            // SAFETY: inside the matrix, and so the view.
            unsafe { self.input.load_partial_unchecked(index, 0, if left < side { left } else { side }) }
        } else {
            T::Vector::splat(T::default())
        }
    }
}

/// Writes columns from shared memory to rows of the output.
#[inline(always)]
pub(in crate::transpose) fn store_tile<T: Transpose, R: RowMap, const LEN: usize>(
    output: &GlobalMut<T>,
    starts: R,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let rows = RowsOfOutput { output, starts, shape, tile };
    unroll_16(&rows);

    // One thread stores both ends of a row. The lanes of a warp take columns of different micro-tiles, whose vectors
    // are in different banks. Where rows of the output are short, they take neighbouring columns, whose rows are near
    // each other in memory.
    let (side, step) = (T::Vector::LEN as u32, threads(LEN, size_of::<T>()) as u32);
    let width = side << shape.log2_across;
    let mut i = thread::thread_idx_x();
    while i < width {
        let column = if shape.log2_down < 3 {
            i
        } else {
            (i & ((1 << shape.log2_across) - 1)) * side + (i >> shape.log2_across)
        };
        if column < shape.columns {
            rows.store_ends(column);
        }
        i += step;
    }
}

/// The rows of the output that the tile has elements of: one for each column.
struct RowsOfOutput<'a, T, R, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    starts: R,
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Transpose, R: RowMap, const LEN: usize> RowsOfOutput<'_, T, R, LEN> {
    /// The index of the column's first element in the output, and its distance in elements from the multiple of 16
    /// bytes before it.
    #[inline(always)]
    fn index(&self, column: u32) -> (usize, u32) {
        let index = self.starts.start(column);
        (index, self.output.elements_past(index, 16) as u32)
    }

    /// Aligned vector `k` of the row, counted from the one with the row's first element. It is cut out of the column's
    /// vectors `k - 1` and `k`, unless `past` is 0. Elements before the column's first vector or past its last are
    /// unspecified.
    #[inline(always)]
    fn vector(&self, column: u32, k: u32, past: u32) -> T::Vector {
        let mask = (1 << self.shape.log2_down) - 1;
        // SAFETY: a vector of one of the tile's columns.
        let of_column = |q: u32| unsafe { self.tile.load_vector_unchecked(self.shape.vector(column, q & mask)) };
        if past == 0 {
            return of_column(k);
        }
        funnel_shift_vector(of_column(k.wrapping_sub(1)), of_column(k), T::Vector::LEN - past as usize)
    }

    /// Stores the column's elements that do not fill an aligned vector.
    #[inline(always)]
    fn store_ends(&self, column: u32) {
        let (side, rows) = (T::Vector::LEN as u32, self.shape.rows);
        let (index, past) = self.index(column);
        let aligned = index.wrapping_sub(past as usize);
        let end = past + rows;
        if past != 0 {
            let to = if end < side { end } else { side };
            // SAFETY: the first elements of the row, up to the first aligned vector or the row's end.
            unsafe {
                self.output.store_partial_unchecked(aligned, self.vector(column, 0, past), past as usize, to as usize);
            }
        }
        let (k, tail) = (end / side, end % side);
        if tail != 0 && (k != 0 || past == 0) {
            // SAFETY: the row's last elements, from its last aligned vector on.
            unsafe {
                let index = aligned.wrapping_add((k * side) as usize);
                self.output.store_partial_unchecked(index, self.vector(column, k, past), 0, tail as usize);
            }
        }
    }
}

impl<T: Transpose, R: RowMap, const LEN: usize> Unroll for RowsOfOutput<'_, T, R, LEN> {
    type Output = ();

    /// Stores a whole aligned vector.
    #[inline(always)]
    fn value(&self, i: usize) {
        let side = T::Vector::LEN as u32;
        let (column, k) = vector_of_thread::<T, LEN>(i, self.shape.log2_down);
        if i >= vectors_per_thread::<T, LEN>() || column >= self.shape.columns {
            return;
        }
        let (index, past) = self.index(column);
        if (k > 0 || past == 0) && (k + 1) * side <= past + self.shape.rows {
            let index = index.wrapping_sub(past as usize).wrapping_add((k * side) as usize);
            // SAFETY: all of the vector is inside the row, as just compared, and aligned.
            unsafe { self.output.store_vector_unchecked(index, self.vector(column, k, past)) };
        }
    }
}
