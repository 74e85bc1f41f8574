//! Shadow memory of a kernel's arguments: one cell for each element, and a second cell where it is needed.
//!
//! The first cell holds the last write, or a read if the element is unwritten. The second holds a read. That suffices
//! for most elements, and it is fast: no search, no lock, one word to compare. It is also compact, and memory traffic
//! is most of a check's cost. Histories that do not fit move to the exact cells for the rest of the launch: unordered
//! reads of a written element, atomic operations, accesses of parts of an element. `element_cell` has the rules for one
//! element.

use std::iter;
use std::sync::OnceLock;

use super::access_cache::Window;
use super::cell_pool::{self, CHUNK, ShadowCells};
use super::element_cell::{ElementCell, Found, PlainAccess, ShadowWord};
use super::epochs::{EpochTable, PackedStamp};
use super::exact_memory::ExactMemory;
use super::stamp::Stamp;
use crate::memory::Argument;

/// The cells of neighbouring elements.
struct Chunk {
    words: ShadowCells,
    second_words: OnceLock<ShadowCells>,
}

/// The shadow of an argument, or of several that overlap.
pub(super) struct Array {
    start: usize,
    end: usize,
    /// Bytes of an element, and their log2.
    step: usize,
    shift: u32,
    has_one_core: bool,
    /// Whether the kernel may write to any of the arguments.
    is_written: bool,
    chunks: Box<[OnceLock<Chunk>]>,
}

/// The shadow memory of a launch's arguments.
pub(super) struct ArgumentShadow {
    arrays: Vec<Array>,
}

impl ArgumentShadow {
    /// `has_one_core` promises that a single core runs the launch.
    pub fn new(arguments: &[Argument<'_>], has_one_core: bool) -> Self {
        let mut ranges: Vec<(usize, usize, u32, bool)> = arguments
            .iter()
            .filter(|argument| argument.bytes > 0 && argument.element > 0)
            .map(|argument| {
                let shift = argument.element.trailing_zeros().min(3);
                (argument.address >> shift << shift, argument.address + argument.bytes, shift, argument.is_written)
            })
            .collect();
        ranges.sort_unstable();
        let mut arrays: Vec<Array> = Vec::new();
        for (start, end, shift, is_written) in ranges {
            match arrays.last_mut() {
                Some(last) if start < last.end => {
                    last.end = last.end.max(end);
                    last.shift = last.shift.min(shift);
                    last.is_written |= is_written;
                }
                _ => {
                    arrays.push(Array { start, end, step: 0, shift, has_one_core, is_written, chunks: Box::default() })
                }
            }
        }
        for array in &mut arrays {
            array.step = 1 << array.shift;
            let cells = (array.end - array.start).div_ceil(array.step);
            array.chunks = (0..cells.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect();
        }
        Self { arrays }
    }

    /// Whether the bytes belong to arguments to which the kernel does not write: no read of them can race.
    pub fn are_unwritten(&self, address: usize, bytes: usize) -> bool {
        self.array_at(address, bytes).is_some_and(|array| !array.is_written)
    }

    /// Records a plain access and returns its first conflict. `happens_before` says whether an earlier access happens
    /// before it.
    pub fn access(
        &self,
        plain: PlainAccess,
        epochs: &EpochTable,
        exact: &ExactMemory,
        happens_before: impl Fn(Stamp) -> bool + Copy,
    ) -> Found {
        let PlainAccess { address, bytes, effect, own } = plain;
        let Some(array) = self.array_at(address, bytes) else {
            return exact.access(address, bytes, epochs.unpack(own), effect, happens_before);
        };
        let step = array.step;
        if (address | bytes) & (step - 1) != 0 {
            // Part of an element: only the exact cells track bytes.
            Self::move_to_exact(array, address, bytes, epochs, exact);
            return exact.access(address, bytes, epochs.unpack(own), effect, happens_before);
        }
        let mut first = None;
        for at in (address..address + bytes).step_by(step) {
            let found =
                array.cell(at).access(PlainAccess { address: at, bytes: step, ..plain }, epochs, exact, happens_before);
            first = first.or(found);
        }
        first
    }

    /// Moves the history of an address to the exact cells, for an access that only they can record.
    pub fn give_up(&self, address: usize, bytes: usize, epochs: &EpochTable, exact: &ExactMemory) {
        if let Some(array) = self.array_at(address, bytes) {
            Self::move_to_exact(array, address, bytes, epochs, exact);
        }
    }

    fn move_to_exact(array: &Array, address: usize, bytes: usize, epochs: &EpochTable, exact: &ExactMemory) {
        let step = array.step;
        for at in (address & !(step - 1)..address + bytes).step_by(step) {
            array.cell(at).give_up(at, step, epochs, exact);
        }
    }

    /// The array that holds all of the bytes. A linear search: kernels have few arguments.
    #[inline(always)]
    pub fn array_at(&self, address: usize, bytes: usize) -> Option<&Array> {
        // A loop without an iterator, and slices without calls, for builds without optimization.
        let arrays = &*self.arrays;
        let mut i = 0;
        while i < arrays.len() {
            let array = &arrays[i];
            if array.start <= address && address < array.end {
                return if address + bytes <= array.end { Some(array) } else { None };
            }
            i += 1;
        }
        None
    }
}

impl Drop for ArgumentShadow {
    fn drop(&mut self) {
        let chunks = self.arrays.iter_mut().flat_map(|array| std::mem::take(&mut array.chunks));
        let cells = chunks
            .filter_map(OnceLock::into_inner)
            .flat_map(|chunk| iter::once(chunk.words).chain(chunk.second_words.into_inner()));
        cell_pool::recycle(cells);
    }
}

impl Array {
    /// The cells around an element: those of its chunk. `None` for an access of several elements, or of a part of one.
    #[inline]
    pub fn window_at(&self, address: usize, bytes: usize) -> Option<Window> {
        if bytes != self.step {
            return None;
        }
        let first = (address - self.start) >> self.shift & !(CHUNK - 1);
        let start = self.start + (first << self.shift);
        let len = ((self.end - start) >> self.shift).min(CHUNK);
        let words = &self.chunk(first).words[..len];
        Some(Window::new(start, self.shift, words, self.has_one_core))
    }

    /// Whether the kernel may write to the array.
    #[inline(always)]
    pub fn is_written(&self) -> bool {
        self.is_written
    }

    /// The vectors of `bytes` bytes, a power of two, in an array to which the kernel does not write.
    pub fn unwritten_window(&self, bytes: usize) -> Window {
        let start = self.start.next_multiple_of(bytes);
        Window::unwritten(start, bytes.trailing_zeros(), self.end.saturating_sub(start) / bytes)
    }

    /// Records a plain access of whole elements if it cannot conflict, as most cannot: the elements have no earlier
    /// access, or only accesses by the same lane in the same epoch. Returns whether it did. If not,
    /// [`ArgumentShadow::access`] has to check it: also a vector whose elements are in two chunks.
    #[inline(never)]
    pub fn record_if_alone(&self, address: usize, bytes: usize, is_read: bool, own: PackedStamp) -> bool {
        if (address | bytes) & (self.step - 1) != 0 {
            return false;
        }
        let shadow = ShadowWord::new(own, is_read);
        let index = (address - self.start) >> self.shift;
        let first = index % CHUNK;
        let Some(words) = self.chunk(index).words.get(first..first + (bytes >> self.shift)) else { return false };
        // Patterns, because without optimization an index and its checks take as long as the rest of a step.
        let mut left = words;
        while let [word, rest @ ..] = left {
            if !(if self.has_one_core { shadow.record(word) } else { shadow.record_locked(word) }) {
                return false;
            }
            left = rest;
        }
        true
    }

    #[inline]
    fn cell(&self, at: usize) -> ElementCell<'_> {
        let index = (at - self.start) >> self.shift;
        let Chunk { words, second_words } = self.chunk(index);
        ElementCell { words, second_words, index: index % CHUNK }
    }

    /// The chunk of an element.
    #[inline(always)]
    fn chunk(&self, index: usize) -> &Chunk {
        match self.chunks[index / CHUNK].get() {
            Some(chunk) => chunk,
            None => self.allocate(index / CHUNK),
        }
    }

    #[cold]
    fn allocate(&self, chunk: usize) -> &Chunk {
        let cells = (self.end - self.start).div_ceil(self.step) - chunk * CHUNK;
        self.chunks[chunk]
            .get_or_init(|| Chunk { words: cell_pool::allocate(cells.min(CHUNK)), second_words: OnceLock::new() })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::exact_cell::Effect;
    use super::super::stamp::Strength;
    use super::*;
    use crate::random::Random;

    const START: usize = 1 << 20;

    fn argument(element: usize, bytes: usize) -> Argument<'static> {
        Argument { name: "numbers", address: START, bytes, element, is_written: true }
    }

    /// An access of the test.
    #[derive(Clone, Copy, Debug)]
    struct Step {
        thread: usize,
        phase: u32,
        at: usize,
        bytes: usize,
        effect: Effect,
        is_atomic: bool,
    }

    impl Step {
        fn is_race_with(self, other: Self) -> bool {
            self.thread != other.thread
                && self.phase == other.phase
                && self.at < other.at + other.bytes
                && other.at < self.at + self.bytes
                && (self.effect != Effect::Read || other.effect != Effect::Read)
                && !(self.is_atomic && other.is_atomic)
        }
    }

    /// Records an access through a window if there is one.
    fn record(shadow: &ArgumentShadow, PlainAccess { address, bytes, effect, own }: PlainAccess) -> bool {
        let is_read = effect == Effect::Read;
        let Some(array) = shadow.array_at(address, bytes) else { return false };
        match array.window_at(address, bytes) {
            // SAFETY: `shadow`, which owns the window's words, is borrowed.
            Some(window) if address.is_multiple_of(bytes) => unsafe {
                window.record(address, ShadowWord::new(own, is_read))
            },
            _ => array.record_if_alone(address, bytes, is_read, own),
        }
    }

    /// A kernel of 70 threads with barriers. Its threads access a few addresses at random.
    fn steps(seed: u64, element: usize) -> Vec<Step> {
        let mut random = Random::new(seed, 0);
        let mut phase = 0;
        let mut step = || {
            phase += u32::from(random.below(4) == 0);
            let bytes = element << random.below(2);
            let is_atomic = random.below(20) == 0;
            let effect = match random.below(3) {
                _ if is_atomic => Effect::ReadWrite,
                0 => Effect::Write,
                _ => Effect::Read,
            };
            let place = random.below(6) * if random.below(30) == 0 { 1 } else { bytes };
            Step { thread: random.below(70), phase, at: START + place, bytes, effect, is_atomic }
        };
        (0..200).map(|_| step()).collect()
    }

    #[test]
    fn finds_what_the_exact_cells_find_and_nothing_else() {
        let mut races = 0;
        for seed in 0..400 {
            let element = 1 << (seed % 4);
            for has_one_core in [true, false] {
                let shadow = ArgumentShadow::new(&[argument(element, 64)], has_one_core);
                let (epochs, beside, reference) = (EpochTable::new(), ExactMemory::new(), ExactMemory::new());
                let steps = steps(seed, element);
                for (i, &step) in steps.iter().enumerate() {
                    let Step { thread, phase, at, bytes, effect, is_atomic } = step;
                    let happens_before = |stamp: Stamp| stamp.phase < phase || stamp.thread() == thread;
                    let strength = if is_atomic { Strength::Device } else { Strength::Plain };
                    let stamp = Stamp::new(0, phase, 0, thread, strength, i as u32);
                    let expected = reference.access(at, bytes, stamp, effect, happens_before);
                    let own = PackedStamp::new(epochs.begin(0, phase, 0, thread / 32).unwrap(), thread, i as u32);
                    let plain = PlainAccess { address: at, bytes, effect, own };
                    let found = if is_atomic {
                        shadow.give_up(at, bytes, &epochs, &beside);
                        beside.access(at, bytes, stamp, effect, happens_before)
                    } else if record(&shadow, plain) {
                        None
                    } else {
                        shadow.access(plain, &epochs, &beside, happens_before)
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
    fn overlapping_arguments_have_cells_of_the_smaller_element() {
        let bytes = Argument { address: START + 8, ..argument(1, 16) };
        let shadow = ArgumentShadow::new(&[argument(8, 16), bytes, argument(4, 0)], true);
        assert_eq!(shadow.arrays.len(), 1);
        let array = &shadow.arrays[0];
        assert_eq!((array.start, array.end, array.shift), (START, START + 24, 0));
        assert!(shadow.array_at(START + 8, 16).is_some() && shadow.array_at(START + 16, 16).is_none());
    }

    #[test]
    fn reads_of_what_nothing_writes_are_not_recorded() {
        let read_only = |address, bytes| Argument { address, is_written: false, ..argument(4, bytes) };
        // The second and third overlap, and the third is written.
        let written = Argument { address: START + 480, ..argument(4, 32) };
        let shadow = ArgumentShadow::new(&[read_only(START + 4, 60), read_only(START + 400, 100), written], true);
        let unwritten = |address: usize, bytes| shadow.are_unwritten(START + address, bytes);
        assert!(unwritten(4, 16) && unwritten(60, 4) && !unwritten(60, 8) && !unwritten(0, 4));
        assert!(!unwritten(400, 4) && !unwritten(480, 4) && !unwritten(300, 4));
        let window = shadow.array_at(START + 4, 4).unwrap().unwritten_window(16);
        // SAFETY: the window has no words.
        let records = |address: usize| unsafe { window.record(START + address, ShadowWord::NONE) };
        let recorded: Vec<usize> = (0..100).filter(|&address| records(address)).collect();
        assert_eq!(recorded, [16, 32, 48], "whole aligned vectors");
        assert!(shadow.arrays.iter().all(|array| array.chunks.iter().all(|chunk| chunk.get().is_none())));
    }

    #[test]
    fn a_vector_may_lie_in_two_chunks() {
        let bytes = 4 * (CHUNK + 8);
        for has_one_core in [true, false] {
            let shadow = ArgumentShadow::new(&[argument(4, bytes)], has_one_core);
            let (epochs, exact) = (EpochTable::new(), ExactMemory::new());
            let own = PackedStamp::new(epochs.begin(0, 0, 0, 0).unwrap(), 1, 0);
            let vector = START + 4 * (CHUNK - 2);
            let plain = PlainAccess { address: vector, bytes: 16, effect: Effect::Write, own };
            assert!(record(&shadow, plain) || shadow.access(plain, &epochs, &exact, |_| false).is_none());
            let other = PackedStamp::new(epochs.begin(0, 0, 0, 1).unwrap(), 40, 0);
            let is_race = |address: usize| {
                let plain = PlainAccess { address, bytes: 4, effect: Effect::Write, own: other };
                shadow.access(plain, &epochs, &exact, |stamp| stamp.thread() == 40).is_some()
            };
            let races: Vec<usize> = (START..START + bytes).step_by(4).filter(|&at| is_race(at)).collect();
            assert_eq!(races, [vector, vector + 4, vector + 8, vector + 12]);
        }
    }

    #[test]
    fn cores_that_share_a_cell_miss_nothing() {
        // One core writes what the other reads, unordered: exactly one of the two finds the race.
        for _ in 0..200 {
            let shadow = ArgumentShadow::new(&[argument(4, 4096)], false);
            let (epochs, exact) = (EpochTable::new(), ExactMemory::new());
            let access = |block: u32, effect| {
                let own = PackedStamp::new(epochs.begin(block, 1, 1, 0).unwrap(), 0, 0);
                let addresses = (0..1024).map(|i| START + 4 * i);
                let found = addresses.map(|address| {
                    let plain = PlainAccess { address, bytes: 4, effect, own };
                    !record(&shadow, plain)
                        && shadow.access(plain, &epochs, &exact, |stamp| stamp.block == block).is_some()
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
