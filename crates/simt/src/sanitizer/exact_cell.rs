//! The exact access history of one word or byte.

use super::stamp::{Stamp, Strength};
use crate::events::access::Access;

/// The last write, the last atomic operation since it, and up to two reads since both. The reads are of different warps
/// or blocks if there were such reads: a later writer belongs to at most one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExactCell {
    pub write: Stamp,
    pub atomic: Stamp,
    pub reads: [Stamp; 2],
    /// The word's four bytes have cells of their own.
    pub is_split: bool,
}

/// The effect of an access on the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
    /// An atomic operation.
    ReadWrite,
}

impl Effect {
    #[inline(always)]
    pub fn of(access: Access) -> Self {
        match access {
            Access::Load => Self::Read,
            Access::Store => Self::Write,
            Access::Atomic => Self::ReadWrite,
        }
    }
}

/// The mistake of an access.
#[derive(Clone, Copy, Debug)]
pub(super) enum Conflict {
    /// A race with a write.
    Write(Stamp),
    /// A race with a read.
    Read(Stamp),
    /// Both accesses are atomic, but the scope of one of them excludes the other.
    Scope(Stamp),
    /// A read of memory that no thread has written.
    Unwritten,
}

impl ExactCell {
    pub const EMPTY: Self = Self { write: Stamp::NONE, atomic: Stamp::NONE, reads: [Stamp::NONE; 2], is_split: false };

    /// Records an access and returns its conflict. `is_current` is false for stamps of earlier users of the memory.
    /// `happens_before` says whether an earlier access happens before this one.
    #[inline]
    pub fn access(
        &mut self,
        own: Stamp,
        effect: Effect,
        is_current: impl Fn(Stamp) -> bool + Copy,
        happens_before: impl Fn(Stamp) -> bool + Copy,
    ) -> Option<Conflict> {
        let exists = |other: Stamp| !other.is_none() && is_current(other);
        let is_written = exists(self.write) || exists(self.atomic);
        let conflict = self.conflict(own, effect, |other| exists(other) && !happens_before(other));
        if effect == Effect::Read {
            self.record_read(own, is_current, happens_before);
            return if is_written { conflict } else { Some(Conflict::Unwritten) };
        }
        if own.strength() == Strength::Plain {
            self.write = own;
            self.atomic = Stamp::NONE;
        } else {
            self.atomic = own;
        }
        self.reads = [Stamp::NONE; 2];
        if effect == Effect::ReadWrite && !is_written && conflict.is_none() {
            return Some(Conflict::Unwritten);
        }
        conflict
    }

    /// Records a plain access to shared memory if no earlier access can conflict with it, as most cannot. Returns
    /// whether it did. `first_phase` is the block's first phase.
    ///
    /// [`Self::access`] gives the same history. Without optimization it takes several times as long, because its
    /// questions are calls.
    #[inline(always)]
    pub fn record_if_settled(&mut self, own: &Stamp, is_read: bool, first_phase: u32) -> bool {
        // Stamps of no access have phase 0, and each block's first phase is later.
        let is_written = self.write.phase >= first_phase || self.atomic.phase >= first_phase;
        // An access happens before this one if it is of an earlier phase, and so perhaps of an earlier block, or by the
        // same thread.
        let phase = own.phase;
        let are_writes_settled = (self.write.phase < phase || self.write.is_by_thread_of(own))
            && (self.atomic.phase < phase || self.atomic.is_by_thread_of(own));
        if self.is_split || !are_writes_settled {
            return false;
        }
        let is_first_settled = self.reads[0].phase < phase || self.reads[0].is_by_thread_of(own);
        if is_read && is_first_settled {
            self.reads[0] = *own;
            return is_written;
        }
        let is_second_settled = self.reads[1].phase < phase || self.reads[1].is_by_thread_of(own);
        if is_read {
            // As `record_read` decides. It may need the clocks for a read of this warp at an earlier time.
            let may_be_before = |read: &Stamp| read.is_by_warp_of(own) && read.time != own.time;
            if may_be_before(&self.reads[0]) || !is_second_settled && may_be_before(&self.reads[1]) {
                return false;
            }
            self.reads[usize::from(is_second_settled || !self.reads[0].is_by_warp_of(own))] = *own;
            return is_written;
        }
        if !is_first_settled || !is_second_settled {
            return false;
        }
        self.write = *own;
        self.atomic = Stamp::NONE;
        self.reads = [Stamp::NONE; 2];
        true
    }

    /// The conflict with an earlier access. `is_unordered` says whether an access exists that does not happen before
    /// this one.
    fn conflict(&self, own: Stamp, effect: Effect, is_unordered: impl Fn(Stamp) -> bool) -> Option<Conflict> {
        let conflicts = |other: Stamp| !are_mutually_atomic(own, other) && is_unordered(other);
        if let Some(write) = [self.write, self.atomic].into_iter().find(|&write| conflicts(write)) {
            return Some(if are_atomic(own, write) { Conflict::Scope(write) } else { Conflict::Write(write) });
        }
        if effect == Effect::Read {
            return None;
        }
        let read = self.reads.into_iter().find(|&read| conflicts(read))?;
        Some(if are_atomic(own, read) { Conflict::Scope(read) } else { Conflict::Read(read) })
    }

    fn record_read(&mut self, own: Stamp, is_current: impl Fn(Stamp) -> bool, happens_before: impl Fn(Stamp) -> bool) {
        let [first, second] = self.reads;
        let is_same_warp = |other: Stamp| other.block == own.block && other.warp() == own.warp();
        let is_superseded = |read: Stamp| read.is_none() || !is_current(read) || happens_before(read);
        let index = if is_superseded(first) {
            0
        } else if is_superseded(second) {
            1
        } else {
            // Both reads still count. Keep reads of two different warps: a writer belongs to at most one of them.
            usize::from(!is_same_warp(first))
        };
        self.reads[index] = own;
    }
}

fn are_atomic(one: Stamp, other: Stamp) -> bool {
    one.strength() != Strength::Plain && other.strength() != Strength::Plain
}

/// Whether two accesses are atomic with respect to each other: both are atomic, and each is in the other's scope.
fn are_mutually_atomic(one: Stamp, other: Stamp) -> bool {
    match one.strength().min(other.strength()) {
        Strength::Plain => false,
        Strength::Block => one.block == other.block,
        Strength::Device => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::access_cache::AccessCache;
    use super::super::clocks::Clocks;
    use super::*;
    use crate::random::Random;

    /// Random accesses to one word by two warps of several blocks, with barriers and `sync_warp` in between. Returns
    /// the number of accesses that [`ExactCell::record_if_settled`] recorded.
    fn compare_histories(seed: u64) -> usize {
        let (cache, mut clocks, mut random) = (AccessCache::new(), Clocks::new(), Random::new(seed, 0));
        let (mut cell, mut fast, mut recorded) = (ExactCell::EMPTY, ExactCell::EMPTY, 0);
        clocks.begin_block(0, &cache);
        for step in 0..200 {
            match random.below(16) {
                0 => clocks.sync_block(&cache),
                1 => clocks.sync_warp(random.below(2), u32::MAX, u32::MAX, &cache),
                2 => clocks.sync_warp(random.below(2), 0xF, u32::MAX, &cache),
                3 if random.below(4) == 0 => clocks.begin_block(step, &cache),
                _ => {
                    // Few threads, so that many accesses are by one of the earlier threads.
                    let thread = 32 * random.below(2) + random.below(4);
                    let effect = [Effect::Read, Effect::Read, Effect::Write, Effect::ReadWrite][random.below(4)];
                    let is_atomic = effect == Effect::ReadWrite;
                    let strength = if is_atomic { Strength::Block } else { Strength::Plain };
                    let own = clocks.stamp(thread, strength, step);
                    let access = |cell: &mut ExactCell| {
                        let happens_before = |stamp| clocks.knows_within_block(thread, stamp);
                        cell.access(own, effect, |stamp| clocks.is_of_block(stamp), happens_before)
                    };
                    let expected = access(&mut cell);
                    let is_read = effect == Effect::Read;
                    if !is_atomic && fast.record_if_settled(&own, is_read, clocks.first_phase()) {
                        recorded += 1;
                        assert!(expected.is_none(), "{seed}, step {step}: {expected:?}");
                    } else {
                        assert_eq!(access(&mut fast).is_some(), expected.is_some(), "{seed}, step {step}");
                    }
                    assert_eq!(fast, cell, "{seed}, step {step}");
                }
            }
        }
        recorded
    }

    #[test]
    fn settled_accesses_leave_the_same_history() {
        let recorded: usize = (0..500).map(compare_histories).sum();
        assert!(recorded > 5_000, "{recorded}");
    }
}
