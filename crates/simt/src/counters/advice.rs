//! Advice on a kernel's source lines, one sentence for each finding.

use std::fmt;

use super::profile::{KernelProfile, Line, Profile};
use super::traffic::{Counters, GlobalTraffic, SharedTraffic};
use crate::text::counted;

/// A cause of lost time at a source line of a kernel, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// The file, as the compiler names it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The kind of finding. Several launches may have the same kind at the same line, with other numbers.
    pub kind: &'static str,
    /// The approximate cost: the number of avoidable passes of 128 bytes through memory.
    pub cost: f64,
    /// What was found, and what to do.
    pub text: String,
    /// The number of launches, of different kernels or shapes, with this finding. The numbers are those of the one with
    /// the highest cost.
    pub kernels: usize,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)?;
        if self.kernels > 1 { write!(f, " (the worst of {} launches)", self.kernels) } else { Ok(()) }
    }
}

/// The minimum cost of a finding that is worth advice, as a share of a kernel's requests.
const MIN_SHARE: f64 = 0.02;

impl KernelProfile {
    /// What costs time in this kernel, by source line, the worst first.
    ///
    /// Findings that cost less than 2 % of the kernel's requests are left out.
    pub fn advice(&self) -> Vec<Advice> {
        let least = MIN_SHARE * self.total().requests() as f64;
        let all = self.lines.iter().flat_map(of_line).filter(|advice| advice.cost >= least);
        worst_first(all.collect())
    }
}

impl Profile {
    /// What costs time in these kernels, by source line, the worst first: the [advice](KernelProfile::advice) on each,
    /// with that on the same line only once.
    pub fn advice(&self) -> Vec<Advice> {
        let mut all: Vec<Advice> = Vec::new();
        for advice in self.kernels.iter().flat_map(KernelProfile::advice) {
            let is_same =
                |known: &&mut Advice| (known.file, known.line, known.kind) == (advice.file, advice.line, advice.kind);
            match all.iter_mut().find(is_same) {
                None => all.push(advice),
                Some(known) => {
                    let kernels = known.kernels + 1;
                    if advice.cost > known.cost {
                        *known = advice;
                    }
                    known.kernels = kernels;
                }
            }
        }
        worst_first(all)
    }
}

/// The lines in the order of the cost of all their findings, and those of a line by their own cost.
fn worst_first(mut all: Vec<Advice>) -> Vec<Advice> {
    let place = |advice: &Advice| (advice.file, advice.line);
    let costs: Vec<_> = all.iter().map(|advice| (place(advice), advice.cost)).collect();
    let of_line =
        |advice: &Advice| -> f64 { costs.iter().filter(|(own, _)| *own == place(advice)).map(|(_, cost)| cost).sum() };
    all.sort_by(|one, other| {
        let by_line = of_line(other).total_cmp(&of_line(one)).then(place(one).cmp(&place(other)));
        by_line.then(other.cost.total_cmp(&one.cost))
    });
    all
}

/// A finding at any line.
struct Finding {
    kind: &'static str,
    cost: f64,
    text: String,
}

/// The findings at a line.
fn of_line(line: &Line) -> Vec<Advice> {
    let &Line { file, line, counters } = line;
    let at_line = |Finding { kind, cost, text }| Advice { file, line, kind, cost, text, kernels: 1 };
    findings(&counters).into_iter().map(at_line).collect()
}

/// The findings in the counters of a line.
fn findings(counters: &Counters) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(uncoalesced("loads", &counters.global_loads));
    all.extend(uncoalesced("stores", &counters.global_stores));
    all.extend(conflicts("loads", &counters.shared_loads));
    all.extend(conflicts("stores", &counters.shared_stores));
    all.extend(contention(counters));
    all.extend(divergence(counters));
    all
}

fn uncoalesced(what: &'static str, traffic: &GlobalTraffic) -> Option<Finding> {
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
    Some(Finding {
        kind: what,
        // A pass of 128 bytes is four sectors.
        cost: wasted as f64 / 4.0,
        text: format!(
            "uncoalesced: {what} use {efficiency:.0} % of their sectors, as neighbouring lanes are {stride} apart: let \
             neighbouring lanes access neighbouring elements, or transpose a tile in shared memory"
        ),
    })
}

fn conflicts(what: &str, traffic: &SharedTraffic) -> Option<Finding> {
    (traffic.conflicts > 0).then(|| Finding {
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

fn contention(counters: &Counters) -> Option<Finding> {
    let atomics = counters.atomics;
    (atomics.contention > 0).then(|| Finding {
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

fn divergence(counters: &Counters) -> Option<Finding> {
    let active = counters.lanes_active()?;
    let divergent = counters.divergent_requests();
    // If nearly all lanes are active, single lanes that write the result of a warp or a block are not worth a finding.
    if divergent == 0 || active >= 31.0 {
        return None;
    }
    let idle = divergent as f64 * (1.0 - active / 32.0);
    Some(Finding {
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
    use crate::lane::{self, Access, Space};

    fn profiled(access: impl Fn(usize) + Sync) -> Vec<Advice> {
        let launch = crate::Launch::new("k", 1, 32);
        crate::profile(&launch, &|| access(lane::lane_id() as usize)).unwrap().advice()
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
