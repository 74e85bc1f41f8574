//! Why a launch fails.

use std::fmt;

use crate::dim::Dim3;
use crate::sanitizer::findings::Findings;

/// Why a launch did not finish.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The launch exceeds a limit of the device.
    #[error("kernel `{kernel}` cannot be launched: {what} is {value}, the limit is {limit}")]
    InvalidLaunch {
        /// The kernel's name.
        kernel: String,
        /// The name of the quantity that is out of range.
        what: &'static str,
        /// The requested value.
        value: String,
        /// The allowed values.
        limit: String,
    },

    /// A thread made an invalid access, or an invalid operation.
    #[error("kernel `{kernel}`, {place}: {message} (at {location})")]
    Access {
        /// The kernel's name.
        kernel: String,
        /// The thread.
        place: Place,
        /// The thread's mistake.
        message: String,
        /// The source location.
        location: String,
    },

    /// A thread panicked.
    #[error("kernel `{kernel}`, {place} panicked: {message} (at {location})")]
    Panic {
        /// The kernel's name.
        kernel: String,
        /// The thread.
        place: Place,
        /// The panic's message.
        message: String,
        /// The source location.
        location: String,
    },

    /// Some threads of a block wait at a barrier that the others never reach.
    #[error(
        "kernel `{kernel}`, block ({block}): {waiting} wait at the barrier at {location}, which {others} never reach"
    )]
    BarrierLeft {
        /// The kernel's name.
        kernel: String,
        /// The block's index.
        block: String,
        /// The threads that wait.
        waiting: Threads,
        /// The threads that have exited, or wait elsewhere.
        others: Threads,
        /// The source location of the first waiting thread.
        location: String,
    },

    /// The threads of a block wait at barriers of different kinds.
    #[error(
        "kernel `{kernel}`, block ({block}): {first} wait in {first_kind} at {}, {others} in another kind of \
         barrier at {}",
        locations[0],
        locations[1]
    )]
    BarrierMismatch {
        /// The kernel's name.
        kernel: String,
        /// The block's index.
        block: String,
        /// The kind of the first thread's barrier.
        first_kind: &'static str,
        /// The threads at that kind.
        first: Threads,
        /// The threads at another kind.
        others: Threads,
        /// The source locations of the first thread of each group.
        locations: Box<[String; 2]>,
    },

    /// A lane waits at an operation of its warp that other lanes of its mask never reach.
    #[error(
        "kernel `{kernel}`, {place}: {operation} with mask {mask:#010x} waits for {missing}, which never reach it \
         (at {location})"
    )]
    WarpOperation {
        /// The kernel's name.
        kernel: String,
        /// The waiting thread.
        place: Place,
        /// The operation.
        operation: &'static str,
        /// The operation's mask.
        mask: u32,
        /// The threads of the mask that are missing.
        missing: Threads,
        /// The source location.
        location: String,
    },

    /// The checks found mistakes. The launch ran to its end.
    #[error("{0}")]
    Mistakes(Findings),

    /// The launch did not finish, and the checks found mistakes before that.
    #[error("{fault}\nbefore it, the checks found:\n{findings}")]
    AfterMistakes {
        /// Why it did not finish.
        fault: Box<Fault>,
        /// The mistakes in the failing block and in those of lower indices.
        findings: Findings,
    },

    /// The system has no memory left for stacks.
    #[error("kernel `{kernel}`: no memory for the stacks of a block's threads: {reason}")]
    OutOfMemory {
        /// The kernel's name.
        kernel: String,
        /// The system's error.
        reason: String,
    },
}

impl Fault {
    /// The findings of the launch's checks. `None` if there are none.
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
        write!(f, "block ({}), thread ({})", self.block.as_index(), self.thread.as_index())
    }
}

/// Threads of a block: their linear indices, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads(pub Vec<u32>);

/// Ranges: `threads 0-15, 32 (17 in all)`.
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
