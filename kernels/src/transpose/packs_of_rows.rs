//! A run of each of several rows, loaded by aligned packs.

use cuda_std::prelude::*;

use super::in_words::InWords;
use super::strips::{BLOCK, Divisor, PACKS_EACH, per_word, words, words_of_pack};

/// A run of each row, and the aligned packs that it lies in.
pub(super) struct RowsInPacks<'a, T> {
    pub input: &'a Global<'a, T>,
    /// Where the first begins, and how many elements it is to the next.
    pub begin: usize,
    pub pitch: usize,
    pub rows: u32,
    /// Elements of each.
    pub len: u32,
    /// Divides by the most packs that one lies in.
    pub by_packs: Divisor,
}

/// One of their packs.
struct Pack {
    row: u32,
    /// Its number in the run, and where it begins in the view.
    i: u32,
    start: usize,
    /// How many elements the run begins behind its first pack's start.
    past: u32,
}

impl<T: InWords> RowsInPacks<'_, T> {
    /// Writes the runs to shared memory, `room_of_run` elements apart: each as the packs that it lies in.
    ///
    /// [`PACKS_EACH`] packs are on their way in each thread; the block has no more than so many.
    #[inline(always)]
    pub fn copy_to<const LEN: usize>(&self, room_of_run: u32, tile: &SharedArray<T, LEN>) {
        let packs: [T::Pack; PACKS_EACH] = [
            self.load(0),
            self.load(1),
            self.load(2),
            self.load(3),
            self.load(4),
            self.load(5),
            self.load(6),
            self.load(7),
        ];
        self.keep(0, packs[0], room_of_run, tile);
        self.keep(1, packs[1], room_of_run, tile);
        self.keep(2, packs[2], room_of_run, tile);
        self.keep(3, packs[3], room_of_run, tile);
        self.keep(4, packs[4], room_of_run, tile);
        self.keep(5, packs[5], room_of_run, tile);
        self.keep(6, packs[6], room_of_run, tile);
        self.keep(7, packs[7], room_of_run, tile);
    }

    /// The thread's `k`-th pack, and whether there is one; else another.
    #[inline(always)]
    fn pack(&self, k: usize) -> (Pack, bool) {
        let i = thread::thread_idx_x() + (k * BLOCK) as u32;
        let is_row = i < self.rows * self.by_packs.by();
        let (row, i) = self.by_packs.divide(if is_row { i } else { 0 });
        let begin = self.begin + row as usize * self.pitch;
        let past = self.input.elements_past(begin, 16) as u32;
        let packs = (past + self.len).div_ceil(T::Pack::LEN as u32);
        let is_there = is_row && i < packs;
        let i = if i < packs { i } else { packs - 1 };
        let start = begin.wrapping_sub(past as usize).wrapping_add(i as usize * T::Pack::LEN);
        (Pack { row, i, start, past }, is_there)
    }

    /// The thread's `k`-th pack, or another: so that there is no branch, behind which loads would wait.
    #[inline(always)]
    fn load(&self, k: usize) -> T::Pack {
        let lanes = T::Pack::LEN as u32;
        let (Pack { i, past, start, .. }, _) = self.pack(k);
        let from = if i == 0 { past } else { 0 };
        let end = past + self.len;
        let to = if (i + 1) * lanes < end { lanes } else { end - i * lanes };
        // SAFETY: these elements are the run's, which is inside of the view; and `start` is aligned.
        unsafe { self.input.load_aligned_part_unchecked(start, from as usize, to as usize) }
    }

    /// Writes the thread's `k`-th pack to shared memory.
    #[inline(always)]
    fn keep<const LEN: usize>(&self, k: usize, pack: T::Pack, room_of_run: u32, tile: &SharedArray<T, LEN>) {
        let (Pack { row, i, .. }, is_there) = self.pack(k);
        if is_there {
            let words = words::<T>(pack);
            let place = row * room_of_run + i * T::Pack::LEN as u32;
            let mut j = 0;
            while j < words_of_pack::<T>() {
                tile.store_word((place + j * per_word::<T>()) as usize % LEN, words[j as usize]);
                j += 1;
            }
        }
    }
}
