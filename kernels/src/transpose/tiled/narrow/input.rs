//! From global memory to registers, and transposed to shared memory.

use cuda_std::prelude::*;

use super::tile::{Inside, Tile, words_per_thread};
use super::{elements_per_word, halo_micro_tiles};
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tiled::micro_tile::Unroll;
use crate::transpose::tuning::NARROW_BLOCK;

/// The words of the thread's micro-tiles, one micro-tile after the other. Words outside the matrix are unspecified. A
/// thread's micro-tiles are in one column of micro-tiles, so that values that they share are computed once.
pub(in crate::transpose) struct WordsOfInput<'a, T, const LEN: usize> {
    input: &'a Global<'a, T>,
    /// The index of the first micro-tile, and the distances to the next row and to the next micro-tile.
    index: usize,
    pitch: usize,
    step: usize,
    /// The index of the thread's columns in the first of the tile's rows that is inside the matrix.
    top: usize,
    /// The first row of the first micro-tile, counted from the first of the tile's rows that is inside the matrix;
    /// wrapped, if it is above the matrix.
    row: u32,
    /// The tile's rows that are inside the matrix.
    rows: u32,
    /// Rows from one micro-tile to the next.
    rows_of_step: u32,
    /// Elements of each word.
    count: u32,
}

impl<'a, T: WordAccess, const LEN: usize> WordsOfInput<'a, T, LEN> {
    #[inline(always)]
    pub(in crate::transpose) fn of_thread(input: &'a Global<'a, T>, first: usize, pitch: usize, shape: &Tile) -> Self {
        let side = elements_per_word(size_of::<T>()) as u32;
        let halo_rows = halo_micro_tiles(size_of::<T>()) as u32 * side;
        let thread = thread::thread_idx_x();
        let (x, y) = (thread & ((1 << shape.log2_across) - 1), thread >> shape.log2_across);
        let rows_of_step = (NARROW_BLOCK as u32 >> shape.log2_across) * side;
        let (row, column) = (y * side, x * side);
        // The tile's first row is a halo above its first position, and outside the matrix in the first tile.
        let above = if shape.top == 0 { halo_rows } else { 0 };
        let (left, all) = (shape.rows + halo_rows as usize - shape.top, side << shape.log2_down);
        let rows = if left < all as usize { left as u32 } else { all };
        let first_row = (shape.top + row as usize).wrapping_sub(halo_rows as usize);
        // Columns past the end repeat the first column.
        let column = if column < shape.columns { column } else { 0 };
        let of_columns = shape.columns - column;
        Self {
            input,
            index: first.wrapping_add(first_row.wrapping_mul(pitch)).wrapping_add(column as usize),
            pitch,
            step: rows_of_step as usize * pitch,
            top: first + (shape.top + above as usize - halo_rows as usize) * pitch + column as usize,
            row: row.wrapping_sub(above),
            rows: rows - above,
            rows_of_step,
            count: if of_columns < side { of_columns } else { side },
        }
    }
}

impl<T: WordAccess, const LEN: usize> Unroll for WordsOfInput<'_, T, LEN> {
    type Output = T::Word;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Word {
        let side = elements_per_word(size_of::<T>());
        let (micro_tile, row_of_micro_tile) = (i / side, i % side);
        if i >= words_per_thread::<LEN>() {
            return T::Word::default();
        }
        let row = self.row.wrapping_add(micro_tile as u32 * self.rows_of_step + row_of_micro_tile as u32);
        // Rows past the end repeat the last row: a conditional load would become a branch, and later loads would wait
        // for it.
        let row = if row < self.rows { row } else { self.rows - 1 };
        // SAFETY: inside the matrix, and so the view.
        unsafe { self.input.load_word_unchecked(self.top + row as usize * self.pitch, self.count as usize) }
    }
}

impl<T: WordAccess, const LEN: usize> Unroll for Inside<'_, WordsOfInput<'_, T, LEN>> {
    type Output = T::Word;

    #[inline(always)]
    fn value(&self, i: usize) -> T::Word {
        if i >= words_per_thread::<LEN>() {
            return T::Word::default();
        }
        let (side, words) = (elements_per_word(size_of::<T>()), self.0);
        let index = words.index.wrapping_add(i / side * words.step + i % side * words.pitch);
        // SAFETY: all of the tile is inside the matrix, and so inside the view. So is the next word, in this row or the
        // one below: rows are at least a word long, and a row below exists where words have several elements.
        unsafe { words.input.load_inner_word_unchecked(index) }
    }
}

/// The thread's micro-tiles, stored to shared memory.
pub(in crate::transpose) struct MicroTiles<'a, T: WordAccess, const LEN: usize> {
    words: [T::Word; 16],
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
    /// The index of the first word of the first micro-tile, and the rows of micro-tiles to the next.
    shared_index: u32,
    step: u32,
}

impl<'a, T: WordAccess, const LEN: usize> MicroTiles<'a, T, LEN> {
    #[inline(always)]
    pub(in crate::transpose) fn of_thread(
        words: [T::Word; 16],
        shape: &'a Tile,
        tile: &'a SharedArray<T::Word, LEN>,
    ) -> Self {
        let thread = thread::thread_idx_x();
        let shared_index =
            shape.shared_index::<T::Word>(thread & ((1 << shape.log2_across) - 1), thread >> shape.log2_across);
        Self { words, shape, tile, shared_index, step: NARROW_BLOCK as u32 >> shape.log2_across }
    }
}

impl<T: WordAccess, const LEN: usize> Unroll for MicroTiles<'_, T, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, k: usize) {
        let side = elements_per_word(size_of::<T>());
        if (k + 1) * side > words_per_thread::<LEN>() {
            return;
        }
        let word = |i: usize| self.words[(k * side + i) % 16];
        let transposed = T::transpose([word(0), word(1), word(2), word(3)]);
        let mut i = 0;
        while i < side {
            // Indices are linear over XOR, and these bits are 0 in the first word's slot and micro-tile.
            let further =
                self.shape.shared_index::<T::Word>((i as u32) << self.shape.log2_across, k as u32 * self.step);
            self.tile.store((self.shared_index ^ further) as usize % LEN, transposed[i]);
            i += 1;
        }
    }
}
