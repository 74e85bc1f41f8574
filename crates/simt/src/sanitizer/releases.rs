//! Happens-before between blocks: releases and acquires by fences and atomics.
//!
//! Blocks synchronize only through atomics. A fence captures what its thread knows (a [`Release`]). A later atomic
//! operation of the thread publishes the release at the atomic's address. Another thread's operation on the address
//! observes it, and that thread's next fence acquires it. Sequentially consistent fences (`fence.sc`) do more: after a
//! barrier, such a fence by any thread of the block acquires what another thread of the block has observed. (PTX ISA,
//! "Memory Consistency Model": release and acquire patterns, which are cumulative over barriers, and Fence-SC order.)

use std::collections::HashMap;
use std::sync::Arc;

use super::stamp::Stamp;
use crate::events::sync::Fence;

/// A thread's knowledge at a fence.
#[derive(Debug)]
pub(super) struct Release {
    pub block: u32,
    pub phase: u32,
    pub thread: usize,
    /// The thread knew all accesses of its own warp before this time.
    pub all_know: u32,
    /// For each lane of the thread's warp: the thread knew the lane's accesses before this time.
    pub known: [u32; 32],
    pub acquired: Vec<Acquired>,
    pub fence: Fence,
}

/// The first `version` releases at an atomic's address, as acquired by a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acquired {
    pub address: usize,
    pub version: usize,
    /// The acquiring fence orders only threads of its block.
    pub is_of_block: bool,
    /// Another thread of the block observed them. Then only releases by sequential fences count.
    pub only_sequential: bool,
}

/// The releases of a launch, by the atomics' addresses.
#[derive(Default)]
pub(super) struct Releases {
    by_address: HashMap<usize, AddressReleases>,
}

#[derive(Default)]
struct AddressReleases {
    all: Vec<Arc<Release>>,
    /// Versions by the releasing block.
    by_block: HashMap<u32, Vec<usize>>,
    /// Versions of releases whose thread had acquired others.
    transitive: Vec<usize>,
}

impl Releases {
    /// Publishes a release at an address.
    pub fn push(&mut self, address: usize, release: Arc<Release>) {
        let releases = self.by_address.entry(address).or_default();
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

    /// The number of releases at an address.
    pub fn version(&self, address: usize) -> usize {
        self.by_address.get(&address).map_or(0, |releases| releases.all.len())
    }

    /// Whether an access happens before the accesses that follow these acquires in the block `acquirer`.
    pub fn know(&self, acquired: &[Acquired], stamp: Stamp, acquirer: u32) -> bool {
        let mut open = acquired.to_vec();
        let mut visited: Vec<Acquired> = Vec::new();
        while let Some(acquired) = open.pop() {
            if visited.contains(&acquired) || (acquired.is_of_block && stamp.block != acquirer) {
                continue;
            }
            visited.push(acquired);
            let Some(releases) = self.by_address.get(&acquired.address) else { continue };
            let of_block = releases.by_block.get(&stamp.block).into_iter().flatten();
            for &version in of_block.take_while(|&&version| version < acquired.version) {
                let release = &releases.all[version];
                let fence = release.fence;
                if release.covers(stamp)
                    && (!fence.is_of_block || stamp.block == acquirer)
                    && (fence.is_sequential || !acquired.only_sequential)
                {
                    return true;
                }
            }
            for &version in releases.transitive.iter().take_while(|&&version| version < acquired.version) {
                open.extend_from_slice(&releases.all[version].acquired);
            }
        }
        false
    }
}

impl Release {
    /// Whether the releasing thread knew of an access of its block.
    fn covers(&self, stamp: Stamp) -> bool {
        stamp.phase < self.phase
            || stamp.phase == self.phase
                && stamp.warp() == self.thread / 32
                && stamp.time < self.all_know.max(self.known[stamp.thread() % 32])
    }
}
