//! Results computed from exact sums.

use core::marker::PhantomData;

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, sync_warp};
use exact_sum::{Leading, Outcome, Rounded, Specials, digit_of_i128};

use super::formula::{Formula, MeanValue, NormValue, ResultFormat, SumValue};
use super::grid::Grid;
use super::partial::Partial;
use super::superaccumulator::Superaccumulator;
use super::superaccumulator_words::Special;
use super::terms::{Elements, Products, Squares, Summand, Terms};
use crate::ops::{Dot, Sum, SumOfSquares};
use crate::reduce::columns::COLUMNS;
use crate::reduce::columns::store::store_results;
use crate::reduce::columns::thread_columns::ThreadColumns;

/// An operator on elements of one type whose results are computed from an exact sum. One kernel computes all results of
/// a sum, as its argument `finish` selects.
pub trait ExactOperator<T: Element>: Sized + 'static {
    /// The terms that are summed.
    type Terms: Terms<Element = T, Item = T>;
    /// The factors of a term, which is a product of [`Terms::DEGREE`] of them.
    type Factors: Terms<Element = T, Item = T>;

    /// The factors of these terms.
    fn factors(terms: Self::Terms) -> Self::Factors;
}

/// An operator on pairs whose results are computed from an exact sum.
pub trait ExactPairOperator<T: Element>: Sized + 'static {
    /// The terms that are summed.
    type Terms: Terms<Element = T, Item = [T; 2]>;
}

/// In a kernel's argument `finish`: the mean of elements, or the root of a sum of squares, instead of the sum.
pub const DERIVED: u32 = 1;
/// In a kernel's argument `finish`: results are [`Terms::Other`] instead of [`Terms::Sum`].
pub const IN_OTHER_FORMAT: u32 = 2;

/// A kernel's argument `finish`, which is [`DERIVED`], [`IN_OTHER_FORMAT`], both or neither: how a result is computed
/// from a sum, and the format to which it is rounded once. Results are bits of that format until they are stored.
#[derive(Clone, Copy)]
pub struct Finish<K> {
    code: u32,
    terms: PhantomData<K>,
}

impl<K: Terms> Finish<K> {
    /// The sum, in the format of sums.
    #[cfg(test)]
    pub(super) const SUM: Self = Self { code: 0, terms: PhantomData };

    /// Whether the result is the sum, in the format of sums.
    #[inline(always)]
    pub(super) fn is_plain(self) -> bool {
        self.code == 0
    }

    #[inline(always)]
    fn is_derived(self) -> bool {
        self.code & DERIVED != 0
    }

    #[inline(always)]
    fn is_other(self) -> bool {
        K::HAS_OTHER && self.code & IN_OTHER_FORMAT != 0
    }

    /// Whether the result is a root in `f64`, which more than [`NEEDED`](exact_sum::HighestBits::NEEDED) bits decide.
    #[inline(always)]
    pub fn is_long_root(self) -> bool {
        K::DEGREE == 2 && size_of::<K::Other>() == 8 && self.is_derived() && (self.is_other() || !K::HAS_OTHER)
    }

    /// Whether the result is a root.
    #[inline(always)]
    pub(super) fn is_root(self) -> bool {
        K::DEGREE == 2 && self.is_derived()
    }

    #[inline(always)]
    fn integer_in<R: ResultFormat, G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        let result: R = match (self.is_derived(), K::DEGREE) {
            (false, _) => SumValue::of_integer::<R, G>(value, exponent, count),
            (true, 1) => MeanValue::of_integer::<R, G>(value, exponent, count),
            _ => NormValue::of_integer::<R, G>(value, exponent, count),
        };
        result.bits()
    }

    /// [`Finish::of_integer`] with only the sum itself inlined, for callers with several results.
    #[inline(always)]
    pub fn of_integer_by_call<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        if self.code == 0 {
            return SumValue::of_integer::<K::Sum, G>(value, exponent, count).bits();
        }
        derived_of_integer::<K, G>(self, value, exponent, count)
    }

    /// The result of `count` elements, of which there are few, whose sum is an `f64` and a rest of at most half a unit
    /// in its last place. `None` if this does not decide a mean or a root: it is very near to a midpoint, or small.
    #[inline(always)]
    pub fn of_pair(self, sum: (f64, f64), count: u64) -> Option<u64> {
        if self.is_other() { self.pair_in::<K::Other>(sum, count) } else { self.pair_in::<K::Sum>(sum, count) }
    }

    #[inline(always)]
    fn pair_in<R: ResultFormat>(self, sum: (f64, f64), count: u64) -> Option<u64> {
        let result: Option<R> = match (self.is_derived(), K::DEGREE) {
            (false, _) => SumValue::of_pair(sum, count),
            (true, 1) => MeanValue::of_pair(sum, count),
            _ => NormValue::of_pair(sum, count),
        };
        result.map(ResultFormat::bits)
    }

    #[inline(always)]
    fn leading_in<R: ResultFormat>(self, leading: Leading, unit: i32, count: u64) -> u64 {
        let result: R = match (self.is_derived(), K::DEGREE) {
            (false, _) => SumValue::of_leading(leading, unit, count),
            (true, 1) => MeanValue::of_leading(leading, unit, count),
            _ => NormValue::of_leading(leading, unit, count),
        };
        result.bits()
    }

    /// The result of `count` elements whose sum is `value` units of `2^exponent`, on grid `G`.
    #[inline(always)]
    pub fn of_integer<G: Grid>(self, value: i128, exponent: i32, count: u64) -> u64 {
        if self.is_other() {
            return other_of_integer::<K, G>(self, value, exponent, count);
        }
        if G::HAS_LOW {
            return sum_of_integer::<K>(self, value, exponent, count);
        }
        self.integer_in::<K::Sum, G>(value, exponent, count)
    }

    /// The result of `count` elements whose sum is `leading` units of `2^unit`.
    #[inline(always)]
    pub fn of_leading(self, leading: Leading, unit: i32, count: u64) -> u64 {
        if self.is_other() {
            return other_of_leading(self, leading, unit, count);
        }
        self.leading_in::<K::Sum>(leading, unit, count)
    }

    /// An infinity.
    #[inline(always)]
    fn infinity(self, is_negative: bool) -> u64 {
        if self.is_other() { K::Other::infinity(is_negative).bits() } else { K::Sum::infinity(is_negative).bits() }
    }

    #[inline(always)]
    pub(super) fn nan(self) -> u64 {
        if self.is_other() { K::Other::NAN.bits() } else { K::Sum::NAN.bits() }
    }

    /// The result of no elements.
    #[inline(always)]
    pub fn of_empty(self) -> u64 {
        if self.is_derived() && K::DEGREE == 1 { self.nan() } else { 0 }
    }
}

/// [`Finish::of_integer`] in [`Terms::Other`]. Out of line, since few results have that format.
#[cold]
#[inline(never)]
fn other_of_integer<K: Terms, G: Grid>(finish: Finish<K>, value: i128, exponent: i32, count: u64) -> u64 {
    finish.integer_in::<K::Other, G>(value, exponent, count)
}

/// The mean or the root. Out of line, since it is long.
#[inline(never)]
fn derived_of_integer<K: Terms, G: Grid>(finish: Finish<K>, value: i128, exponent: i32, count: u64) -> u64 {
    finish.of_integer::<G>(value, exponent, count)
}

/// Sums of `f64` products, which may exceed the range of `f64`. Out of line, since it is long.
#[inline(never)]
fn sum_of_integer<K: Terms>(finish: Finish<K>, value: i128, exponent: i32, count: u64) -> u64 {
    finish.leading_in::<K::Sum>(Leading::of(value, 0), exponent, count)
}

/// [`Finish::of_leading`] in [`Terms::Other`]. Out of line, since few results have that format.
#[cold]
#[inline(never)]
fn other_of_leading<K: Terms>(finish: Finish<K>, leading: Leading, unit: i32, count: u64) -> u64 {
    finish.leading_in::<K::Other>(leading, unit, count)
}

/// The output of a kernel, and the computation of its results.
#[derive(Clone, Copy)]
pub struct Results<'a, K> {
    /// How results are computed from sums.
    pub finish: Finish<K>,
    output: GlobalMut<'a, u8>,
}

impl<'a, K: Terms> Results<'a, K> {
    /// The results that a kernel's arguments select.
    ///
    /// # Safety
    /// The output is aligned for results in the format that `finish` selects, and has one for each index that
    /// [`Results::store`] gets.
    #[inline(always)]
    pub unsafe fn new(finish: u32, output: GlobalMut<'a, u8>) -> Self {
        Self { finish: Finish { code: finish, terms: PhantomData }, output }
    }

    /// Writes the results of a thread's columns; see [`store_results`].
    #[inline(always)]
    pub(in crate::reduce) fn store_columns(&self, bits: [u64; COLUMNS], first: usize, place: &ThreadColumns) {
        if self.finish.is_other() {
            store_results::<K::Element, _>(bits.map(K::Other::of_bits), &self.output_of(), first, place);
        } else {
            store_results::<K::Element, _>(bits.map(K::Sum::of_bits), &self.output_of(), first, place);
        }
    }

    /// Writes the results of a thread's columns of elements of `size` bytes, unchecked on a GPU: those of the first two
    /// at the first place, and, if it has them, those of the others at the second. With elements of less than 8 bytes
    /// it has them, and their places are next to each other.
    ///
    /// # Safety
    /// The output has these results, and each place is aligned for four of them, or to 16 bytes if that is less.
    #[inline(always)]
    pub(super) unsafe fn store_fours(&self, bits: [u64; COLUMNS], size: usize, places: [usize; 2], has_second: bool) {
        // SAFETY: as promised by the caller.
        unsafe {
            if self.finish.is_other() {
                store_fours(self.output_of(), bits.map(K::Other::of_bits), size, places, has_second);
            } else {
                store_fours(self.output_of(), bits.map(K::Sum::of_bits), size, places, has_second);
            }
        }
    }

    /// Writes result `index`, unchecked on a GPU. Checks would be four branches to a trap, with which sums of short
    /// rows take 5 % longer: fewer values stay in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn store(&self, index: usize, bits: u64) {
        // SAFETY: as promised to `new`.
        unsafe {
            if self.finish.is_other() {
                self.output_of().store_unchecked(index, K::Other::of_bits(bits));
            } else {
                self.output_of().store_unchecked(index, K::Sum::of_bits(bits));
            }
        }
    }

    #[inline(always)]
    fn output_of<R: Plain>(&self) -> GlobalMut<'a, R> {
        // SAFETY: as promised to `new`.
        unsafe { self.output.cast_unchecked() }
    }

    /// The number of results that fit in the output. Traps if it is not aligned for them.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        if self.finish.is_other() { self.output.cast::<K::Other>().len() } else { self.output.cast::<K::Sum>().len() }
    }
}

/// [`Results::store_fours`] of one format.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn store_fours<R: Plain>(
    output: GlobalMut<'_, R>,
    results: [R; COLUMNS],
    size: usize,
    places: [usize; 2],
    has_second: bool,
) {
    let [a, b, c, d] = results;
    // SAFETY: as promised by the caller.
    unsafe {
        if size < 8 && size_of::<R>() * COLUMNS <= 16 {
            return output.store_contiguous_unchecked(places[0], results);
        }
        output.store_contiguous_unchecked(places[0], [a, b]);
        if size < 8 || has_second {
            output.store_contiguous_unchecked(places[1], [c, d]);
        }
    }
}

impl<T: Summand> ExactOperator<T> for Sum {
    type Terms = Elements<T>;
    type Factors = Elements<T>;

    #[inline(always)]
    fn factors(terms: Elements<T>) -> Elements<T> {
        terms
    }
}

impl<T: Summand> ExactOperator<T> for SumOfSquares {
    type Terms = Squares<T>;
    type Factors = Elements<T>;

    #[inline(always)]
    fn factors(_terms: Squares<T>) -> Elements<T> {
        Elements::of_word(0)
    }
}

impl<T: Summand> ExactPairOperator<T> for Dot {
    type Terms = Products<T>;
}

/// The result of `count` elements whose sum is a partial and, if it has limbs, those of this warp's superaccumulator.
/// All lanes of the warp must call this, with the same partial.
#[inline(always)]
pub fn result_of<K: Terms, G: Grid>(
    finish: Finish<K>,
    partial: Partial,
    superacc: Superaccumulator<G>,
    count: u64,
) -> u64 {
    if partial.has_limbs {
        of_limbs(finish, partial, superacc, count)
    } else {
        finish.of_integer::<G>(partial.value, G::UNIT + partial.position as i32, count)
    }
}

/// The result of `count` elements whose sum is the sum of two partials, of first and of second terms, and, if the first
/// has limbs, of those of this warp's superaccumulator. All lanes of the warp must call this, with the same partials.
#[inline(always)]
pub fn result_of_both<K: Terms, G: Grid>(
    finish: Finish<K>,
    partial: Partial,
    low: Partial,
    superacc: Superaccumulator<G>,
    count: u64,
) -> u64 {
    if !G::HAS_LOW {
        return result_of(finish, partial, superacc, count);
    }
    let both = Leading::of_two((partial.value, partial.position), (low.value, low.position));
    match both {
        Some(leading) if !partial.has_limbs => finish.of_leading(leading, G::UNIT, count),
        _ => {
            sync_warp(FULL_MASK);
            superacc.add(|k| digit_of_i128(low.value, low.position, k));
            of_limbs(finish, partial, superacc, count)
        }
    }
}

/// The result of the sum of a partial and of limbs. Out of line, since it is rarely needed.
#[cold]
#[inline(never)]
fn of_limbs<K: Terms, G: Grid>(finish: Finish<K>, partial: Partial, superacc: Superaccumulator<G>, count: u64) -> u64 {
    sync_warp(FULL_MASK);
    superacc.add(|k| digit_of_i128(partial.value, partial.position, k));
    sync_warp(FULL_MASK);
    let mut specials = Specials::EMPTY;
    for (special, found) in [
        (Special::Nan, Specials::nan()),
        (Special::Infinity, Specials::infinity(false)),
        (Special::NegativeInfinity, Specials::infinity(true)),
    ] {
        specials = if superacc.word(G::LIMBS + special as u32) == 0 { specials } else { specials.union(found) };
    }
    result_of_limbs::<K, G>(finish, specials, superacc.leading(), count)
}

/// The result of `count` elements whose sum has these highest bits, in the grid's units, if they are finite.
#[inline(always)]
pub fn result_of_limbs<K: Terms, G: Grid>(finish: Finish<K>, specials: Specials, leading: Leading, count: u64) -> u64 {
    match specials.outcome() {
        Outcome::Finite => finish.of_leading(leading, G::UNIT, count),
        Outcome::Infinity { is_negative } => finish.infinity(is_negative),
        Outcome::Nan => finish.nan(),
    }
}
