//! Tallies: the results of the operators, computed on the CPU.

use approx::abs_diff_eq;
use kernels::reduce::tuning::order::{depth, depth_of_column, depth_of_segment};
use num_bigint::BigInt;

use super::bins::BigSum;
use super::operators::Operator;
use crate::element::{Format, Number, Wide};
use crate::number::Value;

/// An expected result, and its error bound.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub value: Value,
    /// The maximum error of a float; infinite if every result is accepted.
    pub bound: f64,
}

impl Expected {
    pub(super) fn exactly(value: Value) -> Self {
        Self { value, bound: 0.0 }
    }

    /// A value with an error bound. An infinite or NaN value is expected exactly. If the order of the operations
    /// decides whether a result overflows or underflows, every result is accepted.
    fn near(value: f64, error: f64, may_leave_range: bool) -> Self {
        let bound = if value.is_finite() { error } else { 0.0 };
        Self { value: Value::F64(value), bound: if may_leave_range { f64::INFINITY } else { bound } }
    }

    /// The same value, expected exactly.
    pub fn exact(self) -> Self {
        Self::exactly(self.value)
    }

    /// Whether a result is right.
    pub fn accepts(&self, found: Value) -> bool {
        if let (Some(found), Some(expected)) = (found.whole(), self.value.whole()) {
            return found == expected;
        }
        let (found, expected) = (found.to_f64(), self.value.to_f64());
        // Infinities must be compared, because their difference is NaN.
        found == expected
            || found.is_nan() && expected.is_nan()
            || abs_diff_eq!(found, expected, epsilon = self.bound)
            || self.bound == f64::INFINITY
    }
}

/// A compensated sum in `f64` (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen",
/// 1974).
#[derive(Clone, Copy, Default)]
struct Total {
    sum: f64,
    lost: f64,
}

impl Total {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost += if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn join(mut self, other: Self) -> Self {
        self.add(other.sum);
        Self { lost: self.lost + other.lost, ..self }
    }

    fn value(self) -> f64 {
        // The compensation of an infinite sum is NaN.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// What the operators need to know about some numbers.
#[derive(Clone, Copy)]
pub struct Tally<W> {
    count: u64,
    sum: Total,
    /// For integers: the exact sum.
    exact_sum: i128,
    /// For integers: the exact sum of squares as two words, of which the second is in units of 2^128.
    exact_squares: [u128; 2],
    /// The sum of the absolute values of the finite numbers.
    magnitude: f64,
    /// For integers: the sum and the sum of squares, wrapped to 64 bits.
    wrapped_sum: W,
    wrapped_squares: W,
    min: W,
    max: W,
    argmin: u64,
    argmax: u64,
    nonzero: u64,
    nan: u64,
    first_nan: u64,
    finite: u64,
    product: W,
    /// The number of factors that are not powers of two, whose products may be rounded.
    inexact_factors: u64,
    /// An upper bound of the sum of |log2| of the factors.
    exponents: f64,
}

/// The sum of two 256-bit integers.
fn long_sum(a: [u128; 2], b: [u128; 2]) -> [u128; 2] {
    let (low, carry) = a[0].overflowing_add(b[0]);
    [low, a[1] + b[1] + u128::from(carry)]
}

/// The index of no number.
const NONE: u64 = u64::MAX;

impl<W: Wide> Tally<W> {
    pub fn new() -> Self {
        Self {
            count: 0,
            sum: Total::default(),
            exact_sum: 0,
            exact_squares: [0; 2],
            magnitude: 0.0,
            wrapped_sum: W::ZERO,
            wrapped_squares: W::ZERO,
            min: W::ZERO,
            max: W::ZERO,
            argmin: NONE,
            argmax: NONE,
            nonzero: 0,
            nan: 0,
            first_nan: NONE,
            finite: 0,
            product: W::ONE,
            inexact_factors: 0,
            exponents: 0.0,
        }
    }

    /// The tally of some numbers. `first` is the index of the first one.
    pub fn of<T: Number<Wide = W>>(operator: Operator, first: usize, numbers: &[T]) -> Self {
        let mut tally = Self::new();
        numbers.iter().enumerate().for_each(|(i, x)| tally.count(operator, first + i, x.wide()));
        tally
    }

    /// Adds the number at index `i` to the quantities that the operator needs.
    pub fn count(&mut self, operator: Operator, i: usize, x: W) {
        match operator {
            Operator::Product => self.multiply(x),
            Operator::CountNan | Operator::CountFinite => {
                self.nan += u64::from(x.to_f64().is_nan());
                self.finite += u64::from(x.to_f64().is_finite());
            }
            _ => self.add(i as u64, x),
        }
    }

    fn add(&mut self, i: u64, x: W) {
        let real = x.to_f64();
        self.count += 1;
        self.sum.add(real);
        self.magnitude += if real.is_finite() { real.abs() } else { 0.0 };
        if !W::IS_FLOAT {
            self.wrapped_sum = self.wrapped_sum.plus(x);
            self.wrapped_squares = self.wrapped_squares.plus(x.times(x));
            let exact = x.value().whole().unwrap_or(0);
            self.exact_sum += exact;
            self.exact_squares = long_sum(self.exact_squares, [exact.unsigned_abs().pow(2), 0]);
        }
        self.nonzero += u64::from(x != W::ZERO);
        if real.is_nan() {
            self.first_nan = self.first_nan.min(i);
        }
        if self.argmin == NONE || x < self.min {
            (self.min, self.argmin) = (x, i);
        }
        if self.argmax == NONE || x > self.max {
            (self.max, self.argmax) = (x, i);
        }
    }

    fn multiply(&mut self, x: W) {
        self.product = self.product.times(x);
        let bits = x.to_f64().abs().to_bits();
        if W::IS_FLOAT && x != W::ZERO && x.to_f64().is_finite() {
            let exponent = (bits >> 52) as f64 - 1023.0;
            let is_inexact = bits << 12 != 0;
            self.inexact_factors += u64::from(is_inexact);
            self.exponents += exponent.abs() + f64::from(is_inexact && exponent >= 0.0);
        }
    }

    /// The joint tally of these numbers and of later ones, whose indices are larger.
    pub fn join(self, later: Self) -> Self {
        let is_less = self.argmin == NONE || later.argmin != NONE && later.min < self.min;
        let is_more = self.argmax == NONE || later.argmax != NONE && later.max > self.max;
        let (min, argmin) = if is_less { (later.min, later.argmin) } else { (self.min, self.argmin) };
        let (max, argmax) = if is_more { (later.max, later.argmax) } else { (self.max, self.argmax) };
        Self {
            count: self.count + later.count,
            sum: self.sum.join(later.sum),
            exact_sum: self.exact_sum + later.exact_sum,
            exact_squares: long_sum(self.exact_squares, later.exact_squares),
            magnitude: self.magnitude + later.magnitude,
            wrapped_sum: self.wrapped_sum.plus(later.wrapped_sum),
            wrapped_squares: self.wrapped_squares.plus(later.wrapped_squares),
            min,
            max,
            argmin,
            argmax,
            nonzero: self.nonzero + later.nonzero,
            nan: self.nan + later.nan,
            first_nan: self.first_nan.min(later.first_nan),
            finite: self.finite + later.finite,
            product: self.product.times(later.product),
            inexact_factors: self.inexact_factors + later.inexact_factors,
            exponents: self.exponents + later.exponents,
        }
    }

    /// The expected results of the operator: two for `MinMax`, one for any other.
    pub fn results<T: Number<Wide = W>>(&self, operator: Operator) -> impl Iterator<Item = Expected> + use<T, W> {
        let counted = |count: u64| Expected::exactly(Value::U64(count));
        let extreme = |value: W| {
            let has_nan = self.first_nan != NONE;
            Expected::exactly(if has_nan { Value::F64(f64::NAN) } else { value.value() })
        };
        // The first NaN is the index of both extremes.
        let index = |index: u64| counted(if self.first_nan == NONE { index } else { self.first_nan });
        let first = match operator {
            Operator::Sum if !W::IS_FLOAT => Expected::exactly(self.wrapped_sum.value()),
            // Sums of squares of floats are exact, and need no tally.
            Operator::SumOfSquares | Operator::Dot => Expected::exactly(self.wrapped_squares.value()),
            Operator::Product if !W::IS_FLOAT => Expected::exactly(self.product.value()),
            Operator::WrappingSum => Expected::exactly(T::of_wide(self.wrapped_sum).value()),
            Operator::Sum => self.near_sum(T::MEANS),
            Operator::SumInF64 => self.near_sum(Format::Double),
            // Means and norms of floats are exact, and need no tally.
            Operator::Mean => Expected::exactly(Value::F64(self.mean())),
            Operator::Norm => Expected::exactly(Value::F64(self.norm())),
            Operator::Product => self.near_product(T::MEANS),
            Operator::PairwiseSum => self.near_pairwise_sum::<T>(1.0),
            Operator::PairwiseMean => self.near_pairwise_sum::<T>(self.count as f64),
            Operator::Min | Operator::MinMax => extreme(self.min),
            Operator::Max => extreme(self.max),
            Operator::ArgMin => index(self.argmin),
            Operator::ArgMax => index(self.argmax),
            Operator::Any => counted(u64::from(self.nonzero > 0)),
            Operator::All => counted(u64::from(self.nonzero == self.count)),
            Operator::CountNonzero => counted(self.nonzero),
            Operator::CountNan => counted(self.nan),
            Operator::CountFinite => counted(self.finite),
        };
        let second = (operator == Operator::MinMax).then(|| extreme(self.max));
        [first].into_iter().chain(second)
    }

    /// The expected sum, with an error bound. A partial sum may be infinite even if the sum is finite.
    fn near_sum(&self, format: Format) -> Expected {
        let value = format.round(self.sum.value());
        let error = relative_error(format) * self.magnitude + format.least();
        Expected::near(value, error, self.magnitude > format.largest())
    }

    /// The expected sum by ordinary additions in the library's order, over a divisor.
    fn near_pairwise_sum<T: Number>(&self, divisor: f64) -> Expected {
        let (format, count, size) = (T::MEANS, self.count as usize, size_of::<T>());
        let Expected { value, bound } = self.near_sum(format);
        // The shape is one of these.
        let depth = depth(count, size).max(depth_of_column(count, size)).max(depth_of_segment(count, size));
        let value = format.round(value.to_f64() / divisor);
        let error = 1.01 * depth as f64 * format.unit_roundoff() * self.magnitude;
        let bound = (bound + error) / divisor + format.unit_roundoff() * value.abs();
        Expected { value: Value::F64(value), bound: if value.is_finite() { bound } else { 0.0 } }
    }

    fn mean(&self) -> f64 {
        BigSum::of_integer(self.exact_sum.into(), self.count).exact().mean(Format::Double)
    }

    fn norm(&self) -> f64 {
        let [low, high] = self.exact_squares.map(BigInt::from);
        BigSum::of_integer((high << u128::BITS) + low, self.count).exact().root(Format::Double)
    }

    /// The expected product, with an error bound. A partial product may overflow or be subnormal even if the product is
    /// normal.
    fn near_product(&self, format: Format) -> Expected {
        let product = format.round(self.product.to_f64());
        // The smallest normal number is 4 divided by the largest.
        let may_leave_range = self.exponents >= format.largest().log2() - 2.0;
        let error = 2.0 * self.inexact_factors as f64 * format.unit_roundoff() * product.abs();
        Expected::near(product, error, may_leave_range)
    }
}

/// The error bound of a few roundings, relative to the sum of absolute values: of those in a float sum, or, for `f64`,
/// of those in the expected sum. `expected_by_rung` multiplies the bound for a rung with more roundings.
fn relative_error(format: Format) -> f64 {
    8.0 * format.unit_roundoff().max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn one<T: Number>(operator: Operator, numbers: &[T]) -> Expected {
        Tally::of(operator, 0, numbers).results::<T>(operator).next().unwrap()
    }

    #[test]
    fn nan_and_infinities_are_compared() {
        let is = |found: f64, value: f64| Expected { value: Value::F64(value), bound: 0.5 }.accepts(Value::F64(found));
        let (infinite, nan) = (f64::INFINITY, f64::NAN);
        assert!(is(nan, nan) && is(infinite, infinite) && is(1.5, 1.0));
        assert!(!is(nan, 1.0) && !is(1.0, nan) && !is(infinite, -infinite) && !is(infinite, 1.0) && !is(1.6, 1.0));
    }

    #[test]
    fn integers_are_exact_in_64_bits() {
        let whole = |expected: Expected| expected.value.whole().unwrap();
        let numbers = [i64::MAX, i64::MAX - 1, 7];
        assert_eq!(whole(one(Operator::Sum, &numbers)), i128::from(i64::MAX.wrapping_add(i64::MAX - 1) + 7));
        assert_eq!(whole(one(Operator::Min, &numbers[..2])), i128::from(i64::MAX - 1));
        assert!(!one(Operator::Max, &numbers).accepts(Value::I64(i64::MAX - 1)), "as f64 they are equal");
        assert_eq!(whole(one(Operator::WrappingSum, &[200_u8, 100])), 44);
        assert_eq!(whole(one(Operator::SumOfSquares, &[-3_i8, 4])), 25);
        assert_eq!(whole(one(Operator::Product, &[-3_i8, 4])), -12);
        assert_eq!(whole(one(Operator::Product, &[u64::MAX, 2])), i128::from(u64::MAX - 1));
        // The mean does not wrap.
        assert!(one(Operator::Mean, &[i64::MAX; 4]).accepts(Value::F64(i64::MAX as f64)));
        let third = one(Operator::Mean, &[0, 0, 1]);
        assert!(third.accepts(Value::F64(1.0 / 3.0)) && !third.accepts(Value::F64((1.0_f64 / 3.0).next_up())));
        assert!(one(Operator::Norm, &[3, 4]).accepts(Value::F64(5.0)));
        assert!(one(Operator::Norm, &[i64::MIN; 16]).accepts(Value::F64(2.0_f64.powi(65))));
    }

    #[test]
    fn nan_is_an_extreme_at_every_index() {
        for numbers in [[f32::NAN, 1.0, -5.0], [1.0, f32::NAN, -5.0], [1.0, -5.0, f32::NAN]] {
            let place = numbers.iter().position(|x| x.is_nan()).unwrap();
            for operator in [Operator::Min, Operator::Max, Operator::Sum, Operator::Product] {
                assert!(one(operator, &numbers).accepts(Value::F64(f64::NAN)), "{operator:?}");
                assert!(!one(operator, &numbers).accepts(Value::F64(-5.0)), "{operator:?}");
            }
            for operator in [Operator::ArgMin, Operator::ArgMax] {
                assert!(one(operator, &numbers).accepts(Value::U64(place as u64)), "{operator:?}");
            }
        }
        let (infinite, none) = ([f64::INFINITY; 2], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(one(Operator::ArgMin, &infinite).accepts(Value::U64(0)));
        assert!(one(Operator::Sum, &infinite).accepts(Value::F64(f64::INFINITY)));
        assert!(!one(Operator::Sum, &infinite).accepts(Value::F64(1.0)));
        assert!(one(Operator::Sum, &none).accepts(Value::F64(f64::NAN)));
    }

    #[test]
    fn sums_by_rungs_may_have_rounding_errors() {
        let sum = one(Operator::Sum, &[1e20_f64, 1.0, -1e20]);
        assert!(sum.accepts(Value::F64(1.0)) && sum.accepts(Value::F64(0.0)) && !sum.accepts(Value::F64(1e6)));
        let sum = one(Operator::Sum, &[0.1_f32; 10]);
        assert!(
            sum.accepts(Value::F32(1.0)) && sum.accepts(Value::F32(1.000_000_1)) && !sum.accepts(Value::F32(1.00001))
        );
        // Some partial sums are infinite.
        let sum = one(Operator::Sum, &[f32::MAX, f32::MAX, -f32::MAX]);
        assert!(sum.accepts(Value::F32(f32::MAX)) && sum.accepts(Value::F32(f32::INFINITY)));
        let sum = one(Operator::Sum, &[f32::INFINITY, f32::MAX]);
        assert!(sum.accepts(Value::F32(f32::INFINITY)) && !sum.accepts(Value::F32(f32::MAX)));
    }

    #[test]
    fn products_of_floats() {
        let product = one(Operator::Product, &[f16::from_f32(0.1), f16::from_f32(2.0), f16::from_f32(-1.0)]);
        let exact = f64::from(f16::from_f32(0.1)) * -2.0;
        assert!(product.accepts(Value::F64(exact)) && !product.accepts(Value::F64(exact * 1.001)));
        assert_eq!(one(Operator::Product, &[2.0_f32, -1.0, 0.5, 4.0]).bound, 0.0);
        // Far from the limits of the range, a wrong factor is detected. Near them, any result is accepted.
        assert!(!one(Operator::Product, &[1e18_f32, 1e18]).accepts(Value::F32(1e35)));
        assert!(one(Operator::Product, &[1e30_f32, 1e30, 1e-30]).accepts(Value::F32(f32::INFINITY)));
        assert!(one(Operator::Product, &[1e300_f64, 0.0]).accepts(Value::F64(0.0)));
        assert!(one(Operator::Product, &[f32::INFINITY, 0.0]).accepts(Value::F64(f64::NAN)));
    }
}
