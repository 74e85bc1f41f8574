//! What is known of one element of a kernel's arrays: a word with a mark, and a second mark where it is needed.
//!
//! Cores that run at the same time take a cell before they look at it, by a bit of its word; a launch with one core
//! does not need to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::eras::{Eras, Mark};
use super::marks::{Marks, no_marks};
use super::shadow::{Conflict, Effect, GlobalCells};
use super::stamp::Stamp;

/// Some core is at work with the cell.
const TAKEN: u64 = 1;
/// The exact cells have what is to be known.
const MOVED: u64 = 2;
/// The mark is of a read; nobody has written.
const IS_READ: u64 = 4;
/// There is a second mark, of a read, beside a write's or a read's.
const HAS_READ: u64 = 8;
const FLAGS: u64 = TAKEN | MOVED | IS_READ | HAS_READ;

/// A plain access of memory: its place, and who does it.
#[derive(Clone, Copy)]
pub(crate) struct Plain {
    pub address: usize,
    pub bytes: usize,
    pub effect: Effect,
    pub own: Mark,
}

/// What is in the way of an access, and where.
pub(crate) type Found = Option<(usize, Conflict)>;

/// A plain access as the word of an element that nobody has accessed before is to have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch(u64);

impl Touch {
    pub const NONE: Self = Self(0);

    #[inline(always)]
    pub fn new(own: Mark, is_read: bool) -> Self {
        Self(own.0 | if is_read { IS_READ } else { 0 })
    }

    /// A touch without a lane, with one.
    #[inline(always)]
    pub fn by(self, lane: Mark) -> Self {
        Self(self.0 | lane.0)
    }

    /// What a word is to become, if nothing is to be said of the access: nobody else has accessed the element, or only
    /// before what this thread knows.
    #[inline(always)]
    fn after(self, word: u64) -> Option<u64> {
        if word == 0 {
            return Some(self.0);
        }
        let is_alone = Mark(word).is_of_thread(Mark(self.0)) && word & (MOVED | HAS_READ) == 0;
        // A read by whoever wrote last says nothing new.
        let says_nothing = self.0 & !word & IS_READ != 0;
        is_alone.then_some(if says_nothing { word } else { self.0 })
    }

    /// Notes an access that nothing is to be said of, where one core runs the launch. Gives whether it was one.
    #[inline(always)]
    pub fn note(self, word: &AtomicU64) -> bool {
        let noted = self.after(word.load(Ordering::Relaxed));
        if let Some(noted) = noted {
            word.store(noted, Ordering::Relaxed);
        }
        noted.is_some()
    }

    /// [`Self::note`], where other cores are at work too; not if one of them is with this cell.
    #[inline(always)]
    pub fn note_among_cores(self, word: &AtomicU64) -> bool {
        let Some(before) = try_to_take(word) else { return false };
        let noted = self.after(before);
        word.store(noted.unwrap_or(before), Ordering::Release);
        noted.is_some()
    }
}

/// What is known of a cell's place: the last write and a read since, or reads alone, of two warps or blocks if there
/// were so many (as in the exact cells).
#[derive(Clone, Copy)]
struct Known {
    write: Mark,
    reads: [Mark; 2],
}

/// The cell at a place among its neighbours.
pub(super) struct Cell<'a> {
    pub words: &'a Marks,
    pub reads: &'a OnceLock<Marks>,
    pub place: usize,
}

impl Cell<'_> {
    #[inline]
    pub fn word(&self) -> &AtomicU64 {
        &self.words[self.place]
    }

    #[inline]
    fn leave(&self, word: u64) {
        self.word().store(word, Ordering::Release);
    }

    fn known(&self, word: u64) -> Known {
        let mark = Mark::of(word);
        let second = self.reads.get().filter(|_| word & HAS_READ != 0);
        let second = second.map_or(Mark::NONE, |reads| Mark(reads[self.place].load(Ordering::Relaxed)));
        match word & IS_READ {
            0 => Known { write: mark, reads: [second, Mark::NONE] },
            _ => Known { write: Mark::NONE, reads: [mark, second] },
        }
    }

    fn set_second(&self, mark: Mark) {
        self.reads.get_or_init(|| no_marks(self.words.len()))[self.place].store(mark.0, Ordering::Relaxed);
    }

    /// Notes a plain access, and gives the conflict. `knows` says whether it comes after another one for sure.
    pub fn access(
        &self,
        plain: Plain,
        eras: &Eras,
        exact: &GlobalCells,
        knows: impl Fn(Stamp) -> bool + Copy,
    ) -> Found {
        let Plain { address, bytes, effect, own } = plain;
        let word = take(self.word());
        if word & MOVED != 0 {
            self.leave(MOVED);
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        }
        let known = self.known(word);
        let unknown = |mark: Mark| {
            let stamp = if mark.is_covered_by(own) { Stamp::NONE } else { eras.stamp(mark) };
            (!stamp.is_none() && !knows(stamp)).then_some(stamp)
        };
        let reads = known.reads.map(unknown);
        if effect != Effect::Read {
            let conflict = unknown(known.write).map(Conflict::Write);
            self.leave(own.0);
            return conflict.or(reads.into_iter().flatten().next().map(Conflict::Read)).map(|found| (address, found));
        }
        if known.write == Mark::NONE {
            self.note_read_alone(known.reads[0], reads, own, eras);
            return None;
        }
        if reads[0].is_some() {
            // Both reads count: whoever writes next may know of one of them only.
            self.move_out(known, address, bytes, eras, exact);
            self.leave(MOVED);
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        }
        self.set_second(own);
        self.leave(known.write.0 | HAS_READ);
        unknown(known.write).map(|write| (address, Conflict::Write(write)))
    }

    /// Notes a read of what nobody has written, beside others, the first of which is `first`; `unknown` are those that
    /// count: of the others the thread knows, or there are none.
    fn note_read_alone(&self, first: Mark, unknown: [Option<Stamp>; 2], own: Mark, eras: &Eras) {
        let warp = |stamp: Stamp| (stamp.block, stamp.thread() / 32);
        let takes_the_first = match unknown {
            [None, _] => true,
            [_, None] => false,
            // Both still count. One of each of two warps says the most: whoever writes is not of both.
            [Some(first), Some(_)] => warp(first) == warp(eras.stamp(own)),
        };
        let has_second = if !takes_the_first || unknown[1].is_some() { HAS_READ } else { 0 };
        if !takes_the_first {
            self.set_second(own);
        }
        self.leave(if takes_the_first { own } else { first }.0 | IS_READ | has_second);
    }

    /// Has the exact cells know of the place, for an access that only they can note.
    pub fn give_up(&self, address: usize, bytes: usize, eras: &Eras, exact: &GlobalCells) {
        let word = take(self.word());
        if word & MOVED == 0 {
            self.move_out(self.known(word), address, bytes, eras, exact);
        }
        self.leave(MOVED);
    }

    /// Tells the exact cells what this one knows. It has been taken, and is to be left as moved.
    fn move_out(&self, known: Known, at: usize, bytes: usize, eras: &Eras, exact: &GlobalCells) {
        let marks = [known.write, known.reads[0], known.reads[1]];
        if marks != [Mark::NONE; 3] {
            let [write, reads @ ..] = marks.map(|mark| eras.stamp(mark));
            exact.put(at, bytes, write, reads);
        }
    }
}

/// Takes a cell for this core until its next store; gives its word.
#[inline]
fn take(cell: &AtomicU64) -> u64 {
    try_to_take(cell).unwrap_or_else(|| wait(cell))
}

#[inline]
fn try_to_take(cell: &AtomicU64) -> Option<u64> {
    let word = cell.load(Ordering::Relaxed);
    let is_free = word & TAKEN == 0;
    let taken = word | TAKEN;
    (is_free && cell.compare_exchange_weak(word, taken, Ordering::Acquire, Ordering::Relaxed).is_ok()).then_some(word)
}

#[cold]
fn wait(cell: &AtomicU64) -> u64 {
    loop {
        // Whoever has it may have been put off its core.
        thread::yield_now();
        if let Some(word) = try_to_take(cell) {
            return word;
        }
    }
}

impl Mark {
    /// Without the flags of its cell.
    #[inline]
    fn of(word: u64) -> Self {
        Self(word & !FLAGS)
    }
}
