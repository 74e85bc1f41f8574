//! Counters of memory traffic, barriers and operations of warps.

use std::ops::AddAssign;

/// Loads or stores of global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GlobalTraffic {
    /// Requests: loads or stores of a warp.
    pub requests: u64,
    /// Active lanes, summed over the requests.
    pub lanes: u64,
    /// Requests in which some lanes of the warp are inactive.
    pub divergent: u64,
    /// Bytes that the lanes request. Each byte of a request counts once.
    pub bytes: u64,
    /// 32-byte sectors that contain the requested bytes. Each sector of a request counts once.
    pub sectors: u64,
    /// The mean distance in bytes between neighbouring lanes of a request: the minimum and the maximum over all
    /// requests of two or more lanes.
    pub lane_distance: Option<Range>,
}

/// A minimum and a maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Range {
    /// The minimum.
    pub least: u64,
    /// The maximum.
    pub most: u64,
}

impl Range {
    /// The range of a single number.
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

/// Loads or stores of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedTraffic {
    /// Requests: loads or stores of a warp.
    pub requests: u64,
    /// Active lanes, summed over the requests.
    pub lanes: u64,
    /// Requests in which some lanes of the warp are inactive.
    pub divergent: u64,
    /// Bytes that the lanes request, summed over the lanes.
    pub bytes: u64,
    /// Passes that the requests would take without bank conflicts.
    pub least_passes: u64,
    /// Extra passes because of bank conflicts.
    pub conflicts: u64,
    /// The worst conflict: the largest number of different words of one bank in a request. 2 is a two-way conflict, 1
    /// is none.
    pub worst_ways: u64,
}

/// Atomic operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AtomicTraffic {
    /// Requests: atomic operations of a warp.
    pub requests: u64,
    /// Active lanes, summed over the requests.
    pub lanes: u64,
    /// Requests in which some lanes of the warp are inactive.
    pub divergent: u64,
    /// Lanes that are serialized behind another lane of their request with the same address.
    pub contention: u64,
}

/// The counters of a source line, a kernel or a whole profile.
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
    /// Shuffles, counted once for each warp.
    pub shuffles: u64,
    /// Votes and `redux` reductions, counted once for each warp.
    pub votes: u64,
    /// Calls of `sync_warp`, counted once for each warp.
    pub warp_barriers: u64,
    /// Barriers of the block, counted once for each warp that waits.
    pub barriers: u64,
    /// Barriers of the block, counted once for each block that waits.
    pub block_barriers: u64,
    /// Blocks that have called `griddepcontrol.launch_dependents`. Each counts once.
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
    GlobalTraffic: requests lanes divergent bytes sectors; joined by join_lane_distance,
    SharedTraffic: requests lanes divergent bytes least_passes conflicts; joined by join_ways,
    AtomicTraffic: requests lanes divergent contention,
    Counters: global_loads global_stores shared_loads shared_stores atomics shuffles votes warp_barriers barriers
        block_barriers launch_dependents,
}

impl GlobalTraffic {
    /// The requested bytes, in percent of the sectors' bytes: nvprof's `gld_efficiency` and `gst_efficiency`. `None` if
    /// there are no requests.
    pub fn efficiency(&self) -> Option<f64> {
        (self.sectors > 0).then(|| 100.0 * self.bytes as f64 / (32 * self.sectors) as f64)
    }

    fn join_lane_distance(&mut self, other: &Self) {
        self.lane_distance = Range::joined(self.lane_distance, other.lane_distance);
    }
}

impl SharedTraffic {
    /// The ratio of passes to conflict-free passes: 1 without conflicts, 32 if all lanes use one bank. `None` if there
    /// are no requests.
    pub fn ways(&self) -> Option<f64> {
        (self.least_passes > 0).then(|| 1.0 + self.conflicts as f64 / self.least_passes as f64)
    }

    fn join_ways(&mut self, other: &Self) {
        self.worst_ways = self.worst_ways.max(other.worst_ways);
    }
}

impl Counters {
    /// Extra passes through shared memory because of bank conflicts, of loads and stores.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared_loads.conflicts + self.shared_stores.conflicts
    }

    /// Memory requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.global_loads.requests
            + self.global_stores.requests
            + self.shared_loads.requests
            + self.shared_stores.requests
            + self.atomics.requests
    }

    /// Memory requests in which some lanes of the warp are inactive.
    pub fn divergent_requests(&self) -> u64 {
        self.global_loads.divergent
            + self.global_stores.divergent
            + self.shared_loads.divergent
            + self.shared_stores.divergent
            + self.atomics.divergent
    }

    /// The mean number of lanes in a memory request. `None` if there are no requests.
    pub fn lanes_active(&self) -> Option<f64> {
        let lanes = self.global_loads.lanes
            + self.global_stores.lanes
            + self.shared_loads.lanes
            + self.shared_stores.lanes
            + self.atomics.lanes;
        (self.requests() > 0).then(|| lanes as f64 / self.requests() as f64)
    }
}
