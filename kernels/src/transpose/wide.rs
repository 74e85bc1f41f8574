//! A tile on its way in and out by 16-byte accesses, where sides, pitches and addresses are multiples of 16 bytes.

use cuda_std::global::{L2Prefetch, issue_loads};
use cuda_std::prelude::*;

use super::change::Change;
use super::tile::{Rows, Tile, turn_squares, vector_of_squares, vector_of_thread, vectors_each};
use super::turn::{Each, Turn, sixteen};

/// Loads the thread's squares, turns them, and leaves them in shared memory.
///
/// Where rows begin and end inside of two lines, a tile's stretch of one does so, too; and a tile of bytes has rows of
/// 128 bytes. Then L2 [fetches](L2Prefetch) both lines, and a neighbour finds the other's there: 16400 x 16400 of 8 bytes
/// takes 1058 us on an H200, not 1077, and 16384 x 16384 of 1 byte 133, not 137. Where nothing is gained, it is slower
/// by 0.4 %.
#[inline(always)]
pub(super) fn load_tile<T: Turn, C: Change<T>, R: Rows, const LEN: usize>(
    input: &Global<T>,
    rows: R,
    change: C,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    let fetching = |fetch| sixteen(&VectorsOfInput::<T, R, LEN> { input, rows, shape, fetch });
    let vectors = if size_of::<T>() == 1 || !rows.are_lines_apart::<T>() {
        fetching(L2Prefetch::TwoLines)
    } else {
        fetching(L2Prefetch::Sectors)
    };
    turn_squares(&vectors, change, shape, tile);
}

/// The vectors of the thread's squares.
struct VectorsOfInput<'a, T, R, const LEN: usize> {
    input: &'a Global<'a, T>,
    rows: R,
    shape: &'a Tile,
    fetch: L2Prefetch,
}

impl<T: Turn, R: Rows, const LEN: usize> Each for VectorsOfInput<'_, T, R, LEN> {
    type Of = T::Vector;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Vector {
        let (row, column) = vector_of_squares::<T, LEN>(i, self.shape.across);
        if i < vectors_each::<T, LEN>() && row < self.shape.rows && column < self.shape.columns {
            // SAFETY: inside of the matrix, and so the view: the row's length is a whole number of vectors.
            unsafe { self.input.load_vector_prefetch_unchecked(self.rows.start(row) + column as usize, self.fetch) }
        } else {
            T::Vector::splat(T::default())
        }
    }
}

/// Writes vectors of columns from shared memory to rows of the output.
#[inline(always)]
pub(super) fn store_tile<T: Turn, R: Rows, const LEN: usize>(
    output: &GlobalMut<T>,
    rows: R,
    shape: &Tile,
    tile: &SharedArray<T, LEN>,
) {
    // Also what is outside of the matrix: a load that has to be done or not is a branch, and they would wait for each
    // other.
    let vectors = sixteen(&VectorsOfTile { shape, tile });
    issue_loads();
    sixteen(&VectorsOfOutput::<T, R, LEN> { output, rows, shape, vectors });
}

/// The vectors that a thread takes out of shared memory.
struct VectorsOfTile<'a, T, const LEN: usize> {
    shape: &'a Tile,
    tile: &'a SharedArray<T, LEN>,
}

impl<T: Turn, const LEN: usize> Each for VectorsOfTile<'_, T, LEN> {
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
struct VectorsOfOutput<'a, T: Turn, R, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    rows: R,
    shape: &'a Tile,
    vectors: [T::Vector; 16],
}

impl<T: Turn, R: Rows, const LEN: usize> Each for VectorsOfOutput<'_, T, R, LEN> {
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
