//! When, by whom and where memory was accessed, in 16 bytes.

use super::sites::SiteId;

/// When, by whom and where memory was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The block's number in the grid; `NOBODY` for no access at all.
    pub block: u32,
    /// Barriers of the block before it.
    pub epoch: u32,
    /// The warp's time.
    pub time: u32,
    /// Thread, width of an atomic's scope and site, packed.
    who: u32,
}

pub(super) const NOBODY: u32 = u32::MAX;

/// How an access takes part in races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// An ordinary load or store.
    Plain,
    /// Atomic for the threads of the block.
    Block,
    /// Atomic for all.
    Device,
}

impl Stamp {
    pub const NONE: Self = Self { block: NOBODY, epoch: 0, time: 0, who: 0 };

    pub fn new(block: u32, epoch: u32, time: u32, thread: usize, strength: Strength, site: SiteId) -> Self {
        // 1024 threads, and a million sites.
        Self { block, epoch, time, who: thread as u32 | (strength as u32) << 10 | site << 12 }
    }

    pub fn is_none(self) -> bool {
        self.block == NOBODY
    }

    pub fn thread(self) -> usize {
        (self.who & 1023) as usize
    }

    pub fn strength(self) -> Strength {
        match self.who >> 10 & 3 {
            0 => Strength::Plain,
            1 => Strength::Block,
            _ => Strength::Device,
        }
    }

    pub fn site(self) -> SiteId {
        self.who >> 12
    }
}
