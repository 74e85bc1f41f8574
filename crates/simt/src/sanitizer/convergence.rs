//! One core's checks of barriers, shuffles, votes and masks.

use std::panic::Location;
use std::ptr;

use super::access_cache::AccessCache;
use super::checker::Checker;
use super::findings::Check;
use super::report::Actor;
use crate::events::sync::Collective;

/// A thread at a barrier or a warp operation.
#[derive(Clone, Copy)]
pub(crate) struct Participant {
    /// The thread's linear index in its block.
    pub thread: usize,
    pub location: &'static Location<'static>,
    /// The verb for the thread's operation, for findings.
    pub verb: &'static str,
}

impl Participant {
    fn is_at_line_of(&self, other: &Self) -> bool {
        // The pointers of most are equal, which saves comparing the file names.
        ptr::eq(self.location, other.location) || self.location == other.location
    }
}

impl Checker {
    /// An operation of a warp. `members` are the participating lanes, as bits, `all` the lanes of the warp, and
    /// `participant` describes a lane.
    pub fn collective(
        &mut self,
        collective: Collective,
        members: u32,
        all: u32,
        participant: impl Fn(usize) -> Participant,
        cache: &AccessCache,
    ) {
        if members == 0 {
            return;
        }
        let mut lane = members.trailing_zeros() as usize;
        let leader = participant(lane);
        if collective == Collective::SyncWarp {
            // `sync_warp` is the same instruction on any line.
            return self.clocks.sync_warp(leader.thread / 32, members, all, cache);
        }
        // A loop, because iterators are slow without optimization, and each operation comes here.
        while lane < 32 {
            if members >> lane & 1 == 1 && !participant(lane).is_at_line_of(&leader) {
                let hint = "lanes of one mask must meet on the same line";
                return self.report(Check::DivergentWarp, hint, participant(lane), Some(leader));
            }
            lane += 1;
        }
    }

    /// A shuffle that reads a lane outside its mask. `source_exists`: the warp has that lane.
    pub fn missing_lane(&self, reader: Participant, source_exists: bool) {
        let hint = match source_exists {
            true => "the lane that it reads is not in the mask: the value is undefined",
            false => "the warp has fewer lanes: the value is undefined",
        };
        self.report(Check::MissingLane, hint, reader, None);
    }

    /// A barrier of the block, with all of its threads.
    pub fn barrier(&mut self, threads: usize, participant: impl Fn(usize) -> Participant, cache: &AccessCache) {
        // A loop, because iterators are slow without optimization.
        let (first, mut thread) = (participant(0), 1);
        while thread < threads && participant(thread).is_at_line_of(&first) {
            thread += 1;
        }
        if thread < threads {
            let hint = "all threads of the block must meet in the same barrier";
            self.report(Check::DivergentBarrier, hint, participant(thread), Some(first));
        }
        self.clocks.sync_block(cache);
    }

    /// A warp operation whose mask names lanes that never arrive. `absent` pairs each such lane with whether it has
    /// exited.
    pub fn wrong_mask(&self, own: Participant, absent: impl Iterator<Item = (Participant, bool)> + Clone) {
        if absent.clone().any(|(_, has_exited)| has_exited) {
            self.report(Check::WrongMask, "its mask names lanes that have left the kernel", own, None);
        }
        let mut waiting = absent.filter(|(_, has_exited)| !has_exited).map(|(lane, _)| lane);
        if let Some(other) = waiting.clone().find(|lane| lane.is_at_line_of(&own)) {
            let hint = "its mask names lanes that wait with another mask";
            self.report(Check::WrongMask, hint, own, Some(other));
        }
        if let Some(other) = waiting.find(|lane| !lane.is_at_line_of(&own)) {
            self.report(Check::WrongMask, "its mask names lanes that wait elsewhere", own, Some(other));
        }
    }

    fn report(&self, check: Check, hint: &'static str, second: Participant, first: Option<Participant>) {
        let actor = |Participant { thread, location, verb }: Participant| Actor {
            verb,
            block: self.clocks.block,
            thread,
            location,
        };
        self.launch.reports.add(check, hint, actor(second), first.map(actor), None);
    }
}
