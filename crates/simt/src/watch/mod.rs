//! Watches what lanes do: counts it, and checks it.
//!
//! | module | what is in it |
//! |---|---|
//! | `sites` | places in the source, as small numbers |
//! | `requests` | what lanes did one after the other, put together to requests of warps |
//! | `traffic` | what memory has to do for a request: sectors, banks, turns |
//! | `stamp` | when, by whom and where memory was accessed |
//! | `clocks` | which access comes after which for sure, within a block |
//! | `releases` | and between blocks: what fences and atomics tell |
//! | `shadow` | who accessed each place of memory last |
//! | `notes` | how a lane's word on what it does reaches its core's watcher |
//! | `launch` | what the cores have in common: sites, cells of global memory, counters, findings |
//!
//! A [`Watcher`] is one core's. Lanes call it through [`crate::lane`], only while some launch of the process is watched:
//! otherwise an access costs a look at one number.

mod clocks;
mod launch;
pub(crate) mod notes;
mod releases;
mod requests;
mod shadow;
mod sites;
mod stamp;
mod traffic;

use std::panic::Location;
use std::sync::Arc;

use clocks::Clocks;
use launch::Subject;
pub(crate) use launch::{Element, LaunchWatch};
pub(crate) use releases::Fence;
use requests::{Entry, Logs};
use shadow::{Cells, Conflict, Effect};
use sites::{Action, SiteCache, SiteId};
use stamp::Strength;

use crate::findings::Check;
use crate::lane::{Access, Space};
use crate::profile::Counters;
use crate::shared::SharedMemory;

/// What a launch is watched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watch {
    /// Whether requests, conflicts and the like are counted; [`crate::profile`] gives the counters.
    pub counters: bool,
    /// Whether races, reads of what nobody has written, and wrong barriers, shuffles and masks are looked for. A launch with
    /// some ends with [`crate::Fault::Mistakes`].
    pub checks: bool,
}

impl Watch {
    /// Nothing: the fastest.
    pub const NOTHING: Self = Self { counters: false, checks: false };
    /// Only the checks.
    pub const CHECKS: Self = Self { counters: false, checks: true };
    /// Only the counters.
    pub const COUNTERS: Self = Self { counters: true, checks: false };

    /// Whether it is anything at all.
    pub(crate) fn is_on(self) -> bool {
        self.counters || self.checks
    }
}

/// An access of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Deed {
    pub lane: usize,
    pub space: Space,
    pub access: Access,
    pub address: usize,
    pub bytes: usize,
    pub location: &'static Location<'static>,
}

/// What one core notes of the block that it runs.
pub(crate) struct Watcher {
    launch: Arc<LaunchWatch>,
    cache: SiteCache,
    logs: Logs,
    counters: Vec<Counters>,
    clocks: Clocks,
    shared_cells: Cells,
    threads: usize,
}

/// A log that nothing has to be laid beside is counted when it has grown to this.
const LOG_OF_A_LONE_LANE: usize = 4096;

impl Watcher {
    pub fn new(launch: Arc<LaunchWatch>) -> Self {
        Self {
            launch,
            cache: SiteCache::new(),
            logs: Logs::new(),
            counters: Vec::new(),
            clocks: Clocks::new(),
            shared_cells: Cells::default(),
            threads: 0,
        }
    }

    /// The same watcher for another launch.
    pub fn for_launch(self: Box<Self>, launch: Arc<LaunchWatch>) -> Box<Self> {
        if self.clocks.are_worn() {
            return Box::new(Self::new(launch));
        }
        let mut own = self;
        own.launch = launch;
        own.cache = SiteCache::new();
        own.counters.clear();
        own
    }

    pub fn begin_block(&mut self, index: u64, threads: usize, shared_bytes: usize) {
        self.threads = threads;
        self.logs.clear();
        self.clocks.begin_block(index as u32);
        if self.launch.watch.checks && self.shared_cells.len() < shared_bytes {
            self.shared_cells = Cells::new(shared_bytes);
        }
    }

    /// Hands over what was counted.
    pub fn end_launch(&mut self) {
        self.launch.add_counters(&self.counters);
        self.counters.clear();
    }

    fn site(&self, location: &'static Location<'static>, action: Action) -> SiteId {
        self.cache.number(&self.launch.sites, location, action)
    }

    fn counters_of(counters: &mut Vec<Counters>, site: SiteId) -> &mut Counters {
        let index = site as usize;
        if index >= counters.len() {
            counters.resize_with(index + 1, Counters::default);
        }
        &mut counters[index]
    }

    /// Notes an access for the counters.
    pub fn count(&mut self, deed: &Deed, shared: &SharedMemory) {
        if !self.launch.watch.counters {
            return;
        }
        let site = self.site(deed.location, Action::Memory(deed.space, deed.access, deed.bytes as u8));
        // Banks are counted from the start of shared memory.
        let address = match deed.space {
            Space::Global => deed.address,
            Space::Shared => shared.offset(deed.address),
        };
        let (space, access) = (deed.space, deed.access);
        let entry = Entry { address: address as u64, site, bytes: deed.bytes as u8, space, access };
        let len = self.logs.push(deed.lane, entry);
        if len >= LOG_OF_A_LONE_LANE && self.threads == 1 {
            self.flush(0, 1);
        }
    }

    /// Checks an access of one thread.
    pub fn check(&mut self, deed: &Deed, strength: Strength, effect: Effect, shared: &SharedMemory) {
        if !self.launch.watch.checks {
            return;
        }
        let site = self.site(deed.location, Action::Memory(deed.space, deed.access, deed.bytes as u8));
        let own = self.clocks.stamp(deed.lane, strength, site);
        let (clocks, lane) = (&self.clocks, deed.lane);
        match deed.space {
            Space::Shared => {
                let found = self.shared_cells.access(
                    shared.offset(deed.address),
                    deed.bytes,
                    own,
                    effect,
                    |stamp| clocks.is_of_block(stamp),
                    |stamp| clocks.knows_within_block(lane, stamp),
                );
                if let Some((at, conflict)) = found {
                    let subject = shared.name_of(at);
                    let check =
                        if matches!(conflict, Conflict::Unwritten) { Check::Unwritten } else { Check::SharedRace };
                    self.launch.report_access(check, own, effect, conflict, subject);
                }
            }
            Space::Global => {
                let launch = &self.launch;
                let knows = |stamp| {
                    clocks.knows_within_block(lane, stamp)
                        || clocks.has_acquired(lane) && clocks.knows_by_fences(lane, stamp, &launch.releases())
                };
                let found = launch.global.access(deed.address, deed.bytes, own, effect, knows);
                if let Some((at, conflict)) = found
                    && !matches!(conflict, Conflict::Unwritten)
                {
                    let check = if matches!(conflict, Conflict::Scope(_)) { Check::Scope } else { Check::GlobalRace };
                    launch.report_access(check, own, effect, conflict, launch.name_of(at));
                }
            }
        }
    }

    /// An ordinary load or store.
    pub fn plain(&mut self, deed: &Deed, shared: &SharedMemory) {
        self.count(deed, shared);
        let effect = if deed.access == Access::Load { Effect::Read } else { Effect::Write };
        self.check(deed, Strength::Plain, effect, shared);
    }

    /// A load of bytes at any address: a GPU loads the aligned 16 bytes that they lie in. What is beside them is not looked
    /// at, so it is no access.
    pub fn unaligned_load(
        &mut self,
        lane: usize,
        address: usize,
        bytes: usize,
        location: &'static Location<'static>,
        shared: &SharedMemory,
    ) {
        let load = |address, bytes| Deed { lane, space: Space::Global, access: Access::Load, address, bytes, location };
        let first = address - address % 16;
        for part in (first..address + bytes).step_by(16) {
            self.count(&load(part, 16), shared);
        }
        self.check(&load(address, bytes), Strength::Plain, Effect::Read, shared);
    }

    /// An atomic operation, while [`LaunchWatch::in_order`] is held: what it finds and leaves, for the order of blocks.
    pub fn atomic(&mut self, deed: &Deed, is_of_block: bool, shared: &SharedMemory) {
        self.count(deed, shared);
        let effect = match deed.access {
            Access::Load => Effect::Read,
            Access::Store => Effect::Write,
            Access::Atomic => Effect::ReadWrite,
        };
        let strength = if is_of_block { Strength::Block } else { Strength::Device };
        self.check(deed, strength, effect, shared);
        if self.launch.watch.checks {
            let (reads, writes) = (effect != Effect::Write, effect != Effect::Read);
            self.clocks.atomic(deed.lane, deed.address, reads, writes, &mut self.launch.releases());
        }
    }

    pub fn fence(&mut self, lane: usize, fence: Fence) {
        if self.launch.watch.checks {
            self.clocks.fence(lane, fence);
        }
    }

    /// The order of atomic operations in this launch.
    pub fn launch(&self) -> Arc<LaunchWatch> {
        self.launch.clone()
    }

    /// Counts what the lanes `first..end` of a warp, which all wait or have left, have done since they last did.
    pub fn flush(&mut self, first: usize, end: usize) {
        if !self.launch.watch.counters {
            return;
        }
        let all = u32::MAX >> (32 - (end - first));
        let counters = &mut self.counters;
        self.logs.requests(first, end, |site, request| traffic::count(Self::counters_of(counters, site), request, all));
    }

    /// Lanes of a warp have met: in a shuffle, a vote or `sync_warp`.
    pub fn met(&mut self, meeting: Meeting, warp: usize, members: u32, all: u32, location: &'static Location<'static>) {
        if self.launch.watch.counters {
            let action = match meeting {
                Meeting::Shuffle => Action::Shuffle,
                Meeting::Vote => Action::Vote,
                Meeting::SyncWarp => Action::SyncWarp,
            };
            let site = self.site(location, action);
            let counters = Self::counters_of(&mut self.counters, site);
            match meeting {
                Meeting::Shuffle => counters.shuffles += 1,
                Meeting::Vote => counters.votes += 1,
                Meeting::SyncWarp => counters.warp_barriers += 1,
            }
        }
        if self.launch.watch.checks && meeting == Meeting::SyncWarp {
            self.clocks.sync_warp(warp, members, all);
        }
    }

    /// All threads of the block have met; `locations` are where the first lane of each warp waits.
    pub fn barrier(&mut self, locations: impl Iterator<Item = &'static Location<'static>>) {
        if self.launch.watch.counters {
            for (warp, location) in locations.enumerate() {
                let site = self.site(location, Action::Barrier);
                let counters = Self::counters_of(&mut self.counters, site);
                counters.barriers += 1;
                counters.block_barriers += u64::from(warp == 0);
            }
        }
        if self.launch.watch.checks {
            self.clocks.sync_block();
        }
    }

    /// Reports two threads that meet, or do not, as they must not.
    pub fn report_meeting(
        &self,
        check: Check,
        hint: &'static str,
        second: (usize, &'static Location<'static>, &'static str),
        first: Option<(usize, &'static Location<'static>, &'static str)>,
    ) {
        if self.launch.watch.checks {
            let deed = |(thread, location, verb): (usize, &'static Location<'static>, &'static str)| Subject {
                verb,
                block: self.clocks.block,
                thread,
                location,
            };
            self.launch.report(check, hint, deed(second), first.map(deed), None);
        }
    }
}

/// What lanes of a warp meet in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    Shuffle,
    Vote,
    SyncWarp,
}
