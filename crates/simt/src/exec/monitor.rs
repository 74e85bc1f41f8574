//! Passes the events of a launch to the sanitizer and the counters.
//!
//! Most accesses go only through [`FastPath`]. The [`Monitor`] takes the rest.

use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::launch::{Launch, Watch};
use super::schedule::Schedule;
use crate::counters::access_log::{AccessLogs, Instruction};
use crate::counters::launch::LaunchCounters;
use crate::counters::profile::KernelProfile;
use crate::counters::recorder::Recorder;
use crate::events::access::{Access, AccessKind, ElementAccess, MemoryAccess, Space, key};
use crate::events::sites::{Action, SiteCache, SiteId, SiteTable, UNKNOWN};
use crate::events::sync::{Collective, Fence};
use crate::memory::Element;
use crate::sanitizer::access_cache::AccessCache;
use crate::sanitizer::checker::Checker;
pub(crate) use crate::sanitizer::convergence::Participant;
use crate::sanitizer::findings::Findings;
use crate::sanitizer::launch::{LaunchSanitizer, Reports};

/// The state that the cores of a monitored launch share.
pub(crate) struct LaunchMonitor {
    watch: Watch,
    /// Whether accesses may bypass the monitor: lanes do not switch at accesses.
    may_cache: bool,
    sites: Arc<SiteTable>,
    /// Held while an atomic operation runs and is recorded, so that both happen in one order.
    atomics: Mutex<()>,
    counters: LaunchCounters,
    sanitizer: Arc<LaunchSanitizer>,
}

impl LaunchMonitor {
    /// `has_one_core` promises that a single core runs the launch.
    pub fn new(launch: &Launch<'_>, has_one_core: bool) -> Self {
        let may_cache = launch.schedule == Schedule::InOrder;
        let sites = Arc::new(SiteTable::default());
        let reports = Reports::new(launch.kernel, launch.grid, launch.block, launch.arguments, Arc::clone(&sites));
        let shadowed = if launch.watch.checks { launch.arguments } else { &[] };
        Self {
            watch: launch.watch,
            may_cache,
            sites,
            atomics: Mutex::default(),
            counters: LaunchCounters::default(),
            sanitizer: Arc::new(LaunchSanitizer::new(reports, shadowed, has_one_core, may_cache)),
        }
    }

    /// Excludes the atomic operations of other cores.
    pub fn lock_atomics(&self) -> MutexGuard<'_, ()> {
        self.atomics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of the launch.
    pub fn profile(&self, launch: &Launch<'_>) -> KernelProfile {
        KernelProfile {
            kernel: launch.kernel.to_owned(),
            grid: launch.grid,
            block: launch.block,
            launches: 1,
            lines: self.counters.lines(&self.sites),
        }
    }

    /// The findings in blocks up to `last`. `None` if there are none.
    pub fn findings_up_to(&self, last: u64) -> Option<Findings> {
        self.sanitizer.reports.up_to(last)
    }
}

/// The state with which a core records most accesses without its monitor.
pub(crate) struct FastPath {
    cache: AccessCache,
    logs: AccessLogs,
}

impl FastPath {
    pub fn new() -> Self {
        Self { cache: AccessCache::new(), logs: AccessLogs::new() }
    }

    /// Whether accesses are counted. If so, [`Self::check_and_count`] records them, else [`Self::check`].
    #[inline(always)]
    pub fn is_counting(&self) -> bool {
        self.logs.is_on()
    }

    /// Records an access for the checks, and returns whether it did.
    #[inline(always)]
    pub fn check(&self, thread: usize, element: ElementAccess, address: usize) -> bool {
        self.cache.record(thread, element, address)
    }

    /// Records an access for the counters, and for the checks if they are on. Returns whether it did. If not, the
    /// monitor takes the access; recording it for the checks once more changes nothing.
    #[inline(always)]
    pub fn check_and_count(&self, thread: usize, element: ElementAccess, address: usize) -> bool {
        (!self.cache.is_on() || self.check(thread, element, address)) && self.logs.append(thread, element, address)
    }

    /// Has the warp's next access go through the monitor.
    pub fn end_epoch(&self, warp: usize) {
        self.cache.end_epoch(warp);
    }

    fn forget(&self) {
        self.cache.forget();
        self.logs.forget();
    }
}

/// Takes the events of the block that a core runs.
pub(crate) struct Monitor {
    launch: Arc<LaunchMonitor>,
    watch: Watch,
    sites: SiteCache,
    recorder: Recorder,
    checker: Checker,
}

impl Monitor {
    pub fn new(launch: Arc<LaunchMonitor>) -> Self {
        Self {
            watch: launch.watch,
            sites: SiteCache::new(),
            recorder: Recorder::new(),
            checker: Checker::new(Arc::clone(&launch.sanitizer)),
            launch,
        }
    }

    /// The same monitor for another launch.
    pub fn begin_launch(&mut self, launch: Arc<LaunchMonitor>) {
        self.watch = launch.watch;
        self.sites = SiteCache::new();
        self.recorder.begin_launch();
        self.checker.begin_launch(Arc::clone(&launch.sanitizer));
        self.launch = launch;
    }

    /// Begins a block. `shared_bytes` is the maximum shared memory that it can have.
    pub fn begin_block(&mut self, index: u64, threads: usize, shared_bytes: usize, fast: &FastPath) {
        fast.logs.begin_block(self.watch.counters, threads);
        fast.cache.begin_block(self.watch.checks);
        if self.watch.counters {
            self.recorder.begin_block(threads);
        }
        if self.watch.checks {
            self.checker.begin_block(index, shared_bytes, &fast.cache);
        }
    }

    /// Ends the launch: adds its counters to the launch's, and drops all pointers into the launch's shadow memory.
    pub fn end_launch(&mut self, fast: &FastPath) {
        fast.forget();
        self.recorder.end_launch(&self.launch.counters);
    }

    /// The state that the launch's cores share.
    pub fn launch(&self) -> Arc<LaunchMonitor> {
        Arc::clone(&self.launch)
    }

    #[inline(always)]
    fn site(&mut self, location: &'static Location<'static>, action: Action) -> SiteId {
        let known = self.sites.get(key(location, action.code()));
        if known != UNKNOWN { known } else { self.sites.fill(&self.launch.sites, location, action) }
    }

    #[inline(always)]
    fn site_of(&mut self, access: &MemoryAccess) -> SiteId {
        let MemoryAccess { location, kind, .. } = *access;
        let known = self.sites.get(key(location, kind.code()));
        if known != UNKNOWN { known } else { self.sites.fill(&self.launch.sites, location, Action::Memory(kind)) }
    }

    /// A plain load or store, or an atomic operation on shared memory. Later accesses by the same instruction take the
    /// fast path, if they can. `element_of_shared` names an offset in shared memory.
    #[inline(always)]
    pub fn plain(
        &mut self,
        access: &MemoryAccess,
        fast: &FastPath,
        element_of_shared: impl Fn(usize) -> Option<Element>,
    ) {
        let site = self.site_of(access);
        if self.watch.checks {
            self.checker.plain(access, site, &fast.cache, element_of_shared);
        }
        if self.watch.counters {
            if self.launch.may_cache && access.kind.space() == Space::Global {
                remember_instruction(access, site, &fast.logs);
            }
            self.recorder.access(access, site, &fast.logs);
        }
    }

    /// A load from global memory of `access.kind.bytes()` bytes, any number at any address. A GPU loads the aligned
    /// 16-byte vectors that contain them. The checks look only at the bytes.
    pub fn unaligned_load(&mut self, access: &MemoryAccess, fast: &FastPath) {
        if self.watch.counters {
            let first = access.address & !15;
            let kind = AccessKind::new(Space::Global, Access::Load, 16);
            let site = self.site(access.location, Action::Memory(kind));
            for address in (first..access.address + access.kind.bytes()).step_by(16) {
                self.recorder.access(&MemoryAccess { kind, address, ..*access }, site, &fast.logs);
            }
        }
        if self.watch.checks {
            let site = self.site_of(access);
            self.checker.unaligned_load(access, site);
        }
    }

    /// An atomic operation, while [`LaunchMonitor::lock_atomics`] is held.
    pub fn atomic(&mut self, access: &MemoryAccess, is_of_block: bool, fast: &FastPath) {
        let site = self.site_of(access);
        if self.watch.counters {
            self.recorder.access(access, site, &fast.logs);
        }
        if self.watch.checks {
            self.checker.atomic(access, is_of_block, site);
        }
    }

    pub fn fence(&mut self, thread: usize, fence: Fence, fast: &FastPath) {
        if self.watch.checks {
            self.checker.fence(thread, fence, &fast.cache);
        }
    }

    /// A call of `griddepcontrol.launch_dependents`.
    pub fn launch_dependents(&mut self, location: &'static Location<'static>) {
        if self.watch.counters {
            let site = self.site(location, Action::LaunchDependents);
            self.recorder.launch_dependents(site);
        }
    }

    /// No lane of the warp of threads `first..end` can run: the warp's requests are complete.
    pub fn flush_warp(&mut self, first: usize, end: usize, fast: &FastPath) {
        if self.watch.counters {
            self.recorder.flush_warp(first, end, &fast.logs);
        }
    }

    /// A warp operation. `members` are the participating lanes, as bits, `all` the lanes of the warp, and `participant`
    /// describes a lane.
    pub fn collective(
        &mut self,
        collective: Collective,
        members: u32,
        all: u32,
        location: &'static Location<'static>,
        participant: impl Fn(usize) -> Participant,
        fast: &FastPath,
    ) {
        if self.watch.counters {
            let action = match collective {
                Collective::Shuffle => Action::Shuffle,
                Collective::Vote => Action::Vote,
                Collective::SyncWarp => Action::SyncWarp,
            };
            let site = self.site(location, action);
            self.recorder.collective(collective, site);
        }
        if self.watch.checks {
            self.checker.collective(collective, members, all, participant, &fast.cache);
        }
    }

    /// A shuffle that reads a lane outside its mask. `source_exists`: the warp has that lane.
    pub fn missing_lane(&self, reader: Participant, source_exists: bool) {
        if self.watch.checks {
            self.checker.missing_lane(reader, source_exists);
        }
    }

    /// A barrier of the block, with all of its threads.
    pub fn barrier(&mut self, threads: usize, participant: impl Fn(usize) -> Participant, fast: &FastPath) {
        if self.watch.counters {
            for warp in 0..threads.div_ceil(32) {
                let site = self.site(participant(32 * warp).location, Action::Barrier);
                self.recorder.barrier(warp, site);
            }
        }
        if self.watch.checks {
            self.checker.barrier(threads, participant, &fast.cache);
        }
    }

    /// A warp operation whose mask names lanes that never arrive. `absent` pairs each such lane with whether it has
    /// exited.
    pub fn wrong_mask(&self, own: Participant, absent: impl Iterator<Item = (Participant, bool)> + Clone) {
        if self.watch.checks {
            self.checker.wrong_mask(own, absent);
        }
    }
}

#[inline(never)]
fn remember_instruction(access: &MemoryAccess, site: SiteId, logs: &AccessLogs) {
    let MemoryAccess { kind, location, .. } = *access;
    if let Some(element) = ElementAccess::new(kind.access(), kind.bytes(), location) {
        logs.remember(element, Instruction { site, kind });
    }
}
