//! What is made of an exact sum.

use core::marker::PhantomData;

use cuda_std::float::{Float, multiply_add};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, sync_warp};
use exact_sum::round::{divide, divide_for_single, root, root_for_single, single_near};
use exact_sum::{Leading, Outcome, Rounded, Specials, digit_of_long};
use half::{bf16, f16};

use super::grid::Grid;
use super::pieces::Piece;
use super::rest::{Rest, Special};
use super::terms::{Elements, Products, Squares, Summand, Terms};
use crate::ops::{Dot, Sum, SumOfSquares};
use crate::reduce::columns::COLUMNS;
use crate::reduce::columns::place::Place;
use crate::reduce::columns::store::store_results;

/// An operator of elements of one type whose results are made of an exact sum: those of a kernel are all that can be
/// made of it, by its argument `finish`.
pub trait ExactOperator<T: Summand>: Sized + 'static {
    /// What is summed.
    type Terms: Terms<Element = T, Item = T>;
}

/// An operator of pairs whose results are made of an exact sum.
pub trait ExactPairOperator<T: Summand>: Sized + 'static {
    /// What is summed.
    type Terms: Terms<Element = T, Item = [T; 2]>;
}

/// In a kernel's argument `finish`: the mean of elements, or the root of a sum of squares, not the sum itself.
pub const DERIVED: u32 = 1;
/// In a kernel's argument `finish`: results are [`Summand::Other`], not [`Summand::Sum`].
pub const IN_OTHER_FORMAT: u32 = 2;

/// What is made of sums, and the format that it is rounded to, once. Results are bits of that format until they are
/// stored.
pub trait Finish: Copy {
    /// What the memory for results is made of.
    type Unit: Plain;
    /// The result of `count` elements whose sum is `value` units of `2^exponent`; `G` is the grid of that.
    fn of_integer<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64;
    /// The result of `count` elements whose sum is so many units of `2^unit`.
    fn of_leading(self, leading: Leading, unit: i32, count: u64) -> u64;
    /// An infinity.
    fn infinity(self, is_negative: bool) -> u64;
    /// NaN.
    fn nan(self) -> u64;
    /// The result of no elements.
    fn of_nothing(self) -> u64;
    /// Writes result `at`. Traps outside of the view.
    fn store(self, results: &GlobalMut<Self::Unit>, at: usize, bits: u64);
    /// How many results there is room for.
    fn room(self, results: &GlobalMut<Self::Unit>) -> usize;
}

/// The sum itself, in one format.
#[derive(Clone, Copy)]
pub struct SumIn<R>(PhantomData<R>);

impl<R: Result> Finish for SumIn<R> {
    type Unit = R;
    #[inline(always)]
    fn of_integer<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        Itself::of_integer::<R, G>(value, exponent, count).bits()
    }
    #[inline(always)]
    fn of_leading(self, leading: Leading, unit: i32, count: u64) -> u64 {
        Itself::of_leading::<R>(leading, unit, count).bits()
    }
    #[inline(always)]
    fn infinity(self, is_negative: bool) -> u64 {
        R::infinity(is_negative).bits()
    }
    #[inline(always)]
    fn nan(self) -> u64 {
        R::NAN.bits()
    }
    #[inline(always)]
    fn of_nothing(self) -> u64 {
        0
    }
    #[inline(always)]
    fn store(self, results: &GlobalMut<R>, at: usize, bits: u64) {
        results.store(at, R::of_bits(bits));
    }
    #[inline(always)]
    fn room(self, results: &GlobalMut<R>) -> usize {
        results.len()
    }
}

/// What a kernel's argument `finish` says: [`DERIVED`], [`IN_OTHER_FORMAT`], both or neither.
#[derive(Clone, Copy)]
pub struct Chosen<K> {
    code: u32,
    terms: PhantomData<K>,
}

/// The two formats of results.
type SumOf<K> = <<K as Terms>::Element as Summand>::Sum;
type OtherOf<K> = <<K as Terms>::Element as Summand>::Other;

impl<K: Terms<Element: Summand>> Chosen<K> {
    #[inline(always)]
    fn is_derived(self) -> bool {
        self.code & DERIVED != 0
    }

    #[inline(always)]
    fn is_other(self) -> bool {
        K::Element::HAS_OTHER && self.code & IN_OTHER_FORMAT != 0
    }

    #[inline(always)]
    fn integer_in<R: Result, G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        let result: R = match (self.is_derived(), K::DEGREE) {
            (false, _) => Itself::of_integer::<R, G>(value, exponent, count),
            (true, 1) => OverCount::of_integer::<R, G>(value, exponent, count),
            _ => Root::of_integer::<R, G>(value, exponent, count),
        };
        result.bits()
    }

    /// [`Finish::of_integer`], of which only the sum itself is inlined: for those who take several.
    #[inline(always)]
    pub fn of_integer_by_call<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        if self.code == 0 {
            return Itself::of_integer::<SumOf<K>, G>(value, exponent, count).bits();
        }
        derived_of_integer::<K, G>(self, value, exponent, count)
    }

    #[inline(always)]
    fn leading_in<R: Result>(self, leading: Leading, unit: i32, count: u64) -> u64 {
        let result: R = match (self.is_derived(), K::DEGREE) {
            (false, _) => Itself::of_leading(leading, unit, count),
            (true, 1) => OverCount::of_leading(leading, unit, count),
            _ => Root::of_leading(leading, unit, count),
        };
        result.bits()
    }
}

impl<K: Terms<Element: Summand>> Finish for Chosen<K> {
    type Unit = u8;
    #[inline(always)]
    fn of_integer<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        if self.is_other() {
            return other_of_integer::<K, G>(self, value, exponent, count);
        }
        if G::HAS_LOW {
            return sum_of_integer::<K>(self, value, exponent, count);
        }
        self.integer_in::<SumOf<K>, G>(value, exponent, count)
    }
    #[inline(always)]
    fn of_leading(self, leading: Leading, unit: i32, count: u64) -> u64 {
        if self.is_other() {
            return other_of_leading(self, leading, unit, count);
        }
        self.leading_in::<SumOf<K>>(leading, unit, count)
    }
    #[inline(always)]
    fn infinity(self, is_negative: bool) -> u64 {
        if self.is_other() {
            OtherOf::<K>::infinity(is_negative).bits()
        } else {
            SumOf::<K>::infinity(is_negative).bits()
        }
    }
    #[inline(always)]
    fn nan(self) -> u64 {
        if self.is_other() { OtherOf::<K>::NAN.bits() } else { SumOf::<K>::NAN.bits() }
    }
    #[inline(always)]
    fn of_nothing(self) -> u64 {
        if self.is_derived() && K::DEGREE == 1 { self.nan() } else { 0 }
    }
    #[inline(always)]
    fn store(self, output: &GlobalMut<Self::Unit>, at: usize, bits: u64) {
        if self.is_other() {
            output.cast().store(at, OtherOf::<K>::of_bits(bits));
        } else {
            output.cast().store(at, SumOf::<K>::of_bits(bits));
        }
    }
    #[inline(always)]
    fn room(self, output: &GlobalMut<Self::Unit>) -> usize {
        if self.is_other() { output.cast::<OtherOf<K>>().len() } else { output.cast::<SumOf<K>>().len() }
    }
}

/// [`Finish::of_integer`] in [`Summand::Other`]. Out of line, as few results are of that format.
#[cold]
#[inline(never)]
fn other_of_integer<K: Terms<Element: Summand>, G: Grid>(
    finish: Chosen<K>,
    value: i128,
    exponent: i32,
    count: u64,
) -> u64 {
    finish.integer_in::<OtherOf<K>, G>(value, exponent, count)
}

/// Out of line, as it is long.
#[inline(never)]
fn derived_of_integer<K: Terms<Element: Summand>, G: Grid>(
    finish: Chosen<K>,
    value: i128,
    exponent: i32,
    count: u64,
) -> u64 {
    finish.of_integer::<G>(value, exponent, count)
}

/// Of products of `f64`, which may be beyond any number: out of line, as it is long.
#[inline(never)]
fn sum_of_integer<K: Terms<Element: Summand>>(finish: Chosen<K>, value: i128, exponent: i32, count: u64) -> u64 {
    finish.leading_in::<SumOf<K>>(Leading::of(value, 0), exponent, count)
}

/// [`Finish::of_leading`] in [`Summand::Other`]. Out of line, as few results are of that format.
#[cold]
#[inline(never)]
fn other_of_leading<K: Terms<Element: Summand>>(finish: Chosen<K>, leading: Leading, unit: i32, count: u64) -> u64 {
    finish.leading_in::<OtherOf<K>>(leading, unit, count)
}

/// Where results go, and what is made of sums for them.
#[derive(Clone, Copy)]
pub struct Results<'a, F: Finish> {
    /// What is made of sums.
    pub finish: F,
    output: GlobalMut<'a, F::Unit>,
}

impl<'a, K: Terms<Element: Summand>> Results<'a, Chosen<K>> {
    /// Those of a kernel's arguments.
    #[inline(always)]
    pub fn chosen(finish: u32, output: GlobalMut<'a, u8>) -> Self {
        Self { finish: Chosen { code: finish, terms: PhantomData }, output }
    }

    /// Writes those of a thread's columns; see [`store_results`].
    #[inline(always)]
    pub(in crate::reduce) fn store_columns(&self, bits: [u64; COLUMNS], first: usize, place: &Place) {
        if self.finish.is_other() {
            let results = bits.map(OtherOf::<K>::of_bits);
            store_results::<K::Element, _>(results, &self.output.cast(), first, place);
        } else {
            let results = bits.map(SumOf::<K>::of_bits);
            store_results::<K::Element, _>(results, &self.output.cast(), first, place);
        }
    }
}

impl<'a, R: Result> Results<'a, SumIn<R>> {
    /// Sums, in the output's format.
    #[inline(always)]
    pub fn sums(output: GlobalMut<'a, R>) -> Self {
        Self { finish: SumIn(PhantomData), output }
    }
}

impl<F: Finish> Results<'_, F> {
    /// Writes result `at`. Traps outside of the output.
    #[inline(always)]
    pub fn store(&self, at: usize, bits: u64) {
        self.finish.store(&self.output, at, bits);
    }

    /// How many it has room for.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.finish.room(&self.output)
    }
}

/// How a result is computed from a sum.
trait Formula {
    /// [`Finish::of_integer`].
    #[inline(always)]
    fn of_integer<R: Result, G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        Self::of_leading(Leading::of(value, 0), exponent, count)
    }
    /// [`Finish::of_leading`].
    fn of_leading<R: Result>(leading: Leading, unit: i32, count: u64) -> R;
}

/// The sum itself.
struct Itself;
/// The sum over the number of its elements.
struct OverCount;
/// The root of the sum.
struct Root;

/// A format of results.
pub trait Result: Rounded + Plain {
    /// The quotient, or a number that is rounded to the same one.
    fn divide(leading: Leading, unit: i32, count: u64) -> Leading;
    /// The root, or a number that is rounded to the same one; in units of 1.
    fn root(leading: Leading, unit: i32) -> Leading;
    /// Its bits, in the lowest ones.
    fn bits(self) -> u64;
    /// The number that has these bits.
    fn of_bits(bits: u64) -> Self;
    /// What is nearest to a number, of which the last places may be wrong by a few, unless it `is_exact`. None if that
    /// might be another one.
    fn near(number: f64, is_exact: impl Fn() -> bool) -> Option<Self>;
}

impl Result for f32 {
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
        divide_for_single(leading, count).filter(is_normal).unwrap_or_else(|| divide(leading, count))
    }
    #[inline(always)]
    fn root(leading: Leading, unit: i32) -> Leading {
        // The root of the least square is a normal number.
        let quick = if leading.bits == 0 { None } else { root_for_single(leading, unit, Float::sqrt) };
        quick.unwrap_or_else(|| root(leading, unit))
    }
    #[inline(always)]
    fn near(number: f64, is_exact: impl Fn() -> bool) -> Option<Self> {
        // A conversion rounds an exact number once, if it is a normal one.
        let is_right = || number.abs() >= f32::MIN_POSITIVE.into() && is_exact();
        single_near(number).or_else(|| if is_right() { Some(number as f32) } else { None })
    }
}

impl Result for f64 {
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
    fn near(_number: f64, _is_exact: impl Fn() -> bool) -> Option<Self> {
        None
    }
}

macro_rules! half_results {
    ($($float:ident)*) => {$(
        impl Result for $float {
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
            fn near(_number: f64, _is_exact: impl Fn() -> bool) -> Option<Self> {
                None
            }
        }
    )*};
}

half_results!(f16 bf16);

impl Formula for Itself {
    #[inline(always)]
    fn of_integer<R: Result, G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let word = value as i64;
        // Products of two may be below the least number, or above the largest.
        if G::UNIT < R::LEAST && !(R::LEAST..128).contains(&exponent) {
            return round_leading(Leading::of(value, 0), exponent);
        }
        if i128::from(word) == value { R::round_word(word, exponent) } else { round_long(value, exponent) }
    }
    #[inline(always)]
    fn of_leading<R: Result>(leading: Leading, unit: i32, _count: u64) -> R {
        R::round(leading, unit)
    }
}

impl Formula for OverCount {
    #[inline(always)]
    fn of_integer<R: Result, G: Grid>(value: i128, exponent: i32, count: u64) -> R {
        // Ties are often exact: one in twenty means of 16 normally distributed numbers is one.
        let quick = number_of::<R>(value, exponent).and_then(|sum| {
            let (mean, count) = (sum / count as f64, count as f64);
            R::near(mean, || is_exact(value) && multiply_add(-mean, count, sum) == 0.0)
        });
        quick.unwrap_or_else(|| mean_of_integer(value, exponent, count))
    }
    #[inline(always)]
    fn of_leading<R: Result>(leading: Leading, unit: i32, count: u64) -> R {
        mean(leading, unit, count)
    }
}

impl Formula for Root {
    #[inline(always)]
    fn of_integer<R: Result, G: Grid>(value: i128, exponent: i32, _count: u64) -> R {
        let quick = number_of::<R>(value, exponent).and_then(|sum| R::near(Float::sqrt(sum), || false));
        quick.unwrap_or_else(|| norm_of_integer(value, exponent))
    }
    #[inline(always)]
    fn of_leading<R: Result>(leading: Leading, unit: i32, _count: u64) -> R {
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

/// Whether an `f64` has all bits of an integer.
#[inline(always)]
fn is_exact(value: i128) -> bool {
    (value as i64).unsigned_abs() >> f64::MANTISSA_DIGITS == 0
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

impl<T: Summand> ExactOperator<T> for Sum {
    type Terms = Elements<T>;
}

impl<T: Summand> ExactOperator<T> for SumOfSquares {
    type Terms = Squares<T>;
}

impl<T: Summand> ExactPairOperator<T> for Dot {
    type Terms = Products<T>;
}

/// The result of `count` elements whose sum is a piece and, if it says so, the limbs of this warp's rest. All lanes of
/// the warp come here with the same piece.
#[inline(always)]
pub fn result_of<F: Finish, G: Grid>(finish: F, piece: Piece, rest: Rest<G>, count: u64) -> u64 {
    if piece.has_limbs {
        of_limbs(finish, piece, rest, count)
    } else {
        finish.of_integer::<G>(piece.value, G::UNIT + piece.position as i32, count)
    }
}

/// The result of `count` elements whose sum is two pieces, of first and of second terms, and, if the first says so, the
/// limbs of this warp's rest. All lanes of the warp come here with the same pieces.
#[inline(always)]
pub fn result_of_both<F: Finish, G: Grid>(finish: F, piece: Piece, low: Piece, rest: Rest<G>, count: u64) -> u64 {
    if !G::HAS_LOW {
        return result_of(finish, piece, rest, count);
    }
    let both = Leading::of_two((piece.value, piece.position), (low.value, low.position));
    match both {
        Some(leading) if !piece.has_limbs => finish.of_leading(leading, G::UNIT, count),
        _ => {
            sync_warp(FULL_MASK);
            rest.add(|k| digit_of_long(low.value, low.position, k));
            of_limbs(finish, piece, rest, count)
        }
    }
}

/// The result of the sum of a piece and of limbs. Out of line: it is not often needed.
#[cold]
#[inline(never)]
fn of_limbs<F: Finish, G: Grid>(finish: F, piece: Piece, rest: Rest<G>, count: u64) -> u64 {
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
    result_of_limbs::<F, G>(finish, specials, rest.leading(), count)
}

/// The result of `count` elements whose sum has these highest bits, in the grid's units, if they are finite.
#[inline(always)]
pub fn result_of_limbs<F: Finish, G: Grid>(finish: F, specials: Specials, leading: Leading, count: u64) -> u64 {
    match specials.outcome() {
        Outcome::Finite => finish.of_leading(leading, G::UNIT, count),
        Outcome::Infinity { is_negative } => finish.infinity(is_negative),
        Outcome::Nan => finish.nan(),
    }
}
