//! Combines the accesses of a warp's lanes into the requests that a GPU would make of them.
//!
//! The lanes of a GPU run in lockstep, and one instruction of a warp is one request. Here a lane runs until it waits.
//! So each lane keeps a log, and the logs are combined when all lanes of the warp wait: the lanes' first visits of a
//! site form one request, their second visits another, and so on. A GPU does the same as long as lanes that take the
//! same branches stay together. Where lanes reach a site after different numbers of iterations of a loop, a GPU may
//! make more requests than are counted here.

use super::access_log::{Instruction, LogEntry};
use super::request::Request;
use crate::dim::MAX_THREADS;
use crate::events::sites::SiteId;

/// The logs of a block's lanes since their warps last waited.
pub(crate) struct WarpLogs {
    lanes: Vec<Vec<LogEntry>>,
    /// The requests of the current warp, by site and visit.
    requests: Vec<Vec<Request>>,
    /// The sites that have requests.
    visited: Vec<SiteId>,
    /// The current lane's visits, by site.
    visits: Vec<u32>,
}

impl WarpLogs {
    pub fn new() -> Self {
        Self {
            lanes: (0..MAX_THREADS).map(|_| Vec::new()).collect(),
            requests: Vec::new(),
            visited: Vec::new(),
            visits: Vec::new(),
        }
    }

    /// Empties the logs of the first `threads` threads.
    pub fn clear(&mut self, threads: usize) {
        self.lanes[..threads].iter_mut().for_each(Vec::clear);
    }

    /// Appends accesses to a thread's log.
    pub fn extend(&mut self, thread: usize, entries: impl Iterator<Item = LogEntry>) {
        self.lanes[thread].extend(entries);
    }

    /// Passes each request of the warp of threads `first..end` to `count`, and empties the warp's logs.
    pub fn drain_requests(&mut self, first: usize, end: usize, mut count: impl FnMut(SiteId, &Request)) {
        let in_lockstep = requests_in_lockstep(&self.lanes[first..end], &mut count);
        for thread in first..end {
            let mut log = std::mem::take(&mut self.lanes[thread]);
            for &LogEntry { address, instruction: Instruction { site, kind } } in log.iter().skip(in_lockstep) {
                let index = site as usize;
                if index >= self.requests.len() {
                    self.requests.resize_with(index + 1, Vec::new);
                    self.visits.resize(index + 1, 0);
                }
                let visit = self.visits[index] as usize;
                self.visits[index] += 1;
                let requests = &mut self.requests[index];
                if requests.is_empty() {
                    self.visited.push(site);
                }
                if visit == requests.len() {
                    requests.push(Request::new(kind));
                }
                requests[visit].mask |= 1 << (thread - first);
                requests[visit].addresses[thread - first] = address;
            }
            for &site in &self.visited {
                self.visits[site as usize] = 0;
            }
            log.clear();
            self.lanes[thread] = log;
        }
        for site in self.visited.drain(..) {
            let requests = &mut self.requests[site as usize];
            requests.iter().for_each(|request| count(site, request));
            requests.clear();
        }
    }
}

/// Passes each request at the start of the logs to `count`, as long as all lanes that have an entry ran the same
/// instruction. The lanes' visits of a site then agree, and no sorting is necessary. Returns the number of entries
/// taken from each log.
fn requests_in_lockstep(logs: &[Vec<LogEntry>], count: &mut impl FnMut(SiteId, &Request)) -> usize {
    let mut request = Request::new(Instruction::NONE.kind);
    let shortest = logs.iter().map(Vec::len).min().unwrap_or(0);
    for step in 0..shortest {
        let instruction = logs[0][step].instruction;
        let mut is_same = true;
        // No branch for each lane: most steps are in lockstep.
        for (log, address) in logs.iter().zip(&mut request.addresses) {
            let entry = log[step];
            is_same &= entry.instruction == instruction;
            *address = entry.address;
        }
        if !is_same {
            return step;
        }
        request.kind = instruction.kind;
        request.mask = u32::MAX >> (32 - logs.len());
        count(instruction.site, &request);
    }
    let longest = logs.iter().map(Vec::len).max().unwrap_or(0);
    for step in shortest..longest {
        let Some(&leader) = logs.iter().find_map(|log| log.get(step)) else { return step };
        request.kind = leader.instruction.kind;
        request.mask = 0;
        for ((lane, log), address) in logs.iter().enumerate().zip(&mut request.addresses) {
            let Some(entry) = log.get(step) else { continue };
            if entry.instruction != leader.instruction {
                return step;
            }
            request.mask |= 1 << lane;
            *address = entry.address;
        }
        count(leader.instruction.site, &request);
    }
    longest
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::events::access::{Access, AccessKind, Space};

    /// The requests' sites and masks, for lanes that visit the given sites.
    fn requests(visits: &[&[SiteId]]) -> Vec<(SiteId, u32)> {
        let mut logs = WarpLogs::new();
        for (lane, sites) in visits.iter().enumerate() {
            for &site in *sites {
                let kind = AccessKind::new(Space::Global, Access::Load, 1);
                logs.extend(lane, iter::once(Instruction { site, kind }.at(64 + lane)));
            }
        }
        let mut found = Vec::new();
        logs.drain_requests(0, visits.len(), |site, request| {
            assert!((0..32).all(|lane| request.mask >> lane & 1 == 0 || request.addresses[lane] == 64 + lane as u64));
            found.push((site, request.mask));
        });
        logs.drain_requests(0, visits.len(), |site, _| panic!("a request of site {site} is left"));
        found.sort_unstable();
        found
    }

    #[test]
    fn lanes_in_lockstep_make_one_request_a_step() {
        assert_eq!(requests(&[&[1, 2, 1], &[1, 2, 1]]), [(1, 3), (1, 3), (2, 3)]);
        assert_eq!(requests(&[&[], &[5], &[5, 5]]), [(5, 0b100), (5, 0b110)], "some lanes continue");
    }

    #[test]
    fn lanes_out_of_lockstep_meet_at_each_site() {
        assert_eq!(requests(&[&[1, 2, 3], &[1, 3]]), [(1, 3), (2, 1), (3, 3)]);
        assert_eq!(requests(&[&[1, 2, 1], &[2, 1, 1]]), [(1, 3), (1, 3), (2, 3)]);
        assert_eq!(requests(&[&[7, 1, 1], &[7, 2]]), [(1, 1), (1, 1), (2, 2), (7, 3)]);
    }
}
