//! What the lanes of a warp did one after the other, put together to the requests that a GPU makes of it.
//!
//! A GPU's lanes run in step, and what they do in one instruction is one request. Here a lane runs until it waits. So each
//! keeps a log, and when all lanes of the warp wait, the logs are laid beside each other: the first visits of a site by the
//! lanes are one request, the second visits another. That is what a GPU does, too, as long as lanes that take the same
//! branches stay together; where lanes come to a site after different numbers of rounds of a loop, a GPU may make more
//! requests of it than are counted here.

use super::sites::SiteId;
use super::traffic::Request;
use crate::lane::{Access, Space};

/// One access of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub address: u64,
    pub site: SiteId,
    pub bytes: u8,
    pub space: Space,
    pub access: Access,
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

    pub fn clear(&mut self) {
        self.lanes.iter_mut().for_each(Vec::clear);
    }

    /// Notes an access, and gives how many the lane's log has.
    #[inline]
    pub fn push(&mut self, lane: usize, entry: Entry) -> usize {
        self.lanes[lane].push(entry);
        self.lanes[lane].len()
    }

    /// Gives each request of the warp with lanes `first..end` to `count`, and empties its logs.
    pub fn requests(&mut self, first: usize, end: usize, mut count: impl FnMut(SiteId, &Request)) {
        for lane in first..end {
            let mut log = std::mem::take(&mut self.lanes[lane]);
            for &Entry { address, site, bytes, space, access } in &log {
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
                    requests.push(Request::new(space, access, u64::from(bytes)));
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
