//! A request: the accesses of a warp's lanes by one instruction, which go to memory together.

use crate::events::access::AccessKind;

/// The accesses that a warp's lanes make by one instruction.
#[derive(Clone)]
pub(crate) struct Request {
    pub kind: AccessKind,
    /// The active lanes.
    pub mask: u32,
    /// The address of each active lane. The others are unspecified.
    pub addresses: [u64; 32],
}

impl Request {
    pub fn new(kind: AccessKind) -> Self {
        Self { kind, mask: 0, addresses: [0; 32] }
    }

    /// The size of one lane's access in bytes.
    pub fn bytes(&self) -> u64 {
        self.kind.bytes() as u64
    }

    /// The addresses of the active lanes among `lanes`, in lane order. `buffer` holds them unless they are all 32.
    pub fn addresses_of<'a>(&'a self, lanes: u32, buffer: &'a mut [u64; 32]) -> &'a [u64] {
        let mut left = self.mask & lanes;
        if left == u32::MAX {
            return &self.addresses;
        }
        let mut len = 0;
        while left != 0 {
            buffer[len] = self.addresses[left.trailing_zeros() as usize];
            len += 1;
            left &= left - 1;
        }
        &buffer[..len]
    }

    /// The distance from each lane's address to the next lane's, if all 32 lanes are active and the distances are
    /// equal.
    pub fn stride(&self) -> Option<i64> {
        let [first, second, ..] = self.addresses;
        let stride = second.wrapping_sub(first);
        let mut expected = first;
        // No branch for each lane, so that the compiler vectorizes the loop.
        let differences = self.addresses.iter().fold(0, |differences, address| {
            let difference = address ^ expected;
            expected = expected.wrapping_add(stride);
            differences | difference
        });
        (self.mask == u32::MAX && differences == 0).then_some(stride as i64)
    }

    /// The mean distance in bytes between neighbours among the active lanes. `None` for a single lane.
    pub fn lane_distance(&self) -> Option<u64> {
        let gaps = u64::from(self.mask.count_ones().checked_sub(1)?);
        let of_lane = |lane: u32| self.addresses[lane as usize];
        let (first, last) = (of_lane(self.mask.trailing_zeros()), of_lane(self.mask.ilog2()));
        (gaps > 0).then(|| first.abs_diff(last) / gaps)
    }

    /// The number of lanes whose atomic operation is serialized behind another lane's on the same address.
    pub fn contention(&self) -> u64 {
        let mut buffer = [0; 32];
        let len = self.addresses_of(u32::MAX, &mut buffer).len();
        let mut sorted = if len == 32 { self.addresses } else { buffer };
        sorted[..len].sort_unstable();
        let distinct = 1 + sorted[..len].windows(2).filter(|pair| pair[0] != pair[1]).count();
        (len - distinct.min(len)) as u64
    }
}

/// A request for tests: loads of `bytes` bytes by the lanes of `mask`.
#[cfg(test)]
pub(super) fn request(bytes: u64, mask: u32, address: impl Fn(u64) -> u64) -> Request {
    use crate::events::access::{Access, Space};
    let kind = AccessKind::new(Space::Global, Access::Load, bytes as usize);
    Request { kind, mask, addresses: std::array::from_fn(|lane| address(lane as u64)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_one_distance_of_all_lanes() {
        assert_eq!(request(4, u32::MAX, |lane| 4096 - 8 * lane).stride(), Some(-8));
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane + lane / 31).stride(), None);
        assert_eq!(request(4, u32::MAX >> 1, |lane| 4 * lane).stride(), None);
    }

    #[test]
    fn atomics_on_one_address_are_serialized() {
        assert_eq!(request(4, u32::MAX, |_| 64).contention(), 31);
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane).contention(), 0);
        assert_eq!(request(4, u32::MAX, |lane| 4 * (lane % 8)).contention(), 24);
        assert_eq!(request(4, 1 << 7, |_| 0).contention(), 0);
    }
}
