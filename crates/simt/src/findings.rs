//! What the checks of a launch find.

use std::fmt;

use crate::Dim3;
use crate::fault::index;

/// A mistake that a check looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Two threads of a block use one place of shared memory, one of them writes, and nothing orders the two.
    SharedRace,
    /// Two threads use one place of global memory, one of them writes, and nothing orders the two.
    GlobalRace,
    /// A thread reads shared memory that nobody of its block has written.
    Unwritten,
    /// Threads of a block meet in a barrier from different places in the source.
    DivergentBarrier,
    /// Lanes of a warp meet in a shuffle or vote from different places in the source.
    DivergentWarp,
    /// A shuffle reads a lane that takes no part in it.
    MissingLane,
    /// The mask of a shuffle, vote or `sync_warp` names lanes that do not come to it: they have left the kernel, or
    /// wait elsewhere or with another mask. The launch ends with a fault then.
    WrongMask,
    /// Blocks use one place by atomic operations whose scope is the block.
    Scope,
}

impl Check {
    /// The check's name, as it stands before a finding: `race in shared memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedRace => "race in shared memory",
            Self::GlobalRace => "race in global memory",
            Self::Unwritten => "shared memory read before it was written",
            Self::DivergentBarrier => "barrier in divergent code",
            Self::DivergentWarp => "operation of a warp in divergent code",
            Self::MissingLane => "shuffle from a lane that is not there",
            Self::WrongMask => "mask of lanes that do not come",
            Self::Scope => "atomic operation of too narrow a scope",
        }
    }
}

/// A thread of the grid, what it did, and on which line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deed {
    /// What it did: `reads`, `writes`, `shuffles`.
    pub verb: &'static str,
    /// Its block.
    pub block: Dim3,
    /// The thread's index in the block.
    pub thread: Dim3,
    /// Where in the source: file, line and column.
    pub location: String,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, block, thread, location } = self;
        write!(f, "block ({}), thread ({}) {verb} at {location}", index(*block), index(*thread))
    }
}

/// One mistake, of which there may be many of the same kind on the same lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The check that found it.
    pub check: Check,
    /// The kernel.
    pub kernel: String,
    /// Which memory: the parameter of the kernel, or where a shared array is declared.
    pub array: Option<String>,
    /// The element.
    pub index: Option<u64>,
    /// What was done, in the executor's order.
    pub second: Deed,
    /// What was done before, and is in the way.
    pub first: Option<Deed>,
    /// What is missing, or what to do.
    pub hint: &'static str,
    /// How often it was found on these lines; the rest describes one of them.
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

/// Everything that the checks of a launch found: at least one mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The mistakes, the lowest block's first.
    pub all: Vec<Finding>,
}

impl Findings {
    /// Whether some check of that kind found something.
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
