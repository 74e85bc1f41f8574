//! Interned warp timestamps.
//!
//! The order of an access depends on its block, barrier phase, warp and the warp's time. These stay the same for all
//! accesses of a warp's lanes until the lanes synchronize. Such a period is an *epoch*. The table stores each epoch
//! once, and a shadow cell holds only its number. Cores append and read epochs without a lock: an epoch never changes,
//! and a core publishes its number only after writing it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::stamp::{Stamp, Strength};
use crate::events::sites::SiteId;

/// An epoch. The fields are atomics because other cores read them; the publication of the number orders them.
#[derive(Default)]
struct Epoch {
    block_and_phase: AtomicU64,
    time_and_warp: AtomicU64,
}

/// The number of epochs of the first bucket. Each further bucket has twice as many as the previous one.
const FIRST: u32 = 1024;
const BUCKETS: usize = 21;
/// One more than the largest number.
const END: u32 = FIRST * ((1 << BUCKETS) - 1);

/// The epochs of a launch.
pub(super) struct EpochTable {
    buckets: [OnceLock<Box<[Epoch]>>; BUCKETS],
    next: AtomicU32,
}

/// The stamp of a plain access, packed into a shadow cell. 0 is no access.
///
/// | bits | |
/// |---|---|
/// | 32 to 63 | epoch |
/// | 27 to 31 | lane |
/// | 7 to 26 | site |
/// | 0 to 6 | flags of the cell |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackedStamp(pub u64);

impl PackedStamp {
    pub const NONE: Self = Self(0);

    #[inline]
    pub fn new(epoch: u32, thread: usize, site: SiteId) -> Self {
        Self::of_lane(epoch, thread).at(site)
    }

    /// The part that all accesses of a lane in an epoch have in common: everything except the site.
    #[inline]
    pub fn of_lane(epoch: u32, thread: usize) -> Self {
        Self(u64::from(epoch) << 32 | ((thread % 32) as u64) << 27)
    }

    /// This stamp with a site.
    #[inline]
    pub fn at(self, site: SiteId) -> Self {
        Self(self.0 | u64::from(site & 0xF_FFFF) << 7)
    }

    /// Whether both are by the same thread in the same epoch.
    #[inline(always)]
    pub fn is_of_lane(self, own: Self) -> bool {
        (self.0 ^ own.0) >> 27 == 0
    }

    /// Whether this is no access, or one by the same thread in the same epoch. Then every thread that `own` happens
    /// before is also ordered after this one.
    #[inline]
    pub fn is_covered_by(self, own: Self) -> bool {
        self.0 == 0 || self.is_of_lane(own)
    }

    fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl EpochTable {
    pub fn new() -> Self {
        // Number 0 is reserved.
        Self { buckets: [const { OnceLock::new() }; BUCKETS], next: AtomicU32::new(1) }
    }

    /// Stores an epoch and returns its number. `None` if the table is full.
    pub fn begin(&self, block: u32, phase: u32, time: u32, warp: usize) -> Option<u32> {
        // The counter stops at the end, so it never wraps.
        let next = |number| (number < END).then_some(number + 1);
        let number = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let (bucket, index) = index_of(number);
        let empty_bucket = || (0..FIRST << bucket).map(|_| Epoch::default()).collect();
        let epoch = &self.buckets[bucket].get_or_init(empty_bucket)[index];
        epoch.block_and_phase.store(u64::from(block) << 32 | u64::from(phase), Ordering::Relaxed);
        epoch.time_and_warp.store(u64::from(time) << 32 | warp as u64, Ordering::Relaxed);
        Some(number)
    }

    /// Unpacks a stamp.
    pub fn unpack(&self, packed: PackedStamp) -> Stamp {
        let (bucket, index) = index_of(packed.epoch());
        let epoch = self.buckets[bucket].get().filter(|_| packed != PackedStamp::NONE).map(|epochs| &epochs[index]);
        let Some(epoch) = epoch else { return Stamp::NONE };
        let block_and_phase = epoch.block_and_phase.load(Ordering::Relaxed);
        let time_and_warp = epoch.time_and_warp.load(Ordering::Relaxed);
        let (lane, site) = ((packed.0 >> 27 & 31) as usize, (packed.0 >> 7) as SiteId & 0xF_FFFF);
        let thread = (time_and_warp as u32 as usize) * 32 + lane;
        let (block, phase, time) =
            ((block_and_phase >> 32) as u32, block_and_phase as u32, (time_and_warp >> 32) as u32);
        Stamp::new(block, phase, time, thread, Strength::Plain, site)
    }
}

/// The bucket of a number, and its index there. Bucket `k` begins at `FIRST * (2^k - 1)`.
fn index_of(number: u32) -> (usize, usize) {
    let bucket = (number / FIRST + 1).ilog2();
    (bucket as usize, (number - FIRST * ((1 << bucket) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_unpacked() {
        let epochs = EpochTable::new();
        let numbers: Vec<u32> = (0..5000).map(|i| epochs.begin(i, 2 * i, 3 * i, (i % 32) as usize).unwrap()).collect();
        for (i, number) in numbers.into_iter().enumerate() {
            let stamp = epochs.unpack(PackedStamp::new(number, i % 32, 77));
            let i = i as u32;
            assert_eq!((stamp.block, stamp.phase, stamp.time, stamp.site()), (i, 2 * i, 3 * i, 77));
            assert_eq!(stamp.thread(), (i % 32 * 32 + i % 32) as usize);
        }
        assert!(epochs.unpack(PackedStamp::NONE).is_none());
    }

    #[test]
    fn buckets_follow_each_other() {
        assert_eq!(index_of(0), (0, 0));
        assert_eq!(index_of(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(index_of(FIRST), (1, 0));
        assert_eq!(index_of(3 * FIRST - 1), (1, 2 * FIRST as usize - 1));
        assert_eq!(index_of(3 * FIRST), (2, 0));
        assert_eq!(index_of(END - 1), (BUCKETS - 1, (FIRST as usize) * (1 << (BUCKETS - 1)) - 1));
    }

    #[test]
    fn stamps_of_one_thread_in_one_epoch_cover_each_other() {
        let own = PackedStamp::new(7, 3, 1);
        assert!(PackedStamp::NONE.is_covered_by(own) && PackedStamp::new(7, 3, 99).is_covered_by(own));
        assert!(!PackedStamp::new(7, 4, 1).is_covered_by(own) && !PackedStamp::new(8, 3, 1).is_covered_by(own));
    }
}
