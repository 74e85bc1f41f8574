//! What the lanes of a launch did, counted.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use crate::Dim3;

/// Accesses of global memory, as requests of warps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalTraffic {
    /// Loads or stores of a warp.
    pub requests: u64,
    /// Lanes that took part in them.
    pub lanes: u64,
    /// Requests that not all lanes of the warp took part in.
    pub divergent: u64,
    /// Bytes that the lanes asked for, each byte of a request once.
    pub bytes: u64,
    /// 32-byte sectors that these lie in, each sector of a request once.
    pub sectors: u64,
    /// How far apart the lanes of a request are, in bytes: the least and the most of all requests of two lanes or more.
    pub apart: Option<Range>,
}

/// The least and the most of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Range {
    /// Of one number.
    pub(crate) fn of(number: u64) -> Self {
        Self { least: number, most: number }
    }

    fn joined(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => {
                Some(Self { least: one.least.min(other.least), most: one.most.max(other.most) })
            }
            _ => one.or(other),
        }
    }
}

/// Accesses of shared memory, as requests of warps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedTraffic {
    /// Loads or stores of a warp.
    pub requests: u64,
    /// Lanes that took part in them.
    pub lanes: u64,
    /// Requests that not all lanes of the warp took part in.
    pub divergent: u64,
    /// Bytes that the lanes asked for, a lane's each.
    pub bytes: u64,
    /// Passes that the requests need if no lane wants another word of a bank that another lane uses.
    pub least_passes: u64,
    /// Passes beyond those.
    pub conflicts: u64,
    /// The most lanes of a request that wanted different words of one bank: 2 is a two-way conflict.
    pub worst_ways: u64,
}

/// Atomic operations on global memory, as requests of warps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AtomicTraffic {
    /// Operations of a warp.
    pub requests: u64,
    /// Lanes that took part in them.
    pub lanes: u64,
    /// Requests that not all lanes of the warp took part in.
    pub divergent: u64,
    /// Lanes that had to wait for another of the request, which changed the same place.
    pub contention: u64,
}

/// Counters: of a line, a kernel or all that was profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Loads from global memory.
    pub global_loads: GlobalTraffic,
    /// Stores to global memory.
    pub global_stores: GlobalTraffic,
    /// Loads from shared memory.
    pub shared_loads: SharedTraffic,
    /// Stores to shared memory.
    pub shared_stores: SharedTraffic,
    /// Atomic operations.
    pub atomics: AtomicTraffic,
    /// Shuffles of a warp.
    pub shuffles: u64,
    /// Votes and reductions of a warp.
    pub votes: u64,
    /// Barriers of a warp.
    pub warp_barriers: u64,
    /// Barriers of the block that warps have met, one for each warp and barrier.
    pub barriers: u64,
    /// Barriers of the block that blocks have met, one for each block and barrier.
    pub block_barriers: u64,
    /// Blocks that have let the next grid start (`griddepcontrol.launch_dependents`), each once.
    pub launch_dependents: u64,
}

macro_rules! sums {
    ($($type:ident: $($field:ident)* $(; joined by $join:ident)?,)*) => {$(
        impl AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
                $(self.$join(&other);)?
            }
        }
    )*};
}

sums! {
    GlobalTraffic: requests lanes divergent bytes sectors; joined by join_apart,
    SharedTraffic: requests lanes divergent bytes least_passes conflicts; joined by join_ways,
    AtomicTraffic: requests lanes divergent contention,
    Counters: global_loads global_stores shared_loads shared_stores atomics shuffles votes warp_barriers barriers
        block_barriers launch_dependents,
}

impl GlobalTraffic {
    /// The bytes asked for in percent of the sectors that hold them; `None` without a request. nvprof's
    /// `gld_efficiency` and `gst_efficiency`.
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors > 0).then(|| 100.0 * self.bytes as f64 / (32 * self.sectors) as f64)
    }

    fn join_apart(&mut self, other: &Self) {
        self.apart = Range::joined(self.apart, other.apart);
    }
}

impl SharedTraffic {
    /// How many passes a request takes for each that it would need: 1 without conflicts, 32 if all lanes want one bank.
    pub fn ways(&self) -> Option<f64> {
        (self.least_passes > 0).then(|| 1.0 + self.conflicts as f64 / self.least_passes as f64)
    }

    fn join_ways(&mut self, other: &Self) {
        self.worst_ways = self.worst_ways.max(other.worst_ways);
    }
}

impl Counters {
    /// Passes through shared memory beyond those that the requests would need, of loads and stores.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared_loads.conflicts + self.shared_stores.conflicts
    }

    /// Requests to memory of any kind.
    pub fn requests(&self) -> u64 {
        self.global_loads.requests
            + self.global_stores.requests
            + self.shared_loads.requests
            + self.shared_stores.requests
            + self.atomics.requests
    }

    /// Requests to memory that not all lanes of the warp took part in.
    pub fn divergent_requests(&self) -> u64 {
        self.global_loads.divergent
            + self.global_stores.divergent
            + self.shared_loads.divergent
            + self.shared_stores.divergent
            + self.atomics.divergent
    }

    /// Lanes that took part in a request to memory, on average; `None` without one.
    pub fn lanes_active(&self) -> Option<f64> {
        let lanes = self.global_loads.lanes
            + self.global_stores.lanes
            + self.shared_loads.lanes
            + self.shared_stores.lanes
            + self.atomics.lanes;
        (self.requests() > 0).then(|| lanes as f64 / self.requests() as f64)
    }
}

/// A line of a kernel's source, and what lanes did there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The file, as the compiler was told its name.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// What was counted there.
    pub counters: Counters,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A launch, or several of one kernel with one grid and block.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KernelProfile {
    /// The kernel.
    pub kernel: String,
    /// Blocks of a launch.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Launches.
    pub launches: u64,
    /// All of its lines that did something that is counted, by file and line.
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

    /// Blocks of all launches.
    pub fn blocks(&self) -> u64 {
        self.launches * self.grid.count() as u64
    }

    /// Barriers that a block meets, on average.
    pub fn barriers_per_block(&self) -> f64 {
        self.total().block_barriers as f64 / self.blocks() as f64
    }
}

/// What was counted in one launch or many: see [`crate::profile`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Profile {
    /// The kernels in the order of their first launches; launches of one kernel with another grid or block are apart.
    pub kernels: Vec<KernelProfile>,
}

impl Profile {
    /// Adds what another profile counted, launches of the same shape to each other.
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

    /// The sum over the kernels that were launched under this name, whatever their grids.
    pub fn kernel(&self, name: &str) -> Counters {
        self.kernels.iter().filter(|kernel| kernel.kernel == name).fold(Counters::default(), |mut total, kernel| {
            total += kernel.total();
            total
        })
    }

    /// Passes through shared memory beyond those that the requests would need.
    pub fn bank_conflicts(&self) -> u64 {
        self.total().bank_conflicts()
    }

    /// nvprof's `gld_efficiency`, in percent; 100 without a load.
    pub fn load_efficiency(&self) -> f64 {
        self.total().global_loads.efficiency().unwrap_or(100.0)
    }

    /// nvprof's `gst_efficiency`, in percent; 100 without a store.
    pub fn store_efficiency(&self) -> f64 {
        self.total().global_stores.efficiency().unwrap_or(100.0)
    }

    /// Requests to memory that not all lanes of the warp took part in.
    pub fn divergent_requests(&self) -> u64 {
        self.total().divergent_requests()
    }

    /// Barriers that a block meets, on average over all blocks; 0 without one.
    pub fn barriers_per_block(&self) -> f64 {
        let blocks: u64 = self.kernels.iter().map(KernelProfile::blocks).sum();
        if blocks == 0 { 0.0 } else { self.total().block_barriers as f64 / blocks as f64 }
    }
}

/// Lines with the counters of equal ones added, by file and line.
pub(crate) fn by_line(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut sums: BTreeMap<(&'static str, u32), Counters> = BTreeMap::new();
    for Line { file, line, counters } in lines {
        *sums.entry((file, line)).or_default() += counters;
    }
    sums.into_iter().map(|((file, line), counters)| Line { file, line, counters }).collect()
}
