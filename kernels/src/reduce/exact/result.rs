//! What is made of an exact sum.

use super::pieces::Piece;
use super::rest::{LIMBS, Rest};
use crate::ops::{Mean, Sum};
use exact_sum::round::{divide, divide_for_single};
use exact_sum::{Leading, Limbs, Outcome, Rounded, Specials};

/// A result that is made of an exact sum.
pub trait OfExactSum: 'static {
    /// The result of `count` elements whose sum is `value` units of `2^exponent`.
    fn of_integer(value: i128, exponent: i32, count: u64) -> f32;
    /// The result of `count` elements whose sum is so many units of [`UNIT`].
    fn of_leading(leading: Leading, count: u64) -> f32;
}

/// The exponent of the least `f32`, in units of which limbs are.
pub const UNIT: i32 = -149;

/// The result of `count` elements whose sum is a piece and, if it says so, the limbs of this warp's rest.
#[inline(always)]
pub fn result_of<O: OfExactSum>(piece: Piece, rest: Rest, count: u64) -> f32 {
    if piece.has_limbs {
        of_limbs::<O>(piece, rest, count)
    } else {
        O::of_integer(piece.value, UNIT + piece.position as i32, count)
    }
}

/// The result of the sum of a piece and of limbs. Out of line: it is not often needed.
#[cold]
#[inline(never)]
fn of_limbs<O: OfExactSum>(piece: Piece, rest: Rest, count: u64) -> f32 {
    let (leading, specials) = leading_with(rest, [piece.value as u64, (piece.value >> 64) as u64], piece.position);
    match specials.outcome() {
        Outcome::Finite => O::of_leading(leading, count),
        Outcome::Infinity { is_negative } => f32::infinity(is_negative),
        Outcome::Nan => f32::NAN,
    }
}

/// The sum of limbs and a value, and what of it is not finite.
#[inline(always)]
fn leading_with(rest: Rest, value: [u64; 2], position: u32) -> (Leading, Specials) {
    let (mut sum, mut k) = (Limbs::<LIMBS>::ZERO, 0);
    while k < LIMBS {
        sum.set_limb(k, rest.word(k));
        k += 1;
    }
    sum.add((u128::from(value[0]) | u128::from(value[1]) << 64) as i128, position);
    let mut specials = Specials::NONE;
    for (word, special) in
        [Specials::nan(), Specials::infinity(false), Specials::infinity(true)].into_iter().enumerate()
    {
        specials = if rest.word(LIMBS + word) == 0 { specials } else { specials.or(special) };
    }
    (sum.leading(), specials)
}

impl OfExactSum for Sum {
    #[inline(always)]
    fn of_integer(value: i128, exponent: i32, _count: u64) -> f32 {
        let word = value as i64;
        if i128::from(word) == value { f32::round_word(word, exponent) } else { round_long(value, exponent) }
    }
    #[inline(always)]
    fn of_leading(leading: Leading, _count: u64) -> f32 {
        <f32 as Rounded>::round(leading, UNIT)
    }
}

impl OfExactSum for Mean {
    #[inline(always)]
    fn of_integer(value: i128, exponent: i32, count: u64) -> f32 {
        mean(Leading::of(value, exponent - UNIT), count)
    }
    #[inline(always)]
    fn of_leading(leading: Leading, count: u64) -> f32 {
        mean(leading, count)
    }
}

/// Out of line, as it is long.
#[inline(never)]
fn mean(leading: Leading, count: u64) -> f32 {
    let quick = divide_for_single(leading, count);
    let is_normal = |found: &Leading| found.position + 127 + UNIT >= f32::MIN_EXP - 1;
    <f32 as Rounded>::round(quick.filter(is_normal).unwrap_or_else(|| divide(leading, count)), UNIT)
}

/// Out of line: sums of most inputs have 64 bits.
#[cold]
#[inline(never)]
fn round_long(value: i128, exponent: i32) -> f32 {
    f32::round_integer(value, exponent)
}
