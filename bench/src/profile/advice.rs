//! Advice for a source line, one sentence per finding.

use warpfold::{Counters, GlobalTraffic, SharedTraffic};

use crate::number::counted;

/// A cause of lost time at a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The kind of finding. Several launches may have the same kind at the same line, with other numbers.
    pub kind: &'static str,
    /// The approximate cost: the number of avoidable passes of 128 bytes through memory.
    pub cost: f64,
    /// The advice.
    pub text: String,
}

/// The findings in the counters of a line, worst first.
pub fn of(counters: &Counters) -> Vec<Advice> {
    let mut all = Vec::new();
    all.extend(uncoalesced("loads", &counters.global_loads));
    all.extend(uncoalesced("stores", &counters.global_stores));
    all.extend(conflicts("loads", &counters.shared_loads));
    all.extend(conflicts("stores", &counters.shared_stores));
    all.extend(contention(counters));
    all.extend(divergence(counters));
    all.sort_by(|one, other| other.cost.total_cmp(&one.cost));
    all
}

fn uncoalesced(what: &'static str, traffic: &GlobalTraffic) -> Option<Advice> {
    let efficiency = traffic.efficiency()?;
    let lane_distance = traffic.lane_distance?;
    let wasted = traffic.sectors - traffic.bytes.div_ceil(32).min(traffic.sectors);
    if efficiency >= 90.0 || lane_distance.most == 0 {
        return None;
    }
    let stride = match (lane_distance.least, lane_distance.most) {
        (least, most) if least == most => counted(least, "byte", "bytes"),
        (least, most) => format!("{least} to {most} bytes"),
    };
    Some(Advice {
        kind: what,
        // A pass of 128 bytes is four sectors.
        cost: wasted as f64 / 4.0,
        text: format!(
            "uncoalesced: {what} use {efficiency:.0} % of their sectors, as neighbouring lanes are {stride} apart: let \
             neighbouring lanes access neighbouring elements, or transpose a tile in shared memory"
        ),
    })
}

fn conflicts(what: &str, traffic: &SharedTraffic) -> Option<Advice> {
    (traffic.conflicts > 0).then(|| Advice {
        kind: if what == "loads" { "conflicts of loads" } else { "conflicts of stores" },
        cost: traffic.conflicts as f64,
        text: format!(
            "bank conflict: {what} are up to {}-way, {} for {}: change the stride, or pad \
             each row by one element",
            traffic.worst_ways,
            counted(traffic.conflicts, "extra pass", "extra passes"),
            counted(traffic.requests, "request", "requests")
        ),
    })
}

fn contention(counters: &Counters) -> Option<Advice> {
    let atomics = counters.atomics;
    (atomics.contention > 0).then(|| Advice {
        kind: "contention",
        cost: atomics.contention as f64,
        text: format!(
            "contention: {:.1} of {:.1} lanes of a request wait for another lane that updates the same address: \
             combine the warp's values by shuffles first",
            atomics.contention as f64 / atomics.requests as f64,
            atomics.lanes as f64 / atomics.requests as f64
        ),
    })
}

fn divergence(counters: &Counters) -> Option<Advice> {
    let active = counters.lanes_active()?;
    let divergent = counters.divergent_requests();
    // If nearly all lanes are active, single lanes that write the result of a warp or a block are not worth a finding.
    if divergent == 0 || active >= 31.0 {
        return None;
    }
    let idle = divergent as f64 * (1.0 - active / 32.0);
    Some(Advice {
        kind: "divergence",
        cost: idle,
        text: format!(
            "divergent: {active:.1} of 32 lanes active on average, {divergent} of {} not by the whole warp: give work \
             either to all lanes of a warp or to none",
            counted(counters.requests(), "request", "requests")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt::lane::{self, Access, Space};

    fn profiled(access: impl Fn(usize) + Sync) -> Vec<Advice> {
        let launch = simt::Launch::new("k", 1, 32);
        of(&simt::profile(&launch, &|| access(lane::lane_id() as usize)).unwrap().total())
    }

    #[test]
    fn a_coalesced_line_needs_no_advice() {
        assert_eq!(profiled(|lane| lane::access(Space::Global, Access::Load, 4096 + 4 * lane, 4)), []);
    }

    #[test]
    fn the_stride_and_the_ways_are_named() {
        let strided = profiled(|lane| lane::access(Space::Global, Access::Load, 4096 + 64 * lane, 4));
        assert!(strided[0].text.contains("64 bytes apart") && strided[0].text.contains("12 %"), "{strided:?}");
        let conflicts = profiled(|lane| {
            let tile = lane::shared_array(1, 4096, 4).addr();
            lane::access(Space::Shared, Access::Store, tile + 32 * lane, 4);
        });
        assert!(conflicts[0].text.contains("8-way, 7 extra passes for 1 request:"), "{conflicts:?}");
    }

    #[test]
    fn idle_lanes_and_contention_are_named() {
        let divergent = profiled(|lane| {
            if lane.is_multiple_of(2) {
                lane::access(Space::Global, Access::Load, 4096, 4);
            }
        });
        assert!(divergent[0].text.contains("16.0 of 32 lanes active"), "{divergent:?}");
        let contended = profiled(|_| lane::atomic(Access::Atomic, 4096, 4, false, || (), |()| true));
        assert!(contended[0].text.contains("31.0 of 32.0 lanes"), "{contended:?}");
    }
}
