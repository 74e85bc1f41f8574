//! Who accessed the kernel's arrays last: a mark for each element, and a second one where it is needed.
//!
//! The first mark is of the last write, or of the last read if nobody has written. Where others read what was written, the
//! second is of the last read. That is enough for most elements, and quick: no search, no lock, one word to compare, and
//! little memory, as it is memory that a check waits for. What it cannot hold, a second read that nothing orders with the
//! first, an atomic operation, an access of a part of an element, moves to the exact cells of `shadow`, and stays there.
//!
//! Cores that run at the same time take a cell before they look at it, by a bit of its word; a launch with one core does not
//! need to.

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::eras::{Eras, Mark};
use super::shadow::{Conflict, Effect, GlobalCells};
use super::stamp::Stamp;
use crate::launch::Argument;

/// Some core is at work with the cell.
const TAKEN: u64 = 1;
/// The exact cells have what is to be known.
const MOVED: u64 = 2;
/// The mark is of a read; nobody has written.
const IS_READ: u64 = 4;
/// The mark is of a write, and there is a second one, of a read.
const HAS_READ: u64 = 8;
const FLAGS: u64 = TAKEN | MOVED | IS_READ | HAS_READ;

/// Cells that are made together, when the first of them is needed; less at an array's end.
const CHUNK: usize = 32768;

type Marks = Box<[AtomicU64]>;

/// Marks of whole chunks, of launches that have ended. Memory that was given back to the system comes back page by page, each
/// by a fault that takes as long as the checks of a hundred accesses.
static SPARE: Mutex<Vec<Marks>> = Mutex::new(Vec::new());

/// So many are kept: 16 MiB of them.
const MOST_SPARE: usize = 64;

/// Cells of neighbours.
struct Chunk {
    /// A mark and flags each.
    cells: Marks,
    reads: OnceLock<Marks>,
}

/// An array, or several that lie in each other.
struct Array {
    start: usize,
    end: usize,
    /// Bytes of a cell's place, and as a power of two.
    step: usize,
    shift: u32,
    chunks: Box<[OnceLock<Chunk>]>,
}

/// What is known of a cell's place.
#[derive(Clone, Copy)]
struct Known {
    write: Mark,
    read: Mark,
}

/// The arrays that a launch was given.
pub(crate) struct Arrays {
    arrays: Vec<Array>,
    has_one_core: bool,
}

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

impl Arrays {
    pub fn new(arguments: &[Argument<'_>], has_one_core: bool) -> Self {
        let mut ranges: Vec<(usize, usize, u32)> = arguments
            .iter()
            .filter(|argument| argument.bytes > 0 && argument.element > 0)
            .map(|argument| {
                let shift = argument.element.trailing_zeros().min(3);
                (argument.address >> shift << shift, argument.address + argument.bytes, shift)
            })
            .collect();
        ranges.sort_unstable();
        let mut arrays: Vec<Array> = Vec::new();
        for (start, end, shift) in ranges {
            match arrays.last_mut() {
                Some(last) if start < last.end => {
                    last.end = last.end.max(end);
                    last.shift = last.shift.min(shift);
                }
                _ => arrays.push(Array { start, end, step: 0, shift, chunks: Box::default() }),
            }
        }
        for array in &mut arrays {
            array.step = 1 << array.shift;
            let cells = (array.end - array.start).div_ceil(array.step);
            array.chunks = (0..cells.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect();
        }
        Self { arrays, has_one_core }
    }

    /// The cells about an element that is accessed.
    pub fn window_at(&self, address: usize, bytes: usize) -> Window {
        let Some(array) = self.array_at(address, bytes).filter(|array| bytes == array.step) else {
            return Window::NONE;
        };
        let first = (address - array.start) >> array.shift & !(CHUNK - 1);
        let start = array.start + (first << array.shift);
        let bytes = (CHUNK << array.shift).min(array.end - start);
        Window { start, bytes, within: array.step - 1, shift: array.shift, cells: array.chunk(first).cells.as_ptr() }
    }

    /// Notes a plain access, of whole elements, that nobody else has accessed, or only before what this thread knows: most
    /// accesses are such. Gives whether it was one; if not, [`Self::access`] has to look at it.
    #[inline(never)]
    pub fn note_if_alone(&self, address: usize, bytes: usize, is_read: bool, own: Mark) -> bool {
        let Some(array) = self.array_at(address, bytes) else { return false };
        if (address | bytes) & (array.step - 1) != 0 {
            return false;
        }
        let mut at = address;
        while at < address + bytes && self.note_cell_if_alone(array.cell(at).word(), is_read, own) {
            at += array.step;
        }
        at >= address + bytes
    }

    /// [`Self::note_if_alone`], of one cell, unless some core is at work with it.
    #[inline(always)]
    pub fn note_cell_if_alone(&self, cell: &AtomicU64, is_read: bool, own: Mark) -> bool {
        let word = if self.has_one_core {
            cell.load(Ordering::Relaxed)
        } else {
            let Some(word) = try_to_take(cell) else { return false };
            word
        };
        let is_alone = Mark::of(word).is_covered_by(own) && word & (MOVED | HAS_READ) == 0;
        let is_read_only = word == 0 || word & IS_READ != 0;
        let noted = match (is_read, is_read_only) {
            (false, _) => own.0,
            (true, true) => own.0 | IS_READ,
            // A read by whoever wrote last says nothing new.
            (true, false) => word,
        };
        cell.store(if is_alone { noted } else { word }, Ordering::Release);
        is_alone
    }

    /// Notes a plain access, and gives the first conflict. `knows` says whether it comes after another one for sure.
    pub fn access(
        &self,
        plain: Plain,
        eras: &Eras,
        exact: &GlobalCells,
        knows: impl Fn(Stamp) -> bool + Copy,
    ) -> Found {
        let Plain { address, bytes, effect, own } = plain;
        let Some(array) = self.array_at(address, bytes) else {
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        };
        let step = array.step;
        if (address | bytes) & (step - 1) != 0 {
            // The exact cells know of bytes.
            self.move_out(array, address, bytes, eras, exact);
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        }
        let mut first = None;
        for at in (address..address + bytes).step_by(step) {
            let found = array.cell(at).access(Plain { address: at, bytes: step, ..plain }, eras, exact, knows);
            first = first.or(found);
        }
        first
    }

    /// Moves what is known of a place to the exact cells, for an access that only they can note.
    pub fn give_up(&self, address: usize, bytes: usize, eras: &Eras, exact: &GlobalCells) {
        if let Some(array) = self.array_at(address, bytes) {
            self.move_out(array, address, bytes, eras, exact);
        }
    }

    fn move_out(&self, array: &Array, address: usize, bytes: usize, eras: &Eras, exact: &GlobalCells) {
        let step = array.step;
        for at in (address & !(step - 1)..address + bytes).step_by(step) {
            let cell = array.cell(at);
            let word = cell.take();
            if word & MOVED == 0 {
                cell.move_out(cell.known(word), at, step, eras, exact);
            }
            cell.leave(MOVED);
        }
    }

    /// The array that holds all of those bytes. There are few.
    #[inline]
    fn array_at(&self, address: usize, bytes: usize) -> Option<&Array> {
        self.arrays.iter().find(|array| array.start <= address && address + bytes <= array.end)
    }
}

impl Drop for Arrays {
    fn drop(&mut self) {
        let chunks = self.arrays.iter_mut().flat_map(|array| std::mem::take(&mut array.chunks));
        let marks = chunks
            .filter_map(OnceLock::into_inner)
            .flat_map(|chunk| iter::once(chunk.cells).chain(chunk.reads.into_inner()))
            .filter(|marks| marks.len() == CHUNK);
        let mut spare = spare();
        let room = MOST_SPARE.saturating_sub(spare.len());
        spare.extend(marks.take(room));
    }
}

impl Array {
    #[inline]
    fn cell(&self, at: usize) -> Cell<'_> {
        let place = (at - self.start) >> self.shift;
        Cell { chunk: self.chunk(place), place: place % CHUNK }
    }

    #[inline]
    fn chunk(&self, place: usize) -> &Chunk {
        self.chunks[place / CHUNK].get().unwrap_or_else(|| self.make(place / CHUNK))
    }

    #[cold]
    fn make(&self, chunk: usize) -> &Chunk {
        let cells = (self.end - self.start).div_ceil(self.step) - chunk * CHUNK;
        self.chunks[chunk].get_or_init(|| Chunk { cells: no_marks(cells.min(CHUNK)), reads: OnceLock::new() })
    }
}

fn spare() -> MutexGuard<'static, Vec<Marks>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_marks(cells: usize) -> Marks {
    let used = if cells == CHUNK { spare().pop() } else { None };
    let Some(mut marks) = used else {
        return (0..cells).map(|_| AtomicU64::new(0)).collect();
    };
    marks.iter_mut().for_each(|mark| *mark.get_mut() = 0);
    marks
}

/// Cells of neighbouring elements of one array, for accesses that come there again and again.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The address that the first cell is of, and how many bytes there are cells of, at most those of a chunk.
    start: usize,
    bytes: usize,
    /// The bits of an address within an element, and how many those are.
    within: usize,
    shift: u32,
    cells: *const AtomicU64,
}

impl Window {
    pub const NONE: Self = Self { start: 0, bytes: 0, within: 0, shift: 0, cells: std::ptr::null() };

    /// The cell of an element at `address`, if it is one of these.
    ///
    /// # Safety
    /// The [`Arrays`] that it is of is still there for as long as the cell is used.
    #[inline(always)]
    pub unsafe fn cell<'a>(self, address: usize) -> Option<&'a AtomicU64> {
        let offset = address.wrapping_sub(self.start);
        if offset >= self.bytes || offset & self.within != 0 {
            return None;
        }
        // SAFETY: it is not `NONE`, which has no bytes, so it is of a chunk, and chunks stay where they are for as long as
        // their arrays do. A chunk has cells for all elements of those bytes.
        Some(unsafe { &*self.cells.add(offset >> self.shift) })
    }
}

/// A cell of a chunk.
struct Cell<'a> {
    chunk: &'a Chunk,
    place: usize,
}

impl Cell<'_> {
    #[inline]
    fn word(&self) -> &AtomicU64 {
        &self.chunk.cells[self.place]
    }

    fn take(&self) -> u64 {
        take(self.word())
    }

    #[inline]
    fn leave(&self, word: u64) {
        self.word().store(word, Ordering::Release);
    }

    fn known(&self, word: u64) -> Known {
        let mark = Mark::of(word);
        if word & IS_READ != 0 {
            return Known { write: Mark::NONE, read: mark };
        }
        let reads = self.chunk.reads.get().filter(|_| word & HAS_READ != 0);
        let read = reads.map_or(Mark::NONE, |reads| Mark(reads[self.place].load(Ordering::Relaxed)));
        Known { write: mark, read }
    }

    /// As [`Arrays::access`], of the cell's place.
    fn access(&self, plain: Plain, eras: &Eras, exact: &GlobalCells, knows: impl Fn(Stamp) -> bool + Copy) -> Found {
        let Plain { address, bytes, effect, own } = plain;
        let word = self.take();
        if word & MOVED != 0 {
            self.leave(MOVED);
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        }
        let known = self.known(word);
        let unknown = |mark: Mark| {
            let stamp = if mark.is_covered_by(own) { Stamp::NONE } else { eras.stamp(mark) };
            (!stamp.is_none() && !knows(stamp)).then_some(stamp)
        };
        let read_in_the_way = unknown(known.read);
        if effect == Effect::Read && read_in_the_way.is_some() {
            // Both reads count: whoever writes next may know of one of them only.
            self.move_out(known, address, bytes, eras, exact);
            self.leave(MOVED);
            return exact.access(address, bytes, eras.stamp(own), effect, knows);
        }
        let conflict = unknown(known.write).map(Conflict::Write).or(read_in_the_way.map(Conflict::Read));
        self.leave(match effect {
            Effect::Read if known.write == Mark::NONE => own.0 | IS_READ,
            Effect::Read => {
                self.chunk.reads.get_or_init(|| no_marks(self.chunk.cells.len()))[self.place]
                    .store(own.0, Ordering::Relaxed);
                known.write.0 | HAS_READ
            }
            Effect::Write | Effect::ReadWrite => own.0,
        });
        conflict.map(|conflict| (address, conflict))
    }

    /// Tells the exact cells what this one knows. It has been taken, and is to be left as moved.
    fn move_out(&self, known: Known, at: usize, bytes: usize, eras: &Eras, exact: &GlobalCells) {
        if known.write != Mark::NONE || known.read != Mark::NONE {
            exact.put(at, bytes, eras.stamp(known.write), eras.stamp(known.read));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Random;
    use crate::watch::stamp::Strength;

    const START: usize = 1 << 20;

    fn argument(element: usize, bytes: usize) -> Argument<'static> {
        Argument { name: "numbers", address: START, bytes, element }
    }

    /// An access of the test: who, when, where and what.
    #[derive(Clone, Copy, Debug)]
    struct Step {
        thread: usize,
        epoch: u32,
        at: usize,
        bytes: usize,
        effect: Effect,
        is_atomic: bool,
    }

    impl Step {
        fn is_race_with(self, other: Self) -> bool {
            self.thread != other.thread
                && self.epoch == other.epoch
                && self.at < other.at + other.bytes
                && other.at < self.at + self.bytes
                && (self.effect != Effect::Read || other.effect != Effect::Read)
                && !(self.is_atomic && other.is_atomic)
        }
    }

    /// Notes an access by a window where there is one.
    fn note(arrays: &Arrays, Plain { address, bytes, effect, own }: Plain) -> bool {
        let is_read = effect == Effect::Read;
        // SAFETY: the arrays are borrowed.
        match unsafe { arrays.window_at(address, bytes).cell(address) } {
            Some(cell) if address.is_multiple_of(bytes) => arrays.note_cell_if_alone(cell, is_read, own),
            _ => arrays.note_if_alone(address, bytes, is_read, own),
        }
    }

    /// A kernel of 70 threads with barriers, whose threads access a few places at random.
    fn steps(seed: u64, element: usize) -> Vec<Step> {
        let mut random = Random::new(seed, 0);
        let mut epoch = 0;
        let mut step = || {
            epoch += u32::from(random.below(4) == 0);
            let bytes = element << random.below(2);
            let is_atomic = random.below(20) == 0;
            let effect = match random.below(3) {
                _ if is_atomic => Effect::ReadWrite,
                0 => Effect::Write,
                _ => Effect::Read,
            };
            let place = random.below(6) * if random.below(30) == 0 { 1 } else { bytes };
            Step { thread: random.below(70), epoch, at: START + place, bytes, effect, is_atomic }
        };
        (0..200).map(|_| step()).collect()
    }

    #[test]
    fn what_the_exact_cells_find_is_found_and_nothing_else() {
        let mut races = 0;
        for seed in 0..400 {
            let element = 1 << (seed % 4);
            for has_one_core in [true, false] {
                let arrays = Arrays::new(&[argument(element, 64)], has_one_core);
                let (eras, beside, alone) = (Eras::new(), GlobalCells::new(), GlobalCells::new());
                let steps = steps(seed, element);
                for (i, &step) in steps.iter().enumerate() {
                    let Step { thread, epoch, at, bytes, effect, is_atomic } = step;
                    let knows = |stamp: Stamp| stamp.epoch < epoch || stamp.thread() == thread;
                    let strength = if is_atomic { Strength::Device } else { Strength::Plain };
                    let stamp = Stamp::new(0, epoch, 0, thread, strength, i as u32);
                    let expected = alone.access(at, bytes, stamp, effect, knows);
                    let own = Mark::new(eras.begin(0, epoch, 0, thread / 32).unwrap(), thread, i as u32);
                    let plain = Plain { address: at, bytes, effect, own };
                    let found = if is_atomic {
                        arrays.give_up(at, bytes, &eras, &beside);
                        beside.access(at, bytes, stamp, effect, knows)
                    } else if note(&arrays, plain) {
                        None
                    } else {
                        arrays.access(plain, &eras, &beside, knows)
                    };
                    let is_race = steps[..i].iter().any(|&other| step.is_race_with(other));
                    assert!(expected.is_none() || found.is_some(), "seed {seed}, step {i}: {step:?}, {expected:?}");
                    assert!(found.is_none() || is_race, "seed {seed}, step {i}: {step:?}, {found:?}");
                    races += usize::from(found.is_some());
                }
            }
        }
        assert!(races > 10_000, "{races}");
    }

    #[test]
    fn arrays_in_each_other_have_the_cells_of_the_smaller_elements() {
        let bytes = Argument { address: START + 8, ..argument(1, 16) };
        let arrays = Arrays::new(&[argument(8, 16), bytes, argument(4, 0)], true);
        assert_eq!(arrays.arrays.len(), 1);
        let array = &arrays.arrays[0];
        assert_eq!((array.start, array.end, array.shift), (START, START + 24, 0));
        assert!(arrays.array_at(START + 8, 16).is_some() && arrays.array_at(START + 16, 16).is_none());
    }

    #[test]
    fn cores_at_one_cell_miss_nothing() {
        // One core writes what the other reads, in no order: one of the two finds it.
        for _ in 0..200 {
            let arrays = Arrays::new(&[argument(4, 4096)], false);
            let (eras, exact) = (Eras::new(), GlobalCells::new());
            let access = |block: u32, effect| {
                let own = Mark::new(eras.begin(block, 1, 1, 0).unwrap(), 0, 0);
                let places = (0..1024).map(|i| START + 4 * i);
                let found = places.map(|address| {
                    let plain = Plain { address, bytes: 4, effect, own };
                    !note(&arrays, plain) && arrays.access(plain, &eras, &exact, |stamp| stamp.block == block).is_some()
                });
                found.collect::<Vec<bool>>()
            };
            let (by_writer, by_reader) = thread::scope(|scope| {
                let writer = scope.spawn(|| access(0, Effect::Write));
                (access(1, Effect::Read), writer.join().unwrap())
            });
            assert!(by_writer.iter().zip(&by_reader).all(|(writer, reader)| writer != reader));
        }
    }
}
