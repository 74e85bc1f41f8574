//! Computes a result from an exact sum: the sum itself, the mean, or the root, in a format.

use cuda_std::float::{Float, multiply_add};
use cuda_std::prelude::*;
use exact_sum::round::{divide, divide_for_f32, root, root_for_f32, try_round_to_f32};
use exact_sum::{Leading, Rounded};
use half::{bf16, f16};

use super::grid::Grid;

/// How a result is computed from a sum.
pub(super) trait Formula {
    /// The result of `count` elements whose sum is `value` units of `2^exponent`, on grid `G`.
    #[inline(always)]
    fn of_integer<R: ResultFormat, G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        Self::of_leading(Leading::of(value, 0), exponent, count)
    }
    /// The result of `count` elements whose sum has these highest bits, in units of `2^unit`.
    fn of_leading<R: ResultFormat>(leading: Leading, unit: i32, count: u64) -> R;
}

/// The sum itself.
pub(super) struct SumValue;
/// The sum over the number of its elements.
pub(super) struct MeanValue;
/// The root of the sum.
pub(super) struct NormValue;

/// A format of results.
pub trait ResultFormat: Rounded + Plain {
    /// The quotient, or a number that rounds to the same result.
    fn divide(leading: Leading, unit: i32, count: u64) -> Leading;
    /// The root, or a number that rounds to the same result; in units of 1.
    fn root(leading: Leading, unit: i32) -> Leading;
    /// The result's bits, in the lowest bits.
    fn bits(self) -> u64;
    /// The number with these bits.
    fn of_bits(bits: u64) -> Self;
    /// The result nearest to the exact value that `number` approximates to a few units in the last place, or equals if
    /// `is_exact`. `None` if another result might be nearer.
    fn round_if_safe(number: f64, is_exact: impl Fn() -> bool) -> Option<Self>;
}

impl ResultFormat for f32 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    #[inline(always)]
    fn divide(leading: Leading, unit: i32, count: u64) -> Leading {
        let is_normal = |found: &Leading| found.position + 127 + unit >= f32::MIN_EXP - 1;
        divide_for_f32(leading, count).filter(is_normal).unwrap_or_else(|| divide(leading, count))
    }
    #[inline(always)]
    fn root(leading: Leading, unit: i32) -> Leading {
        // The root of the smallest square is a normal number.
        let fast = if leading.bits == 0 { None } else { root_for_f32(leading, unit, Float::sqrt) };
        fast.unwrap_or_else(|| root(leading, unit))
    }
    #[inline(always)]
    fn round_if_safe(number: f64, is_exact: impl Fn() -> bool) -> Option<Self> {
        // A conversion rounds an exact number once, if it is a normal one.
        let is_right = || number.abs() >= f32::MIN_POSITIVE.into() && is_exact();
        try_round_to_f32(number).or_else(|| if is_right() { Some(number as f32) } else { None })
    }
}

impl ResultFormat for f64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    #[inline(always)]
    fn divide(leading: Leading, _unit: i32, count: u64) -> Leading {
        divide(leading, count)
    }
    #[inline(always)]
    fn root(leading: Leading, unit: i32) -> Leading {
        root(leading, unit)
    }
    #[inline(always)]
    fn round_if_safe(_number: f64, _is_exact: impl Fn() -> bool) -> Option<Self> {
        None
    }
}

macro_rules! half_results {
    ($($float:ident)*) => {$(
        impl ResultFormat for $float {
            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn of_bits(bits: u64) -> Self {
                Self::from_bits(bits as u16)
            }
            #[inline(always)]
            fn divide(leading: Leading, _unit: i32, count: u64) -> Leading {
                divide(leading, count)
            }
            #[inline(always)]
            fn root(leading: Leading, unit: i32) -> Leading {
                root(leading, unit)
            }
            #[inline(always)]
            fn round_if_safe(_number: f64, _is_exact: impl Fn() -> bool) -> Option<Self> {
                None
            }
        }
    )*};
}

half_results!(f16 bf16);

impl Formula for SumValue {
    #[inline(always)]
    fn of_integer<R: ResultFormat, G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let word = value as i64;
        // Products may be below the smallest number, or above the largest.
        if G::UNIT < R::LEAST && !(R::LEAST..128).contains(&exponent) {
            return round_leading(Leading::of(value, 0), exponent);
        }
        if i128::from(word) == value { R::round_i64(word, exponent) } else { round_long(value, exponent) }
    }
    #[inline(always)]
    fn of_leading<R: ResultFormat>(leading: Leading, unit: i32, _count: u64) -> R {
        R::round(leading, unit)
    }
}

impl Formula for MeanValue {
    #[inline(always)]
    fn of_integer<R: ResultFormat, G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        // Ties are often exact: one in twenty means of 16 normally distributed numbers is a tie.
        let fast = number_of::<R>(value, exponent).and_then(|sum| {
            let (mean, count) = (sum / count as f64, count as f64);
            R::round_if_safe(mean, || is_exact(value) && multiply_add(-mean, count, sum) == 0.0)
        });
        fast.unwrap_or_else(|| mean_of_integer(value, exponent, count))
    }
    #[inline(always)]
    fn of_leading<R: ResultFormat>(leading: Leading, unit: i32, count: u64) -> R {
        mean(leading, unit, count)
    }
}

impl Formula for NormValue {
    #[inline(always)]
    fn of_integer<R: ResultFormat, G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let fast = number_of::<R>(value, exponent).and_then(|sum| R::round_if_safe(Float::sqrt(sum), || false));
        fast.unwrap_or_else(|| norm_of_integer(value, exponent))
    }
    #[inline(always)]
    fn of_leading<R: ResultFormat>(leading: Leading, unit: i32, _count: u64) -> R {
        norm(leading, unit)
    }
}

/// `value * 2^exponent`, rounded once, if it is far from the limits of `f64`. For results with fewer bits than `f64`.
#[inline(always)]
fn number_of<R: ResultFormat>(value: i128, exponent: i32) -> Option<f64> {
    let (word, is_near) = (value as i64, (-900..900).contains(&exponent));
    let power = f64::from_bits(((exponent + 1023) as u64) << 52);
    let is_word = size_of::<R>() < size_of::<f64>() && is_near && i128::from(word) == value;
    if is_word { Some(word as f64 * power) } else { None }
}

/// Whether an `f64` has all bits of an integer.
#[inline(always)]
fn is_exact(value: i128) -> bool {
    (value as i64).unsigned_abs() >> f64::MANTISSA_DIGITS == 0
}

/// [`mean`] of an integer. Out of line, since it is long.
#[inline(never)]
fn mean_of_integer<R: ResultFormat>(value: i128, exponent: i32, count: u64) -> R {
    mean(Leading::of(value, 0), exponent, count)
}

/// [`norm`] of an integer. Out of line, since it is long.
#[inline(never)]
fn norm_of_integer<R: ResultFormat>(value: i128, exponent: i32) -> R {
    norm(Leading::of(value, 0), exponent)
}

/// The mean, rounded once. Out of line, since it is long.
#[inline(never)]
fn mean<R: ResultFormat>(leading: Leading, unit: i32, count: u64) -> R {
    if count == 0 {
        return R::NAN;
    }
    R::round(R::divide(leading, unit, count), unit)
}

/// The root, rounded once. Out of line, since it is long.
#[inline(never)]
fn norm<R: ResultFormat>(leading: Leading, unit: i32) -> R {
    R::round(R::root(leading, unit), 0)
}

/// Rounds a long integer. Out of line, since sums of most inputs have 64 bits.
#[cold]
#[inline(never)]
fn round_long<R: Rounded>(value: i128, exponent: i32) -> R {
    R::round_i128(value, exponent)
}

/// Rounds leading bits. Out of line, since it is long and rarely needed.
#[cold]
#[inline(never)]
fn round_leading<R: Rounded>(leading: Leading, unit: i32) -> R {
    R::round(leading, unit)
}
