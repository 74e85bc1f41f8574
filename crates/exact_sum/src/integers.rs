//! Means and norms of integers: a quotient or a square root, rounded once.

use core::cmp::Ordering;

use crate::limbs::Leading;
use crate::round::{Rounded, divide, root};

/// Integers below this bound are exact as `f64`.
const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// [`mean`] and [`norm`] correct a guess only for integers below this bound, whose shifts do not overflow.
const SHORT: u128 = 1 << 126;

/// `sum / count`, rounded to nearest even; NaN for a count of 0. The count is below `2^63`.
#[inline]
pub fn mean(sum: i128, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude < EXACT && u128::from(count) < EXACT {
        // Both operands are exact, and the division rounds once.
        return if count == 0 { f64::NAN } else { magnitude as u64 as f64 / count as f64 * sign(sum) };
    }
    let guess = approximate(magnitude) / count as f64;
    let compare = |midpoint: u64, exponent: i32| {
        let product = u128::from(midpoint) * u128::from(count);
        (magnitude << (-exponent).max(0)).cmp(&(product << exponent.max(0)))
    };
    // With a larger count the products would overflow.
    let is_short = magnitude < SHORT && u128::from(count) < EXACT;
    match if is_short { correct(guess, compare) } else { None } {
        Some(mean) => mean * sign(sum),
        None => <f64 as Rounded>::round(divide(Leading::of(sum, 0), count), 0),
    }
}

/// The square root of `square`, rounded to nearest even. `sqrt` is a correctly rounded square root of `f64`.
#[inline]
pub fn norm(square: u128, sqrt: impl Fn(f64) -> f64) -> f64 {
    if square < EXACT {
        return sqrt(square as u64 as f64);
    }
    let compare = |midpoint: u64, exponent: i32| {
        let product = u128::from(midpoint) * u128::from(midpoint);
        let exponent = 2 * exponent;
        (square << (-exponent).max(0)).cmp(&(product << exponent.max(0)))
    };
    match if square < SHORT { correct(sqrt(approximate(square)), compare) } else { None } {
        Some(norm) => norm,
        None => <f64 as Rounded>::round(root(Leading::of_words([square as u64, (square >> 64) as u64]), 0), 0),
    }
}

/// The square root of an integer of four words, lowest first, rounded to nearest even.
#[inline]
pub fn norm_of_words(square: [u64; 4]) -> f64 {
    <f64 as Rounded>::round(root(Leading::of_words(square), 0), 0)
}

/// 1.0 or -1.0.
#[inline(always)]
fn sign(number: i128) -> f64 {
    if number < 0 { -1.0 } else { 1.0 }
}

/// The integer as an `f64`, with an error of little more than one rounding.
#[inline(always)]
fn approximate(magnitude: u128) -> f64 {
    let dropped = 64_u32.saturating_sub(magnitude.leading_zeros());
    (magnitude >> dropped) as u64 as f64 * f64::from_bits(u64::from(1023 + dropped) << 52)
}

/// The `f64` nearest to a positive, normal number, ties to even. `guess` is off by a few units in the last place.
/// `compare` compares the number with an integer times a power of two.
///
/// `None` if the guess is so close to a power of two that its neighbours may have different spacings.
#[inline(always)]
fn correct(guess: f64, compare: impl Fn(u64, i32) -> Ordering) -> Option<f64> {
    const HIDDEN: u64 = 1 << (f64::MANTISSA_DIGITS - 1);
    const NEAR: u64 = 8;
    let field = guess.to_bits() >> 52;
    let mut mantissa = guess.to_bits() % HIDDEN + HIDDEN;
    if !(HIDDEN + NEAR..2 * HIDDEN - NEAR).contains(&mantissa) {
        return None;
    }
    let exponent = field as i32 - 1023 - 52;
    let is_above = |order: Ordering, mantissa: u64| {
        // At a midpoint the even neighbour is the nearest.
        order == Ordering::Greater || order == Ordering::Equal && !mantissa.is_multiple_of(2)
    };
    // The midpoint to the next number is an odd number of half units.
    while is_above(compare(2 * mantissa + 1, exponent - 1), mantissa) {
        mantissa += 1;
    }
    while is_above(compare(2 * mantissa - 1, exponent - 1).reverse(), mantissa) {
        mantissa -= 1;
    }
    Some(f64::from_bits((field << 52) + (mantissa - HIDDEN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approximations_are_within_two_units_in_the_last_place() {
        for shift in 0..127 {
            for beside in [0, 1, 0x1234_5678_9abc_def0_1234 >> (126 - shift).min(80)] {
                let magnitude = (1_u128 << shift) + beside;
                let (found, nearest) = (approximate(magnitude), magnitude as f64);
                assert!(found.to_bits().abs_diff(nearest.to_bits()) <= 2, "{magnitude}: {found:e}");
            }
        }
        assert_eq!(approximate(u128::MAX), u128::MAX as f64);
    }

    /// A guess that is off by up to 7 units in the last place is corrected, unless it is near a power of two.
    #[test]
    fn guesses_are_corrected_unless_they_are_near_a_power_of_two() {
        for mantissa in [1_u64 << 52, (1 << 52) + 1000, (1 << 52) + 1001, (1 << 53) - 1] {
            for off in -20_i64..=20 {
                let guess = mantissa.saturating_add_signed(off) as f64;
                let compare = |found: u64, exponent: i32| {
                    let number = u128::from(mantissa) << 20;
                    number.cmp(&(u128::from(found) << (20 + exponent)))
                };
                let of_guess = guess.to_bits() % (1 << 52);
                let is_near = !(8..(1 << 52) - 8).contains(&of_guess);
                let expected = if is_near { None } else { Some(mantissa as f64) };
                // Near a power of two a number may be corrected, but need not be the nearest one.
                if is_near || mantissa % (1 << 52) > 30 && mantissa < (1 << 53) - 30 {
                    assert_eq!(correct(guess, compare), expected, "{mantissa} and {off}");
                }
            }
        }
    }
}
