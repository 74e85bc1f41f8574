//! Notes accesses near earlier ones by the same line: most of what kernels do, so all that it takes is at hand.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;

use super::cells::Touch;
use super::eras::Mark;
use super::sites::ElementSite;
use crate::context::MOST_THREADS;

/// What a core has at hand to note an access. It is empty unless a launch runs that is watched for nothing but mistakes, with
/// its lanes in order.
pub(crate) struct Near {
    /// What each thread's marks begin with in the era that its warp is in; none while nobody has asked.
    lanes: [Cell<Mark>; MOST_THREADS],
    /// The warps that have some, as bits.
    warps: Cell<u32>,
    /// Where lines were last.
    places: [Place; PLACES],
}

const PLACES: usize = 256;

/// Where a line was last. Its size is a processor's line, and a power of two.
#[repr(align(64))]
struct Place {
    site: Cell<ElementSite>,
    /// What words are to have of an access there, without the lane.
    touch: Cell<Touch>,
    window: Cell<Window>,
}

impl Place {
    const fn nowhere() -> Self {
        Self { site: Cell::new(ElementSite::NONE), touch: Cell::new(Touch::NONE), window: Cell::new(Window::NONE) }
    }
}

impl Near {
    pub fn new() -> Self {
        Self {
            lanes: [const { Cell::new(Mark::NONE) }; MOST_THREADS],
            warps: Cell::new(0),
            places: [const { Place::nowhere() }; PLACES],
        }
    }

    /// Notes an access that nothing is to be said of, near one by the same line before it. Gives whether it was one. It calls
    /// nothing, so that it has no registers to save: that would be a third of its work.
    #[inline(always)]
    pub fn note(&self, thread: usize, site: ElementSite, address: usize) -> bool {
        let place = &self.places[site.slot(PLACES)];
        let lane = self.lanes[thread % MOST_THREADS].get();
        if place.site.get() != site || lane == Mark::NONE {
            return false;
        }
        // SAFETY: as promised to `remember`.
        unsafe { place.window.get().note(address, place.touch.get().by(lane)) }
    }

    /// Whether [`Self::note`] has looked at the access, and somebody else has to.
    pub fn has_seen(&self, thread: usize, site: ElementSite, address: usize) -> bool {
        let place = &self.places[site.slot(PLACES)];
        self.warps.get() >> (thread / 32) & 1 == 1 && place.site.get() == site && place.window.get().has(address)
    }

    /// Has accesses about there noted from now on.
    ///
    /// # Safety
    /// The window's words stay where they are until [`Self::forget`].
    pub unsafe fn remember(&self, site: ElementSite, touch: Touch, window: Window) {
        let place = &self.places[site.slot(PLACES)];
        place.site.set(site);
        place.touch.set(touch);
        place.window.set(window);
    }

    /// A warp's era has begun.
    pub fn begin_era(&self, warp: usize, era: u32) {
        if self.warps.get() >> warp & 1 == 1 {
            return;
        }
        for (lane, mark) in self.lanes_of(warp).iter().enumerate() {
            mark.set(Mark::of_lane(era, lane));
        }
        self.warps.update(|warps| warps | 1 << warp);
    }

    pub fn end_era(&self, warp: usize) {
        if self.warps.get() >> warp & 1 == 1 {
            self.lanes_of(warp).iter().for_each(|mark| mark.set(Mark::NONE));
            self.warps.update(|warps| warps & !(1 << warp));
        }
    }

    pub fn end_eras(&self) {
        while self.warps.get() != 0 {
            self.end_era(self.warps.get().trailing_zeros() as usize);
        }
    }

    /// Forgets all of a launch.
    pub fn forget(&self) {
        self.end_eras();
        self.places.iter().for_each(|place| place.site.set(ElementSite::NONE));
    }

    fn lanes_of(&self, warp: usize) -> &[Cell<Mark>] {
        &self.lanes[32 * warp..][..32]
    }
}

/// Cells of neighbouring elements of one array.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The address that the first cell is of.
    start: usize,
    /// An element's bytes, as a power of two.
    shift: u32,
    /// How many cells there are, if no other core is at work with them, and if some may be.
    alone: usize,
    among_cores: usize,
    words: *const AtomicU64,
}

impl Window {
    const NONE: Self = Self { start: 0, shift: 0, alone: 0, among_cores: 0, words: ptr::null() };

    pub fn new(start: usize, shift: u32, words: &[AtomicU64], is_alone: bool) -> Self {
        let (alone, among_cores) = if is_alone { (words.len(), 0) } else { (0, words.len()) };
        Self { start, shift, alone, among_cores, words: words.as_ptr() }
    }

    fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.start).rotate_right(self.shift) < self.alone.max(self.among_cores)
    }

    /// Notes an access of one element, if nothing is to be said of it and its cell is one of these. Gives whether it was so.
    ///
    /// # Safety
    /// The words that it is of are still there.
    #[inline(always)]
    pub unsafe fn note(&self, address: usize, touch: Touch) -> bool {
        // What is not at a multiple of the element's size gets a place beyond all cells.
        let place = address.wrapping_sub(self.start).rotate_right(self.shift);
        if place < self.alone {
            // SAFETY: there are so many words.
            touch.note(unsafe { &*self.words.add(place) })
        } else if place < self.among_cores {
            // SAFETY: as above.
            touch.note_among_cores(unsafe { &*self.words.add(place) })
        } else {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::lane::Access;

    #[test]
    fn what_is_near_is_noted_until_it_is_forgotten() {
        let near = Near::new();
        let words = [const { AtomicU64::new(0) }; 4];
        let [load, store] = [Access::Load, Access::Store].map(|access| ElementSite::new(access, 4, Location::caller()));
        let (load, store) = (load.unwrap(), store.unwrap());
        let touch = Touch::new(Mark::NONE.at(7), true);
        // SAFETY: the words outlive `near`'s use of them.
        unsafe { near.remember(load, touch, Window::new(4096, 2, &words, true)) };
        assert!(!near.note(33, load, 4096), "the era has not begun");
        near.begin_era(1, 5);
        assert!(near.note(33, load, 4096 + 12) && near.has_seen(33, load, 4096 + 12));
        assert!(touch.by(Mark::of_lane(5, 1)).note(&words[3]), "it has the thread's mark");
        assert!(!touch.by(Mark::of_lane(5, 2)).note(&words[3]));
        for beside in [4096 - 4, 4096 + 16, 4096 + 1, 4096 + 2] {
            assert!(!near.note(33, load, beside) && !near.has_seen(33, load, beside));
        }
        assert!(!near.note(33, store, 4096) && !near.note(31, load, 4096));
        assert!(!near.note(34, load, 4096 + 12) && near.has_seen(34, load, 4096 + 12), "another thread has read it");
        near.end_era(1);
        assert!(!near.note(33, load, 4096));
        near.begin_era(1, 6);
        near.forget();
        near.begin_era(1, 6);
        assert!(!near.note(33, load, 4096));
    }
}
