//! Exact results by big integers. They share no code with the library.

use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint};

use crate::exact::power;

/// An exact sum of products of two numbers each.
pub struct Total {
    /// The sum of the finite terms, in units of `2^exponent`.
    units: BigInt,
    exponent: i32,
    /// The sum of the terms that are not finite, or 0.
    special: f64,
    /// The number of terms.
    count: usize,
}

/// What is computed from a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The sum itself.
    Sum,
    /// The sum over the number of its terms; NaN for none.
    Mean,
    /// The square root.
    Root,
}

/// A binary floating-point format that `f64` contains.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The number of bits of a significand.
    digits: i32,
    /// The smallest number is two to this power.
    least: i32,
    /// All finite numbers are below two to this power.
    end: i32,
}

impl Format {
    /// `f16`.
    pub const HALF: Self = Self { digits: 11, least: -24, end: 16 };
    /// `bf16`.
    pub const BRAIN: Self = Self { digits: 8, least: -133, end: 128 };
    /// `f32`.
    pub const SINGLE: Self = Self { digits: 24, least: -149, end: 128 };
    /// `f64`.
    pub const DOUBLE: Self = Self { digits: 53, least: -1074, end: 1024 };
}

impl Total {
    /// The sum of the products of these factors.
    pub fn of(factors: impl Iterator<Item = [f64; 2]>) -> Self {
        // The sum of the significands for each exponent. A product's has 106 bits, so that 2^20 of them fit.
        let mut sums = BTreeMap::<i32, i128>::new();
        let (mut special, mut count) = (0.0, 0);
        for [a, b] in factors {
            count += 1;
            match (significand(a), significand(b)) {
                (Some((a, exponent)), Some((b, of_other))) => {
                    *sums.entry(exponent + of_other).or_default() += i128::from(a) * i128::from(b);
                }
                // An infinity or NaN.
                _ => special += a * b,
            }
        }
        assert!(count < 1 << 20, "too many terms");
        let (mut units, mut exponent) = (BigInt::ZERO, 0);
        for (&of_sum, &sum) in sums.iter().rev() {
            units = (units << (exponent.max(of_sum) - of_sum)) + sum;
            exponent = of_sum;
        }
        Self { units, exponent, special, count }
    }

    /// The result, rounded once to nearest, ties to even.
    pub fn rounded(&self, outcome: Outcome, format: Format) -> f64 {
        if self.special != 0.0 || outcome == Outcome::Mean && self.count == 0 {
            return if self.count == 0 { f64::NAN } else { self.special };
        }
        let (units, exponent) = (self.units.magnitude(), self.exponent);
        // More bits than any format has, and a rest.
        let more = 256;
        let magnitude = match outcome {
            Outcome::Sum => nearest(units, exponent, false, format),
            Outcome::Mean => {
                let (units, count) = (units << more, BigUint::from(self.count));
                nearest(&(&units / &count), exponent - more, &units % count != BigUint::ZERO, format)
            }
            Outcome::Root => {
                assert!(self.units >= BigInt::ZERO, "the sum of squares is negative");
                let more = more + (exponent & 1);
                let units = units << more;
                let root = units.sqrt();
                nearest(&root, (exponent - more) / 2, &root * &root != units, format)
            }
        };
        // A sum of 0 has no sign. A negative one that is rounded to 0 has.
        if self.units < BigInt::ZERO { -magnitude } else { magnitude }
    }
}

/// A finite number as an integer times a power of two.
fn significand(x: f64) -> Option<(i64, i32)> {
    let bits = x.to_bits();
    let (field, stored) = ((bits >> 52 & 0x7ff) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (significand, exponent) = match field {
        0 => (stored, -1074),
        0x7ff => return None,
        _ => (stored | 1 << 52, field - 1075),
    };
    Some((if x.is_sign_negative() { -significand } else { significand }, exponent))
}

/// The number of a format that is nearest to `units`, or a little more if it `has_rest`, in units of `2^exponent`. Of
/// two that are equally near, the even one.
fn nearest(units: &BigUint, exponent: i32, has_rest: bool, format: Format) -> f64 {
    if *units == BigUint::ZERO && !has_rest {
        return 0.0;
    }
    let last_place = (exponent + units.bits() as i32 - format.digits).max(format.least);
    let dropped = last_place - exponent;
    let significand = if dropped <= 0 {
        assert!(!has_rest, "the units have more bits than the format");
        units << -dropped
    } else {
        let kept = units >> dropped;
        let half_is_set = units.bit(dropped as u64 - 1);
        let is_more = has_rest || units.trailing_zeros().is_some_and(|zeros| zeros < dropped as u64 - 1);
        let is_up = half_is_set && (is_more || kept.bit(0));
        kept + u32::from(is_up)
    };
    if last_place + significand.bits() as i32 > format.end {
        return f64::INFINITY;
    }
    let significand = u64::try_from(significand).expect("at most 53 bits") as f64;
    if significand == 0.0 { 0.0 } else { significand * power(last_place) }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn sum(numbers: &[f64]) -> Total {
        Total::of(numbers.iter().map(|&x| [x, 1.0]))
    }

    /// Sums of two numbers, products, quotients, roots and conversions are what the processor computes.
    #[test]
    fn single_operations_are_the_processors() {
        let mut source = SmallRng::seed_from_u64(95);
        for _ in 0..20_000 {
            let a = f64::from_bits(source.random());
            let near = a * source.random_range(-4.0..4.0);
            let b = if source.random() { near } else { f64::from_bits(source.random()) };
            let same = |found: f64, right: f64, what: &str| {
                let is_same = found.to_bits() == right.to_bits() || found.is_nan() && right.is_nan();
                assert!(is_same, "the {what} of {a:e} and {b:e} is {found:e}, and not {right:e}");
            };
            same(sum(&[a, b]).rounded(Outcome::Sum, Format::DOUBLE), a + b, "sum");
            same(Total::of([[a, b]].into_iter()).rounded(Outcome::Sum, Format::DOUBLE), a * b, "product");
            same(sum(&[a, 0.0, 0.0]).rounded(Outcome::Mean, Format::DOUBLE), a / 3.0, "mean");
            same(sum(&[a.abs()]).rounded(Outcome::Root, Format::DOUBLE), a.abs().sqrt(), "root");
            let single = a.abs() as f32;
            same(sum(&[single.into()]).rounded(Outcome::Root, Format::SINGLE), single.sqrt().into(), "root in f32");
            for (format, right) in [
                (Format::SINGLE, f64::from(a as f32)),
                (Format::HALF, f16::from_f64(a).into()),
                (Format::BRAIN, bf16::from_f64(a).into()),
            ] {
                same(sum(&[a]).rounded(Outcome::Sum, format), right, &format!("{format:?}"));
            }
        }
    }

    #[test]
    fn special_sums() {
        assert_eq!(sum(&[]).rounded(Outcome::Sum, Format::SINGLE).to_bits(), 0);
        assert!(sum(&[]).rounded(Outcome::Mean, Format::SINGLE).is_nan());
        assert_eq!(sum(&[-0.0, -0.0]).rounded(Outcome::Sum, Format::SINGLE).to_bits(), 0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).rounded(Outcome::Sum, Format::DOUBLE), f64::MAX);
        assert_eq!(sum(&[f64::MAX; 2]).rounded(Outcome::Sum, Format::DOUBLE), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX; 2]).rounded(Outcome::Mean, Format::DOUBLE), f64::MAX);
        // Terms above the range of the format that cancel.
        let cancelled = Total::of([[f64::MAX; 2], [f64::MAX, -f64::MAX]].into_iter());
        assert_eq!(cancelled.rounded(Outcome::Sum, Format::DOUBLE).to_bits(), 0);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).rounded(Outcome::Sum, Format::DOUBLE).is_nan());
        let tied = sum(&[1.0, power(-53), power(-1074)]);
        assert_eq!(tied.rounded(Outcome::Sum, Format::DOUBLE), 1.0 + f64::EPSILON);
    }
}
