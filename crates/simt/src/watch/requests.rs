//! What the lanes of a warp did one after the other, put together to the requests that a GPU makes of it.
//!
//! A GPU's lanes run in step, and what they do in one instruction is one request. Here a lane runs until it waits. So
//! each keeps a log, and when all lanes of the warp wait, the logs are laid beside each other: the first visits of a
//! site by the lanes are one request, the second visits another. That is what a GPU does, too, as long as lanes that
//! take the same branches stay together; where lanes come to a site after different numbers of rounds of a loop, a GPU
//! may make more requests of it than are counted here.
//!
//! A lane that is alone in its warp has no log: each of its accesses is a request.

use super::sites::{Kind, SiteId};
use super::traffic::Request;
use crate::lane::{Access, Space};

/// What a lane does, without where in memory. A site has one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub site: SiteId,
    pub kind: Kind,
}

impl Act {
    pub const NONE: Self = Self { site: 0, kind: Kind::new(Space::Global, Access::Load, 0) };

    #[inline(always)]
    pub fn at(self, address: usize) -> Entry {
        Entry { address: address as u64, act: self }
    }
}

/// One access of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub address: u64,
    pub act: Act,
}

/// The logs of a block's lanes since their warps last waited.
pub(crate) struct Logs {
    lanes: Vec<Vec<Entry>>,
    /// For each site: the requests of the warp at hand, by visit.
    visits: Vec<Vec<Request>>,
    /// Sites that have some.
    visited: Vec<SiteId>,
    /// The visits of the lane at hand.
    of_lane: Vec<u32>,
}

impl Logs {
    pub fn new() -> Self {
        Self {
            lanes: (0..1024).map(|_| Vec::new()).collect(),
            visits: Vec::new(),
            visited: Vec::new(),
            of_lane: Vec::new(),
        }
    }

    /// Forgets what the first `lanes` did.
    pub fn clear(&mut self, lanes: usize) {
        self.lanes[..lanes].iter_mut().for_each(Vec::clear);
    }

    /// Notes accesses.
    pub fn extend(&mut self, lane: usize, entries: impl Iterator<Item = Entry>) {
        self.lanes[lane].extend(entries);
    }

    /// Gives each request of the warp with lanes `first..end` to `count`, and empties its logs.
    pub fn requests(&mut self, first: usize, end: usize, mut count: impl FnMut(SiteId, &Request)) {
        let in_step = requests_in_step(&self.lanes[first..end], &mut count);
        for lane in first..end {
            let mut log = std::mem::take(&mut self.lanes[lane]);
            for &Entry { address, act: Act { site, kind } } in log.iter().skip(in_step) {
                let index = site as usize;
                if index >= self.visits.len() {
                    self.visits.resize_with(index + 1, Vec::new);
                    self.of_lane.resize(index + 1, 0);
                }
                let visit = self.of_lane[index] as usize;
                self.of_lane[index] += 1;
                let requests = &mut self.visits[index];
                if requests.is_empty() {
                    self.visited.push(site);
                }
                if visit == requests.len() {
                    requests.push(Request::new(kind));
                }
                requests[visit].mask |= 1 << (lane - first);
                requests[visit].addresses[lane - first] = address;
            }
            for &site in &self.visited {
                self.of_lane[site as usize] = 0;
            }
            log.clear();
            self.lanes[lane] = log;
        }
        for site in self.visited.drain(..) {
            let requests = &mut self.visits[site as usize];
            requests.iter().for_each(|request| count(site, request));
            requests.clear();
        }
    }
}

/// Gives the requests at the logs' starts to `count` for as long as the lanes that go on do the same, and how many
/// entries of each log that was. Their visits of a site are the same ones then, so nothing has to be sorted.
fn requests_in_step(logs: &[Vec<Entry>], count: &mut impl FnMut(SiteId, &Request)) -> usize {
    let mut request = Request::new(Act::NONE.kind);
    let shortest = logs.iter().map(Vec::len).min().unwrap_or(0);
    for step in 0..shortest {
        let act = logs[0][step].act;
        let mut is_same = true;
        // Most lanes do the same, so it is not asked of each.
        for (log, address) in logs.iter().zip(&mut request.addresses) {
            let entry = log[step];
            is_same &= entry.act == act;
            *address = entry.address;
        }
        if !is_same {
            return step;
        }
        request.kind = act.kind;
        request.mask = u32::MAX >> (32 - logs.len());
        count(act.site, &request);
    }
    let longest = logs.iter().map(Vec::len).max().unwrap_or(0);
    for step in shortest..longest {
        let Some(&leader) = logs.iter().find_map(|log| log.get(step)) else { return step };
        request.kind = leader.act.kind;
        request.mask = 0;
        for ((lane, log), address) in logs.iter().enumerate().zip(&mut request.addresses) {
            let Some(entry) = log.get(step) else { continue };
            if entry.act != leader.act {
                return step;
            }
            request.mask |= 1 << lane;
            *address = entry.address;
        }
        count(leader.act.site, &request);
    }
    longest
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    /// The sites and masks of the requests of lanes that visit those sites.
    fn requests(visits: &[&[SiteId]]) -> Vec<(SiteId, u32)> {
        let mut logs = Logs::new();
        for (lane, sites) in visits.iter().enumerate() {
            for &site in *sites {
                let kind = Kind::new(Space::Global, Access::Load, 1);
                logs.extend(lane, iter::once(Act { site, kind }.at(64 + lane)));
            }
        }
        let mut found = Vec::new();
        logs.requests(0, visits.len(), |site, request| {
            assert!((0..32).all(|lane| request.mask >> lane & 1 == 0 || request.addresses[lane] == 64 + lane as u64));
            found.push((site, request.mask));
        });
        logs.requests(0, visits.len(), |site, _| panic!("a request of {site} is left"));
        found.sort_unstable();
        found
    }

    #[test]
    fn lanes_in_step_are_one_request_each_time() {
        assert_eq!(requests(&[&[1, 2, 1], &[1, 2, 1]]), [(1, 3), (1, 3), (2, 3)]);
        assert_eq!(requests(&[&[], &[5], &[5, 5]]), [(5, 0b100), (5, 0b110)], "some go on");
    }

    #[test]
    fn lanes_out_of_step_meet_at_each_site() {
        assert_eq!(requests(&[&[1, 2, 3], &[1, 3]]), [(1, 3), (2, 1), (3, 3)]);
        assert_eq!(requests(&[&[1, 2, 1], &[2, 1, 1]]), [(1, 3), (1, 3), (2, 3)]);
        assert_eq!(requests(&[&[7, 1, 1], &[7, 2]]), [(1, 1), (1, 1), (2, 2), (7, 3)]);
    }
}
