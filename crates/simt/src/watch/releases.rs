//! What fences and atomics tell blocks of each other.
//!
//! Blocks know of each other only by atomics: a fence keeps what a thread knows ([`Release`]), an atomic operation
//! behind it leaves that at the atomic's place, another thread's operation on the same place finds it, and its fence
//! makes it known. Fences that are in one order with all others (`fence.sc`) do more: after a barrier, one by any
//! thread of the block makes known what another of them has found. (PTX ISA, "Memory Consistency Model": release and
//! acquire patterns, which are cumulative over barriers, and Fence-SC order.)

use std::collections::HashMap;
use std::sync::Arc;

use super::stamp::Stamp;

/// A kind of fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fence {
    /// Whether it is only for the threads of the block.
    pub is_of_block: bool,
    /// Whether it is in one order with all others.
    pub is_sequential: bool,
}

/// What a thread knew at a fence.
#[derive(Debug)]
pub(crate) struct Release {
    pub block: u32,
    pub epoch: u32,
    pub thread: usize,
    /// Of its own warp's lanes, it knew what they did before.
    pub all_know: u32,
    /// And of each of them before.
    pub known: [u32; 32],
    pub acquired: Vec<Acquired>,
    pub fence: Fence,
}

/// The first `version` releases at an atomic's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquired {
    pub place: usize,
    pub version: usize,
    /// Whether the fence behind it is only for the threads of the block.
    pub is_of_block: bool,
    /// Whether another thread has found them: then only those count whose fences are in one order with this thread's.
    pub only_sequential: bool,
}

/// What was left at the places of atomics in a launch, by address.
#[derive(Default)]
pub(crate) struct Releases {
    places: HashMap<usize, PlaceReleases>,
}

#[derive(Default)]
struct PlaceReleases {
    all: Vec<Arc<Release>>,
    by_block: HashMap<u32, Vec<usize>>,
    /// Those that know of other blocks themselves.
    transitive: Vec<usize>,
}

impl Releases {
    /// Leaves what was known at a fence.
    pub fn push(&mut self, place: usize, release: Arc<Release>) {
        let releases = self.places.entry(place).or_default();
        let version = releases.all.len();
        if releases.all.last().is_some_and(|last| Arc::ptr_eq(last, &release)) {
            return;
        }
        releases.by_block.entry(release.block).or_default().push(version);
        if !release.acquired.is_empty() {
            releases.transitive.push(version);
        }
        releases.all.push(release);
    }

    /// How many releases are at the place.
    pub fn version(&self, place: usize) -> usize {
        self.places.get(&place).map_or(0, |releases| releases.all.len())
    }

    /// Whether one who has acquired those knows of an access.
    pub fn know(&self, acquired: &[Acquired], stamp: Stamp, knower: u32) -> bool {
        let mut to_see = acquired.to_vec();
        let mut seen: Vec<Acquired> = Vec::new();
        while let Some(acquired) = to_see.pop() {
            if seen.contains(&acquired) || (acquired.is_of_block && stamp.block != knower) {
                continue;
            }
            seen.push(acquired);
            let Some(releases) = self.places.get(&acquired.place) else { continue };
            let own = releases.by_block.get(&stamp.block).into_iter().flatten();
            for &version in own.take_while(|&&version| version < acquired.version) {
                let release = &releases.all[version];
                let fence = release.fence;
                if release.covers(stamp)
                    && (!fence.is_of_block || stamp.block == knower)
                    && (fence.is_sequential || !acquired.only_sequential)
                {
                    return true;
                }
            }
            for &version in releases.transitive.iter().take_while(|&&version| version < acquired.version) {
                to_see.extend_from_slice(&releases.all[version].acquired);
            }
        }
        false
    }
}

impl Release {
    fn covers(&self, stamp: Stamp) -> bool {
        stamp.epoch < self.epoch
            || stamp.epoch == self.epoch
                && stamp.thread() / 32 == self.thread / 32
                && stamp.time < self.all_know.max(self.known[stamp.thread() % 32])
    }
}
