//! The shadow cells of one element of a kernel's argument: a word, and a second word where it is needed.
//!
//! The word holds a packed stamp and flags. Cores that run at the same time lock a cell by a bit of its word. A launch
//! on one core takes no locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::cell_pool::{self, ShadowCells};
use super::epochs::{EpochTable, PackedStamp};
use super::exact_cell::{Conflict, Effect};
use super::exact_memory::ExactMemory;
use super::stamp::Stamp;

/// A core has locked the cell.
const LOCKED: u64 = 1;
/// The history has moved to the exact cells.
const MOVED: u64 = 2;
/// The stamp is of a read, and the element is unwritten.
const IS_READ: u64 = 4;
/// The second word holds the stamp of a read.
const HAS_SECOND: u64 = 8;
const FLAGS: u64 = LOCKED | MOVED | IS_READ | HAS_SECOND;

/// A plain access of global memory.
#[derive(Clone, Copy)]
pub(super) struct PlainAccess {
    pub address: usize,
    pub bytes: usize,
    pub effect: Effect,
    pub own: PackedStamp,
}

/// A conflict and its address, if the access has one.
pub(super) type Found = Option<(usize, Conflict)>;

/// The word of an element whose only access is this one: its packed stamp and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShadowWord(u64);

impl ShadowWord {
    pub const NONE: Self = Self(0);

    #[inline(always)]
    pub fn new(own: PackedStamp, is_read: bool) -> Self {
        Self(own.0 | if is_read { IS_READ } else { 0 })
    }

    /// This word with an epoch and a lane.
    #[inline(always)]
    pub fn by(self, lane: PackedStamp) -> Self {
        Self(self.0 | lane.0)
    }

    /// The cell's next word, if this access cannot conflict: the element has no earlier access, or only one by the same
    /// lane in the same epoch.
    #[inline(always)]
    fn after(self, word: u64) -> Option<u64> {
        if word == 0 {
            return Some(self.0);
        }
        let is_alone = PackedStamp(word).is_of_lane(PackedStamp(self.0)) && word & (MOVED | HAS_SECOND) == 0;
        // A read by the last writer adds nothing to its write.
        let is_read_after_write = self.0 & !word & IS_READ != 0;
        if is_alone { Some(if is_read_after_write { word } else { self.0 }) } else { None }
    }

    /// Records the access if it cannot conflict, and returns whether it did. For launches on one core.
    #[inline(always)]
    pub fn record(self, word: &AtomicU64) -> bool {
        match self.after(word.load(Ordering::Relaxed)) {
            Some(next) => {
                word.store(next, Ordering::Relaxed);
                true
            }
            None => false,
        }
    }

    /// [`Self::record`] for launches on several cores. Returns false if another core has locked or changed the cell.
    #[inline(always)]
    pub fn record_locked(self, word: &AtomicU64) -> bool {
        // Most elements have no earlier access. One exchange then takes the place of a lock. Without optimization, a
        // load before it would take longer than an exchange that fails.
        let may_be_alone = cfg!(debug_assertions) || word.load(Ordering::Relaxed) == 0;
        if may_be_alone && let Ok(_) = word.compare_exchange(0, self.0, Ordering::Release, Ordering::Relaxed) {
            return true;
        }
        let Some(before) = try_lock(word) else { return false };
        let (next, is_recorded) = match self.after(before) {
            Some(next) => (next, true),
            None => (before, false),
        };
        word.store(next, Ordering::Release);
        is_recorded
    }
}

/// An element's history: the last write and a read since it, or up to two reads and no write. As in
/// [`ExactCell`](super::exact_cell::ExactCell), two reads are of different warps or blocks if possible.
#[derive(Clone, Copy)]
struct History {
    write: PackedStamp,
    reads: [PackedStamp; 2],
}

/// The cell of an element, as an index into the cells of its chunk.
pub(super) struct ElementCell<'a> {
    pub words: &'a ShadowCells,
    pub second_words: &'a OnceLock<ShadowCells>,
    pub index: usize,
}

impl ElementCell<'_> {
    #[inline]
    pub fn word(&self) -> &AtomicU64 {
        &self.words[self.index]
    }

    /// Stores the word, which also unlocks the cell.
    #[inline]
    fn unlock_with(&self, word: u64) {
        self.word().store(word, Ordering::Release);
    }

    fn history(&self, word: u64) -> History {
        let stamp = PackedStamp(word & !FLAGS);
        let second = self.second_words.get().filter(|_| word & HAS_SECOND != 0);
        let second = second.map_or(PackedStamp::NONE, |words| PackedStamp(words[self.index].load(Ordering::Relaxed)));
        match word & IS_READ {
            0 => History { write: stamp, reads: [second, PackedStamp::NONE] },
            _ => History { write: PackedStamp::NONE, reads: [stamp, second] },
        }
    }

    fn set_second(&self, stamp: PackedStamp) {
        let words = self.second_words.get_or_init(|| cell_pool::allocate(self.words.len()));
        words[self.index].store(stamp.0, Ordering::Relaxed);
    }

    /// Records a plain access and returns its conflict. `happens_before` says whether an earlier access happens before
    /// it.
    pub fn access(
        &self,
        plain: PlainAccess,
        epochs: &EpochTable,
        exact: &ExactMemory,
        happens_before: impl Fn(Stamp) -> bool + Copy,
    ) -> Found {
        let PlainAccess { address, bytes, effect, own } = plain;
        let word = lock(self.word());
        if word & MOVED != 0 {
            self.unlock_with(MOVED);
            return exact.access(address, bytes, epochs.unpack(own), effect, happens_before);
        }
        let history = self.history(word);
        let unordered = |packed: PackedStamp| {
            let stamp = if packed.is_covered_by(own) { Stamp::NONE } else { epochs.unpack(packed) };
            (!stamp.is_none() && !happens_before(stamp)).then_some(stamp)
        };
        let reads = history.reads.map(unordered);
        if effect != Effect::Read {
            let conflict = unordered(history.write).map(Conflict::Write);
            self.unlock_with(own.0);
            return conflict.or(reads.into_iter().flatten().next().map(Conflict::Read)).map(|found| (address, found));
        }
        if history.write == PackedStamp::NONE {
            self.record_read_of_unwritten(history.reads[0], reads, own, epochs);
            return None;
        }
        if reads[0].is_some() {
            // A write and two reads do not fit: a later writer may be ordered after only one of the reads.
            self.move_to_exact(history, address, bytes, epochs, exact);
            self.unlock_with(MOVED);
            return exact.access(address, bytes, epochs.unpack(own), effect, happens_before);
        }
        self.set_second(own);
        self.unlock_with(history.write.0 | HAS_SECOND);
        unordered(history.write).map(|write| (address, Conflict::Write(write)))
    }

    /// Records a read of an unwritten element. `first` is the first of the earlier reads; `unordered` are those that do
    /// not happen before this one.
    fn record_read_of_unwritten(
        &self,
        first: PackedStamp,
        unordered: [Option<Stamp>; 2],
        own: PackedStamp,
        epochs: &EpochTable,
    ) {
        let warp = |stamp: Stamp| (stamp.block, stamp.warp());
        let replaces_first = match unordered {
            [None, _] => true,
            [_, None] => false,
            // Both reads still count. Keep reads of two different warps: a writer belongs to at most one of them.
            [Some(first), Some(_)] => warp(first) == warp(epochs.unpack(own)),
        };
        let has_second = if !replaces_first || unordered[1].is_some() { HAS_SECOND } else { 0 };
        if !replaces_first {
            self.set_second(own);
        }
        self.unlock_with(if replaces_first { own } else { first }.0 | IS_READ | has_second);
    }

    /// Moves the history to the exact cells, for an access that only they can record.
    pub fn give_up(&self, address: usize, bytes: usize, epochs: &EpochTable, exact: &ExactMemory) {
        let word = lock(self.word());
        if word & MOVED == 0 {
            self.move_to_exact(self.history(word), address, bytes, epochs, exact);
        }
        self.unlock_with(MOVED);
    }

    /// Copies the history to the exact cells. The caller holds the lock, and sets `MOVED`.
    fn move_to_exact(&self, history: History, at: usize, bytes: usize, epochs: &EpochTable, exact: &ExactMemory) {
        let stamps = [history.write, history.reads[0], history.reads[1]];
        if stamps != [PackedStamp::NONE; 3] {
            let [write, reads @ ..] = stamps.map(|packed| epochs.unpack(packed));
            exact.put(at, bytes, write, reads);
        }
    }
}

/// Locks a cell until the next store, and returns its word.
#[inline]
fn lock(cell: &AtomicU64) -> u64 {
    try_lock(cell).unwrap_or_else(|| wait_for_lock(cell))
}

#[inline]
fn try_lock(cell: &AtomicU64) -> Option<u64> {
    let word = cell.load(Ordering::Relaxed);
    if word & LOCKED != 0 {
        return None;
    }
    match cell.compare_exchange_weak(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Some(word),
        Err(_) => None,
    }
}

#[cold]
fn wait_for_lock(cell: &AtomicU64) -> u64 {
    loop {
        // The holder may have been preempted.
        thread::yield_now();
        if let Some(word) = try_lock(cell) {
            return word;
        }
    }
}
