//! The operations at which lanes wait for each other.

use crate::events::sync::Collective;

/// The kinds of the block's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// Only synchronizes (`__syncthreads`).
    Sync,
    /// Counts the threads whose predicate is true (`__syncthreads_count`).
    Count,
    /// 1 if all predicates are true (`__syncthreads_and`).
    And,
    /// 1 if any predicate is true (`__syncthreads_or`).
    Or,
}

/// The kinds of shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Reads the lane whose index is greater by `operand`.
    Down,
    /// Reads the lane whose index is less by `operand`.
    Up,
    /// Reads lane `operand` of the segment.
    Idx,
    /// Reads the lane whose index is the caller's XOR `operand`.
    Xor,
}

/// The kinds of vote, and of reduction by `redux.sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// 1 if all values are nonzero.
    All,
    /// 1 if any value is nonzero.
    Any,
    /// The lanes whose values are nonzero, as bits.
    Ballot,
    /// The wrapping sum.
    ReduceAdd,
    /// The unsigned minimum.
    ReduceMin,
    /// The unsigned maximum.
    ReduceMax,
    /// The signed minimum.
    ReduceMinSigned,
    /// The signed maximum.
    ReduceMaxSigned,
    /// The bitwise AND.
    ReduceAnd,
    /// The bitwise OR.
    ReduceOr,
    /// The bitwise XOR.
    ReduceXor,
}

/// The kinds of comparison of the lanes' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The lanes whose values equal the caller's, as bits (`match.any.sync`).
    Any,
    /// All lanes of the mask if their values are equal, else 0 (`match.all.sync`).
    All,
}

/// An operation that a lane waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Barrier(Barrier),
    SyncWarp,
    Shuffle(Shuffle),
    Vote(Vote),
    Match(Match),
    ActiveMask,
}

impl Operation {
    /// A number for the operation. Equal numbers are equal operations; comparing numbers is faster without
    /// optimization.
    #[inline(always)]
    pub fn code(self) -> u32 {
        match self {
            Self::SyncWarp => 0,
            Self::ActiveMask => 1,
            Self::Barrier(kind) => 0x100 + kind as u32,
            Self::Shuffle(kind) => 0x200 + kind as u32,
            Self::Vote(kind) => 0x300 + kind as u32,
            Self::Match(kind) => 0x400 + kind as u32,
        }
    }

    /// The operation's name, for faults.
    pub fn name(self) -> &'static str {
        match self {
            Self::SyncWarp => "sync_warp",
            Self::Shuffle(_) => "a shuffle",
            Self::Vote(_) => "a vote",
            Self::Match(_) => "a match",
            Self::ActiveMask => "activemask",
            Self::Barrier(_) => "a barrier",
        }
    }

    /// The verb for a lane at the operation, for findings.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Shuffle(_) => "shuffles",
            Self::Vote(_) => "votes",
            Self::Match(_) => "matches",
            Self::SyncWarp => "waits for its warp",
            Self::ActiveMask => "asks for the active lanes",
            Self::Barrier(_) => "waits for its block",
        }
    }

    /// The operation as an event, if it is one.
    pub fn collective(self) -> Option<Collective> {
        match self {
            Self::Shuffle(_) => Some(Collective::Shuffle),
            Self::Vote(_) | Self::Match(_) => Some(Collective::Vote),
            Self::SyncWarp => Some(Collective::SyncWarp),
            Self::ActiveMask | Self::Barrier(_) => None,
        }
    }
}
