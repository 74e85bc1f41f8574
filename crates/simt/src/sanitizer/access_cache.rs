//! A cache of shadow memory for each call site.
//!
//! Most accesses are near an earlier access from the same line. The cache keeps, for each instruction, a window of
//! shadow cells around its last access. It records an access in the window without a call, a search or a borrow.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;

use super::element_cell::ShadowWord;
use super::epochs::PackedStamp;
use crate::dim::MAX_THREADS;
use crate::events::access::ElementAccess;

/// One core's cache. It stays empty unless a launch is checked and its lanes run in order: in a random order, each
/// access must reach the scheduler.
pub(crate) struct AccessCache {
    is_on: Cell<bool>,
    /// The epoch and lane of each thread's packed stamps. `NONE` until the warp's epoch has begun.
    lanes: [Cell<PackedStamp>; MAX_THREADS],
    /// The warps whose epoch has begun, as bits.
    warps: Cell<u32>,
    slots: [Slot; SLOTS],
}

const SLOTS: usize = 256;

/// The last access of an instruction. A slot fills one cache line.
#[repr(align(64))]
struct Slot {
    element: Cell<ElementAccess>,
    /// The shadow word of the instruction's accesses, without epoch and lane.
    word: Cell<ShadowWord>,
    window: Cell<Window>,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    const fn empty() -> Self {
        Self {
            element: Cell::new(ElementAccess::NONE),
            word: Cell::new(ShadowWord::NONE),
            window: Cell::new(Window::NONE),
        }
    }
}

impl AccessCache {
    pub fn new() -> Self {
        Self {
            is_on: Cell::new(false),
            lanes: [const { Cell::new(PackedStamp::NONE) }; MAX_THREADS],
            warps: Cell::new(0),
            slots: [const { Slot::empty() }; SLOTS],
        }
    }

    /// Whether accesses are checked.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Records an access that lies in its instruction's window and cannot conflict, and returns whether it did. It
    /// calls no function, so it saves no registers, which would be a third of its work.
    #[inline(always)]
    pub fn record(&self, thread: usize, element: ElementAccess, address: usize) -> bool {
        let slot = self.slot(element);
        let lane = self.lanes[thread % MAX_THREADS].get();
        if !slot.element.get().is(element) || lane.0 == 0 {
            return false;
        }
        // SAFETY: the caller of `remember` promises that the window's words stay until `forget`, which empties the
        // slot.
        unsafe { slot.window.get().record(address, slot.word.get().by(lane)) }
    }

    #[inline(always)]
    fn slot(&self, element: ElementAccess) -> &Slot {
        &self.slots[element.slot::<SLOTS>()]
    }

    /// Whether the access lies in its instruction's window, so that [`Self::record`] has already tried it.
    pub fn covers(&self, thread: usize, element: ElementAccess, address: usize) -> bool {
        let slot = self.slot(element);
        self.warps.get() >> (thread / 32) & 1 == 1
            && slot.element.get() == element
            && slot.window.get().contains(address)
    }

    /// Sets an instruction's window.
    ///
    /// # Safety
    /// The window's words stay in place until [`Self::forget`].
    pub(super) unsafe fn remember(&self, element: ElementAccess, word: ShadowWord, window: Window) {
        let slot = self.slot(element);
        slot.element.set(element);
        slot.word.set(word);
        slot.window.set(window);
    }

    pub fn begin_block(&self, is_on: bool) {
        self.is_on.set(is_on);
    }

    /// Begins an epoch of a warp, unless it has begun.
    pub fn begin_epoch(&self, warp: usize, epoch: u32) {
        if self.warps.get() >> warp & 1 == 1 {
            return;
        }
        for (lane, stamp) in self.lanes_of(warp).iter().enumerate() {
            stamp.set(PackedStamp::of_lane(epoch, lane));
        }
        self.warps.update(|warps| warps | 1 << warp);
    }

    pub fn end_epoch(&self, warp: usize) {
        if self.warps.get() >> warp & 1 == 1 {
            self.lanes_of(warp).iter().for_each(|stamp| stamp.set(PackedStamp::NONE));
            self.warps.update(|warps| warps & !(1 << warp));
        }
    }

    pub fn end_epochs(&self) {
        while self.warps.get() != 0 {
            self.end_epoch(self.warps.get().trailing_zeros() as usize);
        }
    }

    /// Empties the cache: no slot points into a launch's shadow memory any more.
    pub fn forget(&self) {
        self.end_epochs();
        self.slots.iter().for_each(|slot| slot.element.set(ElementAccess::NONE));
    }

    fn lanes_of(&self, warp: usize) -> &[Cell<PackedStamp>] {
        &self.lanes[32 * warp..][..32]
    }
}

/// Shadow cells of neighbouring elements.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// The address of the first element.
    start: usize,
    /// log2 of an element's bytes.
    shift: u32,
    /// The number of cells, if the launch runs on one core; else 0.
    unshared: u32,
    /// The number of cells, if the launch runs on several cores; else 0.
    shared: u32,
    /// The number of elements, if nothing writes to them; else 0. They have no cells.
    unwritten: u32,
    words: *const AtomicU64,
}

impl Window {
    pub const NONE: Self = Self { start: 0, shift: 0, unshared: 0, shared: 0, unwritten: 0, words: ptr::null() };

    /// `len` elements of `1 << shift` bytes that nothing writes to.
    pub fn unwritten(start: usize, shift: u32, len: usize) -> Self {
        Self { start, shift, unwritten: len.try_into().unwrap_or(u32::MAX), ..Self::NONE }
    }

    pub fn new(start: usize, shift: u32, words: &[AtomicU64], has_one_core: bool) -> Self {
        // A window may have fewer cells, but not more.
        let len = words.len().try_into().unwrap_or(u32::MAX);
        let (unshared, shared) = if has_one_core { (len, 0) } else { (0, len) };
        Self { start, shift, unshared, shared, unwritten: 0, words: words.as_ptr() }
    }

    /// The index of the element at an address. A misaligned address rotates low bits to the top: its index is beyond
    /// all cells.
    #[inline(always)]
    fn index(&self, address: usize) -> usize {
        address.wrapping_sub(self.start).rotate_right(self.shift)
    }

    fn contains(&self, address: usize) -> bool {
        self.index(address) < self.unshared.max(self.shared).max(self.unwritten) as usize
    }

    /// Records an access of one element, if its cell is in the window and it cannot conflict. Returns whether it did.
    ///
    /// # Safety
    /// The words that the window was made of still exist.
    #[inline(always)]
    pub unsafe fn record(&self, address: usize, word: ShadowWord) -> bool {
        let index = self.index(address);
        if index < self.unshared as usize {
            // SAFETY: `index` is less than the number of words. Without optimization, `add` would check that, and take
            // as long as the rest.
            word.record(unsafe { &*self.words.wrapping_add(index) })
        } else if index < self.shared as usize {
            // SAFETY: as above.
            word.record_locked(unsafe { &*self.words.wrapping_add(index) })
        } else {
            index < self.unwritten as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::events::access::Access;

    #[test]
    fn accesses_in_the_window_are_recorded_until_it_is_forgotten() {
        let cache = AccessCache::new();
        let words = [const { AtomicU64::new(0) }; 4];
        let [load, store] =
            [Access::Load, Access::Store].map(|access| ElementAccess::new(access, 4, Location::caller()).unwrap());
        let word = ShadowWord::new(PackedStamp::NONE.at(7), true);
        // SAFETY: `words` outlives the last use of `cache`.
        unsafe { cache.remember(load, word, Window::new(4096, 2, &words, true)) };
        assert!(!cache.record(33, load, 4096), "the epoch has not begun");
        cache.begin_epoch(1, 5);
        assert!(cache.record(33, load, 4096 + 12) && cache.covers(33, load, 4096 + 12));
        assert!(word.by(PackedStamp::of_lane(5, 1)).record(&words[3]), "the stamp is of the thread");
        assert!(!word.by(PackedStamp::of_lane(5, 2)).record(&words[3]));
        for outside in [4096 - 4, 4096 + 16, 4096 + 1, 4096 + 2] {
            assert!(!cache.record(33, load, outside) && !cache.covers(33, load, outside));
        }
        assert!(!cache.record(33, store, 4096) && !cache.record(31, load, 4096));
        let by_other_lane = (cache.record(34, load, 4096 + 12), cache.covers(34, load, 4096 + 12));
        assert_eq!(by_other_lane, (false, true), "another lane has read the element");
        cache.end_epoch(1);
        assert!(!cache.record(33, load, 4096));
        cache.begin_epoch(1, 6);
        cache.forget();
        cache.begin_epoch(1, 6);
        assert!(!cache.record(33, load, 4096));
    }
}
