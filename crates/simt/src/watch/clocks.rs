//! What a thread knows to have happened, within its block and beyond: the order that barriers and fences make.
//!
//! Every access gets a [`Stamp`]. Barriers of the block order all that its threads did: their number is the stamp's `epoch`.
//! Within a warp, `sync_warp` orders what the lanes of its mask did: each warp counts a `time`, and each lane knows up to
//! which time it has seen each other lane. Shuffles and votes let lanes meet but order no memory, as in CUDA.
//!
//! Blocks know of each other only by atomics: a fence keeps what a thread knows ([`Release`]), an atomic operation behind it
//! leaves that at the atomic's place, another thread's operation on the same place finds it, and its fence makes it known.
//! Fences that are in one order with all others (`fence.sc`) do more: after a barrier, one by any thread of the block makes
//! known what another of them has found. (PTX ISA, "Memory Consistency Model": release and acquire patterns, which are
//! cumulative over barriers, and Fence-SC order.)

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::sites::SiteId;

/// When, by whom and where memory was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The block's number in the grid; `NOBODY` for no access at all.
    pub block: u32,
    /// Barriers of the block before it.
    pub epoch: u32,
    /// The warp's time.
    pub time: u32,
    /// Thread, width of an atomic's scope and site, packed.
    who: u32,
}

const NOBODY: u32 = u32::MAX;

/// How an access takes part in races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// An ordinary load or store.
    Plain,
    /// Atomic for the threads of the block.
    Block,
    /// Atomic for all.
    Device,
}

impl Stamp {
    pub const NONE: Self = Self { block: NOBODY, epoch: 0, time: 0, who: 0 };

    pub fn new(block: u32, epoch: u32, time: u32, thread: usize, strength: Strength, site: SiteId) -> Self {
        // 1024 threads, and a million sites.
        Self { block, epoch, time, who: thread as u32 | (strength as u32) << 10 | site << 12 }
    }

    pub fn is_none(self) -> bool {
        self.block == NOBODY
    }

    pub fn thread(self) -> usize {
        (self.who & 1023) as usize
    }

    pub fn strength(self) -> Strength {
        match self.who >> 10 & 3 {
            0 => Strength::Plain,
            1 => Strength::Block,
            _ => Strength::Device,
        }
    }

    pub fn site(self) -> SiteId {
        self.who >> 12
    }
}

/// What a warp's lanes know of each other.
struct WarpClock {
    now: u32,
    /// Everybody knows everything before this time.
    all_know: u32,
    /// Lane `i` knows what lane `j` did before `known[i][j]`.
    known: [[u32; 32]; 32],
}

/// What a thread knew at a fence.
#[derive(Debug)]
pub(crate) struct Release {
    block: u32,
    epoch: u32,
    thread: usize,
    all_know: u32,
    /// Of its own warp's lanes.
    known: [u32; 32],
    acquired: Vec<Acquired>,
    fence: Fence,
}

/// A kind of fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fence {
    /// Whether it is only for the threads of the block.
    pub is_of_block: bool,
    /// Whether it is in one order with all others.
    pub is_sequential: bool,
}

/// What an atomic operation has found: the first `version` releases at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    place: usize,
    version: usize,
    /// Whether it was this thread's own operation.
    is_own: bool,
}

/// The first `version` releases at an atomic's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub place: usize,
    pub version: usize,
    /// Whether the fence behind it is only for the threads of the block.
    is_of_block: bool,
    /// Whether another thread has found them: then only those count whose fences are in one order with this thread's.
    only_sequential: bool,
}

/// What was left at the places of atomics in a launch, by address.
#[derive(Default)]
pub(crate) struct Releases {
    places: HashMap<usize, PlaceReleases>,
}

#[derive(Default)]
struct PlaceReleases {
    all: Vec<Arc<Release>>,
    by_block: HashMap<u32, Vec<usize>>,
    /// Those that know of other blocks themselves.
    transitive: Vec<usize>,
}

impl Releases {
    /// Leaves what was known at a fence.
    pub fn push(&mut self, place: usize, release: Arc<Release>) {
        let releases = self.places.entry(place).or_default();
        let version = releases.all.len();
        if releases.all.last().is_some_and(|last| Arc::ptr_eq(last, &release)) {
            return;
        }
        releases.by_block.entry(release.block).or_default().push(version);
        if !release.acquired.is_empty() {
            releases.transitive.push(version);
        }
        releases.all.push(release);
    }

    /// How many releases are at the place.
    pub fn version(&self, place: usize) -> usize {
        self.places.get(&place).map_or(0, |releases| releases.all.len())
    }

    /// Whether one who has acquired those knows of an access.
    fn know(&self, acquired: &[Acquired], stamp: Stamp, knower: u32) -> bool {
        let mut to_see = acquired.to_vec();
        let mut seen: Vec<Acquired> = Vec::new();
        while let Some(acquired) = to_see.pop() {
            if seen.contains(&acquired) || (acquired.is_of_block && stamp.block != knower) {
                continue;
            }
            seen.push(acquired);
            let Some(releases) = self.places.get(&acquired.place) else { continue };
            let own = releases.by_block.get(&stamp.block).into_iter().flatten();
            for &version in own.take_while(|&&version| version < acquired.version) {
                let release = &releases.all[version];
                let fence = release.fence;
                if release.covers(stamp)
                    && (!fence.is_of_block || stamp.block == knower)
                    && (fence.is_sequential || !acquired.only_sequential)
                {
                    return true;
                }
            }
            for &version in releases.transitive.iter().take_while(|&&version| version < acquired.version) {
                to_see.extend_from_slice(&releases.all[version].acquired);
            }
        }
        false
    }
}

impl Release {
    fn covers(&self, stamp: Stamp) -> bool {
        stamp.epoch < self.epoch
            || stamp.epoch == self.epoch
                && stamp.thread() / 32 == self.thread / 32
                && stamp.time < self.all_know.max(self.known[stamp.thread() % 32])
    }
}

/// The clocks of the block that runs on a core.
pub(crate) struct Clocks {
    pub block: u32,
    epoch: u32,
    /// The block's first epoch.
    first_epoch: u32,
    warps: Vec<WarpClock>,
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
            threads: (0..1024).map(|_| ThreadClock::default()).collect(),
            acquired_by_all: Vec::new(),
            found_by_some: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Epochs and times go on from block to block, so that what an earlier block left in shared memory's cells is told from
    /// this one's. Stamps of two blocks of one launch are never compared by them.
    pub fn begin_block(&mut self, block: u32) {
        self.block = block;
        self.epoch += 1;
        self.first_epoch = self.epoch;
        self.acquired_by_all.clear();
        self.found_by_some.clear();
        for thread in self.touched.drain(..) {
            self.threads[thread] = ThreadClock::default();
        }
    }

    pub fn stamp(&self, thread: usize, strength: Strength, site: SiteId) -> Stamp {
        Stamp::new(self.block, self.epoch, self.warps[thread / 32].now, thread, strength, site)
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
    pub fn sync_warp(&mut self, warp: usize, members: u32, all: u32) {
        let acquired =
            self.union_of_acquired((0..32).filter(|lane| members >> lane & 1 == 1).map(|lane| warp * 32 + lane));
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
    pub fn sync_block(&mut self) {
        self.epoch += 1;
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
    pub fn fence(&mut self, thread: usize, fence: Fence) {
        let (block, epoch) = (self.block, self.epoch);
        let warp = &mut self.warps[thread / 32];
        // What it does from here on is not behind the fence.
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

    /// The thread's atomic operation finds what was left at its place, and leaves what the thread knew at its last fence.
    /// To be called in the order in which the operations are done.
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
