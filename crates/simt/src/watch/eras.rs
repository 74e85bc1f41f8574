//! Moments of warps, as numbers small enough for a cell.
//!
//! What an access's order depends on is the same for all that a warp's lanes do until they meet others: block, epoch
//! and time. Such a stretch is an *era*. It is written down once, and then a cell has only its number. Cores append
//! eras and read those of others without a lock: an era never changes, and its number is handed on only after it was
//! written.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sites::SiteId;
use super::stamp::{Stamp, Strength};

/// A stretch of a warp's life. Atomics, as other cores read it; ordered by whatever hands on its number.
#[derive(Default)]
struct Era {
    block_and_epoch: AtomicU64,
    time_and_warp: AtomicU64,
}

/// The eras of the first bucket; each further bucket has twice as many.
const FIRST: u32 = 1024;
const BUCKETS: usize = 21;
/// Numbers from here on do not exist.
const END: u32 = FIRST * ((1 << BUCKETS) - 1);

/// The eras of a launch.
pub(crate) struct Eras {
    buckets: [OnceLock<Box<[Era]>>; BUCKETS],
    next: AtomicU32,
}

/// An ordinary access by a lane, when and where: its era, the lane and the site. 0 is none.
///
/// | bits | |
/// |---|---|
/// | 32 to 63 | era |
/// | 27 to 31 | lane |
/// | 7 to 26 | site |
/// | 0 to 6 | for who keeps it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub u64);

impl Mark {
    pub const NONE: Self = Self(0);

    #[inline]
    pub fn new(era: u32, lane: usize, site: SiteId) -> Self {
        Self::of_lane(era, lane).at(site)
    }

    /// The mark of whatever a lane does, without the site.
    #[inline]
    pub fn of_lane(era: u32, lane: usize) -> Self {
        Self(u64::from(era) << 32 | ((lane % 32) as u64) << 27)
    }

    /// A mark without a site, with one.
    #[inline]
    pub fn at(self, site: SiteId) -> Self {
        Self(self.0 | u64::from(site & 0xF_FFFF) << 7)
    }

    /// Whether it is by that thread at that time.
    #[inline(always)]
    pub fn is_of_thread(self, own: Self) -> bool {
        (self.0 ^ own.0) >> 27 == 0
    }

    /// Whether it is none, or by that thread at that time: then whoever knows of `own` knows of it, and nobody else
    /// does.
    #[inline]
    pub fn is_covered_by(self, own: Self) -> bool {
        self.0 == 0 || self.is_of_thread(own)
    }

    fn era(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl Eras {
    pub fn new() -> Self {
        // 0 is no era.
        Self { buckets: [const { OnceLock::new() }; BUCKETS], next: AtomicU32::new(1) }
    }

    /// Writes down an era, and gives its number; `None` when there are no more numbers.
    pub fn begin(&self, block: u32, epoch: u32, time: u32, warp: usize) -> Option<u32> {
        // It stops at the end, so that it never wraps.
        let next = |number| (number < END).then_some(number + 1);
        let number = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        let (bucket, place) = place_of(number);
        let of_bucket = || (0..FIRST << bucket).map(|_| Era::default()).collect();
        let era = &self.buckets[bucket].get_or_init(of_bucket)[place];
        era.block_and_epoch.store(u64::from(block) << 32 | u64::from(epoch), Ordering::Relaxed);
        era.time_and_warp.store(u64::from(time) << 32 | warp as u64, Ordering::Relaxed);
        Some(number)
    }

    /// What a mark says.
    pub fn stamp(&self, mark: Mark) -> Stamp {
        let (bucket, place) = place_of(mark.era());
        let era = self.buckets[bucket].get().filter(|_| mark != Mark::NONE).map(|eras| &eras[place]);
        let Some(era) = era else { return Stamp::NONE };
        let block_and_epoch = era.block_and_epoch.load(Ordering::Relaxed);
        let time_and_warp = era.time_and_warp.load(Ordering::Relaxed);
        let (lane, site) = ((mark.0 >> 27 & 31) as usize, (mark.0 >> 7) as SiteId & 0xF_FFFF);
        let thread = (time_and_warp as u32 as usize) * 32 + lane;
        let (block, epoch, time) =
            ((block_and_epoch >> 32) as u32, block_and_epoch as u32, (time_and_warp >> 32) as u32);
        Stamp::new(block, epoch, time, thread, Strength::Plain, site)
    }
}

/// Bucket `k` begins at `FIRST * (2^k - 1)`.
fn place_of(number: u32) -> (usize, usize) {
    let bucket = (number / FIRST + 1).ilog2();
    (bucket as usize, (number - FIRST * ((1 << bucket) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_is_found_again() {
        let eras = Eras::new();
        let numbers: Vec<u32> = (0..5000).map(|i| eras.begin(i, 2 * i, 3 * i, (i % 32) as usize).unwrap()).collect();
        for (i, number) in numbers.into_iter().enumerate() {
            let stamp = eras.stamp(Mark::new(number, i % 32, 77));
            let i = i as u32;
            assert_eq!((stamp.block, stamp.epoch, stamp.time, stamp.site()), (i, 2 * i, 3 * i, 77));
            assert_eq!(stamp.thread(), (i % 32 * 32 + i % 32) as usize);
        }
        assert!(eras.stamp(Mark::NONE).is_none());
    }

    #[test]
    fn buckets_follow_each_other() {
        assert_eq!(place_of(0), (0, 0));
        assert_eq!(place_of(FIRST - 1), (0, FIRST as usize - 1));
        assert_eq!(place_of(FIRST), (1, 0));
        assert_eq!(place_of(3 * FIRST - 1), (1, 2 * FIRST as usize - 1));
        assert_eq!(place_of(3 * FIRST), (2, 0));
        assert_eq!(place_of(END - 1), (BUCKETS - 1, (FIRST as usize) * (1 << (BUCKETS - 1)) - 1));
    }

    #[test]
    fn marks_of_one_thread_at_one_time_cover_each_other() {
        let own = Mark::new(7, 3, 1);
        assert!(Mark::NONE.is_covered_by(own) && Mark::new(7, 3, 99).is_covered_by(own));
        assert!(!Mark::new(7, 4, 1).is_covered_by(own) && !Mark::new(8, 3, 1).is_covered_by(own));
    }
}
