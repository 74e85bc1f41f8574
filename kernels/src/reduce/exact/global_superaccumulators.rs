//! Superaccumulators in global memory, for sums that blocks share: blocks add to them limb by limb.

use core::marker::PhantomData;

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use exact_sum::{Leading, Specials, digit_of_i128};

use super::grid::Grid;
use super::result::{Finish, result_of_limbs};
use super::superaccumulator::words;
use super::superaccumulator_words::Special;
use super::terms::Terms;
use super::unrolled::each;

/// An array of superaccumulators in global memory; 0 before a launch and after it.
#[derive(Clone, Copy)]
pub struct GlobalSuperaccumulators<'a, G> {
    words: &'a GlobalMut<'a, i64>,
    grid: PhantomData<G>,
}

impl<'a, G: Grid> GlobalSuperaccumulators<'a, G> {
    /// The superaccumulators in a view, of [`words`] words each.
    #[inline(always)]
    pub fn new(words: &'a GlobalMut<'a, i64>) -> Self {
        Self { words, grid: PhantomData }
    }

    /// The index of word `k` of a superaccumulator.
    #[inline(always)]
    fn place(index: usize, k: u32) -> usize {
        index * words::<G>() as usize + k as usize
    }

    /// Adds to word `k`.
    #[inline(always)]
    pub fn add_word(&self, index: usize, k: u32, word: i64) {
        if word != 0 {
            i64::fetch_add(self.words, Self::place(index, k), word, Scope::Device);
        }
    }

    /// Adds `value * 2^position`.
    #[inline(always)]
    pub fn add(&self, index: usize, value: i128, position: u32) {
        let first = position / 32;
        each::<5>(|j| {
            let k = first + j as u32;
            if k < G::LIMBS {
                self.add_word(index, k, digit_of_i128(value, position, k));
            }
        });
    }

    /// The result of a superaccumulator, the sum of `count` elements, by one thread. Sets the superaccumulator to 0.
    #[inline(always)]
    pub fn finish<K: Terms>(&self, finish: Finish<K>, index: usize, count: u64) -> u64 {
        // Other blocks added these by atomic operations: L1 may be stale.
        let load = |k| self.words.load_volatile(Self::place(index, k));
        finish_words::<K, G>(finish, load, |k| self.words.store_volatile(Self::place(index, k), 0), count)
    }
}

/// The result of the sum of `count` elements with words `load(k)`, by one thread. Calls `clear` with the index of each
/// nonzero word.
#[inline(always)]
pub(super) fn finish_words<K: Terms, G: Grid>(
    finish: Finish<K>,
    load: impl Fn(u32) -> i64,
    clear: impl Fn(u32),
    count: u64,
) -> u64 {
    /// The number of words in flight.
    const WORDS_IN_FLIGHT: u32 = 8;
    let (mut sum, mut negated) = (HighestLimbs::NONE, HighestLimbs::NONE);
    let mut specials = Specials::EMPTY;
    let mut first = 0;
    while first < words::<G>() {
        let mut of_words = [0; WORDS_IN_FLIGHT as usize];
        each::<{ WORDS_IN_FLIGHT as usize }>(|j| {
            let k = first + j as u32;
            of_words[j] = if k < words::<G>() { load(k) } else { 0 };
        });
        each::<{ WORDS_IN_FLIGHT as usize }>(|j| {
            let (k, word) = (first + j as u32, of_words[j]);
            if word != 0 {
                clear(k);
            }
            if k < G::LIMBS {
                sum.push(word);
                negated.push(-word);
            } else if word != 0 {
                specials = specials.union(match k - G::LIMBS {
                    k if k == Special::Nan as u32 => Specials::nan(),
                    k => Specials::infinity(k == Special::NegativeInfinity as u32),
                });
            }
        });
        first += WORDS_IN_FLIGHT;
    }
    // Above the last limb only the sign remains.
    let is_negative = sum.carry < 0;
    let leading = if is_negative { &negated } else { &sum }.leading(is_negative);
    result_of_limbs::<K, G>(finish, specials, leading, count)
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
    const NONE: Self = Self { carry: 0, count: 0, upper: 0, last: 0, is_inexact: false, found: (0, 0, 0, false) };

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
    use exact_sum::Limbs;

    use super::*;

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
                    let (mut sum, mut negated) = (HighestLimbs::NONE, HighestLimbs::NONE);
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
