//! Banks of shared memory: 32 banks of 4-byte words.

use super::request::Request;

/// Passes through shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passes {
    /// The passes that the request takes.
    pub total: u64,
    /// The passes that it would take without bank conflicts.
    pub least: u64,
    /// The maximum number of passes of one part of the warp: the ways of the worst conflict.
    pub worst_ways: u64,
}

impl Request {
    /// The passes through shared memory that the accesses take. In one pass each bank serves one word, to any number
    /// of lanes. Accesses of 8 bytes are served by half warps, those of 16 bytes by quarter warps.
    pub fn passes(&self) -> Passes {
        let lanes_at_once = match self.bytes() {
            16 => 8,
            8 => 16,
            _ => 32,
        };
        let mut passes = Passes::default();
        for first in (0..32).step_by(lanes_at_once) {
            let group = (u32::MAX >> (32 - lanes_at_once)) << first;
            if self.mask & group != 0 {
                let of_group = self.passes_of(group);
                passes.total += of_group;
                passes.worst_ways = of_group.max(passes.worst_ways);
                passes.least += 1;
            }
        }
        passes
    }

    fn passes_of(&self, group: u32) -> u64 {
        let mut buffer = [0; 32];
        let addresses = self.addresses_of(group, &mut buffer);
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
        let mut words_of_bank = [0_u8; 32];
        let mut previous = u64::MAX;
        for &mut word in words {
            words_of_bank[(word % 32) as usize] += u8::from(word != previous);
            previous = word;
        }
        u64::from(words_of_bank.into_iter().max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::request;
    use super::Passes;

    fn passes(total: u64, least: u64, worst_ways: u64) -> Passes {
        Passes { total, least, worst_ways }
    }

    #[test]
    fn lanes_that_want_different_words_of_a_bank_conflict() {
        for (stride, ways) in [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1)] {
            let request = request(4, u32::MAX, |lane| 4 * stride * lane);
            assert_eq!(request.passes(), passes(ways, 1, ways), "stride {stride}");
        }
        assert_eq!(request(4, u32::MAX, |_| 128).passes(), passes(1, 1, 1), "a broadcast is one pass");
        assert_eq!(request(4, 0xFFFF, |lane| 8 * lane).passes(), passes(1, 1, 1), "half a warp, every second word");
        assert_eq!(request(1, u32::MAX, |lane| lane).passes(), passes(1, 1, 1), "four lanes a word");
        assert_eq!(request(2, u32::MAX, |lane| 128 * lane).passes(), passes(32, 1, 32));
        assert_eq!(request(16, 1 << 30, |lane| 128 * lane).passes(), passes(1, 1, 1), "one lane");
    }

    #[test]
    fn wide_accesses_are_served_in_parts() {
        assert_eq!(request(8, u32::MAX, |lane| 8 * lane).passes(), passes(2, 2, 1));
        assert_eq!(
            request(8, u32::MAX, |lane| 16 * lane).passes(),
            passes(4, 2, 2),
            "two words of each even bank pair"
        );
        assert_eq!(request(16, u32::MAX, |lane| 16 * lane).passes(), passes(4, 4, 1));
        assert_eq!(request(16, u32::MAX, |lane| 128 * lane).passes(), passes(32, 4, 8), "a column of vectors");
        assert_eq!(request(16, 0xFF, |lane| 16 * lane).passes(), passes(1, 1, 1));
    }
}
