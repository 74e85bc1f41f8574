//! Notes accesses near earlier ones by the same line: most of what kernels do, so all that it takes is at hand.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;

use super::Watch;
use super::cells::Touch;
use super::eras::Mark;
use super::requests::Act;
use super::sites::ElementSite;
use super::tape::Tape;
use crate::context::MOST_THREADS;

/// What a core has at hand to note an access. No places are known unless a launch is watched whose lanes run in order.
pub(crate) struct Near {
    is_to_count: Cell<bool>,
    is_to_check: Cell<bool>,
    /// What each thread's marks begin with in the era that its warp is in; none while nobody has asked.
    lanes: [Cell<Mark>; MOST_THREADS],
    /// The warps that have some, as bits.
    warps: Cell<u32>,
    /// What lanes did, to be counted.
    tapes: Box<[Tape]>,
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
    /// What is written on tapes of it.
    act: Cell<Act>,
}

const _: () = assert!(size_of::<Place>() == 64);

impl Place {
    const fn nowhere() -> Self {
        Self {
            site: Cell::new(ElementSite::NONE),
            touch: Cell::new(Touch::NONE),
            window: Cell::new(Window::NONE),
            act: Cell::new(Act::NONE),
        }
    }
}

impl Near {
    pub fn new() -> Self {
        Self {
            is_to_count: Cell::new(false),
            is_to_check: Cell::new(false),
            lanes: [const { Cell::new(Mark::NONE) }; MOST_THREADS],
            warps: Cell::new(0),
            tapes: (0..MOST_THREADS).map(|_| Tape::new()).collect(),
            places: [const { Place::nowhere() }; PLACES],
        }
    }

    /// Whether accesses are counted: then [`Self::count`] notes them, else [`Self::check`].
    #[inline(always)]
    pub fn is_to_count(&self) -> bool {
        self.is_to_count.get()
    }

    /// Notes an access that nothing is to be said of, near one by the same line before it. Gives whether it was one. It
    /// calls nothing, so that it has no registers to save: that would be a third of its work.
    #[inline(always)]
    pub fn check(&self, thread: usize, site: ElementSite, address: usize) -> bool {
        let place = self.place(site);
        let lane = self.lanes[thread % MOST_THREADS].get();
        if place.site.get() != site || lane == Mark::NONE {
            return false;
        }
        // SAFETY: as promised to `remember`.
        unsafe { place.window.get().note(address, place.touch.get().by(lane)) }
    }

    /// Notes an access by a line that is known on its lane's tape, while there is room; if it is to be checked, too,
    /// only if [`Self::check`] would note it. Gives whether it did.
    #[inline(always)]
    pub fn count(&self, thread: usize, site: ElementSite, address: usize) -> bool {
        let place = self.place(site);
        let is_fine = if self.is_to_check.get() {
            self.check(thread, site, address)
        } else {
            place.site.get() == site && site.is_aligned(address)
        };
        is_fine && self.tapes[thread % MOST_THREADS].push(place.act.get().at(address))
    }

    #[inline(always)]
    fn place(&self, site: ElementSite) -> &Place {
        &self.places[site.slot(PLACES)]
    }

    /// What that thread did, to be counted.
    pub fn tape(&self, thread: usize) -> &Tape {
        &self.tapes[thread]
    }

    /// Whether [`Self::check`] has looked at the access, and somebody else has to.
    pub fn has_seen(&self, thread: usize, site: ElementSite, address: usize) -> bool {
        let place = self.place(site);
        self.warps.get() >> (thread / 32) & 1 == 1 && place.site.get() == site && place.window.get().has(address)
    }

    /// Has accesses about there noted from now on.
    ///
    /// # Safety
    /// The window's words stay where they are until [`Self::forget`].
    pub unsafe fn remember(&self, site: ElementSite, touch: Touch, window: Window, act: Act) {
        let place = self.place(site);
        place.site.set(site);
        place.touch.set(touch);
        place.window.set(window);
        place.act.set(act);
    }

    /// A block of a launch begins that is watched for that. What one before it has left on tapes is of no use: it had a
    /// fault.
    pub fn begin_block(&self, watch: Watch, threads: usize) {
        self.is_to_count.set(watch.counters);
        self.is_to_check.set(watch.checks);
        if watch.counters {
            self.tapes[..threads].iter().for_each(Tape::clear);
        }
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
    alone: u32,
    among_cores: u32,
    words: *const AtomicU64,
}

impl Window {
    pub const NONE: Self = Self { start: 0, shift: 0, alone: 0, among_cores: 0, words: ptr::null() };

    pub fn new(start: usize, shift: u32, words: &[AtomicU64], is_alone: bool) -> Self {
        // More would be cells that it does not have.
        let len = words.len().try_into().unwrap_or(u32::MAX);
        let (alone, among_cores) = if is_alone { (len, 0) } else { (0, len) };
        Self { start, shift, alone, among_cores, words: words.as_ptr() }
    }

    fn has(&self, address: usize) -> bool {
        address.wrapping_sub(self.start).rotate_right(self.shift) < self.alone.max(self.among_cores) as usize
    }

    /// Notes an access of one element, if nothing is to be said of it and its cell is one of these. Gives whether it
    /// was so.
    ///
    /// # Safety
    /// The words that it is of are still there.
    #[inline(always)]
    pub unsafe fn note(&self, address: usize, touch: Touch) -> bool {
        // What is not at a multiple of the element's size gets a place beyond all cells.
        let place = address.wrapping_sub(self.start).rotate_right(self.shift);
        if place < self.alone as usize {
            // SAFETY: there are so many words.
            touch.note(unsafe { &*self.words.add(place) })
        } else if place < self.among_cores as usize {
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
        unsafe { near.remember(load, touch, Window::new(4096, 2, &words, true), Act::NONE) };
        assert!(!near.check(33, load, 4096), "the era has not begun");
        near.begin_era(1, 5);
        assert!(near.check(33, load, 4096 + 12) && near.has_seen(33, load, 4096 + 12));
        assert!(touch.by(Mark::of_lane(5, 1)).note(&words[3]), "it has the thread's mark");
        assert!(!touch.by(Mark::of_lane(5, 2)).note(&words[3]));
        for beside in [4096 - 4, 4096 + 16, 4096 + 1, 4096 + 2] {
            assert!(!near.check(33, load, beside) && !near.has_seen(33, load, beside));
        }
        assert!(!near.check(33, store, 4096) && !near.check(31, load, 4096));
        assert!(!near.check(34, load, 4096 + 12) && near.has_seen(34, load, 4096 + 12), "another thread has read it");
        near.end_era(1);
        assert!(!near.check(33, load, 4096));
        near.begin_era(1, 6);
        near.forget();
        near.begin_era(1, 6);
        assert!(!near.check(33, load, 4096));
    }
    #[test]
    fn what_is_near_is_on_the_lanes_tape_while_there_is_room() {
        let near = Near::new();
        let site = ElementSite::new(Access::Store, 4, Location::caller()).unwrap();
        let act = Act { site: 7, kind: site.kind() };
        // SAFETY: the window has no words.
        unsafe { near.remember(site, Touch::NONE, Window::NONE, act) };
        near.begin_block(Watch::COUNTERS, 64);
        assert!(!near.count(33, site, 4098), "it is not at a multiple of 4");
        let fits = (0..1000).take_while(|i| near.count(33, site, 4 * i)).count();
        let expected: Vec<_> = (0..fits).map(|i| act.at(4 * i)).collect();
        assert!(fits > 1 && near.tape(32).take().next().is_none());
        assert_eq!(near.tape(33).take().collect::<Vec<_>>(), expected);
        assert!(near.count(33, site, 64));
        near.begin_block(Watch::COUNTERS, 64);
        assert_eq!(near.tape(33).take().next(), None);
    }

    #[test]
    fn what_is_checked_and_counted_is_on_the_tape_if_nothing_is_to_be_said() {
        let near = Near::new();
        let words = [const { AtomicU64::new(0) }; 4];
        let site = ElementSite::new(Access::Store, 4, Location::caller()).unwrap();
        let act = Act { site: 7, kind: site.kind() };
        // SAFETY: the words outlive `near`'s use of them.
        unsafe { near.remember(site, Touch::new(Mark::NONE.at(7), false), Window::new(4096, 2, &words, true), act) };
        near.begin_block(Watch { counters: true, checks: true }, 32);
        near.begin_era(0, 5);
        assert!(near.count(1, site, 4096));
        assert!(!near.count(2, site, 4096), "another lane has written there");
        assert!(!near.count(2, site, 4096 + 16), "it is outside of the window");
        assert_eq!([1, 2].map(|lane| near.tape(lane).take().count()), [1, 0]);
    }
}
