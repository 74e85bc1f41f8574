//! The floats in which terms are extracted, and the integers in which a lane sums them.

use cuda_std::hint::compute_now;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, warp_shuffle_idx, warp_shuffle_xor};
use exact_sum::{Binary, digit, digit_of_i128};

use super::unrolled::each;

/// A format in which terms are extracted: `f32` or `f64`. `f64` takes twice the registers and has more than twice the
/// range.
pub trait Format: Binary {
    /// Holds a lane's sum in units of a window.
    type Value: Value;
    /// Whether residuals are summed in one more window before they go to limbs. `f64` terms rarely have residuals.
    const HAS_BELOW: bool;
    /// Numbers above all windows are multiples of this power of two.
    const LARGE: i32;

    /// The upper 32 bits of the magnitude, which are in the order of magnitudes. 0 does not mean that the number is 0:
    /// those of an `f64` below 2^-1042 are 0, too.
    fn high_word(self) -> u32;
    /// The [`high_word`](Format::high_word) as a float, which has the same order. It is NaN for NaN and for `f64` of at
    /// least 2^1017. The larger of two `f32` is one instruction, and that of two `f64` more than ten.
    #[inline(always)]
    fn upper(self) -> f32 {
        f32::from_bits(self.high_word())
    }
    /// The exponent of a power of two above all magnitudes with this [`high_word`](Format::high_word).
    fn exponent_above(high_word: u32) -> i32;
    /// Whether the number is neither NaN nor an infinity.
    fn is_finite(self) -> bool;
    /// The number in units of `2^LARGE`, for a finite number above all windows.
    fn large_units(self) -> i64;
    /// [`compute_now`].
    fn compute_now(word: Self::Word) -> Self::Word;
}

impl Format for f32 {
    type Value = i64;
    const HAS_BELOW: bool = true;
    const LARGE: i32 = 102;

    #[inline(always)]
    fn high_word(self) -> u32 {
        self.to_bits() & !Self::SIGN
    }
    #[inline(always)]
    fn exponent_above(high_word: u32) -> i32 {
        Self::from_bits(high_word).exponent_bound()
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
    #[inline(always)]
    fn large_units(self) -> i64 {
        const SCALE: f32 = f32::from_bits((127 - f32::LARGE as u32) << 23);
        // At most 2^26, which fits in 32 bits.
        i64::from((self * SCALE) as i32)
    }
    #[inline(always)]
    fn compute_now(word: u32) -> u32 {
        compute_now(word)
    }
}

impl Format for f64 {
    type Value = i128;
    const HAS_BELOW: bool = false;
    const LARGE: i32 = 969;

    #[inline(always)]
    fn high_word(self) -> u32 {
        (self.to_bits() >> 32) as u32 & !(1 << 31)
    }
    #[inline(always)]
    fn exponent_above(high_word: u32) -> i32 {
        Self::from_bits(u64::from(high_word) << 32).exponent_bound()
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.is_finite()
    }
    #[inline(always)]
    fn large_units(self) -> i64 {
        const SCALE: f64 = f64::from_bits((1023 - f64::LARGE as u64) << 52);
        (self * SCALE) as i64
    }
    #[inline(always)]
    fn compute_now(word: u64) -> u64 {
        u64::from(compute_now(word as u32)) | u64::from(compute_now((word >> 32) as u32)) << 32
    }
}

/// The maximum number of parts of a value, of 22 bits each.
pub const MAX_PARTS: usize = 6;

/// An integer that holds a lane's sum.
pub trait Value: Copy {
    /// 0.
    const ZERO: Self;
    /// The number of parts of 22 bits.
    const PARTS: usize;

    /// Converts a number with few enough bits.
    fn of(value: i128) -> Self;
    /// Converts exactly.
    fn wide(self) -> i128;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// Whether the value must go to limbs. Terms that are added before the next check still fit, and so does the sum
    /// over a block's lanes.
    fn is_full(self) -> bool;
    /// Part `k`: 22 bits of the value; the highest part has the sign. The sum over 1,024 threads has 32 bits.
    fn part(self, k: usize) -> u32;
    /// The sum of parts that were summed over lanes.
    fn join(parts: [u32; MAX_PARTS]) -> i128;
    /// The sum of the lanes' values, which are not [full](Value::is_full).
    fn sum_of_lanes(self) -> Self;
    /// [`digit`].
    fn digit(self, position: u32, limb: u32) -> i64;
    /// The value of the lane at this XOR distance.
    fn of_lane_xor(self, lanes: u32) -> Self;
    /// The value of lane `lane % 32`.
    fn of_lane(self, lane: u32) -> Self;
}

/// Bits of a part.
const PART_BITS: u32 = 22;
/// Bits of a part whose sum over 32 lanes has at most 31 bits.
const WARP_PART_BITS: u32 = 26;

impl Value for i64 {
    const ZERO: Self = 0;
    const PARTS: usize = 3;

    #[inline(always)]
    fn of(value: i128) -> Self {
        value as Self
    }
    #[inline(always)]
    fn wide(self) -> i128 {
        self.into()
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn is_full(self) -> bool {
        // 58 bits, including the terms that are added before the next check.
        self.unsigned_abs() >= 1 << 57
    }
    #[inline(always)]
    fn part(self, k: usize) -> u32 {
        let part = (self >> (k as u32 * PART_BITS)) as u32;
        if k + 1 < Self::PARTS { part & ((1 << PART_BITS) - 1) } else { part }
    }
    #[inline(always)]
    fn join([low, middle, high, ..]: [u32; MAX_PARTS]) -> i128 {
        i128::from(Self::from(low) + (Self::from(middle) << PART_BITS)) + (i128::from(high as i32) << (2 * PART_BITS))
    }
    #[inline(always)]
    fn sum_of_lanes(self) -> Self {
        let piece =
            |k: u32| u32::reduce_add(FULL_MASK, (self >> (k * WARP_PART_BITS)) as u32 & ((1 << WARP_PART_BITS) - 1));
        let (low, middle) = (Self::from(piece(0)), Self::from(piece(1)));
        let high = Self::from(i32::reduce_add(FULL_MASK, (self >> (2 * WARP_PART_BITS)) as i32));
        low + (middle << WARP_PART_BITS) + (high << (2 * WARP_PART_BITS))
    }
    #[inline(always)]
    fn digit(self, position: u32, limb: u32) -> i64 {
        digit(self, position, limb)
    }
    #[inline(always)]
    fn of_lane_xor(self, lanes: u32) -> Self {
        warp_shuffle_xor(FULL_MASK, self as u64, lanes, 32).0 as Self
    }
    #[inline(always)]
    fn of_lane(self, lane: u32) -> Self {
        warp_shuffle_idx(FULL_MASK, self as u64, lane, 32).0 as Self
    }
}

impl Value for i128 {
    const ZERO: Self = 0;
    const PARTS: usize = MAX_PARTS;

    #[inline(always)]
    fn of(value: i128) -> Self {
        value
    }
    #[inline(always)]
    fn wide(self) -> i128 {
        self
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn is_full(self) -> bool {
        // 118 bits, including the terms that are added before the next check, and 127 bits in the sum over 512 threads.
        // The upper half decides.
        let high = (self >> 64) as i64;
        !(-(1 << 52)..1 << 52).contains(&high)
    }
    #[inline(always)]
    fn part(self, k: usize) -> u32 {
        (self >> (k as u32 * PART_BITS)) as u32 & ((1 << PART_BITS) - 1)
    }
    #[inline(always)]
    fn join(parts: [u32; MAX_PARTS]) -> i128 {
        let [a, b, c, d, e, f] = parts;
        let two = |low: u32, high: u32| i64::from(low) + (i64::from(high) << PART_BITS);
        // The highest part needs no sign, because its bits above 128 are shifted out.
        let highest = two(e, f);
        i128::from(two(a, b)) + (i128::from(two(c, d)) << (2 * PART_BITS)) + (i128::from(highest) << (4 * PART_BITS))
    }
    #[inline(always)]
    fn sum_of_lanes(self) -> Self {
        let piece = |k: u32| {
            let part = (self >> (k * WARP_PART_BITS)) as u32 & ((1 << WARP_PART_BITS) - 1);
            Self::from(u32::reduce_add(FULL_MASK, part)) << (k * WARP_PART_BITS)
        };
        let highest =
            Self::from(i32::reduce_add(FULL_MASK, (self >> (4 * WARP_PART_BITS)) as i32)) << (4 * WARP_PART_BITS);
        piece(0) + piece(1) + piece(2) + piece(3) + highest
    }
    #[inline(always)]
    fn digit(self, position: u32, limb: u32) -> i64 {
        digit_of_i128(self, position, limb)
    }
    #[inline(always)]
    fn of_lane_xor(self, lanes: u32) -> Self {
        let half = |half: u64| warp_shuffle_xor(FULL_MASK, half, lanes, 32).0;
        (u128::from(half(self as u64)) | u128::from(half((self >> 64) as u64)) << 64) as Self
    }
    #[inline(always)]
    fn of_lane(self, lane: u32) -> Self {
        let half = |half: u64| warp_shuffle_idx(FULL_MASK, half, lane, 32).0;
        (u128::from(half(self as u64)) | u128::from(half((self >> 64) as u64)) << 64) as Self
    }
}

/// The [high word](Format::high_word) of the largest magnitude, NaN included.
#[inline(always)]
pub(super) fn largest_of<F: Format, const N: usize>(terms: &[F; N]) -> u32 {
    let mut largest = 0;
    each::<N>(|i| {
        let word = terms[i].high_word();
        largest = if word > largest { word } else { largest };
    });
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join_parts_of<V: Value>(values: &[V]) -> i128 {
        let mut parts = [0_u32; MAX_PARTS];
        for value in values {
            for (k, part) in parts.iter_mut().enumerate().take(V::PARTS) {
                *part = part.wrapping_add(value.part(k));
            }
        }
        V::join(parts)
    }

    #[test]
    fn parts_of_many_values_join_to_their_sum() {
        let long = [0, 1, -1, (1 << 117) - 1, -(1 << 117), 0x0123_4567_89ab_cdef << 40];
        for value in long {
            assert_eq!(join_parts_of(&[value; 512]), 512 * value);
            assert_eq!(join_parts_of(&[value, -1, 1 << 88, -(1 << 110)]), value - 1 + (1 << 88) - (1 << 110));
        }
        for value in [0, 1, -1, (1_i64 << 57) - 1, -(1 << 57)] {
            assert_eq!(join_parts_of(&[value; 32]), 32 * i128::from(value));
            assert_eq!(join_parts_of(&[value, 3, -1]), i128::from(value) + 2);
        }
    }
}
