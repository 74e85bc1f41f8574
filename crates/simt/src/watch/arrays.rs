//! Who accessed the kernel's arrays last: a mark for each element, and a second one where it is needed.
//!
//! The first mark is of the last write, or of a read if nobody has written. Where others read, the second is of the
//! last read. That is enough for most elements, and quick: no search, no lock, one word to compare, and little memory,
//! as it is memory that a check waits for. What it cannot hold, two reads that nothing orders of what was written, an
//! atomic operation, an access of a part of an element, moves to the exact cells of `shadow`, and stays there. `cells`
//! has the rules for one element.

use std::iter;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use super::cells::{Cell, Found, Plain, Touch};
use super::eras::{Eras, Mark};
use super::marks::{self, CHUNK, Marks, no_marks};
use super::near::Window;
use super::shadow::GlobalCells;
use super::stamp::Stamp;
use crate::launch::Argument;

/// Cells of neighbours.
struct Chunk {
    words: Marks,
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

/// The arrays that a launch was given.
pub(crate) struct Arrays {
    arrays: Vec<Array>,
    has_one_core: bool,
}

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
    pub fn window_at(&self, address: usize, bytes: usize) -> Option<Window> {
        let array = self.array_at(address, bytes).filter(|array| bytes == array.step)?;
        let first = (address - array.start) >> array.shift & !(CHUNK - 1);
        let start = array.start + (first << array.shift);
        let len = ((array.end - start) >> array.shift).min(CHUNK);
        let words = &array.chunk(first).words[..len];
        Some(Window::new(start, array.shift, words, self.has_one_core))
    }

    /// Notes a plain access, of whole elements, that nobody else has accessed, or only before what this thread knows:
    /// most accesses are such. Gives whether it was one; if not, [`Self::access`] has to look at it.
    #[inline(never)]
    pub fn note_if_alone(&self, address: usize, bytes: usize, is_read: bool, own: Mark) -> bool {
        let Some(array) = self.array_at(address, bytes) else { return false };
        if (address | bytes) & (array.step - 1) != 0 {
            return false;
        }
        let touch = Touch::new(own, is_read);
        let note = |word: &AtomicU64| if self.has_one_core { touch.note(word) } else { touch.note_among_cores(word) };
        let mut at = address;
        while at < address + bytes && note(array.cell(at).word()) {
            at += array.step;
        }
        at >= address + bytes
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
            array.cell(at).give_up(at, step, eras, exact);
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
            .flat_map(|chunk| iter::once(chunk.words).chain(chunk.reads.into_inner()));
        marks::keep(marks);
    }
}

impl Array {
    #[inline]
    fn cell(&self, at: usize) -> Cell<'_> {
        let place = (at - self.start) >> self.shift;
        let Chunk { words, reads } = self.chunk(place);
        Cell { words, reads, place: place % CHUNK }
    }

    #[inline]
    fn chunk(&self, place: usize) -> &Chunk {
        self.chunks[place / CHUNK].get().unwrap_or_else(|| self.make(place / CHUNK))
    }

    #[cold]
    fn make(&self, chunk: usize) -> &Chunk {
        let cells = (self.end - self.start).div_ceil(self.step) - chunk * CHUNK;
        self.chunks[chunk].get_or_init(|| Chunk { words: no_marks(cells.min(CHUNK)), reads: OnceLock::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::schedule::Random;
    use crate::watch::shadow::Effect;
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
        match arrays.window_at(address, bytes) {
            // SAFETY: the arrays are borrowed.
            Some(window) if address.is_multiple_of(bytes) => unsafe { window.note(address, Touch::new(own, is_read)) },
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
