//! What memory has to do for one request of a warp: sectors of global memory, banks of shared memory, turns of atomics.

use super::sites::Kind;
use crate::lane::{Access, Space};
use crate::profile::{AtomicTraffic, Counters, GlobalTraffic, Range, SharedTraffic};

/// The accesses of a warp's lanes that go to memory together, all of one size.
#[derive(Clone)]
pub(crate) struct Request {
    pub kind: Kind,
    /// The lanes that take part.
    pub mask: u32,
    /// Their addresses; of the others, anything.
    pub addresses: [u64; 32],
}

impl Request {
    pub fn new(kind: Kind) -> Self {
        Self { kind, mask: 0, addresses: [0; 32] }
    }

    /// Bytes of one lane's access.
    fn bytes(&self) -> u64 {
        self.kind.bytes() as u64
    }

    /// The addresses of those of `lanes` that take part, in the order of the lanes.
    fn of_lanes<'a>(&'a self, lanes: u32, room: &'a mut [u64; 32]) -> &'a [u64] {
        let mut left = self.mask & lanes;
        if left == u32::MAX {
            return &self.addresses;
        }
        let mut len = 0;
        while left != 0 {
            room[len] = self.addresses[left.trailing_zeros() as usize];
            len += 1;
            left &= left - 1;
        }
        &room[..len]
    }

    /// How far each lane's address is from that of the lane below, if all lanes take part and it is the same for all.
    fn stride(&self) -> Option<i64> {
        let [first, second, ..] = self.addresses;
        let stride = second.wrapping_sub(first);
        let mut at = first;
        // Without a branch for each lane, so that a processor compares several at once.
        let differences = self.addresses.iter().fold(0, |differences, address| {
            let difference = address ^ at;
            at = at.wrapping_add(stride);
            differences | difference
        });
        (self.mask == u32::MAX && differences == 0).then_some(stride as i64)
    }

    /// How many 32-byte sectors the accesses lie in, and how many different bytes they ask for.
    pub fn sectors(&self) -> (u64, u64) {
        match self.stride() {
            Some(stride) => self.sectors_of_row(stride),
            None => self.sectors_of_any(),
        }
    }

    /// [`Self::sectors`], where neighbouring lanes are `stride` bytes apart.
    fn sectors_of_row(&self, stride: i64) -> (u64, u64) {
        let bytes = self.bytes();
        let stride = stride.unsigned_abs();
        let first = self.addresses[0].min(self.addresses[31]);
        let sectors = if stride <= 32 {
            // No sector between the first and the last is left out.
            (first + 31 * stride + bytes - 1) / 32 - first / 32 + 1
        } else if (first | stride).is_multiple_of(bytes) {
            // None has two lanes, and no lane has two.
            32
        } else {
            return self.sectors_of_any();
        };
        (sectors, 31 * stride.min(bytes) + bytes)
    }

    fn sectors_of_any(&self) -> (u64, u64) {
        let (mut room, mut sorted) = ([0; 32], [0; 32]);
        let mut addresses = self.of_lanes(u32::MAX, &mut room);
        if !addresses.is_sorted() {
            let copy = &mut sorted[..addresses.len()];
            copy.copy_from_slice(addresses);
            copy.sort_unstable();
            addresses = copy;
        }
        let (mut sectors, mut bytes) = (0, 0);
        let (mut next_sector, mut next_byte) = (0, 0);
        for &start in addresses {
            let end = start + self.bytes();
            bytes += end - start.max(next_byte).min(end);
            next_byte = end;
            let (first, last) = (start / 32, (end - 1) / 32);
            sectors += (last + 1) - first.max(next_sector).min(last + 1);
            next_sector = last + 1;
        }
        (sectors, bytes)
    }

    /// How many bytes lie between the places of neighbours among the lanes, on average; nothing of one lane.
    fn apart(&self) -> Option<u64> {
        let others = u64::from(self.mask.count_ones().checked_sub(1)?);
        let of_lane = |lane: u32| self.addresses[lane as usize];
        let (first, last) = (of_lane(self.mask.trailing_zeros()), of_lane(self.mask.ilog2()));
        (others > 0).then(|| first.abs_diff(last) / others)
    }

    /// How many passes through shared memory the accesses need, and how many of them would do if no two lanes wanted
    /// different words of one bank. There are 32 banks of 4 bytes; lanes that want the same word get it in one pass.
    /// Accesses of 8 bytes are served by half warps, those of 16 by quarters, each of which is 128 bytes.
    ///
    /// Also the most passes of one such part.
    pub fn passes(&self) -> (u64, u64, u64) {
        let lanes_at_once = match self.bytes() {
            16 => 8,
            8 => 16,
            _ => 32,
        };
        let (mut passes, mut least, mut worst) = (0, 0, 0);
        for first in (0..32).step_by(lanes_at_once) {
            let group = (u32::MAX >> (32 - lanes_at_once)) << first;
            if self.mask & group != 0 {
                let of_group = self.passes_of(group);
                passes += of_group;
                worst = of_group.max(worst);
                least += 1;
            }
        }
        (passes, least, worst)
    }

    fn passes_of(&self, group: u32) -> u64 {
        let mut room = [0; 32];
        let addresses = self.of_lanes(group, &mut room);
        let words_each = self.bytes().div_ceil(4);
        let mut words = [0; 32];
        let mut count = 0;
        for address in addresses {
            for word in address / 4..address / 4 + words_each {
                words[count] = word;
                count += 1;
            }
        }
        let words = &mut words[..count];
        if !words.is_sorted() {
            words.sort_unstable();
        }
        let mut of_bank = [0_u8; 32];
        let mut before = u64::MAX;
        for &mut word in words {
            of_bank[(word % 32) as usize] += u8::from(word != before);
            before = word;
        }
        u64::from(of_bank.into_iter().max().unwrap_or(0))
    }

    /// How many lanes must wait for others of the request, because they change the same place.
    pub fn contention(&self) -> u64 {
        let mut room = [0; 32];
        let len = self.of_lanes(u32::MAX, &mut room).len();
        let mut sorted = if len == 32 { self.addresses } else { room };
        sorted[..len].sort_unstable();
        let different = 1 + sorted[..len].windows(2).filter(|pair| pair[0] != pair[1]).count();
        (len - different.min(len)) as u64
    }
}

/// Adds a request of one lane: [`count`], of which little is left then. `is_divergent` says whether its warp has
/// others.
#[inline]
pub(super) fn count_lone(counters: &mut Counters, kind: Kind, address: u64, is_divergent: bool) {
    let bytes = kind.bytes() as u64;
    let (requests, lanes, divergent) = (1, 1, u64::from(is_divergent));
    let is_load = kind.access() == Access::Load;
    match (kind.space(), kind.access()) {
        (_, Access::Atomic) => {
            counters.atomics += AtomicTraffic { requests, lanes, divergent, contention: 0 };
        }
        (Space::Global, _) => {
            let sectors = (address + bytes - 1) / 32 - address / 32 + 1;
            let traffic = if is_load { &mut counters.global_loads } else { &mut counters.global_stores };
            traffic.requests += requests;
            traffic.lanes += lanes;
            traffic.divergent += divergent;
            traffic.bytes += bytes;
            traffic.sectors += sectors;
            // It is not apart from anything.
        }
        (Space::Shared, _) => {
            // The words of one access lie in as many banks.
            let (least_passes, conflicts, worst_ways) = (1, 0, 1);
            let traffic = if is_load { &mut counters.shared_loads } else { &mut counters.shared_stores };
            *traffic += SharedTraffic { requests, lanes, divergent, bytes, least_passes, conflicts, worst_ways };
        }
    }
}

/// Adds a request of a warp that has the lanes `all`.
pub(super) fn count(counters: &mut Counters, request: &Request, all: u32) {
    if request.mask.is_power_of_two() {
        let address = request.addresses[request.mask.trailing_zeros() as usize];
        return count_lone(counters, request.kind, address, request.mask != all);
    }
    let lanes = u64::from(request.mask.count_ones());
    let divergent = u64::from(request.mask != all);
    let is_load = request.kind.access() == Access::Load;
    match (request.kind.space(), request.kind.access()) {
        (_, Access::Atomic) => {
            let contention = request.contention();
            counters.atomics += AtomicTraffic { requests: 1, lanes, divergent, contention };
        }
        (Space::Global, _) => {
            let (sectors, bytes) = request.sectors();
            let apart = request.apart().map(Range::of);
            let traffic = if is_load { &mut counters.global_loads } else { &mut counters.global_stores };
            *traffic += GlobalTraffic { requests: 1, lanes, divergent, bytes, sectors, apart };
        }
        (Space::Shared, _) => {
            let (passes, least_passes, worst_ways) = request.passes();
            let (bytes, conflicts) = (lanes * request.bytes(), passes - least_passes);
            let traffic = if is_load { &mut counters.shared_loads } else { &mut counters.shared_stores };
            *traffic += SharedTraffic { requests: 1, lanes, divergent, bytes, least_passes, conflicts, worst_ways };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: u64, mask: u32, address: impl Fn(u64) -> u64) -> Request {
        let kind = Kind::new(Space::Global, Access::Load, bytes as usize);
        Request { kind, mask, addresses: std::array::from_fn(|lane| address(lane as u64)) }
    }

    #[test]
    fn neighbours_share_sectors() {
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane).sectors(), (4, 128));
        assert_eq!(request(4, u32::MAX, |lane| 4 * (31 - lane)).sectors(), (4, 128));
        assert_eq!(request(4, u32::MAX, |lane| 4 + 4 * lane).sectors(), (5, 128), "off by an element");
        assert_eq!(request(4, u32::MAX, |lane| 1024 * lane).sectors(), (32, 128), "a column");
        assert_eq!(request(4, u32::MAX, |_| 64).sectors(), (1, 4), "a broadcast");
        assert_eq!(request(16, u32::MAX, |lane| 16 * lane).sectors(), (16, 512));
        assert_eq!(request(4, 1, |_| 4096).sectors(), (1, 4));
        assert_eq!(request(16, 1 << 9, |_| 4096 + 24).sectors(), (2, 16), "one lane, across the end of a sector");
        assert_eq!(request(1, u32::MAX, |lane| lane).sectors(), (1, 32));
        assert_eq!(request(4, u32::MAX, |lane| 8 * lane).sectors(), (8, 128), "every second element");
    }

    #[test]
    fn one_lane_is_counted_like_any_request() {
        let places = [(1, 5, 0), (4, 64, 31), (8, 24, 7), (16, 16, 9), (16, 24, 9), (2, 128, 1)];
        for (bytes, address, lane) in places {
            let request = request(bytes, 1 << lane, |_| address);
            let [mut global, mut shared, mut atomic] = [Counters::default(); 3];
            let kind = |space, access| Kind::new(space, access, bytes as usize);
            count_lone(&mut global, kind(Space::Global, Access::Load), address, true);
            count_lone(&mut shared, kind(Space::Shared, Access::Load), address, true);
            count_lone(&mut atomic, kind(Space::Global, Access::Atomic), address, true);
            assert_eq!((global.global_loads.sectors, global.global_loads.bytes), request.sectors());
            assert_eq!(global.global_loads.apart, request.apart().map(Range::of));
            let SharedTraffic { least_passes, conflicts, worst_ways, .. } = shared.shared_loads;
            assert_eq!((least_passes + conflicts, least_passes, worst_ways), request.passes());
            assert_eq!(atomic.atomics.contention, request.contention());
        }
    }

    #[test]
    fn rows_are_counted_like_any_request() {
        for bytes in [1, 2, 4, 8, 16] {
            for stride in (0..100).chain([128, 256, 1000, 4096]) {
                for first in (0..40).map(|i| 8192 + i) {
                    let up = request(bytes, u32::MAX, |lane| first + stride * lane);
                    let down = request(bytes, u32::MAX, |lane| first + stride * (31 - lane));
                    assert_eq!(up.stride(), Some(stride as i64));
                    assert_eq!(up.sectors(), up.sectors_of_any(), "{bytes} bytes, {stride} apart, from {first}");
                    assert_eq!(down.sectors(), up.sectors());
                }
            }
        }
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane + lane / 31).stride(), None);
        assert_eq!(request(4, u32::MAX >> 1, |lane| 4 * lane).stride(), None);
    }

    #[test]
    fn lanes_that_want_one_bank_wait() {
        for (stride, passes) in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
            assert_eq!(request(4, u32::MAX, |lane| 4 * stride * lane).passes(), (passes, 1, passes), "stride {stride}");
        }
        assert_eq!(request(4, u32::MAX, |_| 128).passes(), (1, 1, 1), "a broadcast is one pass");
        assert_eq!(request(4, 0xFFFF, |lane| 8 * lane).passes(), (1, 1, 1), "half a warp at every second word");
        assert_eq!(request(1, u32::MAX, |lane| lane).passes(), (1, 1, 1), "four lanes a word");
        assert_eq!(request(2, u32::MAX, |lane| 128 * lane).passes(), (32, 1, 32));
        assert_eq!(request(16, 1 << 30, |lane| 128 * lane).passes(), (1, 1, 1), "one lane");
    }

    #[test]
    fn wide_accesses_are_served_in_parts() {
        assert_eq!(request(8, u32::MAX, |lane| 8 * lane).passes(), (2, 2, 1));
        assert_eq!(request(8, u32::MAX, |lane| 16 * lane).passes(), (4, 2, 2), "two words of each even pair of banks");
        assert_eq!(request(16, u32::MAX, |lane| 16 * lane).passes(), (4, 4, 1));
        assert_eq!(request(16, u32::MAX, |lane| 128 * lane).passes(), (32, 4, 8), "a column of packs");
        assert_eq!(request(16, 0xFF, |lane| 16 * lane).passes(), (1, 1, 1));
    }

    #[test]
    fn atomics_on_one_place_take_turns() {
        assert_eq!(request(4, u32::MAX, |_| 64).contention(), 31);
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane).contention(), 0);
        assert_eq!(request(4, u32::MAX, |lane| 4 * (lane % 8)).contention(), 24);
        assert_eq!(request(4, 1 << 7, |_| 0).contention(), 0);
    }
}
