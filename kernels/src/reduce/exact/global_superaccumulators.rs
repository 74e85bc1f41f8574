//! Superaccumulators in global memory, for sums that blocks share: blocks add to them limb by limb.

use core::marker::PhantomData;

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id};
use exact_sum::{Leading, Specials, digit, digit_of_i128};

use super::grid::Grid;
use super::result::{Finish, result_of_limbs};
use super::superaccumulator::words;
use super::superaccumulator_words::Special;
use super::terms::Terms;
use super::unrolled::each;

/// The superaccumulators of a matrix's columns in global memory; 0 before a launch and after it.
///
/// Word `k` of neighbouring columns is contiguous, so that the atomic operations of a warp are coalesced.
#[derive(Clone, Copy)]
pub struct GlobalSuperaccumulators<'a, G> {
    words: &'a GlobalMut<'a, i64>,
    /// The first word of the matrix.
    start: usize,
    columns: usize,
    grid: PhantomData<G>,
}

/// A range of the words of superaccumulators, outside of which all words are 0.
#[derive(Clone, Copy)]
pub struct WordRange {
    first: u32,
    end: u32,
}

impl WordRange {
    /// No words.
    pub const EMPTY: Self = Self { first: u32::MAX, end: 0 };

    /// All words of a grid.
    #[inline(always)]
    pub const fn all<G: Grid>() -> Self {
        Self { first: 0, end: words::<G>() }
    }

    /// The smallest range that contains both.
    #[inline(always)]
    pub fn union(self, other: Self) -> Self {
        Self {
            first: if self.first < other.first { self.first } else { other.first },
            end: if self.end > other.end { self.end } else { other.end },
        }
    }

    /// Extends the range that blocks share at `at`, as [`WordRange::SHARED_WORDS`] entries, by those of a warp's lanes.
    /// All lanes of the warp must call this.
    #[inline(always)]
    pub fn share(self, shared: &GlobalMut<u32>, at: usize) {
        // Entries that are 0 are the empty range.
        let (first, end) = (u32::reduce_max(FULL_MASK, !self.first), u32::reduce_max(FULL_MASK, self.end));
        if end > 0 && lane_id() == 0 {
            u32::fetch_max(shared, at, first, Scope::Device);
            u32::fetch_max(shared, at + 1, end, Scope::Device);
        }
    }

    /// The range that blocks have shared at `at`.
    #[inline(always)]
    pub fn shared(shared: &GlobalMut<u32>, at: usize) -> Self {
        // Other blocks wrote these by atomic operations: L1 may be stale.
        Self { first: !shared.load_volatile(at), end: shared.load_volatile(at + 1) }
    }

    /// The number of entries of a shared range.
    pub const SHARED_WORDS: usize = 2;
}

impl<'a, G: Grid> GlobalSuperaccumulators<'a, G> {
    /// The superaccumulators of the columns of a matrix, of [`words`] words each, in a view of those of all matrices.
    #[inline(always)]
    pub fn new(words: &'a GlobalMut<'a, i64>, matrix: usize, columns: usize) -> Self {
        Self { words, start: matrix * columns * self::words::<G>() as usize, columns, grid: PhantomData }
    }

    /// The index of word `k` of a column's superaccumulator.
    #[inline(always)]
    fn place(&self, column: usize, k: u32) -> usize {
        self.start + k as usize * self.columns + column
    }

    /// Adds to word `k`, and returns the range of words that may no longer be 0.
    #[inline(always)]
    pub fn add_word(&self, column: usize, k: u32, word: i64) -> WordRange {
        if word == 0 {
            return WordRange::EMPTY;
        }
        i64::fetch_add(self.words, self.place(column, k), word, Scope::Device);
        WordRange { first: k, end: k + 1 }
    }

    /// Adds `value * 2^position`, and returns the range of words that may no longer be 0.
    #[inline(always)]
    pub fn add(&self, column: usize, value: i128, position: u32) -> WordRange {
        let (first, word) = (position / 32, value as i64);
        let mut range = WordRange::EMPTY;
        // Most sums have 64 bits, and then fewer digits.
        if i128::from(word) == value {
            each::<3>(|j| range = range.union(self.add_digit(column, first + j as u32, |k| digit(word, position, k))));
        } else {
            each::<5>(|j| {
                range = range.union(self.add_digit(column, first + j as u32, |k| digit_of_i128(value, position, k)));
            });
        }
        range
    }

    /// Adds a digit to limb `k`, if it is one. A limb above the highest one has no bits of any sum.
    #[inline(always)]
    fn add_digit(&self, column: usize, k: u32, digit: impl Fn(u32) -> i64) -> WordRange {
        if k < G::LIMBS { self.add_word(column, k, digit(k)) } else { WordRange::EMPTY }
    }

    /// The result of a superaccumulator, the sum of `count` elements, by one thread. Sets the superaccumulator to 0.
    /// Its words outside of `range` are 0.
    #[inline(always)]
    pub fn finish<K: Terms>(&self, finish: Finish<K>, column: usize, range: WordRange, count: u64) -> u64 {
        // Other blocks added these by atomic operations: L1 may be stale.
        let load = |k| self.words.load_volatile(self.place(column, k));
        finish_words::<K, G>(finish, range, load, |k| self.words.store_volatile(self.place(column, k), 0), count)
    }
}

/// The result of the sum of `count` elements with words `load(k)`, by one thread. Words outside of `range` are 0. Calls
/// `clear` with the index of each nonzero word.
#[inline(always)]
pub(super) fn finish_words<K: Terms, G: Grid>(
    finish: Finish<K>,
    range: WordRange,
    load: impl Fn(u32) -> i64,
    clear: impl Fn(u32),
    count: u64,
) -> u64 {
    let (specials, leading) = leading_of_words::<G>(range, load, clear);
    result_of_limbs::<K, G>(finish, specials, leading, count)
}

/// The non-finite terms, and the highest bits, of the sum with words `load(k)`, by one thread. Words outside of `range`
/// are 0. Calls `clear` with the index of each nonzero word.
#[inline(always)]
pub(super) fn leading_of_words<G: Grid>(
    range: WordRange,
    load: impl Fn(u32) -> i64,
    clear: impl Fn(u32),
) -> (Specials, Leading) {
    /// The number of words in flight.
    const WORDS_IN_FLIGHT: u32 = 8;
    let WordRange { mut first, end } = range;
    let (mut sum, mut negated) = (HighestLimbs::above(first), HighestLimbs::above(first));
    let mut specials = Specials::EMPTY;
    while first < end {
        let mut of_words = [0; WORDS_IN_FLIGHT as usize];
        each::<{ WORDS_IN_FLIGHT as usize }>(|j| {
            let k = first + j as u32;
            of_words[j] = if k < end { load(k) } else { 0 };
        });
        each::<{ WORDS_IN_FLIGHT as usize }>(|j| {
            let (k, word) = (first + j as u32, of_words[j]);
            if word != 0 {
                clear(k);
            }
            if k < G::LIMBS {
                // Fewer instructions for most sums, which have three or four limbs.
                if k < end {
                    sum.push(word);
                    negated.push(-word);
                }
            } else if word != 0 {
                specials = specials.union(match k - G::LIMBS {
                    k if k == Special::Nan as u32 => Specials::nan(),
                    k => Specials::infinity(k == Special::NegativeInfinity as u32),
                });
            }
        });
        first += WORDS_IN_FLIGHT;
    }
    // The carry of the last word. Above it only the sign remains.
    sum.push(0);
    negated.push(0);
    let is_negative = sum.carry < 0;
    (specials, if is_negative { &negated } else { &sum }.leading(is_negative))
}

/// The 32-bit limbs of a number, pushed from the lowest on. Keeps the five limbs up to the last nonzero one.
#[derive(Clone, Copy)]
struct HighestLimbs {
    /// The carry into the next word.
    carry: i64,
    /// The number of limbs so far.
    count: i32,
    /// The last four limbs, the latest in the highest bits; the limb below these; and whether a lower limb is nonzero.
    upper: u128,
    last: u32,
    is_inexact: bool,
    /// `count`, `upper`, `last` and `is_inexact` after the last nonzero limb.
    found: (i32, u128, u32, bool),
}

impl HighestLimbs {
    /// The limbs below `first` are 0.
    #[inline(always)]
    const fn above(first: u32) -> Self {
        Self { carry: 0, count: first as i32, upper: 0, last: 0, is_inexact: false, found: (0, 0, 0, false) }
    }

    #[inline(always)]
    fn push(&mut self, word: i64) {
        let sum = word + self.carry;
        self.carry = sum >> 32;
        self.is_inexact |= self.last != 0;
        self.last = self.upper as u32;
        self.upper = self.upper >> 32 | u128::from(sum as u32) << 96;
        self.count += 1;
        if sum as u32 != 0 {
            self.found = (self.count, self.upper, self.last, self.is_inexact);
        }
    }

    /// The highest 128 bits, in units of the first limb.
    #[inline(always)]
    fn leading(&self, is_negative: bool) -> Leading {
        let (count, upper, last, is_inexact) = self.found;
        if upper == 0 {
            return Leading::ZERO;
        }
        let zeros = upper.leading_zeros();
        Leading {
            is_negative,
            bits: upper << zeros | (u128::from(last) << zeros) >> 32,
            position: 32 * (count - 4) - zeros as i32,
            is_inexact: is_inexact | (last << zeros != 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use exact_sum::{Limbs, Rounded};

    use super::*;
    use crate::reduce::exact::grid::Doubles;
    use crate::reduce::exact::terms::Elements;

    /// The limbs of `f64`.
    const LIMBS: usize = Doubles::LIMBS as usize;

    /// The limbs of some numbers, each added by a number of blocks, and the range of limbs that they share.
    fn limbs_of(numbers: [(i128, u32, i64); 2]) -> ([i64; LIMBS], WordRange) {
        let (mut words, mut range) = ([0; LIMBS], WordRange::EMPTY);
        for (number, position, blocks) in numbers {
            for (k, word) in (0..).zip(&mut words) {
                let digit = digit_of_i128(number, position, k);
                *word += digit * blocks;
                if digit != 0 {
                    range = range.union(WordRange { first: k, end: k + 1 });
                }
            }
        }
        (words, range)
    }

    #[test]
    fn limbs_in_the_range_are_enough() {
        let numbers = [1, -1, 0xffff_ffff, -0x8000_0000, i128::from(i64::MAX), -(1 << 95), i128::MAX, i128::MIN + 1];
        for first in numbers {
            for second in numbers {
                for (position, further) in [(0, 0), (31, 32), (64, 70), (130, 290), (1200, 40)] {
                    // The same number from many blocks carries out of the highest limb of the range.
                    for blocks in [1, 2, 264] {
                        let (words, range) = limbs_of([(first, position, blocks), (second, further, 1)]);
                        let mut expected = Limbs::<LIMBS>::ZERO;
                        (0..blocks).for_each(|_| expected.add(first, position));
                        expected.add(second, further);
                        let is_in_range = |k: u32| assert!(range.first <= k && k < range.end);
                        let load = |k: u32| {
                            is_in_range(k);
                            words[k as usize]
                        };
                        let found = finish_words::<Elements<f64>, Doubles>(Finish::SUM, range, load, is_in_range, 1);
                        let expected = <f64 as Rounded>::round(expected.leading(), Doubles::UNIT).to_bits();
                        assert_eq!(found, expected, "{blocks} x {first} at {position}, {second} at {further}");
                    }
                }
            }
        }
    }

    #[test]
    fn highest_limbs_are_those_of_the_sum() {
        let numbers =
            [1, -1, 0x7fff_ffff, -0x8000_0000_0000, (1 << 100) + 1, -(1 << 100) - 1, i128::MAX, i128::MIN + 1];
        for first in numbers {
            for second in numbers {
                for (position, further) in [(0, 1), (5, 100), (31, 64), (130, 97), (64, 400)] {
                    let mut limbs = Limbs::<24>::ZERO;
                    limbs.add(first, position);
                    limbs.add(second, further);
                    let (mut sum, mut negated) = (HighestLimbs::above(0), HighestLimbs::above(0));
                    for k in 0..24 {
                        let word = digit_of_i128(first, position, k) + digit_of_i128(second, further, k);
                        sum.push(word);
                        negated.push(-word);
                    }
                    let expected = limbs.leading();
                    assert_eq!(sum.carry < 0, expected.is_negative);
                    let found = if sum.carry < 0 { negated } else { sum }.leading(sum.carry < 0);
                    assert_eq!(found, expected, "{first} at {position} and {second} at {further}");
                }
            }
        }
    }
}
