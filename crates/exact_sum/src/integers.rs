//! Means and norms of integers: a quotient and a root, rounded once.

use core::cmp::Ordering;

use crate::limbs::Leading;
use crate::round::{Rounded, divide, root};

/// Integers below this one are exact as `f64`.
const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// What [`mean`] and [`norm`] correct is below this: shifts of it do not overflow.
const SHORT: u128 = 1 << 126;

/// `sum / count`, rounded to nearest even; NaN of no elements. The count is below `2^63`.
#[inline]
pub fn mean(sum: i128, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude < EXACT && u128::from(count) < EXACT {
        // Both are exact, and a division is rounded once.
        return if count == 0 { f64::NAN } else { magnitude as u64 as f64 / count as f64 * sign(sum) };
    }
    let guess = nearly(magnitude) / count as f64;
    let compare = |half_way: u64, exponent: i32| {
        let product = u128::from(half_way) * u128::from(count);
        if exponent < 0 { (magnitude << -exponent).cmp(&product) } else { magnitude.cmp(&(product << exponent)) }
    };
    // A longer count would make the products too long.
    let is_short = (EXACT..SHORT).contains(&magnitude) && u128::from(count) < EXACT;
    match if is_short { corrected(guess, compare) } else { None } {
        Some(mean) => mean * sign(sum),
        None => <f64 as Rounded>::round(divide(Leading::of(sum, 0), count), 0),
    }
}

/// The root of `square`, rounded to nearest even; `sqrt` takes the root of an `f64` and rounds it so.
#[inline]
pub fn norm(square: u128, sqrt: impl Fn(f64) -> f64) -> f64 {
    if square < EXACT {
        return sqrt(square as u64 as f64);
    }
    let compare = |half_way: u64, exponent: i32| {
        let product = u128::from(half_way) * u128::from(half_way);
        let exponent = 2 * exponent;
        if exponent < 0 { (square << -exponent).cmp(&product) } else { square.cmp(&(product << exponent)) }
    };
    match if square < SHORT { corrected(sqrt(nearly(square)), compare) } else { None } {
        Some(norm) => norm,
        None => <f64 as Rounded>::round(root(Leading::of_words([square as u64, (square >> 64) as u64]), 0), 0),
    }
}

/// The root of an integer of four words, the lowest first, rounded to nearest even.
#[inline]
pub fn norm_of_words(square: [u64; 4]) -> f64 {
    <f64 as Rounded>::round(root(Leading::of_words(square), 0), 0)
}

/// 1.0 or -1.0.
#[inline(always)]
fn sign(number: i128) -> f64 {
    if number < 0 { -1.0 } else { 1.0 }
}

/// An integer as an `f64`, wrong by little more than a rounding.
#[inline(always)]
fn nearly(magnitude: u128) -> f64 {
    let dropped = 64_u32.saturating_sub(magnitude.leading_zeros());
    (magnitude >> dropped) as u64 as f64 * f64::from_bits(u64::from(1023 + dropped) << 52)
}

/// The `f64` that is nearest to a number which is positive and normal, of two that are as near the even one; `guess`
/// is wrong by a few of its last places. `compare` compares the number with an integer times a power of two.
///
/// None if the guess is so near to a power of two that the distances of its neighbours may differ.
#[inline(always)]
fn corrected(guess: f64, compare: impl Fn(u64, i32) -> Ordering) -> Option<f64> {
    const HIDDEN: u64 = 1 << (f64::MANTISSA_DIGITS - 1);
    const NEAR: u64 = 8;
    let field = guess.to_bits() >> 52;
    let mut mantissa = guess.to_bits() % HIDDEN + HIDDEN;
    if !(HIDDEN + NEAR..2 * HIDDEN - NEAR).contains(&mantissa) {
        return None;
    }
    let exponent = field as i32 - 1023 - 52;
    let is_above = |order: Ordering, mantissa: u64| {
        // Half way between two, the even one is nearest.
        order == Ordering::Greater || order == Ordering::Equal && !mantissa.is_multiple_of(2)
    };
    // Half way to the next one is an odd number of halves.
    while is_above(compare(2 * mantissa + 1, exponent - 1), mantissa) {
        mantissa += 1;
    }
    while is_above(compare(2 * mantissa - 1, exponent - 1).reverse(), mantissa) {
        mantissa -= 1;
    }
    Some(f64::from_bits((field << 52) + (mantissa - HIDDEN)))
}
