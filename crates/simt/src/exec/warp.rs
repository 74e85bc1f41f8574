//! What the operations of a warp compute, as pure functions.

use super::operation::{Match, Shuffle, Vote};

/// The lane that a shuffle reads, and whether it is in range. Out of range, a lane reads itself. This is PTX's
/// `shfl.sync` with the segments that CUDA makes of `width`.
pub(super) fn source(kind: Shuffle, lane: u32, operand: u32, width: u32) -> (u32, bool) {
    let segment = lane & !(width - 1);
    let last = segment + width - 1;
    // The instruction uses the low five bits of its operand.
    let operand = operand & 31;
    let (wanted, in_range) = match kind {
        Shuffle::Down => (lane + operand, lane + operand <= last),
        Shuffle::Up => (lane.wrapping_sub(operand), lane >= segment + operand),
        // An index beyond the segment wraps around, so it is always in range.
        Shuffle::Idx => (segment | (operand & (width - 1)), true),
        Shuffle::Xor => (lane ^ operand, lane ^ operand <= last),
    };
    (if in_range { wanted } else { lane }, in_range)
}

/// The result of a vote of the lanes `voters`. `values` holds their operands in its low 32 bits, by lane.
pub(super) fn vote(kind: Vote, voters: u32, values: &[u64; 32]) -> u32 {
    let signed_min = |least: u32, value: u32, _| if (value as i32) < least as i32 { value } else { least };
    let signed_max = |most: u32, value: u32, _| if value as i32 > most as i32 { value } else { most };
    match kind {
        Vote::All => fold(voters, values, 1, |all, value, _| all & (value != 0) as u32),
        Vote::Any => fold(voters, values, 0, |any, value, _| any | (value != 0) as u32),
        Vote::Ballot => fold(voters, values, 0, |bits, value, lane| bits | ((value != 0) as u32) << lane),
        Vote::ReduceAdd => fold(voters, values, 0, |sum, value, _| sum.wrapping_add(value)),
        Vote::ReduceMin => fold(voters, values, u32::MAX, |least, value, _| if value < least { value } else { least }),
        Vote::ReduceMax => fold(voters, values, 0, |most, value, _| if value > most { value } else { most }),
        Vote::ReduceMinSigned => fold(voters, values, i32::MAX as u32, signed_min),
        Vote::ReduceMaxSigned => fold(voters, values, i32::MIN as u32, signed_max),
        Vote::ReduceAnd => fold(voters, values, u32::MAX, |all, value, _| all & value),
        Vote::ReduceOr => fold(voters, values, 0, |all, value, _| all | value),
        Vote::ReduceXor => fold(voters, values, 0, |all, value, _| all ^ value),
    }
}

/// Combines the voters' values in the order of the lanes, from `start`.
#[inline(always)]
fn fold(voters: u32, values: &[u64; 32], start: u32, combine: impl Fn(u32, u32, u32) -> u32) -> u32 {
    // A loop, because iterators are slow without optimization, and each vote comes here.
    let (mut all, mut lane) = (start, 0);
    while lane < 32 {
        if voters >> lane & 1 == 1 {
            all = combine(all, values[lane] as u32, lane as u32);
        }
        lane += 1;
    }
    all
}

/// The result of a match for the lane `own`, one of `members`. `values` holds the lanes' operands, by lane.
pub(super) fn matching(kind: Match, members: u32, own: usize, values: &[u64; 32]) -> u32 {
    let equal = (0..32)
        .filter(|&lane| members >> lane & 1 == 1 && values[lane] == values[own])
        .fold(0, |bits, lane| bits | 1 << lane);
    match kind {
        Match::Any => equal,
        Match::All if equal == members => members,
        Match::All => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_stops_at_the_end_of_its_segment() {
        assert_eq!(source(Shuffle::Down, 0, 16, 32), (16, true));
        assert_eq!(source(Shuffle::Down, 20, 16, 32), (20, false));
        assert_eq!(source(Shuffle::Down, 6, 1, 8), (7, true));
        assert_eq!(source(Shuffle::Down, 7, 1, 8), (7, false));
    }

    #[test]
    fn up_stops_at_the_start_of_its_segment() {
        assert_eq!(source(Shuffle::Up, 20, 16, 32), (4, true));
        assert_eq!(source(Shuffle::Up, 3, 4, 32), (3, false));
        assert_eq!(source(Shuffle::Up, 8, 1, 8), (8, false));
    }

    #[test]
    fn an_index_counts_from_the_start_of_the_segment() {
        assert_eq!(source(Shuffle::Idx, 13, 2, 8), (10, true));
        assert_eq!(source(Shuffle::Idx, 13, 9, 8), (9, true));
        assert_eq!(source(Shuffle::Idx, 13, 0, 32), (0, true));
    }

    #[test]
    fn xor_reads_earlier_segments_but_no_later_one() {
        assert_eq!(source(Shuffle::Xor, 5, 3, 32), (6, true));
        assert_eq!(source(Shuffle::Xor, 9, 8, 8), (1, true));
        assert_eq!(source(Shuffle::Xor, 1, 8, 8), (1, false));
    }

    #[test]
    fn votes_count_only_their_voters() {
        let mut values = [0; 32];
        values[1] = 5;
        values[2] = u64::from(u32::MAX);
        values[31] = 9;
        assert_eq!(vote(Vote::Ballot, 0b111, &values), 0b110);
        assert_eq!(vote(Vote::All, 0b110, &values), 1);
        assert_eq!(vote(Vote::All, 0b111, &values), 0);
        assert_eq!(vote(Vote::Any, 0b001, &values), 0);
        assert_eq!(vote(Vote::ReduceAdd, 0b110, &values), 4);
        assert_eq!(vote(Vote::ReduceMin, 0b110, &values), 5);
        assert_eq!(vote(Vote::ReduceMinSigned, 0b110, &values), u32::MAX);
        assert_eq!(vote(Vote::ReduceMaxSigned, 0b110, &values), 5);
        assert_eq!(vote(Vote::ReduceXor, 0b010, &values), 5);
    }

    #[test]
    fn matches_compare_all_bits_of_their_members() {
        let mut values = [1; 32];
        values[3] = 1 | 1 << 40;
        values[7] = 1 | 1 << 40;
        assert_eq!(matching(Match::Any, 0b1000_1111, 3, &values), 0b1000_1000);
        assert_eq!(matching(Match::Any, 0b1000_1111, 0, &values), 0b0000_0111);
        assert_eq!(matching(Match::All, 0b1000_1000, 7, &values), 0b1000_1000);
        assert_eq!(matching(Match::All, 0b1000_1001, 7, &values), 0);
        assert_eq!(matching(Match::Any, u32::MAX, 31, &values), !0b1000_1000);
    }
}
