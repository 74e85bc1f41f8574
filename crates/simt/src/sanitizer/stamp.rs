//! Stamps of accesses: thread, time, site and strength.

use crate::events::sites::SiteId;

/// The thread, time, site and strength of an access, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The block's linear index in the grid; `NO_BLOCK` for no access.
    pub block: u32,
    /// The barrier phase: the number of earlier barriers of the block.
    pub phase: u32,
    /// The warp's time: see [`Clocks`](super::clocks::Clocks).
    pub time: u32,
    /// The thread, the access's strength and the site, packed.
    packed: u32,
}

pub(super) const NO_BLOCK: u32 = u32::MAX;

/// An access's strength, in the PTX memory model's sense, by scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// An ordinary (weak) load or store.
    Plain,
    /// Atomic at the scope of the block.
    Block,
    /// Atomic at the scope of the device.
    Device,
}

/// The bits of the thread.
const THREAD: u32 = 1023;

impl Stamp {
    pub const NONE: Self = Self { block: NO_BLOCK, phase: 0, time: 0, packed: 0 };

    #[inline(always)]
    pub fn new(block: u32, phase: u32, time: u32, thread: usize, strength: Strength, site: SiteId) -> Self {
        // 10 bits for the thread, 2 for the strength, 20 for the site.
        Self { block, phase, time, packed: thread as u32 | (strength as u32) << 10 | site << 12 }
    }

    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.block == NO_BLOCK
    }

    /// Whether two accesses of one block are by one thread.
    #[inline(always)]
    pub fn is_by_thread_of(&self, other: &Self) -> bool {
        (self.packed ^ other.packed) & THREAD == 0
    }

    /// Whether two accesses of one block are by threads of one warp.
    #[inline(always)]
    pub fn is_by_warp_of(&self, other: &Self) -> bool {
        (self.packed ^ other.packed) & (THREAD & !31) == 0
    }

    /// The thread's linear index in its block.
    pub fn thread(self) -> usize {
        (self.packed & THREAD) as usize
    }

    pub fn warp(self) -> usize {
        self.thread() / 32
    }

    #[inline(always)]
    pub fn strength(self) -> Strength {
        match self.packed >> 10 & 3 {
            0 => Strength::Plain,
            1 => Strength::Block,
            _ => Strength::Device,
        }
    }

    pub fn site(self) -> SiteId {
        self.packed >> 12
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_compared_without_the_strength_and_the_site() {
        let stamp = |thread, strength, site| Stamp::new(3, 5, 9, thread, strength, site);
        let own = stamp(40, Strength::Plain, 1);
        let of = |thread| (own.is_by_thread_of(&thread), own.is_by_warp_of(&thread));
        assert_eq!(of(stamp(40, Strength::Device, 7)), (true, true));
        assert_eq!(of(stamp(63, Strength::Plain, 1)), (false, true));
        assert_eq!(of(stamp(64, Strength::Plain, 1)), (false, false));
    }
}
