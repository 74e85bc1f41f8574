//! Portable versions of GPU instructions: conversions, square roots, minima, and bytes of words.

use crate::element::VectorType;

pub(crate) fn f32_from_f16(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

macro_rules! unary {
    ($($name:ident($x:ident: $type:ident) = $result:expr;)*) => {$(
        pub(crate) fn $name($x: $type) -> $type {
            $result
        }
    )*};
}

unary! {
    floor_f32(x: f32) = x.floor();
    ceil_f32(x: f32) = x.ceil();
    trunc_f32(x: f32) = x.trunc();
    sqrt_f32(x: f32) = x.sqrt();
    floor_f64(x: f64) = x.floor();
    ceil_f64(x: f64) = x.ceil();
    trunc_f64(x: f64) = x.trunc();
    sqrt_f64(x: f64) = x.sqrt();
}

// The precise functions, where a GPU has approximations.
unary! {
    sin_approx(x: f32) = libm::sinf(x);
    cos_approx(x: f32) = libm::cosf(x);
    exp2_approx(x: f32) = libm::exp2f(x);
    log2_approx(x: f32) = libm::log2f(x);
    sqrt_approx(x: f32) = x.sqrt();
    rsqrt_approx(x: f32) = 1.0 / x.sqrt();
    recip_approx(x: f32) = 1.0 / x;
    tanh_approx(x: f32) = libm::tanhf(x);
}

/// `a * b + c`, rounded once.
pub(crate) fn multiply_add_f32(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// `a * b + c`, rounded once.
pub(crate) fn multiply_add_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// `a * b - c`, rounded once.
pub(crate) fn multiply_subtract_f64(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, -c)
}

/// `a + b`, rounded down.
pub(crate) fn add_down_f64(a: f64, b: f64) -> f64 {
    -add_up_f64(-a, -b)
}

/// `a + b`, rounded up.
pub(crate) fn add_up_f64(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // The rounding error, if the sum is finite: T. J. Dekker, "A floating-point technique for extending the available
    // precision", 1971.
    let (large, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
    let error = small - (sum - large);
    if error > 0.0 {
        sum.next_up()
    } else if sum == f64::NEG_INFINITY && a > sum && b > sum {
        f64::MIN
    } else {
        sum
    }
}

macro_rules! extremes {
    ($($minimum:ident, $maximum:ident: $type:ident;)*) => {$(
        /// The minimum; NaN if either is NaN.
        #[inline]
        pub(crate) fn $minimum(a: $type, b: $type) -> $type {
            // `a`, if that is NaN. Selections without branches, which the compiler divides among the lanes of vectors.
            let smaller = if b < a { b } else { a };
            // Equal numbers differ at most in the sign of zero.
            let smaller = if a == b { $type::from_bits(a.to_bits() | b.to_bits()) } else { smaller };
            if b.is_nan() { b } else { smaller }
        }

        /// The maximum; NaN if either is NaN.
        #[inline]
        pub(crate) fn $maximum(a: $type, b: $type) -> $type {
            let larger = if b > a { b } else { a };
            let larger = if a == b { $type::from_bits(a.to_bits() & b.to_bits()) } else { larger };
            if b.is_nan() { b } else { larger }
        }
    )*};
}

extremes! {
    minimum_f32, maximum_f32: f32;
    minimum_f64, maximum_f64: f64;
}

#[inline]
pub(crate) fn negative_f32(a: f32) -> f32 {
    -a
}

pub(crate) fn f16_from_f32(value: f32) -> u16 {
    half::f16::from_f32(value).to_bits()
}

pub(crate) fn bf16_from_f32(value: f32) -> u16 {
    half::bf16::from_f32(value).to_bits()
}

/// Each of the selector's digits is less than 8.
pub(crate) fn permute_bytes(low: u32, high: u32, selector: u32) -> u32 {
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    u32::from_le_bytes([0, 4, 8, 12].map(|digit| bytes[(selector >> digit & 7) as usize]))
}

pub(crate) fn mul_hi(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

pub(crate) fn add_bytes(word: u32, sum: u32) -> u32 {
    word.to_le_bytes().iter().fold(sum, |sum, &byte| sum.wrapping_add(byte.into()))
}

pub(crate) fn add_signed_bytes(word: u32, sum: i32) -> i32 {
    word.to_le_bytes().iter().fold(sum, |sum, &byte| sum.wrapping_add((byte as i8).into()))
}

pub(crate) const HAS_U16X2_MIN_MAX: bool = true;

/// A GPU compares the halves as `f16`, which has the same order only for finite, non-negative values.
#[track_caller]
fn check_u16x2(a: u32, b: u32) {
    if [a, b].iter().any(|word| word & 0xFFFF >= 0x7C00 || word >> 16 >= 0x7C00) {
        super::u16x2_out_of_range(a, b);
    }
}

#[track_caller]
pub(crate) fn min_u16x2(a: u32, b: u32) -> u32 {
    check_u16x2(a, b);
    (a & 0xFFFF).min(b & 0xFFFF) | (a >> 16).min(b >> 16) << 16
}

#[track_caller]
pub(crate) fn max_u16x2(a: u32, b: u32) -> u32 {
    check_u16x2(a, b);
    (a & 0xFFFF).max(b & 0xFFFF) | (a >> 16).max(b >> 16) << 16
}

/// The 32 bits that start `bits` bits into two words. `bits` is less than 32.
pub(crate) fn funnel(low: u32, high: u32, bits: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> bits) as u32
}

/// The 16 bytes that start `off` bytes into two vectors. `off` is less than 16.
pub(crate) fn funnel_vector<P: VectorType>(low: P, high: P, off: usize, _size: usize) -> P {
    let mut bytes = [0_u8; 32];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(low.to_words().into_iter().chain(high.to_words())) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|k| bytes[off + 4 * i + k]));
    P::from_words([0, 1, 2, 3].map(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directed_additions_are_the_neighbours_of_an_inexact_sum() {
        let tiny = f64::EPSILON / 4.0;
        assert_eq!((add_down_f64(1.0, tiny), add_up_f64(1.0, tiny)), (1.0, 1.0 + f64::EPSILON));
        assert_eq!((add_down_f64(1.0, -tiny), add_up_f64(1.0, -tiny)), (1.0_f64.next_down(), 1.0));
        assert_eq!((add_down_f64(f64::MAX, 1.0), add_up_f64(f64::MAX, 1.0)), (f64::MAX, f64::INFINITY));
        assert_eq!((add_down_f64(f64::MIN, -1.0), add_up_f64(f64::MIN, -1.0)), (f64::NEG_INFINITY, f64::MIN));
        assert_eq!((add_down_f64(f64::MAX, f64::MAX), add_up_f64(f64::MIN, f64::MIN)), (f64::MAX, f64::MIN));
        // The sum without its first term is no `f64`.
        let (a, b) = (f64::from_bits(0x7FC0_0000_0000_0006), -f64::MAX);
        assert_eq!((add_down_f64(a, b), add_up_f64(a, b)), ((a + b), (a + b).next_up()));
        for (a, b) in [(1.5, 2.25), (5e-324, 5e-324), (f64::INFINITY, 1.0), (f64::NEG_INFINITY, 1.0)] {
            assert_eq!((add_down_f64(a, b), add_up_f64(a, b)), (a + b, a + b));
        }
        assert!(add_down_f64(f64::NAN, 1.0).is_nan() && add_up_f64(f64::INFINITY, f64::NEG_INFINITY).is_nan());
        // IEEE 754: a sum of numbers of opposite signs that is 0 is negative if rounded down.
        let bits = |x: f64| x.to_bits();
        assert_eq!((bits(add_down_f64(1.0, -1.0)), bits(add_up_f64(1.0, -1.0))), (bits(-0.0), bits(0.0)));
        assert_eq!((bits(add_down_f64(0.0, 0.0)), bits(add_up_f64(-0.0, -0.0))), (bits(0.0), bits(-0.0)));
    }

    #[test]
    fn minima_maxima_and_negatives_are_right_for_zeros_and_nan() {
        // In rising order.
        let numbers = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, f64::MIN_POSITIVE, 1.5, f64::INFINITY];
        for (i, a) in numbers.into_iter().enumerate() {
            for (j, b) in numbers.into_iter().enumerate() {
                let (low, high) = (numbers[i.min(j)], numbers[i.max(j)]);
                assert_eq!(minimum_f64(a, b).to_bits(), low.to_bits(), "{a} {b}");
                assert_eq!(maximum_f64(a, b).to_bits(), high.to_bits(), "{a} {b}");
                let (a, b) = (a as f32, b as f32);
                assert_eq!(minimum_f32(a, b).to_bits(), (low as f32).to_bits(), "{a} {b}");
                assert_eq!(maximum_f32(a, b).to_bits(), (high as f32).to_bits(), "{a} {b}");
            }
            assert_eq!(negative_f32(a as f32).to_bits(), (-a as f32).to_bits(), "{a}");
            for nan in [f64::NAN, -f64::NAN] {
                assert!(negative_f32(nan as f32).is_nan());
                assert!(minimum_f64(a, nan).is_nan() && minimum_f64(nan, a).is_nan(), "{a}");
                assert!(maximum_f64(a, nan).is_nan() && maximum_f64(nan, a).is_nan(), "{a}");
                let (a, nan) = (a as f32, nan as f32);
                assert!(minimum_f32(a, nan).is_nan() && minimum_f32(nan, a).is_nan(), "{a}");
                assert!(maximum_f32(a, nan).is_nan() && maximum_f32(nan, a).is_nan(), "{a}");
            }
        }
    }
}
