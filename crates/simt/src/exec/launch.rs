//! A launch: a kernel's name, the shape of its grid, and its limits.

use super::fault::Fault;
use super::schedule::Schedule;
use super::shared;
use crate::dim::{Dim3, MAX_THREADS};
use crate::memory::Argument;

/// The description of a launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel's name, for messages.
    pub kernel: &'a str,
    /// The grid's shape, in blocks.
    pub grid: Dim3,
    /// The block's shape, in threads.
    pub block: Dim3,
    /// The size of dynamic shared memory in bytes, in addition to the kernel's static arrays.
    pub dynamic_shared: usize,
    /// The limits that the launch must respect.
    pub limits: Limits,
    /// What is recorded about the launch.
    pub watch: Watch,
    /// The order in which lanes run.
    pub schedule: Schedule,
    /// The kernel's memory by name, for findings.
    pub arguments: &'a [Argument<'a>],
}

/// What is recorded about a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watch {
    /// Whether requests, bank conflicts and the like are counted. [`crate::profile`] returns the counters.
    pub counters: bool,
    /// Whether the launch is checked for the mistakes of [`crate::Check`]. A launch with mistakes ends with
    /// [`crate::Fault::Mistakes`].
    pub checks: bool,
}

impl Watch {
    /// Records nothing: the fastest.
    pub const NOTHING: Self = Self { counters: false, checks: false };
    /// Only checks.
    pub const CHECKS: Self = Self { counters: false, checks: true };
    /// Only counts.
    pub const COUNTERS: Self = Self { counters: true, checks: false };

    /// Whether anything is recorded.
    pub(crate) fn is_on(self) -> bool {
        self.counters || self.checks
    }
}

impl<'a> Launch<'a> {
    /// A launch with CUDA's limits and no dynamic shared memory, not watched.
    pub fn new(kernel: &'a str, grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            kernel,
            grid: grid.into(),
            block: block.into(),
            dynamic_shared: 0,
            limits: Limits::default(),
            watch: Watch::NOTHING,
            schedule: Schedule::InOrder,
            arguments: &[],
        }
    }

    /// Whether the launch respects its limits.
    ///
    /// # Errors
    /// [`Fault::InvalidLaunch`] names the limit that it exceeds.
    pub fn check(&self) -> Result<(), Fault> {
        let invalid = |what, value: String, limit: String| {
            Err(Fault::InvalidLaunch { kernel: self.kernel.to_owned(), what, value, limit })
        };
        let limits = &self.limits;
        let sides = [
            ("the grid's size along x", self.grid.x, limits.grid.x),
            ("the grid's size along y", self.grid.y, limits.grid.y),
            ("the grid's size along z", self.grid.z, limits.grid.z),
            ("the block's size along x", self.block.x, limits.block.x),
            ("the block's size along y", self.block.y, limits.block.y),
            ("the block's size along z", self.block.z, limits.block.z),
        ];
        for (what, value, limit) in sides {
            if value == 0 || value > limit {
                return invalid(what, value.to_string(), format!("1 to {limit}"));
            }
        }
        if self.block.count() > u128::from(limits.threads_per_block) {
            return invalid(
                "the block",
                format!("{} threads", self.block.count()),
                limits.threads_per_block.to_string(),
            );
        }
        if self.grid.count() > u128::from(u64::MAX) {
            return invalid("the grid", format!("{} blocks", self.grid.count()), u64::MAX.to_string());
        }
        if self.dynamic_shared > limits.shared_bytes {
            return invalid(
                "dynamic shared memory",
                format!("{} bytes", self.dynamic_shared),
                format!("{} bytes", limits.shared_bytes),
            );
        }
        Ok(())
    }
}

/// The limits of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of threads per block. The executor supports at most 1024.
    pub threads_per_block: u32,
    /// The maximum block size along each axis.
    pub block: Dim3,
    /// The maximum grid size along each axis.
    pub grid: Dim3,
    /// The maximum shared memory per block in bytes: the kernel's static arrays and dynamic shared memory together. The
    /// executor supports at most 1 MiB.
    pub shared_bytes: usize,
}

/// CUDA's limits, the same for all devices since compute capability 3.0.
impl Default for Limits {
    fn default() -> Self {
        Self {
            threads_per_block: 1024,
            block: Dim3::new(1024, 1024, 64),
            grid: Dim3::new(i32::MAX as u32, 65535, 65535),
            shared_bytes: 48 * 1024,
        }
    }
}

impl Limits {
    /// These limits, reduced to what the executor supports.
    pub(crate) fn of_executor(self) -> Self {
        Self {
            threads_per_block: self.threads_per_block.min(MAX_THREADS as u32),
            shared_bytes: self.shared_bytes.min(shared::MAX_BYTES),
            ..self
        }
    }
}
