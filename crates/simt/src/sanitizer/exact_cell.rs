//! The exact access history of one word or byte.

use super::stamp::{Stamp, Strength};
use crate::events::access::Access;

/// The last write, the last atomic operation since it, and up to two reads since both. The reads are of different warps
/// or blocks if there were such reads: a later writer belongs to at most one of them.
#[derive(Clone, Copy)]
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
        // Usually all accesses in the history are settled, and no search is needed. Without this question, a build
        // without optimization takes up to two thirds longer.
        let is_settled = |other: &Stamp| other.is_obviously_before(&own) || !is_current(*other);
        let is_first_settled = is_settled(&self.reads[0]);
        let are_settled = is_settled(&self.write)
            && is_settled(&self.atomic)
            && (effect == Effect::Read || is_first_settled && is_settled(&self.reads[1]));
        let conflict = if are_settled {
            None
        } else {
            self.conflict(own, effect, |other| exists(other) && !happens_before(other))
        };
        if effect == Effect::Read {
            if is_first_settled {
                self.reads[0] = own;
            } else {
                self.record_read(own, is_current, happens_before);
            }
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
