//! Results of the CPU for the same input, independent of any kernel.

use std::fmt::Debug;

use approx::abs_diff_eq;
use rand::Rng;
use rand::rngs::SmallRng;
use warpfold::exact::ExactSum;
use warpfold::ladder::{LadderElement, ReduceRung};

/// A number whose sums are checked.
pub trait Sum: LadderElement + Debug {
    /// A random number from the whole range for which sums are defined.
    fn random(source: &mut SmallRng) -> Self;

    /// Checks that `sum` is the sum of `numbers`: exactly for integers; for floats within the error bound of any order
    /// of additions that a rung uses.
    ///
    /// # Errors
    /// If it is not; the message has the expected sum.
    fn check(sum: Self, numbers: &[Self]) -> Result<(), String>;

    /// Checks that `sum` is the exact sum of `numbers`, rounded once.
    ///
    /// # Errors
    /// If it is not; the message has the expected sum.
    fn check_exact(sum: Self, numbers: &[Self]) -> Result<(), String>;

    /// The number's bits.
    fn bits(self) -> u64;
}

/// Checks that `sum` is what a rung should give for `numbers`; for an exact rung, the exact sum.
///
/// # Errors
/// If it is not; the message has the expected sum.
pub fn check_rung<T: Sum>(rung: ReduceRung, sum: T, numbers: &[T]) -> Result<(), String> {
    if rung.is_exact() { T::check_exact(sum, numbers) } else { T::check(sum, numbers) }
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Sum for $type {
            fn random(source: &mut SmallRng) -> Self {
                source.random_range(-1.0..1.0)
            }

            fn check(sum: Self, numbers: &[Self]) -> Result<(), String> {
                let exact = exact_sum(numbers.iter().map(|&x| f64::from(x)));
                let magnitude: f64 = numbers.iter().map(|&x| f64::from(x).abs()).sum();
                if !exact.is_finite() || magnitude > f64::from(Self::MAX) {
                    // An intermediate sum may overflow although the exact one does not, so only NaN and infinities
                    // among the elements determine the result.
                    let has_nan = numbers.iter().any(|x| x.is_nan());
                    let infinities = [Self::INFINITY, Self::NEG_INFINITY].map(|infinity| numbers.contains(&infinity));
                    let agrees = match (has_nan, infinities) {
                        (true, _) | (_, [true, true]) => sum.is_nan(),
                        (false, [true, false]) => sum == Self::INFINITY || sum.is_nan(),
                        (false, [false, true]) => sum == Self::NEG_INFINITY || sum.is_nan(),
                        (false, [false, false]) => true,
                    };
                    return if agrees { Ok(()) } else { Err(format!("{sum:?}, the CPU has {exact:?}")) };
                }
                // Half an epsilon for each addition on the path of an element, plus one smallest number for each.
                let roundings = 64.0 + numbers.len() as f64 / 4096.0;
                let bound = roundings * (f64::from(Self::EPSILON) / 2.0 * magnitude + f64::from(Self::from_bits(1)));
                if abs_diff_eq!(f64::from(sum), exact, epsilon = bound) {
                    return Ok(());
                }
                let off = (f64::from(sum) - exact).abs();
                Err(format!("{sum:?}, the CPU has {exact:?}: {off:e} off, allowed {bound:e}"))
            }

            fn check_exact(sum: Self, numbers: &[Self]) -> Result<(), String> {
                let exact = numbers.iter().copied().collect::<ExactSum<Self>>().value();
                let is_same = sum.to_bits() == exact.to_bits() || sum.is_nan() && exact.is_nan();
                if is_same { Ok(()) } else { Err(format!("{sum:?}, the exact sum is {exact:?}")) }
            }

            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Sum for $type {
            fn random(source: &mut SmallRng) -> Self {
                source.random()
            }

            fn check(sum: Self, numbers: &[Self]) -> Result<(), String> {
                let exact = numbers.iter().fold(0, |sum: Self, &x| sum.wrapping_add(x));
                if sum == exact { Ok(()) } else { Err(format!("{sum}, the CPU has {exact}")) }
            }

            fn check_exact(sum: Self, numbers: &[Self]) -> Result<(), String> {
                Self::check(sum, numbers)
            }

            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}

floats!(f32, f64);
integers!(i32, i64);

/// The sum with compensation of each rounding error (Neumaier's variant of Kahan's algorithm).
fn exact_sum(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut rest) = (0.0, 0.0);
    for x in numbers {
        let next: f64 = sum + x;
        rest += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    if sum.is_finite() { sum + rest } else { sum }
}

/// The transpose of a matrix in row-major order.
pub fn transposed(elements: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut result = Vec::with_capacity(elements.len());
    for column in 0..columns {
        result.extend((0..rows).map(|row| elements[row * columns + column]));
    }
    result
}

/// The first index where two lists differ in a bit.
pub fn first_difference(a: &[f32], b: &[f32]) -> Option<usize> {
    (0..a.len().max(b.len())).find(|&i| a.get(i).map(|x| x.to_bits()) != b.get(i).map(|x| x.to_bits()))
}
