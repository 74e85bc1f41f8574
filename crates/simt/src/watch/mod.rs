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
//! | `eras` | moments of warps, as numbers small enough for a cell |
//! | `arrays` | who accessed the kernel's arrays last: quick, for most of what kernels do |
//! | `cells` | what is known of one element of them |
//! | `marks` | the memory for that |
//! | `near` | accesses near earlier ones by the same line: quickest, for most of those |
//! | `tape` | what a lane did last, to be counted |
//! | `shadow` | who accessed any memory last: exact |
//! | `notes` | how a lane's word on what it does reaches its core's watcher |
//! | `launch` | what the cores have in common: sites, cells of global memory, counters, findings |
//!
//! A [`Watcher`] is one core's. Lanes call it through [`crate::lane`], only while some launch of the process is
//! watched: otherwise an access costs a look at one number.

mod arrays;
mod cells;
mod clocks;
mod eras;
mod launch;
mod marks;
mod near;
pub(crate) mod notes;
mod releases;
mod requests;
mod shadow;
mod sites;
mod stamp;
mod tape;
mod traffic;

use std::panic::Location;
use std::sync::Arc;

use cells::{Plain, Touch};
use clocks::Clocks;
use eras::Mark;
use launch::Subject;
pub(crate) use launch::{Element, LaunchWatch};
pub(crate) use near::Near;
use near::Window;
pub(crate) use releases::Fence;
use requests::{Act, Logs};
use shadow::{Cells, Conflict, Effect};
use sites::{Action, SiteCache, SiteId};
pub(crate) use sites::{ElementSite, Kind};
use stamp::{Stamp, Strength};

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
    /// Whether races, reads of what nobody has written, and wrong barriers, shuffles and masks are looked for. A launch
    /// with some ends with [`crate::Fault::Mistakes`].
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

impl Deed {
    #[inline(always)]
    fn kind(&self) -> Kind {
        Kind::new(self.space, self.access, self.bytes)
    }
}

/// What one core notes of the block that it runs.
pub(crate) struct Watcher {
    launch: Arc<LaunchWatch>,
    watch: Watch,
    cache: SiteCache,
    logs: Logs,
    counters: Vec<Counters>,
    clocks: Clocks,
    shared_cells: Cells,
    /// The lane of the block that is alone in its warp, if one is.
    lone_lane: Option<usize>,
    /// Whether the block has let the next grid start.
    has_launched_dependents: bool,
}

impl Watcher {
    pub fn new(launch: Arc<LaunchWatch>) -> Self {
        Self {
            watch: launch.watch,
            launch,
            cache: SiteCache::new(),
            logs: Logs::new(),
            counters: Vec::new(),
            clocks: Clocks::new(),
            shared_cells: Cells::default(),
            lone_lane: None,
            has_launched_dependents: false,
        }
    }

    /// The same watcher for another launch.
    pub fn for_launch(self: Box<Self>, launch: Arc<LaunchWatch>) -> Box<Self> {
        if self.clocks.are_worn() {
            return Box::new(Self::new(launch));
        }
        let mut own = self;
        own.watch = launch.watch;
        own.launch = launch;
        own.cache = SiteCache::new();
        own.counters.clear();
        own
    }

    pub fn begin_block(&mut self, index: u64, threads: usize, shared_bytes: usize, near: &Near) {
        near.begin_block(self.watch, threads);
        self.lone_lane = (threads % 32 == 1).then(|| threads - 1);
        self.has_launched_dependents = false;
        self.logs.clear(threads);
        self.clocks.begin_block(index as u32, near);
        if self.watch.checks && self.shared_cells.len() < shared_bytes {
            self.shared_cells = Cells::new(shared_bytes);
        }
    }

    /// Hands over what was counted, and has nothing left of the launch's memory.
    pub fn end_launch(&mut self, near: &Near) {
        near.forget();
        self.launch.add_counters(&self.counters);
        self.counters.clear();
    }

    fn site(&mut self, location: &'static Location<'static>, action: Action) -> SiteId {
        self.cache.number(&self.launch.sites, location, action)
    }

    #[inline]
    fn counters_of(counters: &mut Vec<Counters>, site: SiteId) -> &mut Counters {
        #[cold]
        fn grow(counters: &mut Vec<Counters>, index: usize) {
            counters.resize_with(index + 1, Counters::default);
        }
        let index = site as usize;
        if index >= counters.len() {
            grow(counters, index);
        }
        &mut counters[index]
    }

    #[inline]
    fn site_of(&mut self, deed: &Deed) -> SiteId {
        self.site(deed.location, Action::Memory(deed.kind()))
    }

    /// Notes an access for the counters.
    #[inline(always)]
    fn count(&mut self, deed: &Deed, site: SiteId, shared: &SharedMemory, near: &Near) {
        // Banks are counted from the start of shared memory.
        let address = match deed.space {
            Space::Global => deed.address,
            Space::Shared => shared.offset(deed.address),
        };
        let entry = Act { site, kind: deed.kind() }.at(address);
        let tape = near.tape(deed.lane);
        if !tape.push(entry) {
            self.read_tape(deed.lane, near);
            tape.push(entry);
        }
    }

    /// Takes what a lane has done from its tape.
    fn read_tape(&mut self, lane: usize, near: &Near) {
        let entries = near.tape(lane).take();
        if self.lone_lane == Some(lane) {
            // Each access is a request: nothing has to be laid beside it.
            for entry in entries {
                let counters = Self::counters_of(&mut self.counters, entry.act.site);
                traffic::count_lone(counters, entry.act.kind, entry.address, false);
            }
        } else {
            self.logs.extend(lane, entries);
        }
    }

    /// Notes an ordinary load or store. Those near it, by the same line, are for `near` then, if it can.
    #[inline(always)]
    pub fn plain(&mut self, deed: &Deed, shared: &SharedMemory, near: &Near) {
        let site = self.site_of(deed);
        if self.watch.checks {
            self.check_plain(deed, site, shared, near);
        } else if self.launch.may_be_near && deed.space == Space::Global {
            self.be_near_to_count(deed, site, near);
        }
        if self.watch.counters {
            self.count(deed, site, shared, near);
        }
    }

    /// Has accesses by that line counted by `near`.
    #[inline(never)]
    fn be_near_to_count(&self, deed: &Deed, site: SiteId, near: &Near) {
        if let Some(element) = ElementSite::new(deed.access, deed.bytes, deed.location) {
            let act = Act { site, kind: deed.kind() };
            // SAFETY: the window has no words.
            unsafe { near.remember(element, Touch::NONE, Window::NONE, act) };
        }
    }

    /// Checks an ordinary load or store.
    #[inline(never)]
    fn check_plain(&mut self, deed: &Deed, site: SiteId, shared: &SharedMemory, near: &Near) {
        let effect = if deed.access == Access::Load { Effect::Read } else { Effect::Write };
        if deed.space == Space::Shared {
            self.check_shared(deed, site, effect, shared);
        } else if !self.note_if_alone(deed, site, near) {
            self.check_global(deed, site, effect);
        }
    }

    /// Notes an access of global memory that nothing is to be said of: most accesses. Gives whether it was one.
    fn note_if_alone(&mut self, deed: &Deed, site: SiteId, near: &Near) -> bool {
        let element = ElementSite::new(deed.access, deed.bytes, deed.location).filter(|_| self.launch.may_be_near);
        if element.is_some_and(|element| near.has_seen(deed.lane, element, deed.address)) {
            return false;
        }
        let launch = &*self.launch;
        let Some(era) = self.clocks.era(deed.lane / 32, &launch.eras) else { return false };
        let is_read = deed.access == Access::Load;
        if let Some(element) = element
            && let Some(window) = launch.arrays.window_at(deed.address, deed.bytes)
        {
            near.begin_era(deed.lane / 32, era);
            let touch = Touch::new(Mark::NONE.at(site), is_read);
            // SAFETY: the words are there until the launch is dropped, which this watcher holds until after
            // `end_launch`.
            unsafe { near.remember(element, touch, window, Act { site, kind: deed.kind() }) };
        }
        launch.arrays.note_if_alone(deed.address, deed.bytes, is_read, Mark::new(era, deed.lane, site))
    }

    /// Checks an ordinary access of global memory.
    fn check_global(&mut self, deed: &Deed, site: SiteId, effect: Effect) {
        let Some(own) = self.clocks.mark(deed.lane, site, &self.launch.eras) else {
            return self.check_exactly(deed, Strength::Plain, site, effect);
        };
        let plain = Plain { address: deed.address, bytes: deed.bytes, effect, own };
        let launch = &*self.launch;
        let knows = |stamp| knows(&self.clocks, launch, deed.lane, stamp);
        if let Some(found) = launch.arrays.access(plain, &launch.eras, &launch.global, knows) {
            self.report_global(launch.eras.stamp(plain.own), effect, found);
        }
    }

    fn check_shared(&mut self, deed: &Deed, site: SiteId, effect: Effect, shared: &SharedMemory) {
        let own = self.clocks.stamp(deed.lane, Strength::Plain, site);
        let (clocks, lane) = (&self.clocks, deed.lane);
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
            let check = if matches!(conflict, Conflict::Unwritten) { Check::Unwritten } else { Check::SharedRace };
            self.launch.report_access(check, own, effect, conflict, subject);
        }
    }

    /// Checks an access of global memory that the arrays' own cells cannot note.
    fn check_exactly(&self, deed: &Deed, strength: Strength, site: SiteId, effect: Effect) {
        let launch = &*self.launch;
        let (address, bytes) = (deed.address, deed.bytes);
        launch.arrays.give_up(address, bytes, &launch.eras, &launch.global);
        let own = self.clocks.stamp(deed.lane, strength, site);
        let found =
            launch.global.access(address, bytes, own, effect, |stamp| knows(&self.clocks, launch, deed.lane, stamp));
        if let Some(found) = found {
            self.report_global(own, effect, found);
        }
    }

    #[cold]
    fn report_global(&self, own: Stamp, effect: Effect, (at, conflict): (usize, Conflict)) {
        let check = if matches!(conflict, Conflict::Scope(_)) { Check::Scope } else { Check::GlobalRace };
        self.launch.report_access(check, own, effect, conflict, self.launch.name_of(at));
    }

    /// A load of bytes at any address: a GPU loads the aligned 16 bytes that they lie in. What is beside them is not
    /// looked at, so it is no access.
    pub fn unaligned_load(
        &mut self,
        lane: usize,
        address: usize,
        bytes: usize,
        location: &'static Location<'static>,
        shared: &SharedMemory,
        near: &Near,
    ) {
        let load = |address, bytes| Deed { lane, space: Space::Global, access: Access::Load, address, bytes, location };
        if self.watch.counters {
            let first = address - address % 16;
            let site = self.site_of(&load(first, 16));
            (first..address + bytes).step_by(16).for_each(|part| self.count(&load(part, 16), site, shared, near));
        }
        if self.watch.checks {
            let deed = load(address, bytes);
            let site = self.site_of(&deed);
            self.check_global(&deed, site, Effect::Read);
        }
    }

    /// An atomic operation, while [`LaunchWatch::in_order`] is held: what it finds and leaves, for the order of blocks.
    pub fn atomic(&mut self, deed: &Deed, is_of_block: bool, shared: &SharedMemory, near: &Near) {
        let site = self.site_of(deed);
        if self.watch.counters {
            self.count(deed, site, shared, near);
        }
        let effect = match deed.access {
            Access::Load => Effect::Read,
            Access::Store => Effect::Write,
            Access::Atomic => Effect::ReadWrite,
        };
        let strength = if is_of_block { Strength::Block } else { Strength::Device };
        if self.watch.checks {
            self.check_exactly(deed, strength, site, effect);
            let (reads, writes) = (effect != Effect::Write, effect != Effect::Read);
            self.clocks.atomic(deed.lane, deed.address, reads, writes, &mut self.launch.releases());
        }
    }

    pub fn fence(&mut self, lane: usize, fence: Fence, near: &Near) {
        if self.watch.checks {
            self.clocks.fence(lane, fence, near);
        }
    }

    /// The order of atomic operations in this launch.
    pub fn launch(&self) -> Arc<LaunchWatch> {
        self.launch.clone()
    }

    /// Counts what the lanes `first..end` of a warp, which all wait or have left, have done since they last did.
    pub fn flush(&mut self, first: usize, end: usize, near: &Near) {
        if !self.watch.counters {
            return;
        }
        (first..end).for_each(|lane| self.read_tape(lane, near));
        let all = u32::MAX >> (32 - (end - first));
        let counters = &mut self.counters;
        self.logs.requests(first, end, |site, request| traffic::count(Self::counters_of(counters, site), request, all));
    }

    /// Lanes of a warp have met: in a shuffle, a vote or `sync_warp`.
    pub fn met(
        &mut self,
        meeting: Meeting,
        warp: usize,
        members: u32,
        all: u32,
        location: &'static Location<'static>,
        near: &Near,
    ) {
        if self.watch.counters {
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
        if self.watch.checks && meeting == Meeting::SyncWarp {
            self.clocks.sync_warp(warp, members, all, near);
        }
    }

    /// All threads of the block have met; `locations` are where the first lane of each warp waits.
    pub fn barrier(&mut self, locations: impl Iterator<Item = &'static Location<'static>>, near: &Near) {
        if self.watch.counters {
            for (warp, location) in locations.enumerate() {
                let site = self.site(location, Action::Barrier);
                let counters = Self::counters_of(&mut self.counters, site);
                counters.barriers += 1;
                counters.block_barriers += u64::from(warp == 0);
            }
        }
        if self.watch.checks {
            self.clocks.sync_block(near);
        }
    }

    /// Counts the block that lets the next grid start, where the first of its lanes does.
    pub fn launch_dependents(&mut self, location: &'static Location<'static>) {
        if self.watch.counters && !self.has_launched_dependents {
            self.has_launched_dependents = true;
            let site = self.site(location, Action::LaunchDependents);
            Self::counters_of(&mut self.counters, site).launch_dependents += 1;
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
        if self.watch.checks {
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

/// Whether a lane's next access comes after another one for sure.
fn knows(clocks: &Clocks, launch: &LaunchWatch, lane: usize, stamp: Stamp) -> bool {
    clocks.knows_within_block(lane, stamp)
        || clocks.has_acquired(lane) && clocks.knows_by_fences(lane, stamp, &launch.releases())
}

/// What lanes of a warp meet in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    Shuffle,
    Vote,
    SyncWarp,
}
