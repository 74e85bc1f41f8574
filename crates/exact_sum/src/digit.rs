//! Integers in limbs of 32 bits, one limb per lane of a warp.

/// Digit `limb` of `value * 2^position` in base `2^32`: the sum of each digit times `2^(32 limb)` is the value. At most
/// three digits are not 0; the highest of them carries the sign.
#[inline(always)]
pub const fn digit(value: i64, position: u32, limb: u32) -> i64 {
    let (place, shift) = (limb.wrapping_sub(position / 32), position % 32);
    // Branch-free, because each lane of a warp has a different limb.
    let right = place.wrapping_mul(32).wrapping_sub(shift);
    let above = value >> (if right < 63 { right } else { 63 });
    let rest = if place == 0 { ((value as u32) << shift) as i64 } else { above };
    let digit = if place == 2 { rest } else { rest as u32 as i64 };
    if place > 2 { 0 } else { digit }
}

/// [`digit`] of an `i128`, which has at most five nonzero digits.
#[inline(always)]
pub const fn digit_of_i128(value: i128, position: u32, limb: u32) -> i64 {
    let (place, shift) = (limb.wrapping_sub(position / 32), position % 32);
    if place > 4 {
        return 0;
    }
    if place == 0 {
        return ((value as u32) << shift) as i64;
    }
    let right = 32 * place - shift;
    let above = value >> (if right < 127 { right } else { 127 });
    if place == 4 { above as i64 } else { above as u32 as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_add_up_to_the_value() {
        let values = [0, 1, -1, i64::MAX, i64::MIN, 0x1234_5678_9abc_def0, -0x0fed_cba9_8765_4321];
        for value in values {
            for position in [0, 1, 2, 31, 32, 45, 63, 64] {
                let all: i128 = (0..4).map(|limb| i128::from(digit(value, position % 32, limb)) << (32 * limb)).sum();
                assert_eq!(all, i128::from(value) << (position % 32), "{value} at {position}");
                let at_place = |limb| digit(value, position, limb + position / 32);
                assert!((0..6).all(|limb| at_place(limb) == digit(value, position % 32, limb)));
            }
            let value = i128::from(value);
            for long in [value, value * 0x7fff_ffff_ffff, value << 63, i128::MAX ^ value, i128::MIN ^ value] {
                for position in [0, 1, 2, 31, 32, 95] {
                    // As two numbers, because one cannot hold the sum of all digits.
                    let of_limb =
                        |limb| i128::from(digit_of_i128(long, position, u32::wrapping_add(limb, position / 32)));
                    let low: i128 = (0..3).map(|limb| of_limb(limb) << (32 * limb)).sum();
                    let high: i128 = (3..5).map(|limb| of_limb(limb) << (32 * (limb - 3))).sum();
                    let shift = position % 32;
                    assert_eq!(high, long >> (96 - shift), "{long} at {position}");
                    assert_eq!(low, (long << shift) & ((1 << 96) - 1), "{long} at {position}");
                    assert_eq!((of_limb(5), of_limb(u32::MAX)), (0, 0));
                }
            }
        }
    }
}
