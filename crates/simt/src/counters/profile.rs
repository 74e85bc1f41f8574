//! The counters of launches, by kernel and source line.

use std::collections::BTreeMap;
use std::fmt;

use super::traffic::Counters;
use crate::dim::Dim3;

/// A source line of a kernel, and its counters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The line's counters.
    pub counters: Counters,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The counters of one or more launches of a kernel with one grid and block shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelProfile {
    /// The kernel's name.
    pub kernel: String,
    /// The grid's shape.
    pub grid: Dim3,
    /// The block's shape.
    pub block: Dim3,
    /// The number of launches.
    pub launches: u64,
    /// The lines with counters, sorted by file and line.
    pub lines: Vec<Line>,
}

impl KernelProfile {
    /// The sum over all lines.
    pub fn total(&self) -> Counters {
        self.lines.iter().fold(Counters::default(), |mut total, line| {
            total += line.counters;
            total
        })
    }

    /// The number of blocks of all launches.
    pub fn blocks(&self) -> u64 {
        self.launches * self.grid.count() as u64
    }

    /// The mean number of barriers of a block.
    pub fn barriers_per_block(&self) -> f64 {
        self.total().block_barriers as f64 / self.blocks() as f64
    }
}

/// The counters of one or more launches: those of a `Gpu::profile`.
///
/// As text (`println!("{profile}")`) it is a table of each kernel's source lines, and [advice](Profile::advice).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The kernels in the order of their first launches. Launches of one kernel with different shapes are separate.
    pub kernels: Vec<KernelProfile>,
}

impl Profile {
    /// Adds another profile. Launches of the same kernel and shape are added up.
    pub fn merge(&mut self, other: Self) {
        for kernel in other.kernels {
            let same = |own: &&mut KernelProfile| {
                own.kernel == kernel.kernel && own.grid == kernel.grid && own.block == kernel.block
            };
            match self.kernels.iter_mut().find(same) {
                Some(own) => {
                    own.launches += kernel.launches;
                    own.lines = by_line(own.lines.drain(..).chain(kernel.lines));
                }
                None => self.kernels.push(kernel),
            }
        }
    }

    /// The sum over all kernels.
    pub fn total(&self) -> Counters {
        self.kernels.iter().fold(Counters::default(), |mut total, kernel| {
            total += kernel.total();
            total
        })
    }

    /// The sum over all launches of the kernel with this name, of any shape.
    pub fn kernel(&self, name: &str) -> Counters {
        self.kernels.iter().filter(|kernel| kernel.kernel == name).fold(Counters::default(), |mut total, kernel| {
            total += kernel.total();
            total
        })
    }

    /// Passes through shared memory beyond those of conflict-free accesses.
    pub fn bank_conflicts(&self) -> u64 {
        self.total().bank_conflicts()
    }

    /// nvprof's `gld_efficiency` in percent; 100 if there are no loads.
    pub fn load_efficiency(&self) -> f64 {
        self.total().global_loads.efficiency().unwrap_or(100.0)
    }

    /// nvprof's `gst_efficiency` in percent; 100 if there are no stores.
    pub fn store_efficiency(&self) -> f64 {
        self.total().global_stores.efficiency().unwrap_or(100.0)
    }

    /// Memory requests in which some lanes of the warp are inactive.
    pub fn divergent_requests(&self) -> u64 {
        self.total().divergent_requests()
    }

    /// The mean number of barriers of a block; 0 if there are no blocks.
    pub fn barriers_per_block(&self) -> f64 {
        let blocks: u64 = self.kernels.iter().map(KernelProfile::blocks).sum();
        if blocks == 0 { 0.0 } else { self.total().block_barriers as f64 / blocks as f64 }
    }
}

/// Adds up the counters of equal lines. The result is sorted by file and line.
pub(crate) fn by_line(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut sums: BTreeMap<(&'static str, u32), Counters> = BTreeMap::new();
    for Line { file, line, counters } in lines {
        *sums.entry((file, line)).or_default() += counters;
    }
    sums.into_iter().map(|((file, line), counters)| Line { file, line, counters }).collect()
}
