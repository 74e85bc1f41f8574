//! Sectors of global memory: 32 bytes each, the unit in which a GPU reads and writes it.

use super::request::Request;

impl Request {
    /// The number of 32-byte sectors that the accesses touch, and of distinct bytes that they request.
    pub fn sectors(&self) -> (u64, u64) {
        match self.stride() {
            Some(stride) => self.sectors_at_stride(stride),
            None => self.sectors_of_any(),
        }
    }

    /// [`Self::sectors`], where neighbouring lanes are `stride` bytes apart.
    fn sectors_at_stride(&self, stride: i64) -> (u64, u64) {
        let bytes = self.bytes();
        let stride = stride.unsigned_abs();
        let first = self.addresses[0].min(self.addresses[31]);
        let sectors = if stride <= 32 {
            // Each sector between the first and the last is touched.
            (first + 31 * stride + bytes - 1) / 32 - first / 32 + 1
        } else if (first | stride).is_multiple_of(bytes) {
            // Each lane touches one sector, which no other lane touches.
            32
        } else {
            return self.sectors_of_any();
        };
        (sectors, 31 * stride.min(bytes) + bytes)
    }

    fn sectors_of_any(&self) -> (u64, u64) {
        let (mut buffer, mut sorted) = ([0; 32], [0; 32]);
        let mut addresses = self.addresses_of(u32::MAX, &mut buffer);
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
}

#[cfg(test)]
mod tests {
    use super::super::request::request;

    #[test]
    fn neighbours_share_sectors() {
        assert_eq!(request(4, u32::MAX, |lane| 4 * lane).sectors(), (4, 128));
        assert_eq!(request(4, u32::MAX, |lane| 4 * (31 - lane)).sectors(), (4, 128));
        assert_eq!(request(4, u32::MAX, |lane| 4 + 4 * lane).sectors(), (5, 128), "misaligned by an element");
        assert_eq!(request(4, u32::MAX, |lane| 1024 * lane).sectors(), (32, 128), "a column");
        assert_eq!(request(4, u32::MAX, |_| 64).sectors(), (1, 4), "a broadcast");
        assert_eq!(request(16, u32::MAX, |lane| 16 * lane).sectors(), (16, 512));
        assert_eq!(request(4, 1, |_| 4096).sectors(), (1, 4));
        assert_eq!(request(16, 1 << 9, |_| 4096 + 24).sectors(), (2, 16), "one lane, across the end of a sector");
        assert_eq!(request(1, u32::MAX, |lane| lane).sectors(), (1, 32));
        assert_eq!(request(4, u32::MAX, |lane| 8 * lane).sectors(), (8, 128), "every second element");
    }

    #[test]
    fn requests_at_a_stride_are_counted_like_any_request() {
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
    }
}
