//! Who accessed memory last: a cell for each 4 bytes, and one for each byte where somebody accesses less.
//!
//! These are exact, and slow where cores share them: elements of a kernel's arrays begin in `arrays`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::stamp::{Stamp, Strength};

/// The last write of a place, atomic operations since then, the last of which counts, and reads: of two warps or blocks
/// if there were so many, which is enough to find a write that somebody has not waited for.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    write: Stamp,
    atomic: Stamp,
    reads: [Stamp; 2],
    /// Its four bytes have cells of their own.
    is_split: bool,
}

const UNTOUCHED: Cell = Cell { write: Stamp::NONE, atomic: Stamp::NONE, reads: [Stamp::NONE; 2], is_split: false };

/// What an access does to the values in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
    /// An atomic operation.
    ReadWrite,
}

/// What an access finds in its cells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Conflict {
    /// With a write, or with a read.
    Write(Stamp),
    Read(Stamp),
    /// Both are atomic, but one only for its block.
    Scope(Stamp),
    /// Nobody has written what is read.
    Unwritten,
}

impl Cell {
    /// Notes an access, and gives what it is in conflict with. `knows` says whether it comes after another one for
    /// sure.
    #[inline]
    fn access(
        &mut self,
        own: Stamp,
        effect: Effect,
        is_fresh: impl Fn(Stamp) -> bool + Copy,
        knows: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<Conflict> {
        let is_there = |other: Stamp| !other.is_none() && is_fresh(other);
        let in_conflict = |other: Stamp| is_there(other) && !are_atomic_together(own, other) && !knows(other);
        let is_written = is_there(self.write) || is_there(self.atomic);
        let of_write = [self.write, self.atomic].into_iter().find(|&write| in_conflict(write));
        let mut conflict = of_write.map(|write| match are_atomic(own, write) {
            true => Conflict::Scope(write),
            false => Conflict::Write(write),
        });
        if effect == Effect::Read {
            self.note_read(own, is_fresh, knows);
            return if is_written { conflict } else { Some(Conflict::Unwritten) };
        }
        let of_read = self.reads.into_iter().find(|&read| in_conflict(read));
        conflict = conflict.or(of_read.map(|read| match are_atomic(own, read) {
            true => Conflict::Scope(read),
            false => Conflict::Read(read),
        }));
        if own.strength() == Strength::Plain {
            self.write = own;
            self.atomic = Stamp::NONE;
        } else {
            self.atomic = own;
        }
        self.reads = [Stamp::NONE; 2];
        conflict
    }

    fn note_read(&mut self, own: Stamp, is_fresh: impl Fn(Stamp) -> bool, knows: impl Fn(Stamp) -> bool) {
        let [first, second] = self.reads;
        let same_warp = |other: Stamp| other.block == own.block && other.thread() / 32 == own.thread() / 32;
        let is_over = |read: Stamp| read.is_none() || !is_fresh(read) || knows(read);
        let place = if is_over(first) {
            0
        } else if is_over(second) {
            1
        } else {
            // Both still count. One of each of two warps says the most: whoever writes is not of both.
            usize::from(!same_warp(first))
        };
        self.reads[place] = own;
    }
}

fn are_atomic(one: Stamp, other: Stamp) -> bool {
    one.strength() != Strength::Plain && other.strength() != Strength::Plain
}

/// Whether two accesses are atomic for each other.
fn are_atomic_together(one: Stamp, other: Stamp) -> bool {
    match one.strength().min(other.strength()) {
        Strength::Plain => false,
        Strength::Block => one.block == other.block,
        Strength::Device => true,
    }
}

/// Cells of a stretch of memory; addresses are counted from its start.
#[derive(Default)]
pub(crate) struct Cells {
    words: Vec<Cell>,
    bytes: HashMap<usize, [Cell; 4], BuildHasherDefault<AddressHasher>>,
    /// What nobody has written holds something all the same.
    is_of_device: bool,
}

impl Cells {
    /// Of so many bytes of shared memory, which nobody has touched.
    pub fn new(bytes: usize) -> Self {
        Self { words: vec![UNTOUCHED; bytes.div_ceil(4)], bytes: HashMap::default(), is_of_device: false }
    }

    /// Of so many bytes of the device's memory: it holds what was there before the launch.
    fn of_device(bytes: usize) -> Self {
        Self { is_of_device: true, ..Self::new(bytes) }
    }

    /// The bytes that there are cells for.
    pub fn len(&self) -> usize {
        self.words.len() * 4
    }

    /// The cell of the byte at `at`, or of the word that begins there if `bytes` has all of it, and the bytes that it
    /// is of.
    #[inline]
    fn cell(&mut self, at: usize, bytes: usize) -> (&mut Cell, usize) {
        let word = at / 4;
        if bytes >= 4 && at.is_multiple_of(4) && !self.words[word].is_split {
            return (&mut self.words[word], 4);
        }
        (self.byte(at), 1)
    }

    #[cold]
    fn byte(&mut self, at: usize) -> &mut Cell {
        let word = at / 4;
        let cell = &mut self.words[word];
        let whole = Cell { is_split: false, ..*cell };
        cell.is_split = true;
        &mut self.bytes.entry(word).or_insert([whole; 4])[at % 4]
    }

    /// Sets what is known of a place.
    fn put(&mut self, start: usize, bytes: usize, write: Stamp, reads: [Stamp; 2]) {
        let mut at = start;
        while at < start + bytes {
            let (cell, len) = self.cell(at, start + bytes - at);
            *cell = Cell { write, reads, ..UNTOUCHED };
            at += len;
        }
    }

    /// Notes an access of `bytes` bytes at `start`, and gives the first conflict with where it is. Stamps that are not
    /// fresh are of another time, when the memory was somebody else's.
    #[inline]
    pub fn access(
        &mut self,
        start: usize,
        bytes: usize,
        own: Stamp,
        effect: Effect,
        is_fresh: impl Fn(Stamp) -> bool + Copy,
        knows: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<(usize, Conflict)> {
        let mut first = None;
        let mut at = start;
        let is_of_device = self.is_of_device;
        while at < start + bytes {
            let (cell, len) = self.cell(at, start + bytes - at);
            let conflict = cell.access(own, effect, is_fresh, knows);
            let conflict = conflict.filter(|conflict| !is_of_device || !matches!(conflict, Conflict::Unwritten));
            first = first.or(conflict.map(|conflict| (at, conflict)));
            at += len;
        }
        first
    }
}

const PAGE: usize = 512;
const SHARDS: usize = 256;

type Pages = HashMap<usize, Cells, BuildHasherDefault<AddressHasher>>;

/// Cells of all global memory that a launch touches, for all cores.
pub(crate) struct GlobalCells {
    shards: Vec<Mutex<Pages>>,
}

impl GlobalCells {
    pub fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// As [`Cells::access`].
    pub fn access(
        &self,
        address: usize,
        bytes: usize,
        own: Stamp,
        effect: Effect,
        knows: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<(usize, Conflict)> {
        let (page, offset) = (address / PAGE, address % PAGE);
        let here = bytes.min(PAGE - offset);
        let found = {
            let mut pages = self.lock(page);
            let cells = pages.entry(page).or_insert_with(|| Cells::of_device(PAGE));
            cells.access(offset, here, own, effect, |_| true, knows).map(|(at, conflict)| (page * PAGE + at, conflict))
        };
        if here == bytes {
            return found;
        }
        // Only loads of unaligned packs go on in the next page.
        found.or(self.access(address + here, bytes - here, own, effect, knows))
    }

    /// Sets what is known of a place, which is within a page: its last write, and reads since.
    pub fn put(&self, address: usize, bytes: usize, write: Stamp, reads: [Stamp; 2]) {
        let (page, offset) = (address / PAGE, address % PAGE);
        self.lock(page).entry(page).or_insert_with(|| Cells::of_device(PAGE)).put(offset, bytes, write, reads);
    }

    fn lock(&self, page: usize) -> MutexGuard<'_, Pages> {
        self.shards[page % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of words and pages are hash enough once they are spread.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(thread: usize) -> Stamp {
        Stamp::new(0, 0, 1, thread, Strength::Plain, thread as u32)
    }

    fn access(
        cells: &mut Cells,
        start: usize,
        bytes: usize,
        thread: usize,
        effect: Effect,
    ) -> Option<(usize, Conflict)> {
        // Nothing is in order but what one thread does.
        cells.access(start, bytes, stamp(thread), effect, |_| true, move |other| other.thread() == thread)
    }

    #[test]
    fn a_read_of_nothing_is_found() {
        let mut cells = Cells::new(64);
        assert!(matches!(access(&mut cells, 8, 4, 0, Effect::Read), Some((8, Conflict::Unwritten))));
        assert!(access(&mut cells, 16, 16, 0, Effect::Write).is_none());
        assert!(access(&mut cells, 28, 4, 0, Effect::Read).is_none());
        assert!(matches!(access(&mut cells, 24, 16, 0, Effect::Read), Some((32, Conflict::Unwritten))));
    }

    #[test]
    fn bytes_of_one_word_are_told_apart() {
        let mut cells = Cells::new(64);
        assert!(access(&mut cells, 0, 1, 0, Effect::Write).is_none());
        assert!(access(&mut cells, 1, 1, 1, Effect::Write).is_none());
        assert!(access(&mut cells, 2, 2, 2, Effect::Write).is_none());
        assert!(matches!(access(&mut cells, 3, 1, 3, Effect::Write), Some((3, Conflict::Write(_)))));
        assert!(matches!(access(&mut cells, 0, 4, 1, Effect::Read), Some((0, Conflict::Write(_)))));
    }

    #[test]
    fn a_write_is_found_after_many_reads() {
        let mut cells = Cells::new(64);
        access(&mut cells, 0, 4, 5, Effect::Write);
        (0..100).for_each(|thread| {
            cells.access(
                0,
                4,
                stamp(thread),
                Effect::Read,
                |_| true,
                |other| other.thread() == thread || other.thread() == 5,
            );
        });
        for thread in [0, 31, 99] {
            let mut cells = Cells { words: cells.words.clone(), ..Cells::new(0) };
            let found = access(&mut cells, 0, 4, thread, Effect::Write);
            assert!(matches!(found, Some((0, _))), "{thread}: {found:?}");
        }
    }
}
