//! Integers in limbs of 32 bits, one of which each lane of a warp holds.

/// What of `value * 2^position` limb `limb` holds: the sum of all digits times `2^(32 limb)` is the value. There are
/// three that are not 0 at most; the highest of them has the sign, the others have none.
#[inline(always)]
pub const fn digit(value: i64, position: u32, limb: u32) -> i64 {
    let (place, shift) = (limb.wrapping_sub(position / 32), position % 32);
    // Without a branch for each place, as each lane of a warp has another.
    let right = place.wrapping_mul(32).wrapping_sub(shift);
    let above = value >> (if right < 63 { right } else { 63 });
    let rest = if place == 0 { ((value as u32) << shift) as i64 } else { above };
    let digit = if place == 2 { rest } else { rest as u32 as i64 };
    if place > 2 { 0 } else { digit }
}

/// [`digit`] of `value * 2^(32 first)`, of which there are four, in limbs up to `last`, which holds all that is above.
#[inline(always)]
pub const fn digit_of_pair(value: i128, first: u32, limb: u32, last: u32) -> i64 {
    let place = limb.wrapping_sub(first);
    let (low, high) = (value as u64, (value >> 64) as i64);
    let half = if place & 2 == 0 { low as i64 } else { high };
    let rest = if place & 1 == 0 { half } else { half >> 32 };
    // All that is above the last limb.
    let above = match place {
        0 => low as i64,
        1 => (value >> 32) as i64,
        2 => high,
        _ => high >> 32,
    };
    let digit = if place == 3 || limb == last { above } else { rest as u32 as i64 };
    if place > 3 || limb > last { 0 } else { digit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_add_up_to_the_value() {
        let values = [0, 1, -1, i64::MAX, i64::MIN, 0x1234_5678_9abc_def0, -0x0fed_cba9_8765_4321];
        for value in values {
            for position in [0, 1, 31, 32, 45, 63, 64] {
                let all: i128 = (0..4).map(|limb| i128::from(digit(value, position % 32, limb)) << (32 * limb)).sum();
                assert_eq!(all, i128::from(value) << (position % 32), "{value} at {position}");
                let at_place = |limb| digit(value, position, limb + position / 32);
                assert!((0..6).all(|limb| at_place(limb) == digit(value, position % 32, limb)));
            }
            let pair = i128::from(value) * 0x7fff_ffff_ffff;
            for (first, last) in [(0, 3), (0, 9), (3, 9), (7, 9), (8, 9)] {
                let place = |limb| 32 * (limb - first);
                let of_limb = |limb| i128::from(digit_of_pair(value.into(), first, limb, last));
                let limbs = first..=last.min(first + 3);
                assert_eq!(limbs.map(|limb| of_limb(limb) << place(limb)).sum::<i128>(), value.into());
                let all: i128 = (first..=last.min(first + 3))
                    .map(|limb| digit_of_pair(pair, first, limb, 99))
                    .enumerate()
                    .map(|(limb, digit)| i128::from(digit) << (32 * limb))
                    .sum();
                assert!(all == pair || last < first + 3);
            }
            assert_eq!((digit_of_pair(pair, 3, 2, 9), digit_of_pair(pair, 3, 7, 9)), (0, 0));
        }
    }
}
