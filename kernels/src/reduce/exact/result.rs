//! What is made of an exact sum.

use cuda_std::float::Float;
use cuda_std::warp::{FULL_MASK, sync_warp};
use exact_sum::round::{divide, divide_for_single, root, root_for_single, single_near};
use exact_sum::{Leading, Outcome, Rounded, Specials, digit_of_long};

use super::grid::Grid;
use super::pieces::Piece;
use super::rest::{Rest, Special};
use super::terms::{Elements, Products, Squares, Summand, Terms};
use crate::ops::{Dot, Mean, Norm, Sum, SumInF64, SumOfSquares};

/// A result that is made of an exact sum.
pub trait Finish: 'static {
    /// What it is.
    type Output: Rounded;
    /// Whether the result of no elements is NaN; else it is 0.
    const IS_NAN_OF_NOTHING: bool = false;
    /// The result of `count` elements whose sum is `value` units of `2^exponent`; `G` is the grid of that.
    #[inline(always)]
    fn of_integer<G: Grid>(value: i128, exponent: i32, count: u64) -> Self::Output {
        Self::of_leading(Leading::of(value, 0), exponent, count)
    }
    /// The result of `count` elements whose sum is so many units of `2^unit`.
    fn of_leading(leading: Leading, unit: i32, count: u64) -> Self::Output;
}

/// An operator of elements of one type whose results are made of an exact sum.
pub trait ExactOperator<T: Summand>: Sized + 'static {
    /// What is summed.
    type Terms: Terms<Element = T, Item = T>;
    /// What is given out.
    type Output: Rounded + cuda_std::element::Plain;
    /// What is made of the sum.
    type Finish: Finish<Output = Self::Output>;
}

/// An operator of pairs whose results are made of an exact sum.
pub trait ExactPairOperator<T: Summand>: Sized + 'static {
    /// What is summed.
    type Terms: Terms<Element = T, Item = [T; 2]>;
    /// What is given out.
    type Output: Rounded + cuda_std::element::Plain;
    /// What is made of the sum.
    type Finish: Finish<Output = Self::Output>;
}

/// The sum itself.
pub struct Itself<R>(core::marker::PhantomData<R>);
/// The sum over the number of its elements.
pub struct OverCount<R>(core::marker::PhantomData<R>);
/// The root of the sum.
pub struct Root<R>(core::marker::PhantomData<R>);

/// A format of results.
pub trait Result: Rounded + cuda_std::element::Plain {
    /// The quotient, or a number that is rounded to the same one.
    fn divide(leading: Leading, unit: i32, count: u64) -> Leading;
    /// The root, or a number that is rounded to the same one; in units of 1.
    fn root(leading: Leading, unit: i32) -> Leading;
    /// What is nearest to a number, of which the last places may be wrong by a few. None if that might be another one.
    fn near(number: f64) -> Option<Self>;
}

impl Result for f32 {
    #[inline(always)]
    fn divide(leading: Leading, unit: i32, count: u64) -> Leading {
        let is_normal = |found: &Leading| found.position + 127 + unit >= f32::MIN_EXP - 1;
        divide_for_single(leading, count).filter(is_normal).unwrap_or_else(|| divide(leading, count))
    }
    #[inline(always)]
    fn root(leading: Leading, unit: i32) -> Leading {
        // The root of the least square is a normal number.
        let quick = if leading.bits == 0 { None } else { root_for_single(leading, unit, Float::sqrt) };
        quick.unwrap_or_else(|| root(leading, unit))
    }
    #[inline(always)]
    fn near(number: f64) -> Option<Self> {
        single_near(number)
    }
}

impl Result for f64 {
    #[inline(always)]
    fn divide(leading: Leading, _unit: i32, count: u64) -> Leading {
        divide(leading, count)
    }
    #[inline(always)]
    fn root(leading: Leading, unit: i32) -> Leading {
        root(leading, unit)
    }
    #[inline(always)]
    fn near(_number: f64) -> Option<Self> {
        None
    }
}

impl<R: Result> Finish for Itself<R> {
    type Output = R;
    #[inline(always)]
    fn of_integer<G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let word = value as i64;
        // Products of two may be below the least number, or above the largest.
        if G::UNIT < R::LEAST && !(R::LEAST..128).contains(&exponent) {
            return round_leading(Leading::of(value, 0), exponent);
        }
        if i128::from(word) == value { R::round_word(word, exponent) } else { round_long(value, exponent) }
    }
    #[inline(always)]
    fn of_leading(leading: Leading, unit: i32, _count: u64) -> R {
        R::round(leading, unit)
    }
}

impl<R: Result> Finish for OverCount<R> {
    type Output = R;
    const IS_NAN_OF_NOTHING: bool = true;
    #[inline(always)]
    fn of_integer<G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        let quick = number_of::<R>(value, exponent).and_then(|sum| R::near(sum / count as f64));
        quick.unwrap_or_else(|| mean_of_integer(value, exponent, count))
    }
    #[inline(always)]
    fn of_leading(leading: Leading, unit: i32, count: u64) -> R {
        mean(leading, unit, count)
    }
}

impl<R: Result> Finish for Root<R> {
    type Output = R;
    #[inline(always)]
    fn of_integer<G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let quick = number_of::<R>(value, exponent).and_then(|sum| R::near(Float::sqrt(sum)));
        quick.unwrap_or_else(|| norm_of_integer(value, exponent))
    }
    #[inline(always)]
    fn of_leading(leading: Leading, unit: i32, _count: u64) -> R {
        norm(leading, unit)
    }
}

/// `value * 2^exponent`, rounded once; for results that have fewer bits than it, if it is far from the ends of `f64`.
#[inline(always)]
fn number_of<R: Result>(value: i128, exponent: i32) -> Option<f64> {
    let (word, is_near) = (value as i64, (-900..900).contains(&exponent));
    let power = f64::from_bits(((exponent + 1023) as u64) << 52);
    let is_word = size_of::<R>() < size_of::<f64>() && is_near && i128::from(word) == value;
    if is_word { Some(word as f64 * power) } else { None }
}

/// [`mean`] of an integer. Out of line, as it is long.
#[inline(never)]
fn mean_of_integer<R: Result>(value: i128, exponent: i32, count: u64) -> R {
    mean(Leading::of(value, 0), exponent, count)
}

/// [`norm`] of an integer. Out of line, as it is long.
#[inline(never)]
fn norm_of_integer<R: Result>(value: i128, exponent: i32) -> R {
    norm(Leading::of(value, 0), exponent)
}

/// Out of line, as it is long.
#[inline(never)]
fn mean<R: Result>(leading: Leading, unit: i32, count: u64) -> R {
    if count == 0 {
        return R::NAN;
    }
    R::round(R::divide(leading, unit, count), unit)
}

/// Out of line, as it is long.
#[inline(never)]
fn norm<R: Result>(leading: Leading, unit: i32) -> R {
    R::round(R::root(leading, unit), 0)
}

/// Out of line: sums of most inputs have 64 bits.
#[cold]
#[inline(never)]
fn round_long<R: Rounded>(value: i128, exponent: i32) -> R {
    R::round_integer(value, exponent)
}

/// Out of line: it is long, and seldom needed.
#[cold]
#[inline(never)]
fn round_leading<R: Rounded>(leading: Leading, unit: i32) -> R {
    R::round(leading, unit)
}

macro_rules! operators {
    ($($operator:ident: $terms:ident, $finish:ident;)*) => {$(
        impl<T: Summand> ExactOperator<T> for $operator {
            type Terms = $terms<T>;
            type Output = T::Sum;
            type Finish = $finish<T::Sum>;
        }
    )*};
}

operators! {
    Sum: Elements, Itself;
    Mean: Elements, OverCount;
    SumOfSquares: Squares, Itself;
    Norm: Squares, Root;
}

impl ExactOperator<f32> for SumInF64 {
    type Terms = Elements<f32>;
    type Output = f64;
    type Finish = Itself<f64>;
}

impl<T: Summand> ExactPairOperator<T> for Dot {
    type Terms = Products<T>;
    type Output = T::Sum;
    type Finish = Itself<T::Sum>;
}

/// The result of `count` elements whose sum is a piece and, if it says so, the limbs of this warp's rest. All lanes of
/// the warp come here with the same piece.
#[inline(always)]
pub fn result_of<F: Finish, G: Grid>(piece: Piece, rest: Rest<G>, count: u64) -> F::Output {
    if piece.has_limbs {
        of_limbs::<F, G>(piece, rest, count)
    } else {
        F::of_integer::<G>(piece.value, G::UNIT + piece.position as i32, count)
    }
}

/// The result of `count` elements whose sum is two pieces, of first and of second terms, and, if the first says so, the
/// limbs of this warp's rest. All lanes of the warp come here with the same pieces.
#[inline(always)]
pub fn result_of_both<F: Finish, G: Grid>(piece: Piece, low: Piece, rest: Rest<G>, count: u64) -> F::Output {
    if !G::HAS_LOW {
        return result_of::<F, G>(piece, rest, count);
    }
    let both = Leading::of_two((piece.value, piece.position), (low.value, low.position));
    match both {
        Some(leading) if !piece.has_limbs => F::of_leading(leading, G::UNIT, count),
        _ => {
            sync_warp(FULL_MASK);
            rest.add(|k| digit_of_long(low.value, low.position, k));
            of_limbs::<F, G>(piece, rest, count)
        }
    }
}

/// The result of the sum of a piece and of limbs. Out of line: it is not often needed.
#[cold]
#[inline(never)]
fn of_limbs<F: Finish, G: Grid>(piece: Piece, rest: Rest<G>, count: u64) -> F::Output {
    sync_warp(FULL_MASK);
    rest.add(|k| digit_of_long(piece.value, piece.position, k));
    sync_warp(FULL_MASK);
    let mut specials = Specials::NONE;
    for (special, found) in [
        (Special::Nan, Specials::nan()),
        (Special::Infinity, Specials::infinity(false)),
        (Special::NegativeInfinity, Specials::infinity(true)),
    ] {
        specials = if rest.word(G::LIMBS + special as u32) == 0 { specials } else { specials.or(found) };
    }
    result_of_limbs::<F, G>(specials, rest.leading(), count)
}

/// The result of `count` elements whose sum has these highest bits, in the grid's units, if they are finite.
#[inline(always)]
pub fn result_of_limbs<F: Finish, G: Grid>(specials: Specials, leading: Leading, count: u64) -> F::Output {
    match specials.outcome() {
        Outcome::Finite => F::of_leading(leading, G::UNIT, count),
        Outcome::Infinity { is_negative } => F::Output::infinity(is_negative),
        Outcome::Nan => F::Output::NAN,
    }
}
