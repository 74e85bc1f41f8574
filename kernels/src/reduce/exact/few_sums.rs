//! What the kernels of few rows and of few columns have in common: sums of a few terms.

use cuda_std::element::Element;
use cuda_std::hint::keep_rolled;
use exact_sum::{Binary, HighestBits, Leading, Outcome, Specials, digit};

use super::few_terms::{DoublePair, FewTerms};
use super::format::Format;
use super::formula::ResultFormat;
use super::grid::Grid;
use super::result::{ExactOperator, Finish, result_of_limbs};
use super::terms::{Float, Terms};
use super::unrolled::each;
use crate::reduce::columns::COLUMNS;

/// Whether nearly all sums of a few terms fit in one `f64`: terms have at most 24 bits.
pub(super) const fn is_short<O: ExactOperator<T>, T: Element>() -> bool {
    size_of::<T>() * O::Terms::DEGREE as usize <= size_of::<f32>()
}

/// The results of a thread's sums of `count` terms each, and a bit for each one that is to be summed again, whose
/// result here means nothing.
#[inline(always)]
pub(super) fn results_of<K: Terms, S: FewTerms>(
    sums: [S; COLUMNS],
    finish: Finish<K>,
    count: u64,
) -> ([u64; COLUMNS], u32) {
    let (mut bits, mut again) = ([0; COLUMNS], 0);
    if finish.is_plain() {
        // Without branches, so that the results of all sums are on their way together.
        each::<COLUMNS>(|c| {
            bits[c] = K::Sum::of_pair(sums[c].pair()).bits();
            again |= u32::from(!sums[c].is_exact()) << c;
        });
    } else {
        each::<COLUMNS>(|c| {
            let result = if sums[c].is_exact() { finish.of_pair(sums[c].pair(), count) } else { None };
            bits[c] = result.unwrap_or(0);
            again |= u32::from(result.is_none()) << c;
        });
    }
    (bits, again)
}

/// Calls a function with each bit of a word, from the lowest to the highest. The loop stays one.
#[inline(always)]
pub(super) fn each_bit(mut bits: u32, mut f: impl FnMut(u32)) {
    while bits != 0 {
        f(keep_rolled(bits.trailing_zeros()));
        bits &= bits - 1;
    }
}

/// The term of an item as a number; NaN if it is not finite or has its own way of being summed. A sum with NaN is not
/// exact, and so is summed again.
#[inline(always)]
pub(super) fn number_of<K: Terms>(terms: K, item: K::Item) -> f64 {
    if K::out_of_range(item).is_some() { f64::NAN } else { terms.term(item).to_f64() }
}

/// The result of `count` terms: their sum in two `f64` if it fits, otherwise by digits.
#[inline(always)]
pub(super) fn result_of_terms<K: Terms>(term: impl Fn(usize) -> Float<K>, finish: Finish<K>, count: usize) -> u64 {
    let (mut pair, mut i) = (DoublePair::ZERO, 0);
    while i < count {
        pair.add(term(i).to_f64());
        i += 1;
    }
    let fast = if pair.is_exact() { finish.of_pair(pair.pair(), count as u64) } else { None };
    fast.unwrap_or_else(|| sum_by_digits(term, finish, count))
}

/// The result of `rows` terms: the sum of their digits of 32 bits, from the highest one downwards, as far as the
/// rounding needs them.
fn sum_by_digits<K: Terms>(term: impl Fn(usize) -> Float<K>, finish: Finish<K>, rows: usize) -> u64 {
    debug_assert!(!finish.is_long_root(), "more bits decide a root in `f64`");
    // The position of the smallest number above the grid's unit.
    let smallest = {
        let of_format = <<K::Grid as Grid>::Format as Binary>::MIN_EXPONENT;
        of_format - <<K::Grid as Grid>::Format as Binary>::MANTISSA as i32 - K::Grid::UNIT
    };
    let place = |row: usize| {
        let (integer, position) = term(row).integer_and_position();
        let position = position as i32 + smallest;
        // Bits below the unit are 0.
        if position < 0 { (integer >> position.unsigned_abs().min(63), 0) } else { (integer, position as u32) }
    };

    let (mut specials, mut highest, mut row) = (Specials::EMPTY, 0, 0);
    while row < rows {
        let term = term(row);
        let special = match (term.is_finite(), term.is_nan()) {
            (true, _) => Specials::EMPTY,
            (_, true) => Specials::nan(),
            _ => Specials::infinity(term.is_negative()),
        };
        specials = specials.union(special);
        highest = place(row).1.max(highest);
        row += 1;
    }
    if !matches!(specials.outcome(), Outcome::Finite) {
        return result_of_limbs::<K, K::Grid>(finish, specials, Leading::ZERO, rows as u64);
    }
    // One past the highest digit of any term.
    let mut limb = (highest / 32 + 3).min(K::Grid::LIMBS);
    let mut sum = HighestBits::new(32 * limb as i32);
    while limb > 0 && !sum.is_decided() {
        limb -= 1;
        let (mut part, mut row) = (0, 0);
        while row < rows {
            let (integer, position) = place(row);
            part += digit(integer, position, limb);
            row += 1;
        }
        sum.push(part.into(), 32);
    }
    result_of_limbs::<K, K::Grid>(finish, specials, sum.leading(), rows as u64)
}
