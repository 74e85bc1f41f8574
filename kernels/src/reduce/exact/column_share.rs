//! A block's share of a matrix whose columns are summed.

use cuda_std::hint::compute_now;
use cuda_std::prelude::*;

use crate::reduce::columns::thread_columns::ThreadColumns;
use crate::reduce::columns::{BLOCK, COLUMNS};

/// The kernel's parameters that describe the matrix and its division among blocks.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub pitch: usize,
    pub batch_pitch: usize,
    pub folded_rows: u32,
    pub lanes: u32,
    pub tiles: u32,
    pub splits: u32,
    pub rows_of_split: usize,
}

impl Matrix {
    /// The same parameters, opaque to the compiler, which then recomputes derived values instead of keeping them in
    /// registers.
    #[inline(always)]
    pub fn recomputed(&self) -> Self {
        Self {
            folded_rows: compute_now(self.folded_rows),
            lanes: compute_now(self.lanes),
            tiles: compute_now(self.tiles),
            splits: compute_now(self.splits),
            ..*self
        }
    }

    /// The share of this block.
    #[inline(always)]
    pub fn share<T: Element>(&self, input: &Global<T>) -> Share {
        let Self { rows, columns, pitch, batch_pitch, folded_rows, lanes, tiles, splits, rows_of_split } = *self;
        // Divide only if needed: a division takes about as long as a row of a thread.
        let block = thread::block_idx_x();
        let (tile, block) = if block < tiles { (block, 0) } else { (block % tiles, block / tiles) };
        let (split, batch) = match splits {
            1 => (0, block),
            _ if block < splits => (block, 0),
            _ => (block % splits, block / splits),
        };
        // Accesses are vectorized in every row of every matrix, or in none, so that all threads use the same access.
        let access = if size_of::<T>() < 4 { size_of::<T>() * COLUMNS } else { 16 };
        // Both are powers of two. Without optimization, `is_multiple_of` is a call.
        let is_even =
            |columns: usize, pitch: usize| columns & (COLUMNS - 1) == 0 && (pitch * size_of::<T>()) & (access - 1) == 0;
        let at_once = folded_rows as usize;
        // Accesses may cross into the next row if no gap separates the rows.
        let is_vectorized = input.is_aligned_to(0, access)
            && (batch_pitch * size_of::<T>()) & (access - 1) == 0
            && (is_even(columns, pitch) || (pitch == columns && is_even(columns * at_once, pitch * at_once)));
        let (begin, whole) = (split as usize * rows_of_split, rows & !(folded_rows as usize - 1));
        let end = match splits {
            1 => rows,
            _ if whole - begin < rows_of_split => whole,
            _ => begin + rows_of_split,
        };
        let left = if end < rows && split + 1 == splits { (rows - end) * columns } else { 0 };
        let start = batch as usize * batch_pitch;
        Share { tile, batch, lanes, start, begin, end, columns, pitch, folded_rows, left, is_vectorized }
    }
}

/// A block's share: rows `begin` to `end` of a batch, `folded_rows` folded into one, of the columns of its tile.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub tile: u32,
    pub batch: u32,
    pub lanes: u32,
    /// The first element of the batch.
    pub start: usize,
    pub begin: usize,
    pub end: usize,
    pub columns: usize,
    pub pitch: usize,
    pub folded_rows: u32,
    /// The number of elements past the last folded row, if this block sums them; else 0.
    pub left: usize,
    pub is_vectorized: bool,
}

impl Share {
    /// The columns of a thread of the block.
    #[inline(always)]
    pub fn place<T>(&self, thread: usize) -> ThreadColumns {
        let Self { tile, lanes, columns, folded_rows, is_vectorized, .. } = *self;
        // The same number, which the compiler then knows to be a power of two: it divides by shifts.
        let lanes = 1 << lanes.trailing_zeros();
        ThreadColumns::of_thread(
            thread,
            tile as usize,
            lanes,
            columns,
            folded_rows as usize,
            size_of::<T>(),
            is_vectorized,
        )
    }

    /// The number of elements of column `c` of a thread in this share.
    #[inline(always)]
    pub fn elements(&self, place: &ThreadColumns, c: usize) -> usize {
        self.whole() + usize::from(place.column(c) < self.left)
    }

    /// The number of folded rows: the minimum number of elements of a column.
    #[inline(always)]
    pub fn whole(&self) -> usize {
        (self.end - self.begin) >> self.folded_rows.trailing_zeros()
    }

    /// The index in the input of element `i` of column `c` of a thread.
    #[inline(always)]
    pub fn element(&self, place: &ThreadColumns, c: usize, i: usize) -> usize {
        self.start + (self.begin + i * self.folded_rows as usize) * self.pitch + place.offset(c, self.pitch)
    }

    /// The index of a column's output, which is the same for all rows of a folded row.
    #[inline(always)]
    pub fn output(&self, column: usize) -> usize {
        self.batch as usize * self.columns + if self.folded_rows == 1 { column } else { column % self.columns }
    }
}

/// Windows of columns: their exponents, as `u32`.
pub(super) type Exponents = SharedArray<u32, { BLOCK * COLUMNS }>;
