//! The elements of a thread's columns that it holds at once.

use cuda_std::hint::compute_now;
use cuda_std::prelude::*;

use crate::reduce::columns::COLUMNS;

/// Elements of some rows of a thread's columns.
///
/// Elements of 2 bytes are held as words. Otherwise each would take a register, and some would be in local memory.
#[derive(Clone, Copy)]
pub struct Tile<T, const ROWS: usize> {
    items: [[T; COLUMNS]; ROWS],
    words: [[u32; 2]; ROWS],
}

impl<T: Element, const ROWS: usize> Tile<T, ROWS> {
    const HAS_WORDS: bool = size_of::<T>() == 2;

    /// Zeros.
    #[inline(always)]
    pub fn zeros() -> Self {
        Self { items: [[T::default(); COLUMNS]; ROWS], words: [[0; 2]; ROWS] }
    }

    /// Writes a row.
    #[inline(always)]
    pub fn set_row(&mut self, k: usize, row: [T; COLUMNS]) {
        if !Self::HAS_WORDS {
            self.items[k] = row;
            return;
        }
        let [a, b, c, d] = row;
        let [low, high, ..] = T::Vector::splat(T::default()).with(0, a).with(1, b).with(2, c).with(3, d).to_words();
        // Opaque, because LLVM would split the words.
        self.words[k] = [compute_now(low), compute_now(high)];
    }

    /// The element of a row and a column.
    #[inline(always)]
    pub fn get(&self, k: usize, column: usize) -> T {
        if !Self::HAS_WORDS {
            return self.items[k][column];
        }
        let [low, high] = self.words[k];
        T::Vector::from_words([low, high, 0, 0]).get(column)
    }
}
