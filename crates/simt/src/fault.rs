//! What can go wrong in a launch.

use std::fmt;

use crate::Dim3;
use crate::findings::Findings;

/// Why a launch did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The launch asks for something that no device takes.
    #[error("kernel `{kernel}` cannot be launched: {what} is {value}, the limit is {limit}")]
    InvalidLaunch {
        /// The kernel.
        kernel: String,
        /// What is out of range.
        what: &'static str,
        /// What was asked for.
        value: String,
        /// What is allowed.
        limit: String,
    },

    /// A thread used memory, or an operation, as it must not.
    #[error("kernel `{kernel}`, {place}: {message} (at {location})")]
    Access {
        /// The kernel.
        kernel: String,
        /// Who.
        place: Place,
        /// What it did.
        message: String,
        /// Where in the source.
        location: String,
    },

    /// A thread panicked.
    #[error("kernel `{kernel}`, {place} panicked: {message} (at {location})")]
    Panic {
        /// The kernel.
        kernel: String,
        /// Who.
        place: Place,
        /// The panic's message.
        message: String,
        /// Where in the source.
        location: String,
    },

    /// Threads wait at the block's barrier that others never reach.
    #[error(
        "kernel `{kernel}`, block ({block}): {waiting} wait at the barrier at {location}, which {others} never reach"
    )]
    BarrierLeft {
        /// The kernel.
        kernel: String,
        /// The block.
        block: String,
        /// Who waits.
        waiting: Threads,
        /// Who has left the kernel, or waits elsewhere.
        others: Threads,
        /// Where the first of the waiting is.
        location: String,
    },

    /// The threads of a block meet in barriers of different kinds.
    #[error(
        "kernel `{kernel}`, block ({block}): {first} wait in {first_kind} at {}, {others} in another kind of \
         barrier at {}",
        locations[0],
        locations[1]
    )]
    BarrierMismatch {
        /// The kernel.
        kernel: String,
        /// The block.
        block: String,
        /// The kind of the first thread's barrier.
        first_kind: &'static str,
        /// Who is in that kind.
        first: Threads,
        /// Who is in another.
        others: Threads,
        /// Where the first thread of each of the two is.
        locations: Box<[String; 2]>,
    },

    /// A lane waits at an operation of its warp that other lanes of the mask never reach.
    #[error(
        "kernel `{kernel}`, {place}: {operation} with mask {mask:#010x} waits for {missing}, which never reach it \
         (at {location})"
    )]
    WarpOperation {
        /// The kernel.
        kernel: String,
        /// Who waits.
        place: Place,
        /// At what.
        operation: &'static str,
        /// With which mask.
        mask: u32,
        /// The threads of the mask that are not there.
        missing: Threads,
        /// Where in the source.
        location: String,
    },

    /// The checks found mistakes. The launch was finished all the same.
    #[error("{0}")]
    Mistakes(Findings),

    /// The launch did not finish, and the checks had found mistakes before.
    #[error("{fault}\nbefore it, the checks found:\n{findings}")]
    AfterMistakes {
        /// Why it did not finish.
        fault: Box<Fault>,
        /// The mistakes of its block and those before it.
        findings: Findings,
    },

    /// The machine has no memory left for stacks.
    #[error("kernel `{kernel}`: no memory for the stacks of a block's threads: {reason}")]
    OutOfMemory {
        /// The kernel.
        kernel: String,
        /// What the system said.
        reason: String,
    },
}

impl Fault {
    /// What the checks found in the launch, if they found something.
    pub fn findings(&self) -> Option<&Findings> {
        match self {
            Self::Mistakes(findings) | Self::AfterMistakes { findings, .. } => Some(findings),
            _ => None,
        }
    }
}

/// A thread in a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block's index in the grid.
    pub block: Dim3,
    /// The thread's index in the block.
    pub thread: Dim3,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block ({}), thread ({})", index(self.block), index(self.thread))
    }
}

/// An index, as CUDA writes it: `3, 0, 0`.
pub(crate) fn index(at: Dim3) -> String {
    format!("{}, {}, {}", at.x, at.y, at.z)
}

/// Threads of a block by their linear indices, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads(pub Vec<u32>);

/// As ranges: `threads 0-15, 32 (17 in all)`.
impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &thread in &self.0 {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == thread => *end = thread,
                _ => ranges.push((thread, thread)),
            }
        }
        const SHOWN: usize = 8;
        f.write_str(if self.0.len() == 1 { "thread " } else { "threads " })?;
        for (i, (start, end)) in ranges.iter().take(SHOWN).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            if start == end { write!(f, "{comma}{start}")? } else { write!(f, "{comma}{start}-{end}")? }
        }
        if ranges.len() > SHOWN {
            f.write_str(", ...")?;
        }
        if ranges.len() > 1 { write!(f, " ({} in all)", self.0.len()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_shown_as_ranges() {
        assert_eq!(Threads(vec![7]).to_string(), "thread 7");
        assert_eq!(Threads((0..32).collect()).to_string(), "threads 0-31");
        assert_eq!(Threads(vec![0, 1, 2, 9]).to_string(), "threads 0-2, 9 (4 in all)");
        let odd = Threads((0..64).map(|i| 2 * i + 1).collect()).to_string();
        assert!(odd.ends_with(", ... (64 in all)"), "{odd}");
    }
}
