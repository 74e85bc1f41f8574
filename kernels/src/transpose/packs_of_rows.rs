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
    /// [`PACKS_EACH`] packs for each thread, or two, if there are few; the block has no more than so many. As little is done for
    /// each of them as can be, which counts where elements are short.
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

    /// [`RowsInPacks::copy_to`] with all packs on their way at once, which `ptxas` does not do by itself. Loads that are done or
    /// not take a predicate each, of which there are seven: so of packs that are not there it is another one. And it saves
    /// registers by storing the first packs before it loads the last ones, but not so around the branches of stores that are
    /// checked.
    #[inline(always)]
    pub fn copy_at_once_to<const LEN: usize>(&self, room_of_run: u32, tile: &SharedArray<T, LEN>) {
        let load = |k: usize| {
            let pack = self.pack_or_another(k, room_of_run);
            // SAFETY: these elements are the run's, which is inside of the view; and `start` is aligned.
            unsafe { self.input.load_aligned_part_unchecked(pack.start, pack.from as usize, pack.to as usize) }
        };
        let packs: [T::Pack; PACKS_EACH] = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        let keep = |k: usize| {
            let Pack { is_there, place, .. } = self.pack_or_another(k, room_of_run);
            if is_there {
                let words = words::<T>(packs[k]);
                let mut j = 0;
                while j < words_of_pack::<T>() {
                    tile.store_word((place + j * per_word::<T>()) as usize % LEN, words[j as usize]);
                    j += 1;
                }
            }
        };
        keep(0);
        keep(1);
        keep(2);
        keep(3);
        keep(4);
        keep(5);
        keep(6);
        keep(7);
    }

    /// The thread's `k`-th pack, and where it is not there another one that is.
    #[inline(always)]
    fn pack_or_another(&self, k: usize, room_of_run: u32) -> Pack {
        let lanes = T::Pack::LEN as u32;
        let nth = thread::thread_idx_x() + (k * BLOCK) as u32;
        let is_row = nth < self.rows * self.by_packs.by();
        let (row, i) = self.by_packs.divide(if is_row { nth } else { 0 });
        let begin = self.begin + row as usize * self.pitch;
        let past = self.input.elements_past(begin, 16) as u32;
        let end = past + self.len;
        let packs = end.div_ceil(lanes);
        let is_there = is_row && i < packs;
        let i = if i < packs { i } else { packs - 1 };
        Pack {
            is_there,
            start: begin.wrapping_sub(past as usize).wrapping_add((i * lanes) as usize),
            from: if i == 0 { past } else { 0 },
            to: if (i + 1) * lanes < end { lanes } else { end - i * lanes },
            place: row * room_of_run + i * lanes,
        }
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
