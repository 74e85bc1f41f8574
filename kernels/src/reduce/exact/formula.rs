//! Computes a result from an exact sum: the sum itself, the mean, or the root, in a format.

use cuda_std::float::{Float, bf16_from_f32, f16_from_f32, multiply_add};
use cuda_std::prelude::*;
use exact_sum::round::{divide, divide_for_f32, root, root_for_f32, try_round_to_f32};
use exact_sum::{Leading, Rounded};
use half::{bf16, f16};

use super::few_terms::{to_odd, to_odd_f32, two_sum};
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
    /// The result of `count` elements, of which there are few, whose sum is an `f64` and a rest of at most half a unit
    /// in its last place. `None` if that is not enough to round the result.
    fn of_pair<R: ResultFormat>(sum: (f64, f64), count: u64) -> Option<R>;
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
    /// The sum of an `f64` and a rest of at most half a unit in its last place, rounded once.
    fn of_pair(sum: (f64, f64)) -> Self;
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
    fn of_pair(sum: (f64, f64)) -> Self {
        to_odd(sum) as f32
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
    fn of_pair((nearest, _): (f64, f64)) -> Self {
        nearest
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
    ($($float:ident: $from_f32:ident;)*) => {$(
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
            fn of_pair(sum: (f64, f64)) -> Self {
                $from_f32(to_odd_f32(to_odd(sum)))
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
            fn round_if_safe(number: f64, is_exact: impl Fn() -> bool) -> Option<Self> {
                const ERROR: f64 = 8.0 * f64::EPSILON;
                let round = |number| $from_f32(to_odd_f32(number));
                let (low, high) = (round(number - number * ERROR), round(number + number * ERROR));
                if low.to_bits() == high.to_bits() {
                    Some(low)
                } else if is_exact() {
                    Some(round(number))
                } else {
                    None
                }
            }
        }
    )*};
}

half_results! {
    f16: f16_from_f32;
    bf16: bf16_from_f32;
}

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
    #[inline(always)]
    fn of_pair<R: ResultFormat>(sum: (f64, f64), _count: u64) -> Option<R> {
        Some(R::of_pair(sum))
    }
}

impl Formula for MeanValue {
    #[inline(always)]
    fn of_integer<R: ResultFormat, G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        // Ties are often exact: one in twenty means of 16 normally distributed numbers is a tie.
        let fast = number_of::<R>(value, exponent).filter(|_| count > 0).and_then(|sum| {
            let (mean, count) = (sum / count as f64, count as f64);
            R::round_if_safe(mean, || is_exact(value) && multiply_add(-mean, count, sum) == 0.0)
        });
        fast.unwrap_or_else(|| mean_of_integer(value, exponent, count))
    }
    #[inline(always)]
    fn of_leading<R: ResultFormat>(leading: Leading, unit: i32, count: u64) -> R {
        mean(leading, unit, count)
    }
    #[inline(always)]
    fn of_pair<R: ResultFormat>((high, low): (f64, f64), count: u64) -> Option<R> {
        let (is_power_of_two, count) = (count & (count - 1) == 0, count as f64);
        let inverse = 1.0 / count;
        if is_power_of_two {
            let mean = (high * inverse, low * inverse);
            // False if bits were lost below the smallest `f64`.
            let is_exact = mean.0 * count == high && mean.1 * count == low;
            return if is_exact { Some(R::of_pair(mean)) } else { None };
        }
        // A product with the inverse, corrected by its error: nearly always the quotient, where a division takes ten
        // times as long.
        let mean = high * inverse;
        let mean = multiply_add(multiply_add(-mean, count, high), inverse, mean);
        let rest = multiply_add(-mean, count, high);
        if size_of::<R>() == size_of::<f64>() {
            // The rest is exact unless it is below the smallest `f64`.
            let (rest, lost) = two_sum(rest, low);
            let more = rest * inverse;
            let more = multiply_add(multiply_add(-more, count, rest), inverse, more);
            // It has an error of less than 2^-50 of itself, and so the rounding is safe if 2^-48 does not change it: A.
            // Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit", 1991. Or it
            // is exact: one in twenty means of three `f64` of similar magnitude is a tie.
            let error = more * (16.0 * f64::EPSILON);
            let is_exact = lost == 0.0 && multiply_add(-more, count, rest) == 0.0;
            let is_safe = is_exact || mean + (more - error) == mean + (more + error);
            let is_normal = high.abs() > 1e-250 || high == 0.0;
            return if is_safe && is_normal { Some(R::of_pair((mean + more, 0.0))) } else { None };
        }
        R::round_if_safe(mean, || low == 0.0 && rest == 0.0)
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
    #[inline(always)]
    fn of_pair<R: ResultFormat>((high, _): (f64, f64), _count: u64) -> Option<R> {
        R::round_if_safe(Float::sqrt(high), || false)
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

#[cfg(test)]
mod tests {
    use exact_sum::ExactSum;

    use super::super::few_terms::{DoublePair, FewTerms};
    use super::*;

    /// A sequence of words that looks random: S. Vigna's SplitMix64.
    fn words() -> impl FnMut() -> u64 {
        let mut state = 7_u64;
        move || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let word = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            word ^ (word >> 31)
        }
    }

    /// Exact sums as pairs: of any bits, and of few bits, whose means are often midpoints or exact.
    fn pairs() -> impl Iterator<Item = (f64, f64)> {
        let mut word = words();
        (0..20_000).map(move |i| {
            let exponent = (word() % 60) as i32 - 40;
            let mantissa = if i % 2 == 1 { word() as i64 >> 11 } else { (word() % 100_000) as i64 - 50_000 };
            let high = mantissa as f64 * 2.0_f64.powi(exponent - 30);
            let low = if i % 3 == 1 { 0.0 } else { high * 2.0_f64.powi(-54 - (word() % 40) as i32) };
            let low = if word() % 2 == 1 { low } else { -low };
            let sum = high + low;
            (sum, (high - sum) + low)
        })
    }

    fn means_are_rounded_once<R: ResultFormat>() -> usize {
        let (mut unsafe_ones, mut word) = (0, words());
        for (high, low) in pairs() {
            let count = 2 + word() % 31;
            let mut sum = ExactSum::<f64>::new();
            [high, low].into_iter().chain((2..count).map(|_| 0.0)).for_each(|x| sum.add(x));
            match MeanValue::of_pair::<R>((high, low), count) {
                Some(mean) => assert_eq!(mean.bits(), sum.mean::<R>().bits(), "{high:e} + {low:e} over {count}"),
                None => unsafe_ones += 1,
            }
            assert_eq!(R::of_pair((high, low)).bits(), sum.rounded::<R>().bits(), "{high:e} + {low:e}");
        }
        unsafe_ones
    }

    #[test]
    fn nearly_all_means_of_f64_of_similar_magnitude_are_decided() {
        let mut word = words();
        for count in 2..=32 {
            let mut undecided = 0;
            for _ in 0..2000 {
                let (mut pair, mut sum) = (DoublePair::ZERO, ExactSum::<f64>::new());
                for _ in 0..count {
                    // From 1/16 to 16.
                    let x = f64::from_bits(word() >> 12 | (1019 + word() % 8) << 52);
                    let x = if word() % 2 == 1 { x } else { -x };
                    pair.add(x);
                    sum.add(x);
                }
                let mean = MeanValue::of_pair::<f64>(pair.pair(), count);
                assert_eq!(mean.unwrap_or(sum.mean()).to_bits(), sum.mean::<f64>().to_bits(), "{count}");
                undecided += usize::from(mean.is_none());
            }
            assert!(undecided <= 2, "{undecided} of {count}");
        }
    }

    #[test]
    fn means_and_sums_of_pairs_are_rounded_once() {
        // Nearly all are decided.
        let unsafe_ones = [
            means_are_rounded_once::<f64>(),
            means_are_rounded_once::<f32>(),
            means_are_rounded_once::<f16>(),
            means_are_rounded_once::<bf16>(),
        ];
        assert!(unsafe_ones.iter().all(|&count| count < 200), "{unsafe_ones:?}");
    }

    #[test]
    fn halves_are_rounded_only_if_the_error_does_not_matter() {
        fn check<R: ResultFormat>() {
            let mut found = 0;
            for (number, _) in pairs().map(|(high, low)| (high.abs(), low)) {
                let of = |number: f64| R::of_pair((number, 0.0)).bits();
                let near = [number, number * (1.0 - 3.0 * f64::EPSILON), number * (1.0 + 3.0 * f64::EPSILON)];
                if let Some(result) = R::round_if_safe(number, || false) {
                    assert_eq!(near.map(of), [result.bits(); 3], "{number:e}");
                    found += 1;
                }
                assert_eq!(R::round_if_safe(number, || true).map(R::bits), Some(of(number)), "{number:e}");
            }
            assert!(found > 15_000, "{found}");
        }
        check::<f16>();
        check::<bf16>();
    }
}
