//! The findings of a launch's checks.

use std::fmt;

use crate::dim::Dim3;

/// A mistake that the sanitizer looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Two threads of a block access the same shared memory, at least one of them writes, and nothing orders the two.
    SharedRace,
    /// Two threads access the same global memory, at least one of them writes, and nothing orders the two.
    GlobalRace,
    /// A thread reads shared memory that no thread of its block has written.
    Unwritten,
    /// The threads of a block wait at a barrier on different lines.
    DivergentBarrier,
    /// The lanes of a warp execute one shuffle or vote on different lines.
    DivergentWarp,
    /// A shuffle reads a lane that does not participate in it.
    MissingLane,
    /// The mask of a shuffle, vote or `sync_warp` names lanes that never execute it: they have exited, or wait
    /// elsewhere or with another mask. The launch then ends with a fault.
    WrongMask,
    /// Blocks access the same memory by atomic operations whose scope is the block.
    Scope,
}

impl Check {
    /// The check's name, the first words of a finding: `race in shared memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedRace => "race in shared memory",
            Self::GlobalRace => "race in global memory",
            Self::Unwritten => "shared memory read before it was written",
            Self::DivergentBarrier => "barrier in divergent code",
            Self::DivergentWarp => "operation of a warp in divergent code",
            Self::MissingLane => "shuffle from a missing lane",
            Self::WrongMask => "mask of lanes that never arrive",
            Self::Scope => "atomic operation of too narrow a scope",
        }
    }
}

/// An operation of one thread, and its source line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadEvent {
    /// What the thread did: `reads`, `writes`, `shuffles`.
    pub verb: &'static str,
    /// The block's index in the grid.
    pub block: Dim3,
    /// The thread's index in the block.
    pub thread: Dim3,
    /// The source location: file, line and column.
    pub location: String,
}

impl fmt::Display for ThreadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, block, thread, location } = self;
        write!(f, "block ({}), thread ({}) {verb} at {location}", block.as_index(), thread.as_index())
    }
}

/// A mistake. One finding stands for all mistakes of the same kind on the same lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// The kernel's name.
    pub kernel: String,
    /// The memory: a parameter of the kernel, or the line that declares a shared array.
    pub array: Option<String>,
    /// The index of the element.
    pub index: Option<u64>,
    /// The later event, in the executor's order.
    pub second: ThreadEvent,
    /// The earlier event, which conflicts with it.
    pub first: Option<ThreadEvent>,
    /// A hint: the missing synchronization, or a correction.
    pub hint: &'static str,
    /// How many times the mistake was found on these lines. The other fields describe one of them.
    pub times: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in kernel `{}`: ", self.check.name(), self.kernel)?;
        match (&self.array, self.index) {
            (Some(array), Some(index)) => write!(f, "{array}, element {index}: ")?,
            (Some(array), None) => write!(f, "{array}: ")?,
            _ => {}
        }
        if let Some(first) = &self.first {
            write!(f, "{first}, then ")?;
        }
        write!(f, "{}; {}", self.second, self.hint)?;
        if self.times > 1 { write!(f, " ({} times)", self.times) } else { Ok(()) }
    }
}

/// All findings of a launch: at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The findings, sorted by the block's linear index.
    pub all: Vec<Finding>,
}

impl Findings {
    /// Whether a check found something.
    pub fn has(&self, check: Check) -> bool {
        self.all.iter().any(|finding| finding.check == check)
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (i, finding) in self.all.iter().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        match self.all.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
