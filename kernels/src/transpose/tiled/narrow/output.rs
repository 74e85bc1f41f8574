//! From shared memory to rows of the output.

use cuda_std::prelude::*;

use super::tile::{Inside, Tile, words_per_thread};
use super::{elements_per_word, halo_micro_tiles};
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tiled::micro_tile::Unroll;
use crate::transpose::tuning::NARROW_BLOCK;

/// The words that a thread writes: the same word of several slots. Values that they share are computed once.
pub(in crate::transpose) struct WordsOfOutput<'a, T: WordAccess, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
    /// The first slot, the distance to the next, and the word's index in each.
    slot: u32,
    step: u32,
    q: u32,
    /// The first slot's column, and the index of the word in that row of the output if the row began where a word
    /// begins. The row begins `past` elements later.
    column: u32,
    index: usize,
    past: u32,
    pitch: usize,
    /// The distance between the words' rows, where slots are columns.
    row_step: usize,
    position: usize,
}

impl<'a, T: WordAccess, const LEN: usize> WordsOfOutput<'a, T, LEN> {
    #[inline(always)]
    pub(in crate::transpose) fn of_thread(
        output: &'a GlobalMut<'a, T>,
        first: usize,
        pitch: usize,
        shape: &'a Tile,
        tile: &'a SharedArray<T::Word, LEN>,
    ) -> Self {
        let (thread, side) = (thread::thread_idx_x(), elements_per_word(size_of::<T>()) as u32);
        let (slot, q) = (thread >> shape.log2_down, thread & ((1 << shape.log2_down) - 1));
        let column = Self::column(slot, shape);
        let row = first + column as usize * pitch;
        let past = output.elements_past(row, size_of::<T::Word>()) as u32;
        let position = shape.top + (q * side) as usize;
        let (step, index) = (NARROW_BLOCK as u32 >> shape.log2_down, row + position);
        let row_step = step as usize * pitch;
        Self { output, shape, tile, slot, step, q, column, index, past, pitch, row_step, position }
    }

    /// A slot's column. Linear over XOR.
    #[inline(always)]
    fn column(slot: u32, shape: &Tile) -> u32 {
        let side = elements_per_word(size_of::<T>()) as u32;
        if side == 1 { slot } else { (slot & ((1 << shape.log2_across) - 1)) * side + (slot >> shape.log2_across) }
    }

    /// Word `q` of the slot that is `further` slots after the first.
    #[inline(always)]
    fn load(&self, further: u32, q: u32) -> T::Word {
        let index = self.shape.shared_index::<T::Word>(self.slot, q) ^ self.shape.shared_index::<T::Word>(further, 0);
        self.tile.load(index as usize % LEN)
    }

    /// Stores the elements of a word that are inside the row, which begins `past` elements into a word.
    #[inline(always)]
    fn store_partial(&self, index: usize, word: T::Word, past: usize) {
        let (position, end, all) = (self.position, past + self.shape.rows, elements_per_word(size_of::<T>()));
        let from = past.saturating_sub(position);
        let to = if position + all <= end { all } else { end.saturating_sub(position) };
        if from < to {
            // SAFETY: elements `from..to` of the word are inside the row, and it is aligned.
            unsafe { self.output.store_word_unchecked(index, word, from, to) };
        }
    }
}

impl<T: WordAccess, const LEN: usize> WordsOfOutput<'_, T, LEN> {
    /// Whether this tile writes the thread's words: the next tile writes those of its halo.
    #[inline(always)]
    pub(in crate::transpose) fn is_written(&self) -> bool {
        self.q + (halo_micro_tiles(size_of::<T>()) as u32) < 1 << self.shape.log2_down
    }

    /// Word `i` of the thread, its index in the output, and the elements between its row's start and the word's start
    /// before it.
    #[inline(always)]
    fn word(&self, i: usize) -> (T::Word, usize, u32) {
        let (side, mask) = (elements_per_word(size_of::<T>()) as u32, (1 << self.shape.log2_down) - 1);
        let further = i as u32 * self.step;
        if side == 1 {
            return (self.load(further, self.q), self.index.wrapping_add(i * self.row_step), 0);
        }
        let further_column = Self::column(further, self.shape);
        // Wrapping is exact, since `side` is a power of two.
        let past = self.past.wrapping_add(further_column.wrapping_mul(self.pitch as u32)) % side;
        // The slot's words begin a row of micro-tiles above the tile.
        let low = self.q + u32::from(past == 0);
        let (low, high) = (self.load(further, low & mask), self.load(further, (low + 1) & mask));
        let index = self.index.wrapping_add(further_column as usize * self.pitch).wrapping_sub(past as usize);
        (T::cut(low, high, side.wrapping_sub(past) % side), index, past)
    }
}

impl<T: WordAccess, const LEN: usize> Unroll for Inside<'_, WordsOfOutput<'_, T, LEN>> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        if i < words_per_thread::<LEN>() {
            let (word, index, _) = self.0.word(i);
            // SAFETY: all of the word is inside the row, wherever in a word that begins; and it is aligned.
            unsafe { self.0.output.store_word_unchecked(index, word, 0, elements_per_word(size_of::<T>())) };
        }
    }
}

impl<T: WordAccess, const LEN: usize> Unroll for WordsOfOutput<'_, T, LEN> {
    type Output = ();

    #[inline(always)]
    fn value(&self, i: usize) {
        let column = self.column + Self::column(i as u32 * self.step, self.shape);
        if i < words_per_thread::<LEN>() && self.is_written() && column < self.shape.columns {
            let (word, index, past) = self.word(i);
            self.store_partial(index, word, past as usize);
        }
    }
}
