//! What a thread knows to have happened, within its block and beyond: the order that barriers and fences make.
//!
//! Every access gets a [`Stamp`]. Barriers of the block order all that its threads did: their number is the stamp's
//! `epoch`. Within a warp, `sync_warp` orders what the lanes of its mask did: each warp counts a `time`, and each lane
//! knows up to which time it has seen each other lane. Shuffles and votes let lanes meet but order no memory, as in
//! CUDA.
//!
//! What a thread knows of other blocks, it knows by `releases`.

use std::cmp::Reverse;
use std::sync::Arc;

use super::eras::{Eras, Mark};
use super::near::Near;
use super::releases::{Acquired, Fence, Release, Releases};
use super::sites::SiteId;
use super::stamp::{NOBODY, Stamp, Strength};

/// What a warp's lanes know of each other.
struct WarpClock {
    now: u32,
    /// Everybody knows everything before this time.
    all_know: u32,
    /// Lane `i` knows what lane `j` did before `known[i][j]`.
    known: [[u32; 32]; 32],
}

/// What an atomic operation has found: the first `version` releases at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    place: usize,
    version: usize,
    /// Whether it was this thread's own operation.
    is_own: bool,
}

/// The clocks of the block that runs on a core.
pub(crate) struct Clocks {
    pub block: u32,
    epoch: u32,
    /// The block's first epoch.
    first_epoch: u32,
    warps: Vec<WarpClock>,
    /// The numbers of the eras that warps are in; 0 while nobody has asked.
    eras: [u32; 32],
    threads: Vec<ThreadClock>,
    /// What all threads have acquired, by a barrier.
    acquired_by_all: Vec<Acquired>,
    /// What some thread had found before a barrier.
    found_by_some: Vec<Found>,
    /// Threads whose clock is not empty.
    touched: Vec<usize>,
}

/// What a thread has of the order between blocks.
#[derive(Default)]
struct ThreadClock {
    /// By its last fence.
    fenced: Option<Arc<Release>>,
    /// Found by atomics, not yet behind a fence.
    pending: Vec<Found>,
    acquired: Vec<Acquired>,
}

impl Clocks {
    pub fn new() -> Self {
        Self {
            block: NOBODY,
            epoch: 0,
            first_epoch: 0,
            warps: (0..32).map(|_| WarpClock { now: 1, all_know: 1, known: [[0; 32]; 32] }).collect(),
            eras: [0; 32],
            threads: (0..1024).map(|_| ThreadClock::default()).collect(),
            acquired_by_all: Vec::new(),
            found_by_some: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Epochs and times go on from block to block, so that what an earlier block left in shared memory's cells is told
    /// from this one's. Stamps of two blocks of one launch are never compared by them.
    pub fn begin_block(&mut self, block: u32, near: &Near) {
        self.block = block;
        self.epoch += 1;
        self.first_epoch = self.epoch;
        self.end_eras(near);
        self.acquired_by_all.clear();
        self.found_by_some.clear();
        for thread in self.touched.drain(..) {
            self.threads[thread] = ThreadClock::default();
        }
    }

    pub fn stamp(&self, thread: usize, strength: Strength, site: SiteId) -> Stamp {
        Stamp::new(self.block, self.epoch, self.warps[thread / 32].now, thread, strength, site)
    }

    /// The mark of an ordinary access; `None` if there are no more eras in the launch.
    #[inline]
    pub fn mark(&mut self, thread: usize, site: SiteId, eras: &Eras) -> Option<Mark> {
        Some(Mark::new(self.era(thread / 32, eras)?, thread, site))
    }

    /// The number of the era that a warp is in.
    #[inline]
    pub fn era(&mut self, warp: usize, eras: &Eras) -> Option<u32> {
        match self.eras[warp % 32] {
            0 => self.begin_era(warp, eras),
            era => Some(era),
        }
    }

    #[cold]
    fn begin_era(&mut self, warp: usize, eras: &Eras) -> Option<u32> {
        self.eras[warp] = eras.begin(self.block, self.epoch, self.warps[warp].now, warp)?;
        Some(self.eras[warp])
    }

    fn end_era(&mut self, warp: usize, near: &Near) {
        self.eras[warp] = 0;
        near.end_era(warp);
    }

    fn end_eras(&mut self, near: &Near) {
        self.eras = [0; 32];
        near.end_eras();
    }

    /// Whether an access of shared memory is one of this block.
    pub fn is_of_block(&self, stamp: Stamp) -> bool {
        stamp.epoch >= self.first_epoch
    }

    /// Whether the clocks have run so far that they should be made anew.
    pub fn are_worn(&self) -> bool {
        let latest = self.warps.iter().map(|warp| warp.now).max();
        self.epoch.max(latest.unwrap_or(0)) > u32::MAX / 2
    }

    /// Whether an access happened before what the thread does now.
    #[inline]
    pub fn knows_within_block(&self, thread: usize, stamp: Stamp) -> bool {
        if stamp.block != self.block {
            return false;
        }
        if stamp.epoch < self.epoch || stamp.thread() == thread {
            return true;
        }
        let warp = &self.warps[thread / 32];
        stamp.thread() / 32 == thread / 32
            && (stamp.time < warp.all_know || stamp.time < warp.known[thread % 32][stamp.thread() % 32])
    }

    /// Whether the thread knows of an access by fences and atomics.
    pub fn knows_by_fences(&self, thread: usize, stamp: Stamp, releases: &Releases) -> bool {
        let own = &self.threads[thread].acquired;
        (!own.is_empty() && releases.know(own, stamp, self.block))
            || (!self.acquired_by_all.is_empty() && releases.know(&self.acquired_by_all, stamp, self.block))
    }

    /// Whether fences could have told the thread of anything.
    pub fn has_acquired(&self, thread: usize) -> bool {
        !self.acquired_by_all.is_empty() || !self.threads[thread].acquired.is_empty()
    }

    /// The lanes of `members` have met in `sync_warp`; `all` are the lanes that the warp has.
    pub fn sync_warp(&mut self, warp: usize, members: u32, all: u32, near: &Near) {
        let acquired =
            self.union_of_acquired((0..32).filter(|lane| members >> lane & 1 == 1).map(|lane| warp * 32 + lane));
        self.end_era(warp, near);
        let clock = &mut self.warps[warp];
        clock.now += 1;
        if members == all {
            clock.all_know = clock.now;
        } else {
            let lanes = || (0..32).filter(|lane| members >> lane & 1 == 1);
            let mut joined = [0; 32];
            for lane in lanes() {
                for (joined, known) in joined.iter_mut().zip(clock.known[lane]) {
                    *joined = known.max(*joined);
                }
            }
            lanes().for_each(|lane| joined[lane] = clock.now);
            lanes().for_each(|lane| clock.known[lane] = joined);
        }
        if !acquired.is_empty() {
            for lane in (0..32).filter(|lane| members >> lane & 1 == 1) {
                self.touch(warp * 32 + lane).acquired.clone_from(&acquired);
            }
        }
    }

    /// All threads of the block have met.
    pub fn sync_block(&mut self, near: &Near) {
        self.epoch += 1;
        self.end_eras(near);
        if !self.touched.is_empty() {
            let mut acquired = self.union_of_acquired(self.touched.iter().copied());
            acquired.extend_from_slice(&self.acquired_by_all);
            for &thread in &self.touched {
                let clock = &mut self.threads[thread];
                clock.acquired.clear();
                self.found_by_some.extend(clock.pending.iter().map(|&found| Found { is_own: false, ..found }));
            }
            self.found_by_some.sort_unstable_by_key(|found| (found.place, Reverse(found.version)));
            self.found_by_some.dedup_by_key(|found| found.place);
            keep_latest(&mut acquired);
            self.acquired_by_all = acquired;
        }
    }

    fn union_of_acquired(&self, threads: impl Iterator<Item = usize>) -> Vec<Acquired> {
        let mut all = Vec::new();
        if self.touched.is_empty() {
            return all;
        }
        threads.for_each(|thread| all.extend_from_slice(&self.threads[thread].acquired));
        keep_latest(&mut all);
        all
    }

    fn touch(&mut self, thread: usize) -> &mut ThreadClock {
        let clock = &self.threads[thread];
        if clock.fenced.is_none() && clock.pending.is_empty() && clock.acquired.is_empty() {
            self.touched.push(thread);
        }
        &mut self.threads[thread]
    }

    /// The thread's fence: keeps what it knows, and makes known what atomics have found.
    pub fn fence(&mut self, thread: usize, fence: Fence, near: &Near) {
        let (block, epoch) = (self.block, self.epoch);
        // What it does from here on is not behind the fence.
        self.end_era(thread / 32, near);
        let warp = &mut self.warps[thread / 32];
        warp.now += 1;
        let (all_know, mut known) = (warp.all_know, warp.known[thread % 32]);
        known[thread % 32] = warp.now;
        let by_others = if fence.is_sequential { self.found_by_some.clone() } else { Vec::new() };
        let mut acquired = self.acquired_by_all.clone();
        let clock = self.touch(thread);
        clock.acquired.extend(clock.pending.drain(..).chain(by_others).map(|found| Acquired {
            place: found.place,
            version: found.version,
            is_of_block: fence.is_of_block,
            only_sequential: !found.is_own,
        }));
        keep_latest(&mut clock.acquired);
        acquired.extend_from_slice(&clock.acquired);
        clock.fenced = Some(Arc::new(Release { block, epoch, thread, all_know, known, acquired, fence }));
    }

    /// The thread's atomic operation finds what was left at its place, and leaves what the thread knew at its last
    /// fence. To be called in the order in which the operations are done.
    pub fn atomic(&mut self, thread: usize, place: usize, reads: bool, writes: bool, releases: &mut Releases) {
        let version = releases.version(place);
        if reads && version > 0 {
            let pending = &mut self.touch(thread).pending;
            pending.retain(|found| found.place != place);
            pending.push(Found { place, version, is_own: true });
        }
        if writes && let Some(release) = &self.threads[thread].fenced {
            releases.push(place, release.clone());
        }
    }
}

/// Of those at one place, the last.
fn keep_latest(acquired: &mut Vec<Acquired>) {
    acquired.sort_unstable_by_key(|one| (one.place, one.is_of_block, one.only_sequential, Reverse(one.version)));
    acquired.dedup_by_key(|one| (one.place, one.is_of_block, one.only_sequential));
}
