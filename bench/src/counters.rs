//! The executor's counters, for tables and JSON.

use serde::Serialize;
use warpfold::Counters;

use crate::number::counted;

/// The counters of a source line, or of a rung.
#[derive(Clone, Debug, Serialize)]
pub struct CountersRow {
    pub load_requests: u64,
    pub load_sectors: u64,
    pub load_bytes: u64,
    /// The efficiency of loads in percent, like nvprof's `gld_efficiency`.
    pub load_efficiency: Option<f64>,
    pub store_requests: u64,
    pub store_sectors: u64,
    pub store_bytes: u64,
    pub store_efficiency: Option<f64>,
    pub shared_load_requests: u64,
    pub shared_load_conflicts: u64,
    pub shared_store_requests: u64,
    pub shared_store_conflicts: u64,
    pub bank_conflicts: u64,
    pub atomic_requests: u64,
    pub atomic_contention: u64,
    pub lanes_active: Option<f64>,
    pub divergent_requests: u64,
    pub barriers: u64,
    pub warp_barriers: u64,
    pub shuffles: u64,
    pub votes: u64,
    pub launch_dependents: u64,
}

impl CountersRow {
    pub fn of(counters: &Counters) -> Self {
        let Counters { global_loads, global_stores, shared_loads, shared_stores, atomics, .. } = counters;
        Self {
            load_requests: global_loads.requests,
            load_sectors: global_loads.sectors,
            load_bytes: global_loads.bytes,
            load_efficiency: global_loads.efficiency(),
            store_requests: global_stores.requests,
            store_sectors: global_stores.sectors,
            store_bytes: global_stores.bytes,
            store_efficiency: global_stores.efficiency(),
            shared_load_requests: shared_loads.requests,
            shared_load_conflicts: shared_loads.conflicts,
            shared_store_requests: shared_stores.requests,
            shared_store_conflicts: shared_stores.conflicts,
            bank_conflicts: counters.bank_conflicts(),
            atomic_requests: atomics.requests,
            atomic_contention: atomics.contention,
            lanes_active: counters.lanes_active(),
            divergent_requests: counters.divergent_requests(),
            barriers: counters.barriers,
            warp_barriers: counters.warp_barriers,
            shuffles: counters.shuffles,
            votes: counters.votes,
            launch_dependents: counters.launch_dependents,
        }
    }

    /// Requests to memory of any kind.
    pub fn requests(&self) -> u64 {
        self.load_requests
            + self.store_requests
            + self.shared_load_requests
            + self.shared_store_requests
            + self.atomic_requests
    }

    /// The operations that synchronize lanes, for a table: `2 barriers, 1 vote`.
    pub fn synchronization(&self) -> String {
        let kinds = [
            (self.barriers, "barrier", "barriers"),
            (self.warp_barriers, "warp barrier", "warp barriers"),
            (self.shuffles, "shuffle", "shuffles"),
            (self.votes, "vote", "votes"),
        ];
        let present = kinds.iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| counted(count, one, many));
        present.collect::<Vec<_>>().join(", ")
    }

    pub const CSV_HEADER: &str = "load_requests,load_sectors,load_bytes,load_efficiency,store_requests,store_sectors,\
        store_bytes,store_efficiency,shared_load_requests,shared_load_conflicts,shared_store_requests,\
        shared_store_conflicts,atomic_requests,atomic_contention,lanes_active,divergent_requests,barriers,\
        warp_barriers,shuffles,votes,launch_dependents";

    /// Empty values for [`CountersRow::CSV_HEADER`].
    pub fn no_csv() -> String {
        ",".repeat(Self::CSV_HEADER.matches(',').count())
    }

    /// The values of [`CountersRow::CSV_HEADER`].
    pub fn csv(&self) -> String {
        let count = |count: u64| count.to_string();
        let value = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
        [
            count(self.load_requests),
            count(self.load_sectors),
            count(self.load_bytes),
            value(self.load_efficiency),
            count(self.store_requests),
            count(self.store_sectors),
            count(self.store_bytes),
            value(self.store_efficiency),
            count(self.shared_load_requests),
            count(self.shared_load_conflicts),
            count(self.shared_store_requests),
            count(self.shared_store_conflicts),
            count(self.atomic_requests),
            count(self.atomic_contention),
            value(self.lanes_active),
            count(self.divergent_requests),
            count(self.barriers),
            count(self.warp_barriers),
            count(self.shuffles),
            count(self.votes),
            count(self.launch_dependents),
        ]
        .join(",")
    }
}

/// A percentage, or a dash.
pub fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1} %"))
}

/// A number, or a dash.
pub fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}
