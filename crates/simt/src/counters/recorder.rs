//! One core's counters of the launch that it runs.

use super::access_log::{AccessLogs, Instruction};
use super::coalesce::WarpLogs;
use super::count;
use super::launch::LaunchCounters;
use super::traffic::Counters;
use crate::events::access::MemoryAccess;
use crate::events::sites::SiteId;
use crate::events::sync::Collective;

/// Counts the operations of the lanes of a core.
pub(crate) struct Recorder {
    /// The counters, by site.
    counters: Vec<Counters>,
    logs: WarpLogs,
    /// The thread of the block that is the only lane of its warp, if any.
    single_lane: Option<usize>,
    /// Whether the block has called `launch_dependents`.
    has_launched_dependents: bool,
}

impl Recorder {
    pub fn new() -> Self {
        Self { counters: Vec::new(), logs: WarpLogs::new(), single_lane: None, has_launched_dependents: false }
    }

    pub fn begin_launch(&mut self) {
        self.counters.clear();
    }

    pub fn begin_block(&mut self, threads: usize) {
        self.single_lane = (threads % 32 == 1).then(|| threads - 1);
        self.has_launched_dependents = false;
        self.logs.clear(threads);
    }

    /// Adds the core's counters to the launch's.
    pub fn end_launch(&mut self, launch: &LaunchCounters) {
        launch.add(&self.counters);
        self.counters.clear();
    }

    #[inline]
    fn at(&mut self, site: SiteId) -> &mut Counters {
        counters_at(&mut self.counters, site)
    }

    /// Appends an access to its lane's log.
    #[inline(always)]
    pub fn access(&mut self, access: &MemoryAccess, site: SiteId, logs: &AccessLogs) {
        let entry = Instruction { site, kind: access.kind }.at(access.address);
        let log = logs.log(access.thread);
        if !log.push(entry) {
            self.read_log(access.thread, logs);
            log.push(entry);
        }
    }

    /// Empties a lane's log.
    fn read_log(&mut self, thread: usize, logs: &AccessLogs) {
        let entries = logs.log(thread).take();
        if self.single_lane == Some(thread) {
            // Each access is a request: there are no other lanes to combine it with.
            for entry in entries {
                let Instruction { site, kind } = entry.instruction;
                count::count_single_lane(self.at(site), kind, entry.address, false);
            }
        } else {
            self.logs.extend(thread, entries);
        }
    }

    /// Counts the accesses of the threads `first..end` of a warp. All of them wait or have exited.
    pub fn flush_warp(&mut self, first: usize, end: usize, logs: &AccessLogs) {
        (first..end).for_each(|thread| self.read_log(thread, logs));
        let all = u32::MAX >> (32 - (end - first));
        let counters = &mut self.counters;
        self.logs.drain_requests(first, end, |site, request| count::count(counters_at(counters, site), request, all));
    }

    /// Counts an operation of a warp.
    pub fn collective(&mut self, collective: Collective, site: SiteId) {
        let counters = self.at(site);
        match collective {
            Collective::Shuffle => counters.shuffles += 1,
            Collective::Vote => counters.votes += 1,
            Collective::SyncWarp => counters.warp_barriers += 1,
        }
    }

    /// Counts a warp at the block's barrier.
    pub fn barrier(&mut self, warp: usize, site: SiteId) {
        let counters = self.at(site);
        counters.barriers += 1;
        counters.block_barriers += u64::from(warp == 0);
    }

    /// Counts a block that calls `launch_dependents`, once, at the location of its first lane that does.
    pub fn launch_dependents(&mut self, site: SiteId) {
        if !self.has_launched_dependents {
            self.has_launched_dependents = true;
            self.at(site).launch_dependents += 1;
        }
    }
}

#[inline]
fn counters_at(counters: &mut Vec<Counters>, site: SiteId) -> &mut Counters {
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
