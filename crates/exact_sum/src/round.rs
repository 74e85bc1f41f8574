//! Rounding to nearest, ties to even.

use half::{bf16, f16};

use crate::limbs::Leading;

/// A format of results.
pub trait Rounded: Copy {
    /// Rounds `leading * 2^unit` to the nearest number, ties to even. A magnitude of at least the largest number plus
    /// half a unit in its last place becomes an infinity.
    fn round(leading: Leading, unit: i32) -> Self;
    /// Rounds `value * 2^exponent` in the same way. It must be a multiple of the format's smallest subnormal number,
    /// and `exponent` at most 250.
    #[inline(always)]
    fn round_i64(value: i64, exponent: i32) -> Self {
        Self::round(Leading::of(value as i128, 0), exponent)
    }
    /// [`Rounded::round_i64`] for an `i128`.
    #[inline(always)]
    fn round_i128(value: i128, exponent: i32) -> Self {
        let magnitude = value.unsigned_abs();
        let bits = 128 - magnitude.leading_zeros();
        if bits <= 62 {
            return Self::round_i64(value as i64, exponent);
        }
        // More bits than any format keeps, and a sticky bit, so that no tie is mistaken. The result is not subnormal,
        // so nothing is rounded twice.
        let dropped = bits - 62;
        let is_inexact = magnitude & ((1 << dropped) - 1) != 0;
        let kept = (magnitude >> dropped) as i64 | is_inexact as i64;
        Self::round_i64(if value < 0 { -kept } else { kept }, exponent + dropped as i32)
    }
    /// The canonical NaN.
    const NAN: Self;
    /// The exponent of the smallest subnormal number.
    const LEAST: i32;
    /// The infinity with this sign.
    fn infinity(is_negative: bool) -> Self;
}

/// `leading / count`, in the units of `leading`.
///
/// A dividend of 128 bits and a count below `2^63` give a quotient of at least 65 bits, more than any format keeps. The
/// remainder, and bits of the number below the leading ones, decide only whether the quotient is exact.
#[inline]
pub fn divide(leading: Leading, count: u64) -> Leading {
    let (quotient, remainder) =
        if count >> 32 == 0 { divide_by_digits(leading.bits, count) } else { divide_by_bits(leading.bits, count) };
    if quotient == 0 {
        return Leading::ZERO;
    }
    let zeros = quotient.leading_zeros();
    Leading {
        bits: quotient << zeros,
        position: leading.position - zeros as i32,
        is_inexact: leading.is_inexact || remainder != 0,
        ..leading
    }
}

/// The quotient and the remainder, by long division bit by bit: GPUs have no 128-bit division.
#[inline]
fn divide_by_bits(bits: u128, count: u64) -> (u128, u64) {
    let (mut quotient, mut remainder) = (0_u128, 0_u64);
    let mut bit = 128;
    while bit > 0 {
        bit -= 1;
        remainder = (remainder << 1) | (bits >> bit) as u64 & 1;
        quotient <<= 1;
        if remainder >= count {
            remainder -= count;
            quotient |= 1;
        }
    }
    (quotient, remainder)
}

/// The quotient and the remainder for a count below `2^32`, by long division 32 bits at a time. The reciprocal
/// estimates each digit of the quotient with an error of at most 1: a digit is below `2^32`, and three roundings have a
/// relative error below `2^-50`.
#[inline]
fn divide_by_digits(bits: u128, count: u64) -> (u128, u64) {
    let reciprocal = 1.0 / count as f64;
    let (mut quotient, mut remainder) = (0_u128, 0_u64);
    let mut place = 4;
    while place > 0 {
        place -= 1;
        let part = (remainder << 32) | u64::from((bits >> (32 * place)) as u32);
        let mut digit = (part as f64 * reciprocal) as i64;
        let mut left = part.wrapping_sub((digit as u64).wrapping_mul(count)) as i64;
        if left < 0 {
            (digit, left) = (digit - 1, left + count as i64);
        }
        if left >= count as i64 {
            (digit, left) = (digit + 1, left - count as i64);
        }
        quotient = (quotient << 32) + digit as u128;
        remainder = left as u64;
    }
    (quotient, remainder)
}

/// [`divide`] by one `f64` division: a quotient that rounds to the same normal `f32` as the exact one. `None` if it is
/// so close to the midpoint of two `f32` that only the exact quotient can decide.
#[inline]
pub fn divide_for_f32(leading: Leading, count: u64) -> Option<Leading> {
    // Three roundings and a truncation: an error below 2^-51 of the quotient, or 2 units in its last place.
    let quotient = (leading.bits >> 64) as u64 as f64 / count as f64;
    approximate(quotient, 64 + leading.position).map(|found| Leading { is_negative: leading.is_negative, ..found })
}

/// [`root`] by one `f64` square root, `sqrt`: a root that rounds to the same normal `f32` as the exact one. `None` if
/// it is so close to the midpoint of two `f32` that only the exact root can decide.
#[inline]
pub fn root_for_f32(leading: Leading, unit: i32, sqrt: impl Fn(f64) -> f64) -> Option<Leading> {
    let exponent = leading.position + unit + 64;
    let square = (leading.bits >> 64) as u64 as f64 * if exponent & 1 == 0 { 1.0 } else { 2.0 };
    approximate(sqrt(square), exponent >> 1)
}

/// `found * 2^position`, with an error of a few units in the last place. `None` if the error could change the nearest
/// `f32`.
#[inline(always)]
fn approximate(found: f64, position: i32) -> Option<Leading> {
    let bits = found.to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let exponent = (bits >> 52) as i32 - 1023 + position;
    // The mantissa's highest bit becomes bit 127, so the lowest bit is worth 2^(exponent - 127).
    let leading =
        Leading { is_negative: false, bits: (mantissa as u128) << 75, position: exponent - 127, is_inexact: true };
    if is_near_midpoint(bits) { None } else { Some(leading) }
}

/// Whether an `f64` is so close to the midpoint of two normal `f32` that a few units in its last place decide which is
/// nearest.
#[inline(always)]
fn is_near_midpoint(bits: u64) -> bool {
    const DROPPED: u32 = f64::MANTISSA_DIGITS - f32::MANTISSA_DIGITS;
    const ERROR: u64 = 8;
    let below = bits % (1 << DROPPED);
    below.wrapping_sub((1 << (DROPPED - 1)) - ERROR) <= 2 * ERROR
}

/// The `f32` nearest to the exact value that `number` approximates to a few units in the last place; a 0 is exact.
/// `None` if the error could change the result, or the result is subnormal.
#[inline(always)]
pub fn try_round_to_f32(number: f64) -> Option<f32> {
    let is_normal = number.abs() >= f32::MIN_POSITIVE as f64 && !is_near_midpoint(number.to_bits());
    if is_normal || number == 0.0 { Some(number as f32) } else { None }
}

/// The square root of `leading * 2^unit`, which must not be negative, in units of 1.
///
/// The square root of the highest 128 bits, with an even exponent, has 64 bits, more than any format keeps. Bits below
/// the leading ones decide only whether the root is exact.
#[inline]
pub fn root(leading: Leading, unit: i32) -> Leading {
    if leading.bits == 0 {
        return Leading::ZERO;
    }
    let mut exponent = leading.position + unit;
    let (mut square, mut is_inexact) = (leading.bits, leading.is_inexact);
    if exponent & 1 != 0 {
        is_inexact |= square & 1 == 1;
        square >>= 1;
        exponent += 1;
    }
    let (root, remainder) = isqrt_with_remainder(square);
    Leading {
        is_negative: false,
        bits: (root as u128) << 64,
        position: exponent / 2 - 64,
        is_inexact: is_inexact || remainder != 0,
    }
}

/// The square root of an integer of at least `2^126`, rounded down, and the remainder `square - root^2`.
///
/// An approximate `f64` square root has 50 correct bits. One step of Newton's method gives all but the last ones, which
/// are then corrected.
#[inline]
fn isqrt_with_remainder(square: u128) -> (u64, u128) {
    let mut root = approximate_isqrt(square);
    let mut remainder = square.wrapping_sub(root as u128 * root as u128) as i128;
    while remainder < 0 {
        root -= 1;
        remainder += 2 * root as i128 + 1;
    }
    while remainder > 2 * root as i128 {
        remainder -= 2 * root as i128 + 1;
        root += 1;
    }
    (root, remainder as u128)
}

/// [`isqrt_with_remainder`], off by at most 2.
#[inline(always)]
fn approximate_isqrt(square: u128) -> u64 {
    // The upper half, at least 2^62, scaled to [1, 4). A conversion that overflows saturates.
    let upper = (square >> 64) as u64 as f64 * f64::from_bits((1023 - 62) << 52);
    let root = (approximate_sqrt(upper) * f64::from_bits((1023 + 63) << 52)) as u64;
    let left = square.wrapping_sub(root as u128 * root as u128) as i128;
    // `left` is below 2^80, and its lowest bits do not matter.
    let step = (left >> 32) as i64 as f64 * f64::from_bits((1023 + 31) << 52) / root as f64;
    root.saturating_add_signed(step as i64)
}

/// The square root of a number in [1, 4), correct to about 50 bits. It uses no square root instruction, because not
/// every target has one.
#[inline(always)]
fn approximate_sqrt(square: f64) -> f64 {
    // Halving and negating the exponent and the mantissa gives the reciprocal square root within 4 %.
    let mut reciprocal = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (square.to_bits() >> 1));
    let mut step = 0;
    while step < 4 {
        reciprocal *= 1.5 - 0.5 * square * reciprocal * reciprocal;
        step += 1;
    }
    square * reciprocal
}

/// The bits of the magnitude, in a format with `mantissa` stored bits and exponents biased by `bias`.
#[inline(always)]
fn magnitude_bits(leading: Leading, unit: i32, mantissa: u32, bias: i32) -> u64 {
    if leading.bits == 0 {
        return 0;
    }
    // The exponent of the highest bit.
    let exponent = leading.position + unit + 127;
    let least = 1 - bias;
    if exponent > bias {
        return ((2 * bias + 1) as u64) << mantissa;
    }
    // The number of dropped bits: all but the highest `mantissa + 1`, and more for a subnormal number.
    let below = if exponent < least { (least - exponent) as u32 } else { 0 };
    let dropped = 127 - mantissa + below;
    if dropped > 128 {
        // Below half of the smallest subnormal number.
        return 0;
    }
    let kept = if dropped == 128 { 0 } else { (leading.bits >> dropped) as u64 };
    let half = (leading.bits >> (dropped - 1)) & 1 == 1;
    let is_above = leading.is_inexact || leading.bits << (128 - (dropped - 1)) != 0;
    let up = half && (is_above || kept & 1 == 1);
    // The hidden bit of a normal number adds one to the exponent field, and so does a carry.
    let field = if exponent < least { 0 } else { (exponent + bias - 1) as u64 };
    (field << mantissa) + kept + up as u64
}

macro_rules! rounded {
    ($($float:ident in $word:ident, mantissa $mantissa:literal, bias $bias:literal $(, $round_i64:ident)?;)*) => {$(
        impl Rounded for $float {
            const NAN: Self = Self::NAN;
            const LEAST: i32 = 1 - $bias - $mantissa;
            $(#[inline(always)]
            fn round_i64(value: i64, exponent: i32) -> Self {
                $round_i64(value, exponent)
            })?
            #[inline(always)]
            fn round(leading: Leading, unit: i32) -> Self {
                let sign = (leading.is_negative as $word) << ($word::BITS - 1);
                Self::from_bits(sign | magnitude_bits(leading, unit, $mantissa, $bias) as $word)
            }
            #[inline(always)]
            fn infinity(is_negative: bool) -> Self {
                if is_negative { Self::NEG_INFINITY } else { Self::INFINITY }
            }
        }
    )*};
}

rounded! {
    f16 in u16, mantissa 10, bias 15;
    bf16 in u16, mantissa 7, bias 127;
    f32 in u32, mantissa 23, bias 127, round_i64_to_f32;
    f64 in u64, mantissa 52, bias 1023, round_i64_to_f64;
}

// The conversion rounds to nearest, ties to even. The products are exact: the first is not subnormal, and the second is
// a multiple of the smallest subnormal number. There are two, because `2^exponent` may be outside the format's range.
macro_rules! round_i64 {
    ($($name:ident to $float:ident in $word:ident, mantissa $mantissa:literal, bias $bias:literal;)*) => {$(
        #[inline(always)]
        fn $name(value: i64, exponent: i32) -> $float {
            let power = |exponent: i32| $float::from_bits(((exponent + $bias) as $word) << $mantissa);
            let half = exponent >> 1;
            value as $float * power(half) * power(exponent - half)
        }
    )*};
}

round_i64! {
    round_i64_to_f32 to f32 in u32, mantissa 23, bias 127;
    round_i64_to_f64 to f64 in u64, mantissa 52, bias 1023;
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::{
        approximate_isqrt, approximate_sqrt, divide_by_bits, divide_by_digits, is_near_midpoint, isqrt_with_remainder,
    };

    #[test]
    fn roots_are_those_of_the_standard_library() {
        let mut random = 1_u128;
        let mut squares = Vec::from([1 << 126, (1 << 126) + 1, (1 << 127) - 1, 1 << 127, u128::MAX, u128::MAX - 1]);
        for round in 0..if cfg!(miri) { 100 } else { 200_000_u32 } {
            random = random.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(0x1405_7b7e_f767_814f);
            let any = random ^ random >> 61;
            let root = any >> 64 | 1 << 63;
            squares.extend([any | 1 << 126, root * root, root * root - 1, root * root + 1 + 2 * root * (any & 1)]);
            squares.push(u128::MAX - (any >> (round % 128)));
        }
        for square in squares.into_iter().filter(|&square| square >= 1 << 126) {
            let root = square.isqrt();
            assert_eq!(isqrt_with_remainder(square), (root as u64, square - root * root), "{square}");
            assert!(approximate_isqrt(square).abs_diff(root as u64) <= 2, "{square}");
        }
    }

    /// With remainders just below the count, for which the estimate of a digit is too large, and just above 0.
    #[test]
    fn quotients_are_those_of_the_standard_library() {
        let mut random = 1_u64;
        for round in 0..20_000 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let count = match round % 4 {
                0 => random >> 32,
                1 => u64::from(u32::MAX) - (random >> 60),
                2 => random >> (random & 31) >> 32,
                _ => 1 << (round % 32),
            };
            let count = count.max(1);
            for more in [count - 1, count / 2, 1 % count, 0] {
                let bits = u128::from(random) * u128::from(count) * u128::from(count >> 2) + u128::from(more);
                let expected = (bits / u128::from(count), (bits % u128::from(count)) as u64);
                assert_eq!(divide_by_digits(bits, count), expected, "{bits} / {count}");
                assert_eq!(divide_by_bits(bits, count), expected, "{bits} / {count}");
            }
        }
        for count in [1 << 32, (1 << 40) + 1, (1 << 50) - 1] {
            assert_eq!(
                divide_by_bits(u128::MAX, count),
                (u128::MAX / u128::from(count), (u128::MAX % u128::from(count)) as u64)
            );
        }
    }

    #[test]
    fn eight_units_from_a_midpoint_are_near_it() {
        for (number, units) in
            [1.0_f64, 1.0 + 2_f64.powi(-23), 3e10].into_iter().flat_map(|x| (-20..=20).map(move |u| (x, u)))
        {
            let midpoint = f64::from(number as f32).to_bits() | 1 << 28;
            let is_near = is_near_midpoint(midpoint.saturating_add_signed(units));
            assert_eq!(is_near, (-8..=8).contains(&units), "{units} units beside a midpoint above {number}");
        }
    }

    #[test]
    fn approximate_roots_have_fifty_bits() {
        for square in (0..30_000).map(|i| 1.0 + 1e-4 * f64::from(i)) {
            let (found, right) = (approximate_sqrt(square), square.sqrt());
            assert!((found - right).abs() < right * 1e-15, "{square}: {found}");
        }
    }
}
