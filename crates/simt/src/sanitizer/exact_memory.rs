//! Exact shadow memory: a cell for each 4 bytes, and one for each byte of a word that is accessed in parts.
//!
//! Sharing it between cores is slow. So the elements of a kernel's arguments begin in `argument_shadow`.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::exact_cell::{Conflict, Effect, ExactCell};
use super::stamp::Stamp;

/// The cells of a range of memory. Addresses are offsets from its start.
#[derive(Default)]
pub(super) struct ExactRange {
    words: Box<[ExactCell]>,
    /// The cells of the bytes of split words.
    bytes: HashMap<usize, [ExactCell; 4], BuildHasherDefault<AddressHasher>>,
    /// The memory has contents before the first write.
    is_initialized: bool,
}

impl ExactRange {
    /// The cells of `bytes` bytes of shared memory, which is uninitialized.
    pub fn new(bytes: usize) -> Self {
        let words = vec![ExactCell::EMPTY; bytes.div_ceil(4)].into();
        Self { words, bytes: HashMap::default(), is_initialized: false }
    }

    /// The cells of `bytes` bytes of global memory, which keeps its contents from before the launch.
    fn initialized(bytes: usize) -> Self {
        Self { is_initialized: true, ..Self::new(bytes) }
    }

    /// The length of the range in bytes.
    pub fn len(&self) -> usize {
        self.words.len() * 4
    }

    /// The cell for an access of `bytes` bytes at `at`, and the bytes that it covers: a word, or a single byte if the
    /// access is unaligned, narrow or the word is split.
    #[inline(always)]
    fn cell(&mut self, at: usize, bytes: usize) -> (&mut ExactCell, usize) {
        let word = at / 4;
        if bytes >= 4 && at & 3 == 0 && !self.words[word].is_split {
            return (&mut self.words[word], 4);
        }
        (self.byte(at), 1)
    }

    #[cold]
    fn byte(&mut self, at: usize) -> &mut ExactCell {
        let word = at / 4;
        let cell = &mut self.words[word];
        let whole = ExactCell { is_split: false, ..*cell };
        cell.is_split = true;
        &mut self.bytes.entry(word).or_insert([whole; 4])[at % 4]
    }

    /// Sets the history of a range.
    fn put(&mut self, start: usize, bytes: usize, write: Stamp, reads: [Stamp; 2]) {
        let mut at = start;
        while at < start + bytes {
            let (cell, len) = self.cell(at, start + bytes - at);
            *cell = ExactCell { write, reads, ..ExactCell::EMPTY };
            at += len;
        }
    }

    /// Records a plain access to whole words of shared memory up to the first word with an earlier access that may
    /// conflict. Returns the offset of that word, or the end of the access. See [`ExactCell::record_if_settled`].
    #[inline(always)]
    pub fn record_while_settled(
        &mut self,
        start: usize,
        bytes: usize,
        own: &Stamp,
        is_read: bool,
        first_phase: u32,
    ) -> usize {
        if (start | bytes) & 3 != 0 {
            return start;
        }
        let (mut word, end) = (start / 4, (start + bytes) / 4);
        while word < end && self.words[word].record_if_settled(own, is_read, first_phase) {
            word += 1;
        }
        word * 4
    }

    /// Records an access and returns its first conflict, with the offset. For `is_current` and `happens_before` see
    /// [`ExactCell::access`].
    #[inline]
    pub fn access(
        &mut self,
        start: usize,
        bytes: usize,
        own: Stamp,
        effect: Effect,
        is_current: impl Fn(Stamp) -> bool + Copy,
        happens_before: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<(usize, Conflict)> {
        let mut first = None;
        let mut at = start;
        let is_initialized = self.is_initialized;
        while at < start + bytes {
            let (cell, len) = self.cell(at, start + bytes - at);
            if let Some(conflict) = cell.access(own, effect, is_current, happens_before)
                && first.is_none()
                && !(is_initialized && matches!(conflict, Conflict::Unwritten))
            {
                first = Some((at, conflict));
            }
            at += len;
        }
        first
    }
}

/// The size of a page in bytes, the unit in which cells of global memory are allocated.
const PAGE: usize = 512;
const SHARDS: usize = 256;

type Pages = HashMap<usize, ExactRange, BuildHasherDefault<AddressHasher>>;

/// The cells of all global memory that a launch touches, shared by all cores.
pub(super) struct ExactMemory {
    shards: Vec<Mutex<Pages>>,
}

impl ExactMemory {
    pub fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// The same as [`ExactRange::access`], at an address.
    pub fn access(
        &self,
        address: usize,
        bytes: usize,
        own: Stamp,
        effect: Effect,
        happens_before: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<(usize, Conflict)> {
        let (page, offset) = (address / PAGE, address % PAGE);
        let here = bytes.min(PAGE - offset);
        let found = {
            let mut pages = self.lock(page);
            let cells = pages.entry(page).or_insert_with(|| ExactRange::initialized(PAGE));
            cells
                .access(offset, here, own, effect, |_| true, happens_before)
                .map(|(at, conflict)| (page * PAGE + at, conflict))
        };
        if here == bytes {
            return found;
        }
        // Only unaligned vector loads cross a page.
        found.or(self.access(address + here, bytes - here, own, effect, happens_before))
    }

    /// Sets the history of a range within one page: its last write, and reads since.
    pub fn put(&self, address: usize, bytes: usize, write: Stamp, reads: [Stamp; 2]) {
        let (page, offset) = (address / PAGE, address % PAGE);
        self.lock(page).entry(page).or_insert_with(|| ExactRange::initialized(PAGE)).put(offset, bytes, write, reads);
    }

    fn lock(&self, page: usize) -> MutexGuard<'_, Pages> {
        self.shards[page % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A multiplicative hash of word and page numbers.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

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
    use super::super::stamp::Strength;
    use super::*;

    fn stamp(thread: usize) -> Stamp {
        Stamp::new(0, 0, 1, thread, Strength::Plain, thread as u32)
    }

    fn access(
        cells: &mut ExactRange,
        start: usize,
        bytes: usize,
        thread: usize,
        effect: Effect,
    ) -> Option<(usize, Conflict)> {
        // Only accesses of one thread are ordered.
        cells.access(start, bytes, stamp(thread), effect, |_| true, move |other| other.thread() == thread)
    }

    #[test]
    fn a_read_of_unwritten_memory_is_found() {
        let mut cells = ExactRange::new(64);
        assert!(matches!(access(&mut cells, 8, 4, 0, Effect::Read), Some((8, Conflict::Unwritten))));
        assert!(access(&mut cells, 16, 16, 0, Effect::Write).is_none());
        assert!(access(&mut cells, 28, 4, 0, Effect::Read).is_none());
        assert!(matches!(access(&mut cells, 24, 16, 0, Effect::Read), Some((32, Conflict::Unwritten))));
    }

    #[test]
    fn bytes_of_one_word_have_their_own_cells() {
        let mut cells = ExactRange::new(64);
        assert!(access(&mut cells, 0, 1, 0, Effect::Write).is_none());
        assert!(access(&mut cells, 1, 1, 1, Effect::Write).is_none());
        assert!(access(&mut cells, 2, 2, 2, Effect::Write).is_none());
        assert!(matches!(access(&mut cells, 3, 1, 3, Effect::Write), Some((3, Conflict::Write(_)))));
        assert!(matches!(access(&mut cells, 0, 4, 1, Effect::Read), Some((0, Conflict::Write(_)))));
    }

    #[test]
    fn a_write_is_found_after_many_reads() {
        let mut cells = ExactRange::new(64);
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
            let mut cells = ExactRange { words: cells.words.clone(), ..ExactRange::new(0) };
            let found = access(&mut cells, 0, 4, thread, Effect::Write);
            assert!(matches!(found, Some((0, _))), "{thread}: {found:?}");
        }
    }
}
