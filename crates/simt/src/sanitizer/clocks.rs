//! Happens-before by barriers and fences: vector clocks of the block that a core runs.
//!
//! Every access has a [`Stamp`]. A barrier of the block orders all accesses of its threads: the stamp's phase counts
//! barriers. Within a warp, `sync_warp` orders the accesses of the lanes in its mask: each warp counts a time, and each
//! lane knows up to which time it has seen every other lane. Shuffles and votes order no memory, as in CUDA.
//!
//! `releases` orders accesses of different blocks.

use std::cmp::Reverse;
use std::sync::Arc;

use super::access_cache::AccessCache;
use super::epochs::{EpochTable, PackedStamp};
use super::releases::{Acquired, Release, Releases};
use super::stamp::{NO_BLOCK, Stamp, Strength};
use crate::dim::MAX_THREADS;
use crate::events::sites::SiteId;
use crate::events::sync::Fence;

/// The knowledge of a warp's lanes about each other's accesses.
struct WarpClock {
    now: u32,
    /// All lanes know all accesses of the warp before this time.
    all_know: u32,
    /// Lane `i` knows the accesses of lane `j` before the time `known[i][j]`.
    known: [[u32; 32]; 32],
}

/// The observation of an atomic operation: the first `version` releases at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Observed {
    address: usize,
    version: usize,
    /// This thread's own operation observed them, not another thread's of the block.
    is_own: bool,
}

/// The clocks of the block that a core runs.
pub(super) struct Clocks {
    pub block: u32,
    phase: u32,
    /// The block's first phase.
    first_phase: u32,
    warps: Box<[WarpClock]>,
    /// The number of each warp's current epoch; 0 until it is needed.
    epochs: [u32; 32],
    threads: Box<[ThreadClock]>,
    /// The acquires of all threads, as of the last barrier.
    acquired_by_all: Vec<Acquired>,
    /// The observations of any thread before the last barrier.
    observed_by_some: Vec<Observed>,
    /// The threads whose clock is not empty.
    touched: Vec<usize>,
}

/// A thread's knowledge of other blocks' accesses.
#[derive(Default)]
struct ThreadClock {
    /// The thread's knowledge at its last fence.
    fenced: Option<Arc<Release>>,
    /// Observed by atomics, not yet acquired by a fence.
    pending: Vec<Observed>,
    acquired: Vec<Acquired>,
}

impl Clocks {
    pub fn new() -> Self {
        Self {
            block: NO_BLOCK,
            phase: 0,
            first_phase: 0,
            warps: (0..32).map(|_| WarpClock { now: 1, all_know: 1, known: [[0; 32]; 32] }).collect(),
            epochs: [0; 32],
            threads: (0..MAX_THREADS).map(|_| ThreadClock::default()).collect(),
            acquired_by_all: Vec::new(),
            observed_by_some: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Begins a block. Phases and times continue from block to block, so that stamps that an earlier block left in the
    /// shadow of shared memory are recognized as old. They are never compared between blocks of one launch.
    pub fn begin_block(&mut self, block: u32, cache: &AccessCache) {
        self.block = block;
        self.phase += 1;
        self.first_phase = self.phase;
        self.end_epochs(cache);
        self.acquired_by_all.clear();
        self.observed_by_some.clear();
        for thread in self.touched.drain(..) {
            self.threads[thread] = ThreadClock::default();
        }
    }

    /// The stamp of an access.
    #[inline(always)]
    pub fn stamp(&self, thread: usize, strength: Strength, site: SiteId) -> Stamp {
        Stamp::new(self.block, self.phase, self.warps[thread / 32].now, thread, strength, site)
    }

    /// The packed stamp of a plain access. `None` if the launch's epoch table is full.
    #[inline]
    pub fn packed_stamp(&mut self, thread: usize, site: SiteId, epochs: &EpochTable) -> Option<PackedStamp> {
        Some(PackedStamp::new(self.epoch(thread / 32, epochs)?, thread, site))
    }

    /// The number of a warp's current epoch. `None` if the table is full.
    #[inline]
    pub fn epoch(&mut self, warp: usize, epochs: &EpochTable) -> Option<u32> {
        match self.epochs[warp % 32] {
            0 => self.begin_epoch(warp, epochs),
            epoch => Some(epoch),
        }
    }

    #[cold]
    fn begin_epoch(&mut self, warp: usize, epochs: &EpochTable) -> Option<u32> {
        self.epochs[warp] = epochs.begin(self.block, self.phase, self.warps[warp].now, warp)?;
        Some(self.epochs[warp])
    }

    fn end_epoch(&mut self, warp: usize, cache: &AccessCache) {
        self.epochs[warp] = 0;
        cache.end_epoch(warp);
    }

    /// Ends the epochs of all warps.
    fn end_epochs(&mut self, cache: &AccessCache) {
        self.epochs = [0; 32];
        cache.end_epochs();
    }

    /// The block's first phase.
    #[inline(always)]
    pub fn first_phase(&self) -> u32 {
        self.first_phase
    }

    /// Whether a stamp of shared memory is of this block, not of an earlier one.
    #[inline(always)]
    pub fn is_of_block(&self, stamp: Stamp) -> bool {
        stamp.phase >= self.first_phase
    }

    /// Whether the clocks could overflow in another launch, so that they should start anew.
    pub fn are_near_overflow(&self) -> bool {
        let latest = self.warps.iter().map(|warp| warp.now).max();
        self.phase.max(latest.unwrap_or(0)) > u32::MAX / 2
    }

    /// Whether an access of this block happens before the thread's next access.
    #[inline]
    pub fn knows_within_block(&self, thread: usize, stamp: Stamp) -> bool {
        if stamp.block != self.block {
            return false;
        }
        if stamp.phase < self.phase || stamp.thread() == thread {
            return true;
        }
        let warp = &self.warps[thread / 32];
        stamp.warp() == thread / 32
            && (stamp.time < warp.all_know || stamp.time < warp.known[thread % 32][stamp.thread() % 32])
    }

    /// Whether fences and atomics order an access before the thread's next access.
    pub fn knows_by_fences(&self, thread: usize, stamp: Stamp, releases: &Releases) -> bool {
        let own = &self.threads[thread].acquired;
        (!own.is_empty() && releases.know(own, stamp, self.block))
            || (!self.acquired_by_all.is_empty() && releases.know(&self.acquired_by_all, stamp, self.block))
    }

    /// Whether the thread has acquired any release.
    pub fn has_acquired(&self, thread: usize) -> bool {
        !self.acquired_by_all.is_empty() || !self.threads[thread].acquired.is_empty()
    }

    /// `sync_warp` of the lanes `members`. `all` are the lanes of the warp.
    pub fn sync_warp(&mut self, warp: usize, members: u32, all: u32, cache: &AccessCache) {
        let acquired =
            self.union_of_acquired((0..32).filter(|lane| members >> lane & 1 == 1).map(|lane| warp * 32 + lane));
        self.end_epoch(warp, cache);
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

    /// A barrier of the block.
    pub fn sync_block(&mut self, cache: &AccessCache) {
        self.phase += 1;
        self.end_epochs(cache);
        if !self.touched.is_empty() {
            let mut acquired = self.union_of_acquired(self.touched.iter().copied());
            acquired.extend_from_slice(&self.acquired_by_all);
            for &thread in &self.touched {
                let clock = &mut self.threads[thread];
                clock.acquired.clear();
                self.observed_by_some
                    .extend(clock.pending.iter().map(|&observed| Observed { is_own: false, ..observed }));
            }
            self.observed_by_some.sort_unstable_by_key(|observed| (observed.address, Reverse(observed.version)));
            self.observed_by_some.dedup_by_key(|observed| observed.address);
            keep_latest(&mut acquired);
            self.acquired_by_all = acquired;
        }
    }

    /// The union of the threads' acquires.
    fn union_of_acquired(&self, threads: impl Iterator<Item = usize>) -> Vec<Acquired> {
        let mut all = Vec::new();
        if self.touched.is_empty() {
            return all;
        }
        threads.for_each(|thread| all.extend_from_slice(&self.threads[thread].acquired));
        keep_latest(&mut all);
        all
    }

    /// The thread's clock, for a change that makes it nonempty.
    fn touch(&mut self, thread: usize) -> &mut ThreadClock {
        let clock = &self.threads[thread];
        if clock.fenced.is_none() && clock.pending.is_empty() && clock.acquired.is_empty() {
            self.touched.push(thread);
        }
        &mut self.threads[thread]
    }

    /// A fence of the thread: captures what it knows, and acquires what its atomics have observed.
    pub fn fence(&mut self, thread: usize, fence: Fence, cache: &AccessCache) {
        let (block, phase) = (self.block, self.phase);
        // Later accesses of the warp do not happen before the fence.
        self.end_epoch(thread / 32, cache);
        let warp = &mut self.warps[thread / 32];
        warp.now += 1;
        let (all_know, mut known) = (warp.all_know, warp.known[thread % 32]);
        known[thread % 32] = warp.now;
        let by_others = if fence.is_sequential { self.observed_by_some.clone() } else { Vec::new() };
        let mut acquired = self.acquired_by_all.clone();
        let clock = self.touch(thread);
        clock.acquired.extend(clock.pending.drain(..).chain(by_others).map(|observed| Acquired {
            address: observed.address,
            version: observed.version,
            is_of_block: fence.is_of_block,
            only_sequential: !observed.is_own,
        }));
        keep_latest(&mut clock.acquired);
        acquired.extend_from_slice(&clock.acquired);
        clock.fenced = Some(Arc::new(Release { block, phase, thread, all_know, known, acquired, fence }));
    }

    /// An atomic operation of the thread: observes the releases at its address, and publishes what the thread knew at
    /// its last fence. Calls are in the order of the operations.
    pub fn atomic(&mut self, thread: usize, address: usize, reads: bool, writes: bool, releases: &mut Releases) {
        let version = releases.version(address);
        if reads && version > 0 {
            let pending = &mut self.touch(thread).pending;
            pending.retain(|observed| observed.address != address);
            pending.push(Observed { address, version, is_own: true });
        }
        if writes && let Some(release) = &self.threads[thread].fenced {
            releases.push(address, release.clone());
        }
    }
}

/// Keeps only the latest of equal acquires.
fn keep_latest(acquired: &mut Vec<Acquired>) {
    acquired.sort_unstable_by_key(|one| (one.address, one.is_of_block, one.only_sequential, Reverse(one.version)));
    acquired.dedup_by_key(|one| (one.address, one.is_of_block, one.only_sequential));
}
