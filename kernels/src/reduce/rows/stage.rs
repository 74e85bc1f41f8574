//! The rows of a block on their way to shared memory.

use cuda_std::prelude::*;

use super::{BLOCK, PACKS, PACKS_EACH, PACKS_WITH_GAPS};
use crate::divisor::Divisor;

/// Packs that a block has room for, in whole lines: of rows without gaps one more than they have, as they may begin and
/// end inside of one.
pub(super) const ROOM: usize = PACKS_WITH_GAPS;
const _: () = assert!(ROOM > PACKS && ROOM.is_multiple_of(8));

/// Where pack `i` lies in shared memory: its line of eight, which are all banks, is turned by the line's number. So
/// packs of neighbouring rows are in different banks, where a row has fewer than a line and each lane the same pack of
/// another row.
#[inline(always)]
pub(super) fn turned(i: usize) -> usize {
    i / 8 * 8 + (i + i / 8) % 8
}

/// Rows, and how they lie in shared memory: as the aligned packs that they lie in, all of them together if there is no
/// gap between them, else each by itself.
pub(super) struct Stage<'a, T> {
    input: &'a Global<'a, T>,
    /// Where the first begins, and how many elements behind the start of a pack.
    begin: usize,
    past: u32,
    rows: u32,
    len: u32,
    pitch: usize,
}

impl<'a, T: Element> Stage<'a, T> {
    /// `rows` rows of `len` elements from `begin` on.
    #[inline(always)]
    pub fn of(input: &'a Global<'a, T>, begin: usize, (rows, len): (u32, u32), pitch: usize) -> Self {
        Self { input, begin, past: input.elements_past(begin, 16) as u32, rows, len, pitch }
    }

    /// Whether there is no gap between rows.
    #[inline(always)]
    fn is_one_run(&self) -> bool {
        self.pitch == self.len as usize
    }

    /// How many elements row `row` begins behind the start of a pack.
    #[inline(always)]
    fn past(&self, row: u32) -> u32 {
        self.past.wrapping_add(row.wrapping_mul(self.pitch as u32)) % T::Pack::LEN as u32
    }

    /// Whether all rows begin where packs do.
    #[inline(always)]
    pub fn is_aligned(&self) -> bool {
        self.past == 0 && self.pitch.is_multiple_of(T::Pack::LEN)
    }

    /// Where row `row` begins in shared memory, in elements.
    #[inline(always)]
    pub fn place(&self, row: u32, packs_of_row: u32) -> u32 {
        if self.is_one_run() {
            self.past + row * self.len
        } else {
            row * packs_of_row * T::Pack::LEN as u32 + self.past(row)
        }
    }

    /// Writes the rows to shared memory. Everything is on its way before the first is there.
    #[inline(always)]
    pub fn copy_to(&self, packs_of_row: u32, tile: &SharedArray<T::Pack, ROOM>) {
        const { assert!(PACKS_EACH == 4) };
        if self.is_one_run() {
            self.copy(|nth| self.of_run(nth), tile);
        } else {
            let by_packs = Divisor::new(packs_of_row);
            self.copy(|nth| self.of_row(by_packs, nth), tile);
        }
    }

    #[inline(always)]
    fn copy(&self, pack: impl Fn(u32) -> Pack, tile: &SharedArray<T::Pack, ROOM>) {
        let nth = |k: usize| thread::thread_idx_x() + (k * BLOCK) as u32;
        let places = [pack(nth(0)), pack(nth(1)), pack(nth(2)), pack(nth(3)), pack(nth(4))];
        let load = |k: usize| self.load(places[k]);
        let packs = [load(0), load(1), load(2), load(3), load(4)];
        let keep = |k: usize| {
            if places[k].is_there {
                // SAFETY: of those that there is room for.
                unsafe { tile.store_unchecked(turned(nth(k) as usize), packs[k]) };
            }
        };
        keep(0);
        keep(1);
        keep(2);
        keep(3);
        keep(4);
    }

    /// The `nth` of the packs that all rows lie in, if there is no gap between them.
    #[inline(always)]
    fn of_run(&self, nth: u32) -> Pack {
        self.pack(self.begin, self.past, self.rows * self.len, nth)
    }

    /// The `nth` pack, if each row has so many.
    #[inline(always)]
    fn of_row(&self, by_packs: Divisor, nth: u32) -> Pack {
        let (row, i) = by_packs.divide_outside_of_loops(nth);
        let begin = self.begin.wrapping_add((row as usize).wrapping_mul(self.pitch));
        let pack = self.pack(begin, self.past(row), self.len, i);
        Pack { is_there: pack.is_there && row < self.rows, ..pack }
    }

    /// The `i`-th of the packs that `len` elements from `begin` on lie in, which begin `past` elements behind the first
    /// one's start.
    #[inline(always)]
    fn pack(&self, begin: usize, past: u32, len: u32, i: u32) -> Pack {
        let of_pack = T::Pack::LEN as u32;
        let (first, end) = (i * of_pack, past + len);
        Pack {
            is_there: len > 0 && first < end,
            start: begin.wrapping_sub(past as usize).wrapping_add(first as usize),
            from: if i == 0 { past } else { 0 },
            to: if first + of_pack < end { of_pack } else { end.wrapping_sub(first) },
        }
    }

    #[inline(always)]
    fn load(&self, pack: Pack) -> T::Pack {
        let Pack { is_there, start, from, to } = pack;
        // SAFETY: if it is there these elements are the rows', which are inside of the view; and `start` is aligned.
        unsafe { self.input.load_aligned_part_if_unchecked(is_there, start, from as usize, to as usize) }
    }
}

/// An aligned pack of the input, or one that is not there.
#[derive(Clone, Copy)]
struct Pack {
    is_there: bool,
    /// Where it begins in the view, and which of its elements are the rows'.
    start: usize,
    from: u32,
    to: u32,
}
