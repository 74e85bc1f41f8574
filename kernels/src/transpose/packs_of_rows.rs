//! A run of each of several rows, loaded by aligned packs.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::in_words::InWords;
use super::strips::{BLOCK, PACKS_EACH, per_word, words, words_of_pack};

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

/// One of their packs, or one that is not there.
#[derive(Clone, Copy)]
struct Pack {
    is_there: bool,
    /// Where it begins in the view, and which of its elements are the run's.
    start: usize,
    from: u32,
    to: u32,
    /// Where it goes in shared memory.
    place: u32,
}

impl<T: InWords> RowsInPacks<'_, T> {
    /// Writes the runs to shared memory, `room_of_run` elements apart: each as the packs that it lies in. There is room for
    /// all of them.
    ///
    /// [`PACKS_EACH`] packs are on their way in each thread, or two, if there are few; the block has no more than so many.
    #[inline(always)]
    pub fn copy_to<const LEN: usize>(&self, room_of_run: u32, tile: &SharedArray<T, LEN>) {
        let pack = |k: usize| self.pack(k, room_of_run);
        if self.rows * self.by_packs.by() <= 2 * BLOCK as u32 {
            let places = [pack(0), pack(1)];
            let packs = [self.load(places[0]), self.load(places[1])];
            keep(places[0], packs[0], tile);
            keep(places[1], packs[1], tile);
            return;
        }
        let places: [Pack; PACKS_EACH] = [pack(0), pack(1), pack(2), pack(3), pack(4), pack(5), pack(6), pack(7)];
        let load = |k: usize| self.load(places[k]);
        let packs: [T::Pack; PACKS_EACH] = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        keep(places[0], packs[0], tile);
        keep(places[1], packs[1], tile);
        keep(places[2], packs[2], tile);
        keep(places[3], packs[3], tile);
        keep(places[4], packs[4], tile);
        keep(places[5], packs[5], tile);
        keep(places[6], packs[6], tile);
        keep(places[7], packs[7], tile);
    }

    /// The thread's `k`-th pack.
    #[inline(always)]
    fn pack(&self, k: usize, room_of_run: u32) -> Pack {
        let lanes = T::Pack::LEN as u32;
        let nth = thread::thread_idx_x() + (k * BLOCK) as u32;
        let (row, i) = self.by_packs.divide(nth);
        let begin = self.begin.wrapping_add(row as usize * self.pitch);
        let past = self.input.elements_past(begin, 16) as u32;
        let (first, end) = (i * lanes, past + self.len);
        Pack {
            is_there: row < self.rows && first < end,
            start: begin.wrapping_sub(past as usize).wrapping_add(first as usize),
            from: if i == 0 { past } else { 0 },
            to: if first + lanes < end { lanes } else { end.wrapping_sub(first) },
            place: row * room_of_run + first,
        }
    }

    #[inline(always)]
    fn load(&self, pack: Pack) -> T::Pack {
        let Pack { is_there, start, from, to, .. } = pack;
        // SAFETY: if it is there these elements are the run's, which is inside of the view; and `start` is aligned.
        unsafe { self.input.load_aligned_part_if_unchecked(is_there, start, from as usize, to as usize) }
    }
}

/// Writes a pack to shared memory.
#[inline(always)]
fn keep<T: InWords, const LEN: usize>(at: Pack, pack: T::Pack, tile: &SharedArray<T, LEN>) {
    if !at.is_there {
        return;
    }
    let words = words::<T>(pack);
    let mut j = 0;
    while j < words_of_pack::<T>() {
        // SAFETY: in the room of the pack's run. Rooms and packs are whole words.
        unsafe { tile.store_word_unchecked(at.place as usize + (j * per_word::<T>()) as usize, words[j as usize]) };
        j += 1;
    }
}
