//! The dynamic shared memory for superaccumulators of a few lanes each.

use super::lane_superaccumulators::LaneSuperaccumulators;
use super::terms::Terms;

/// The dynamic shared memory that a kernel needs for [`LaneSuperaccumulators`].
#[derive(Clone, Copy)]
pub struct LaneMemory {
    bytes_of_each: usize,
    /// The minimum and maximum number of lanes that share a superaccumulator: 1, 2, 4 or 8.
    min_lanes: u32,
    max_lanes: u32,
    static_bytes: usize,
}

impl LaneMemory {
    /// For sums of terms `K`, in a kernel with at most `static_bytes` bytes of shared arrays. If lanes can share a
    /// superaccumulator, at least `min_lanes` lanes do: a power of two.
    pub const fn of<K: Terms>(static_bytes: usize, min_lanes: u32) -> Self {
        let bytes_of_each = size_of::<i64>() * LaneSuperaccumulators::<K::Grid>::WORDS;
        let max_lanes = LaneSuperaccumulators::<K::Grid>::MAX_LANES;
        let min_lanes = if min_lanes < max_lanes { min_lanes } else { max_lanes };
        Self { bytes_of_each, min_lanes, max_lanes, static_bytes }
    }

    /// The bytes for a block of `threads` threads that may have `available` bytes of shared memory in total: a
    /// superaccumulator for each lane, or for as few lanes as fit. 0 if none fit.
    pub const fn bytes(self, threads: usize, available: usize) -> usize {
        let mut lanes = self.min_lanes;
        while lanes <= self.max_lanes {
            let bytes = threads / lanes as usize * self.bytes_of_each;
            if self.static_bytes + bytes <= available {
                return bytes;
            }
            lanes *= 2;
        }
        0
    }
}
