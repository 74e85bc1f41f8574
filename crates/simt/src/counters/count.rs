//! Adds requests to counters.

use super::banks::Passes;
use super::request::Request;
use super::traffic::{AtomicTraffic, Counters, GlobalTraffic, Range, SharedTraffic};
use crate::events::access::{Access, AccessKind, Space};

/// Adds a request of a warp that has the lanes `all`.
pub(super) fn count(counters: &mut Counters, request: &Request, all: u32) {
    if request.mask.is_power_of_two() {
        let address = request.addresses[request.mask.trailing_zeros() as usize];
        return count_single_lane(counters, request.kind, address, request.mask != all);
    }
    let lanes = u64::from(request.mask.count_ones());
    let divergent = u64::from(request.mask != all);
    let is_load = request.kind.access() == Access::Load;
    match (request.kind.space(), request.kind.access()) {
        (_, Access::Atomic) => {
            let contention = request.contention();
            counters.atomics += AtomicTraffic { requests: 1, lanes, divergent, contention };
        }
        (Space::Global, _) => {
            let (sectors, bytes) = request.sectors();
            let lane_distance = request.lane_distance().map(Range::of);
            let traffic = if is_load { &mut counters.global_loads } else { &mut counters.global_stores };
            *traffic += GlobalTraffic { requests: 1, lanes, divergent, bytes, sectors, lane_distance };
        }
        (Space::Shared, _) => {
            let Passes { total, least, worst_ways } = request.passes();
            let (bytes, least_passes, conflicts) = (lanes * request.bytes(), least, total - least);
            let traffic = if is_load { &mut counters.shared_loads } else { &mut counters.shared_stores };
            *traffic += SharedTraffic { requests: 1, lanes, divergent, bytes, least_passes, conflicts, worst_ways };
        }
    }
}

/// Adds a request of a single lane: the same result as [`count`], but faster. `is_divergent`: the warp has other lanes.
#[inline]
pub(super) fn count_single_lane(counters: &mut Counters, kind: AccessKind, address: u64, is_divergent: bool) {
    let bytes = kind.bytes() as u64;
    let (requests, lanes, divergent) = (1, 1, u64::from(is_divergent));
    let is_load = kind.access() == Access::Load;
    match (kind.space(), kind.access()) {
        (_, Access::Atomic) => {
            counters.atomics += AtomicTraffic { requests, lanes, divergent, contention: 0 };
        }
        (Space::Global, _) => {
            let sectors = (address + bytes - 1) / 32 - address / 32 + 1;
            let traffic = if is_load { &mut counters.global_loads } else { &mut counters.global_stores };
            traffic.requests += requests;
            traffic.lanes += lanes;
            traffic.divergent += divergent;
            traffic.bytes += bytes;
            traffic.sectors += sectors;
            // `lane_distance` stays: a single lane has no neighbour.
        }
        (Space::Shared, _) => {
            // The words of one access lie in different banks.
            let (least_passes, conflicts, worst_ways) = (1, 0, 1);
            let traffic = if is_load { &mut counters.shared_loads } else { &mut counters.shared_stores };
            *traffic += SharedTraffic { requests, lanes, divergent, bytes, least_passes, conflicts, worst_ways };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::request;
    use super::*;

    #[test]
    fn a_single_lane_is_counted_like_any_request() {
        let cases = [(1, 5, 0), (4, 64, 31), (8, 24, 7), (16, 16, 9), (16, 24, 9), (2, 128, 1)];
        for (bytes, address, lane) in cases {
            let request = request(bytes, 1 << lane, |_| address);
            let [mut global, mut shared, mut atomic] = [Counters::default(); 3];
            let kind = |space, access| AccessKind::new(space, access, bytes as usize);
            count_single_lane(&mut global, kind(Space::Global, Access::Load), address, true);
            count_single_lane(&mut shared, kind(Space::Shared, Access::Load), address, true);
            count_single_lane(&mut atomic, kind(Space::Global, Access::Atomic), address, true);
            assert_eq!((global.global_loads.sectors, global.global_loads.bytes), request.sectors());
            assert_eq!(global.global_loads.lane_distance, request.lane_distance().map(Range::of));
            let SharedTraffic { least_passes: least, conflicts, worst_ways, .. } = shared.shared_loads;
            assert_eq!(Passes { total: least + conflicts, least, worst_ways }, request.passes());
            assert_eq!(atomic.atomics.contention, request.contention());
        }
    }
}
