//! Exact sums of a few numbers, in one or two `f64`.

use cuda_std::float::{add_down, add_up};

/// A sum of a few numbers that knows whether it is exact.
pub trait FewTerms: Copy {
    /// The sum of no numbers.
    const ZERO: Self;
    /// Adds a number.
    fn add(&mut self, x: f64);
    /// The nearest `f64` and the rest, if the sum [is exact](FewTerms::is_exact). Beyond the largest `f64` the nearest
    /// is an infinity, and the rest is NaN.
    fn pair(self) -> (f64, f64);
    /// Whether the sum fits in this type, and all terms are finite.
    fn is_exact(self) -> bool;
}

/// A sum of two `f64` that do not overlap, as long as every addition was exact.
///
/// Additions are the two-sum of D. E. Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B.
#[derive(Clone, Copy, Debug)]
pub struct DoublePair {
    high: f64,
    low: f64,
    /// The sum of the magnitudes of all rounding errors: 0 if the sum is exact. NaN if a number or a sum is not finite.
    error: f64,
}

/// The rounded sum, and its rounding error.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl FewTerms for DoublePair {
    const ZERO: Self = Self { high: 0.0, low: 0.0, error: 0.0 };

    #[inline(always)]
    fn add(&mut self, x: f64) {
        let (high, rest) = two_sum(self.high, x);
        let (low, error) = two_sum(self.low, rest);
        *self = Self { high, low, error: self.error + error.abs() };
    }

    #[inline(always)]
    fn pair(self) -> (f64, f64) {
        two_sum(self.high, self.low)
    }

    #[inline(always)]
    fn is_exact(self) -> bool {
        // False for NaN.
        self.error == 0.0
    }
}

/// A sum in one `f64`, as long as every addition was exact.
///
/// Each addition is rounded down and up: as soon as one is inexact, the first sum is less than the second, and it
/// remains so.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    down: f64,
    up: f64,
}

impl FewTerms for Single {
    const ZERO: Self = Self { down: 0.0, up: 0.0 };

    #[inline(always)]
    fn add(&mut self, x: f64) {
        *self = Self { down: add_down(self.down, x), up: add_up(self.up, x) };
    }

    #[inline(always)]
    fn pair(self) -> (f64, f64) {
        (self.up, 0.0)
    }

    #[inline(always)]
    fn is_exact(self) -> bool {
        // The difference of infinities is NaN.
        self.up - self.down == 0.0
    }
}

/// The exact sum of an `f64` and a rest of at most half a unit in its last place, rounded to odd: to the neighbour with
/// an odd mantissa if it is inexact. To a format with at least two bits fewer, this rounds as the exact sum would:
/// S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd",
/// 2008.
#[inline(always)]
pub fn to_odd((high, low): (f64, f64)) -> f64 {
    let bits = high.to_bits();
    let is_even_and_inexact = bits & 1 == 0 && low != 0.0;
    // The neighbour on the side of the rest. `high` is not 0 then.
    let neighbour = if (low > 0.0) == (high > 0.0) { bits + 1 } else { bits.wrapping_sub(1) };
    f64::from_bits(if is_even_and_inexact { neighbour } else { bits })
}

/// An `f64` rounded to odd in `f32`, as in [`to_odd`]; to the largest `f32` if it exceeds that.
#[inline(always)]
pub fn to_odd_f32(number: f64) -> f32 {
    let nearest = number as f32;
    let (bits, rest) = (nearest.to_bits(), number - f64::from(nearest));
    let is_even_and_inexact = bits & 1 == 0 && rest != 0.0;
    // If the nearest is 0, its neighbour has the sign of the number.
    let neighbour = if number.abs() > f64::from(nearest.abs()) { bits + 1 } else { bits.wrapping_sub(1) };
    f32::from_bits(if is_even_and_inexact { neighbour } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_in<S: FewTerms>(numbers: &[f64]) -> Option<(f64, f64)> {
        let mut sum = S::ZERO;
        numbers.iter().for_each(|&x| sum.add(x));
        if sum.is_exact() { Some(sum.pair()) } else { None }
    }

    fn sum(numbers: &[f64]) -> Option<(f64, f64)> {
        sum_in::<DoublePair>(numbers)
    }

    #[test]
    fn a_single_sum_is_exact_or_none() {
        let single = sum_in::<Single>;
        assert_eq!(single(&[]), Some((0.0, 0.0)));
        assert_eq!(single(&[1.0, 2.5, -3.5]), Some((0.0, 0.0)));
        assert!(single(&[1.0, -1.0]).is_some_and(|(sum, _)| sum.to_bits() == 0));
        assert!(single(&[-0.0, -0.0]).is_some_and(|(sum, _)| sum.to_bits() == 0));
        // An error that later numbers cancel is noticed.
        assert_eq!(single(&[1.0, f64::EPSILON / 4.0, -1.0]), None);
        assert_eq!(single(&[1e20, 1.0, -1e20]), None);
        for other in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(single(&[1.0, other, 2.0]), None);
            assert_eq!(single(&[other]), None);
        }
        assert_eq!(single(&[f64::MAX, f64::MAX, -f64::MAX]), None);
        assert_eq!(single(&[f64::MAX, f64::MAX]), None);
    }

    #[test]
    fn sums_are_exact_or_none() {
        assert_eq!(sum(&[]), Some((0.0, 0.0)));
        assert_eq!(sum(&[1e20, 1.0, -1e20]), Some((1.0, 0.0)));
        assert_eq!(sum(&[1.0, f64::EPSILON / 4.0]), Some((1.0, f64::EPSILON / 4.0)));
        assert_eq!(sum(&[1e200, 1.0, 1e-200]), None);
        for other in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(sum(&[1.0, other, 2.0]), None);
        }
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), None);
        assert!(sum(&[-0.0, -0.0]).is_some_and(|(high, _)| high.to_bits() == 0));
    }

    fn round_to_f32(sum: (f64, f64)) -> f32 {
        to_odd(sum) as f32
    }

    #[test]
    fn sums_are_rounded_once() {
        let half_unit = f64::from(f32::EPSILON) / 2.0;
        for tiny in [1e-30, -1e-30] {
            // Beside the middle of two neighbours.
            let expected = if tiny > 0.0 { 1.0 + f32::EPSILON } else { 1.0 };
            assert_eq!(round_to_f32(sum(&[1.0, half_unit, tiny]).unwrap()), expected);
            assert_eq!(round_to_f32(sum(&[-1.0, -half_unit, -tiny]).unwrap()), -expected);
        }
        assert_eq!(round_to_f32((1.0 + half_unit, 0.0)), 1.0);
        assert_eq!(round_to_f32(sum(&[f64::from(f32::MAX), 2.0_f64.powi(103)]).unwrap()), f32::INFINITY);
        assert_eq!(round_to_f32(sum(&[f64::from(f32::MAX), 2.0_f64.powi(103), -1e-30]).unwrap()), f32::MAX);
    }

    #[test]
    fn rounding_to_odd_keeps_what_rounds_to_halves() {
        // Around the numbers and the middles of two numbers, subnormal ones and the limits.
        let centers =
            [1.0, 1.5, 0.0, 5e-8, 6.1e-5, 65504.0, 65520.0, 1e-40, 9.2e-41, 4.6e-41, 3.389_531_389_251_535e38];
        for center in centers {
            for sign in [1.0, -1.0] {
                for rest in [0.0, 1e-60, -1e-60, 1e-50, -1e-50, 1e-12, -1e-12] {
                    let number: f64 = sign * center * (1.0 + rest) + if center == 0.0 { rest } else { 0.0 };
                    let odd = to_odd_f32(number);
                    let nearest = number as f32;
                    assert!(f64::from(odd) == number || odd.to_bits() & 1 == 1, "{number} {odd}");
                    assert!((i64::from(odd.to_bits()) - i64::from(nearest.to_bits())).abs() <= 1, "{number} {odd}");
                    assert_eq!(odd.is_sign_negative(), number.is_sign_negative(), "{number}");
                }
            }
        }
        assert_eq!((to_odd_f32(1e300), to_odd_f32(-1e300)), (f32::MAX, f32::MIN));
        assert_eq!((to_odd_f32(1e-300), to_odd_f32(-1e-300)), (f32::from_bits(1), -f32::from_bits(1)));
    }
}
