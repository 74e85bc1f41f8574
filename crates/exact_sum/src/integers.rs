//! Means and norms of integers: a quotient or a square root, rounded once.

use core::cmp::Ordering;

use crate::limbs::Leading;
use crate::round::{Rounded, divide, root};

/// Integers below this bound are exact as `f64`.
const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// The bound of the integers that [`mean`] and [`norm`] correct: shifts of them do not overflow.
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
        if exponent < 0 { (magnitude << -exponent).cmp(&product) } else { magnitude.cmp(&(product << exponent)) }
    };
    // A larger count would make the products too long.
    let is_short = (EXACT..SHORT).contains(&magnitude) && u128::from(count) < EXACT;
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
        if exponent < 0 { (square << -exponent).cmp(&product) } else { square.cmp(&(product << exponent)) }
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
