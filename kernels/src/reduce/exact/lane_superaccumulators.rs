//! Superaccumulators of a few lanes each, in dynamic shared memory, for terms of any exponents.

use core::marker::PhantomData;

use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::shared::{DynamicShared, dynamic_shared};
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp};
use exact_sum::{Binary, HighestBits, Leading, Specials, digit};

use super::format::{Format, Value, largest_of};
use super::grid::Grid;
use super::superaccumulator::{Superaccumulator, warp_id};
use super::superaccumulator_words::Special;
use super::unrolled::each;
use crate::reduce::tuning::exact_long_rows::MAX_UNCHECKED;

/// The sums of a warp's lanes, of terms of any exponents. All lanes of the warp must call each function.
///
/// A term is shifted to its position in a superaccumulator, and added to one digit of it (`f32`) or two (`f64`). So the
/// time of an addition does not depend on the terms. A digit is an `i64` with bits left for carries, so that carries
/// are rarely propagated.
///
/// Each lane has a superaccumulator of its own if the launch has memory for them. With less memory, two, four or eight
/// lanes share one and take turns, if a term has two digits.
///
/// Source: Neal, "Fast exact summation using small and large superaccumulators", 2015.
pub struct LaneSuperaccumulators<G: Grid> {
    /// The terms that each digit may have taken since carries were propagated. `u32::MAX` before the first term.
    taken: u32,
    /// A bit for each kind of non-finite term that this lane has taken: see [`Special`].
    specials: u32,
    /// How many more times terms are added without a check of their exponents, and the same after the next check that
    /// finds a wide range.
    unchecked: u32,
    next_unchecked: u32,
    grid: PhantomData<G>,
}

/// The superaccumulator of a lane, in the launch's shared memory.
#[derive(Clone, Copy)]
pub struct LaneSlot<G> {
    words: DynamicShared<i64>,
    /// The index of its lowest digit: that of the superaccumulator in its block.
    first: usize,
    /// The distance to the next digit: the number of superaccumulators of the block.
    stride: usize,
    /// The number of lanes that share it.
    lanes: u32,
    /// Which of these lanes this one is.
    turn: u32,
    grid: PhantomData<G>,
}

impl<G: Grid> LaneSuperaccumulators<G> {
    const MANTISSA: u32 = <G::Format as Binary>::MANTISSA;

    /// Whether a term is added to two digits.
    const HAS_TWO: bool = size_of::<G::Format>() == 8;

    /// The number of bits from one digit to the next. A term of two digits has at most twice as many.
    const DIGIT: u32 = if Self::HAS_TWO { Self::MANTISSA } else { 32 };

    /// The exponent of the smallest number.
    const SMALLEST: i32 = G::Format::MIN_EXPONENT - Self::MANTISSA as i32;

    /// The exponent of the lowest digit's unit. The last place of a term may be a mantissa below the grid's unit, where
    /// all its bits are 0.
    const LOWEST: i32 = {
        let lowest = G::UNIT - Self::MANTISSA as i32;
        if lowest > Self::SMALLEST { lowest } else { Self::SMALLEST }
    };

    /// The number of digits. The highest one takes all carries, so that the sum of all terms of its lanes fits.
    const DIGITS: usize = {
        // A lane has at most `2^32` vectors: of up to 8 terms of `f32`; or of up to 4 of `f64`, for which up to 8 lanes
        // share a superaccumulator.
        let sum_bits = if Self::HAS_TWO { 32 + 2 + 3 } else { 32 + 3 };
        let (of_grid, of_format) = (G::MAX_EXPONENT, G::Format::MAX_EXPONENT);
        let highest = if of_grid < of_format { of_grid } else { of_format };
        let bits = (highest - Self::LOWEST) as u32 + sum_bits;
        let digits = (bits - Self::MAX_BITS).div_ceil(Self::DIGIT) + 1;
        // An integer in the highest digit has three limbs.
        let position = ((digits - 1) * Self::DIGIT) as i32 + Self::LOWEST - G::UNIT;
        assert!(position / 32 + 2 < G::LIMBS as i32);
        digits as usize
    };

    /// The bits of a digit that can be summed over the lanes of a warp.
    const MAX_BITS: u32 = 57;

    /// The maximum number of lanes that can share a superaccumulator. Those of one digit for each term fit in any
    /// device's memory.
    pub(super) const MAX_LANES: u32 = if Self::HAS_TWO { 8 } else { 1 };

    /// The number of words of a superaccumulator: digits, and one for non-finite terms. Pairs of terms are summed only
    /// in windows: with superaccumulators, the sums of squares of ordinary `f64` take up to twice as long, because
    /// there are too few registers.
    pub(super) const WORDS: usize = if G::HAS_LOW { 0 } else { Self::DIGITS + 1 };

    /// The number of terms that fit in a digit, of less than `2^DIGIT` after carries were propagated.
    const CAPACITY: u32 = {
        let bits = if Self::HAS_TWO { Self::DIGIT } else { Self::MANTISSA + Self::DIGIT };
        (1 << (63 - bits)) - 2
    };

    /// Whether each lane adds up some of the digits in the end, instead of all lanes one digit after the other. This is
    /// faster with the 41 digits of `f64`, and slower for `bf16`, with 9 or 13 digits (`docs/notes/exact-wide.md`).
    const LANES_SHARE_DIGITS: bool = Self::DIGITS > 32;

    /// The empty sum.
    #[inline(always)]
    pub fn begin() -> Self {
        const {
            assert!(Self::DIGIT < Self::MAX_BITS);
        }
        Self { taken: u32::MAX, specials: 0, unchecked: 0, next_unchecked: 0, grid: PhantomData }
    }

    /// This lane's superaccumulator, in a block of `threads` threads, if the launch has memory for those of all lanes.
    /// The block has whole warps.
    #[inline(always)]
    pub fn slot(threads: usize) -> Option<LaneSlot<G>> {
        let words = dynamic_shared::<i64>();
        let has_memory = |lanes_log: u32| words.len() >= (threads >> lanes_log) * Self::WORDS;
        if G::HAS_LOW || !has_memory(Self::MAX_LANES.ilog2()) {
            return None;
        }
        let lanes_log = match Self::MAX_LANES {
            1 => 0,
            _ => u32::from(!has_memory(0)) + u32::from(!has_memory(1)) + u32::from(!has_memory(2)),
        };
        // The words for a digit of the lanes that add at the same time are contiguous, so they are in different banks.
        let of_warp = 32 >> lanes_log;
        let first = (warp_id() as u32 * of_warp + lane_id() % of_warp) as usize;
        let stride = threads / 32 * of_warp as usize;
        let turn = if Self::MAX_LANES > 1 { lane_id() / of_warp } else { 0 };
        Some(LaneSlot { words, first, stride, lanes: 1 << lanes_log, turn, grid: PhantomData })
    }

    /// Whether terms are to be added here; `is_wide` tells whether windows would take longer. It is evaluated less
    /// often the more times in a row it was true, because it takes 8 % of the time of `f32`.
    #[inline(always)]
    pub fn is_chosen(&mut self, is_wide: impl FnOnce() -> bool) -> bool {
        if self.unchecked > 0 {
            self.unchecked -= 1;
            return true;
        }
        let is_wide = is_wide();
        self.unchecked = if is_wide { self.next_unchecked } else { 0 };
        self.next_unchecked = if is_wide { MAX_UNCHECKED.min(2 * self.next_unchecked + 1) } else { 0 };
        is_wide
    }

    /// Adds terms, at this lane's [slot](Self::slot).
    #[inline(always)]
    pub fn add<const N: usize>(&mut self, slot: LaneSlot<G>, mut terms: [G::Format; N]) {
        const { assert!(N as u32 * Self::MAX_LANES <= Self::CAPACITY && N.is_multiple_of(4)) };
        let count = N as u32 * slot.lanes;
        if self.taken > Self::CAPACITY - count {
            if self.taken == u32::MAX {
                Self::set_to_zero(slot);
            } else {
                Self::propagate_by_warp(slot);
            }
            self.taken = 0;
        }
        self.taken += count;
        if G::Format::exponent_above(largest_of(&terms)) > G::Format::MAX_EXPONENT {
            each::<N>(|i| {
                let special = match (terms[i].is_nan(), terms[i].is_negative()) {
                    (true, _) => Special::Nan,
                    (_, true) => Special::NegativeInfinity,
                    _ => Special::Infinity,
                };
                let is_finite = terms[i].is_finite();
                self.specials |= if is_finite { 0 } else { 1 << special as u32 };
                terms[i] = if is_finite { terms[i] } else { G::Format::default() };
            });
        }
        if Self::HAS_TWO {
            // A few terms in each turn: the digits of more would take too many registers.
            each::<N>(|i| {
                if i % 4 == 0 {
                    slot.in_turn(|| each::<4>(|k| Self::add_term(slot, terms[i + k])));
                }
            });
        } else {
            each::<N>(|i| Self::add_term(slot, terms[i]));
        }
    }

    /// Adds a finite term.
    #[inline(always)]
    fn add_term(slot: LaneSlot<G>, term: G::Format) {
        let (integer, position) = term.integer_and_position();
        // Only terms of 0 have a lower position.
        let lowest = (Self::LOWEST - Self::SMALLEST) as u32;
        let position = position.saturating_sub(lowest);
        let (digit, shift) = ((position / Self::DIGIT) as usize, position % Self::DIGIT);
        // No term of the grid has a higher digit.
        let digit = if digit < Self::DIGITS - 2 { digit } else { Self::DIGITS - 2 };
        let shifted = integer << shift;
        if !Self::HAS_TWO {
            slot.add(digit, shifted);
            return;
        }
        slot.add(digit, shifted & ((1 << Self::DIGIT) - 1));
        slot.add(digit + 1, integer >> (Self::DIGIT - shift));
    }

    #[inline(always)]
    fn set_to_zero(slot: LaneSlot<G>) {
        if slot.turn == 0 {
            let mut k = 0;
            while k < Self::WORDS {
                slot.set(k, 0);
                k += 1;
            }
        }
        sync_warp(FULL_MASK);
    }

    #[inline(always)]
    fn propagate_by_warp(slot: LaneSlot<G>) {
        if slot.turn == 0 {
            Self::propagate_carries(slot);
        }
        sync_warp(FULL_MASK);
    }

    /// Propagates carries, so that all digits but the highest are in `0..2^DIGIT`. By one lane.
    #[inline(always)]
    pub fn propagate_carries(slot: LaneSlot<G>) {
        let (mut carry, mut digit) = (0, 0);
        while digit + 1 < Self::DIGITS {
            let word = slot.word(digit) + carry;
            carry = word >> Self::DIGIT;
            slot.set(digit, word & ((1 << Self::DIGIT) - 1));
            digit += 1;
        }
        slot.add(digit, carry);
    }

    /// The position of a digit, in units of the grid's unit. A digit below that is 0.
    #[inline(always)]
    fn position(digit: usize) -> i32 {
        (digit as u32 * Self::DIGIT) as i32 + Self::LOWEST - G::UNIT
    }

    /// Completes the superaccumulators, after at least one term: carries are propagated, and the word for non-finite
    /// terms has those of all lanes.
    #[inline(always)]
    pub fn complete(self, slot: LaneSlot<G>) {
        let count = |special| i64::from(self.specials >> special as u32 & 1) << shift_of(special);
        let counts = count(Special::Nan) + count(Special::Infinity) + count(Special::NegativeInfinity);
        slot.in_turn(|| slot.add(Self::DIGITS, counts));
        Self::propagate_by_warp(slot);
    }

    /// The highest bits of the sum, whose carries have been propagated, and the non-finite terms. [`HighestBits`] says
    /// for which results these bits suffice. The lower digits are not read.
    #[inline(always)]
    pub fn highest_bits(slot: LaneSlot<G>) -> (Leading, Specials) {
        let mut index = Self::DIGITS;
        let mut sum = HighestBits::new(Self::position(index));
        while index > 0 && Self::position(index - 1) >= 0 && !sum.is_decided() {
            index -= 1;
            sum.push(slot.word(index).into(), Self::DIGIT);
        }
        let has = |special| Self::limb_or_special(slot, G::LIMBS + special as u32) != 0;
        let of = |exists, special| if exists { special } else { Specials::EMPTY };
        let infinities = of(has(Special::Infinity), Specials::infinity(false))
            .union(of(has(Special::NegativeInfinity), Specials::infinity(true)));
        (sum.leading(), infinities.union(of(has(Special::Nan), Specials::nan())))
    }

    /// Word `k` of the same sum as a [`Superaccumulator`]: a limb, or a count of non-finite terms. Carries have been
    /// propagated, or digits are so far apart that they need not be: see `add_up_in_parallel`.
    #[inline(always)]
    pub fn limb_or_special(slot: LaneSlot<G>, k: u32) -> i64 {
        if k >= G::LIMBS {
            let counts = slot.word(Self::DIGITS);
            return counts >> (COUNT_BITS * (k - G::LIMBS)) & ((1 << COUNT_BITS) - 1);
        }
        // The highest digit that reaches this limb, and the one below: a limb has bits of at most two digits.
        let above = (32 * k + 31) as i32 + G::UNIT - Self::LOWEST;
        let highest = above as usize / Self::DIGIT as usize;
        let highest = if highest < Self::DIGITS { highest } else { Self::DIGITS - 1 };
        let digit_at = |index: usize| digit(slot.word(index), Self::position(index) as u32, k);
        let below = if highest > 0 && Self::position(highest - 1) >= 0 { digit_at(highest - 1) } else { 0 };
        digit_at(highest) + below
    }

    /// Whether the lanes of this warp have taken any terms.
    #[inline(always)]
    pub fn have_terms(&self) -> bool {
        self.taken != u32::MAX
    }

    /// Adds the sum of all lanes to a superaccumulator. Returns whether there were any terms.
    #[inline(always)]
    pub fn end(self, slot: Option<LaneSlot<G>>, superacc: &Superaccumulator<G>) -> bool {
        let Some(slot) = slot.filter(|_| self.have_terms()) else {
            return false;
        };
        if Self::LANES_SHARE_DIGITS {
            Self::add_up_in_parallel(self.taken, slot, superacc);
        } else {
            Self::add_up_digit_by_digit(slot, superacc);
        }
        // Not a loop, which would keep an array in local memory.
        let add_special = |special| superacc.add_special(special, self.specials >> special as u32 & 1 == 1);
        add_special(Special::Nan);
        add_special(Special::Infinity);
        add_special(Special::NegativeInfinity);
        sync_warp(FULL_MASK);
        true
    }

    /// Adds up the lanes' superaccumulators, one digit after the other, each over all lanes.
    #[inline(always)]
    fn add_up_digit_by_digit(slot: LaneSlot<G>, superacc: &Superaccumulator<G>) {
        Self::propagate_by_warp(slot);
        let mut digit = 0;
        while digit < Self::DIGITS as u32 {
            digit = keep_rolled(digit);
            let word = if slot.turn == 0 { slot.word(digit as usize) } else { 0 };
            let sum = word.sum_of_lanes();
            let position = Self::position(digit as usize);
            if sum != 0 && position >= 0 {
                superacc.add(|limb| sum.digit(position as u32, limb));
            }
            digit += 1;
        }
    }

    /// Adds up the lanes' superaccumulators. Each lane adds up some of the digits.
    #[inline(always)]
    fn add_up_in_parallel(taken: u32, slot: LaneSlot<G>, superacc: &Superaccumulator<G>) {
        const {
            // A digit has taken less than `2^DIGIT` from each term, and less than that from before.
            assert!((Self::CAPACITY / 32 + 1) as i64 * 32 <= 1 << (63 - Self::DIGIT));
            // A digit has at most three limbs, so a limb has bits of only two digits, even before carries are
            // propagated.
            assert!(!Self::LANES_SHARE_DIGITS || 2 * Self::DIGIT > 3 * 32 - 1);
        }
        // `add` has ended with a barrier of the warp.
        if taken > Self::CAPACITY / 32 {
            Self::propagate_by_warp(slot);
        }
        let of_warp = slot.add_up_warp();
        superacc.add(|limb| Self::limb_or_special(of_warp, limb));
    }
}

/// The bits of a count of non-finite terms, of which a word has three.
const COUNT_BITS: u32 = 20;

/// The shift of a count in its word.
const fn shift_of(special: Special) -> u32 {
    COUNT_BITS * special as u32
}

impl<G: Grid> LaneSlot<G> {
    /// The index of the superaccumulator in its block.
    #[inline(always)]
    pub fn index(&self) -> usize {
        self.first
    }

    /// The number of superaccumulators of the block.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.stride
    }

    /// The number of lanes that share this superaccumulator.
    #[inline(always)]
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Which of the lanes that share this superaccumulator this one is.
    #[inline(always)]
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Calls a function in each lane, so that no two lanes that share a superaccumulator do so at once.
    #[inline(always)]
    fn in_turn(&self, mut work: impl FnMut()) {
        if LaneSuperaccumulators::<G>::MAX_LANES == 1 {
            return work();
        }
        let mut turn = 0;
        while turn < self.lanes {
            turn = keep_rolled(turn);
            if self.turn == turn {
                work();
            }
            sync_warp(FULL_MASK);
            turn += 1;
        }
    }

    /// Another superaccumulator of the block. Traps if there is none.
    #[inline(always)]
    pub fn of_index(self, index: usize) -> Self {
        assert!(index < self.stride);
        Self { first: index, ..self }
    }

    /// Adds up the digits of the warp's superaccumulators, each by one lane, and returns the one that has the sum.
    #[inline(always)]
    fn add_up_warp(self) -> Self {
        let count = 32 / self.lanes as usize;
        let sum_of_warp = self.of_index(warp_id() * count);
        let mut digit = lane_id() as usize;
        while digit < LaneSuperaccumulators::<G>::DIGITS {
            let (mut sum, mut k) = (0, 0);
            while k < count {
                // Lanes begin at different superaccumulators: no bank conflicts if at most two lanes share one.
                let index = (lane_id() as usize + k) & (count - 1);
                sum += self.of_index(sum_of_warp.first + index).word(digit);
                k += 1;
            }
            sum_of_warp.set(digit, sum);
            digit += 32;
        }
        sync_warp(FULL_MASK);
        sum_of_warp
    }

    /// Adds up the `parts` superaccumulators of each of the first `count` indices, which are `count` indices apart, by
    /// a block of `BLOCK` threads.
    #[inline(always)]
    pub fn add_parts<const BLOCK: usize>(self, count: usize, parts: usize) {
        let mut i = thread::index_in_block::<BLOCK>();
        while i < LaneSuperaccumulators::<G>::WORDS * count {
            let (word, index) = (i / count, i % count);
            let (mut sum, mut part) = (0, 0);
            while part < parts {
                sum += self.of_index(index + part * count).word(word);
                part += 1;
            }
            self.of_index(index).set(word, sum);
            i += BLOCK;
        }
    }

    #[inline(always)]
    fn word(&self, digit: usize) -> i64 {
        // SAFETY: `slot` has checked that the memory has all words of the block's warps, which are whole, as the
        // kernels' callers promise; and `digit` is below `WORDS`.
        unsafe { self.words.load_unchecked(self.first + digit * self.stride) }
    }

    #[inline(always)]
    fn set(&self, digit: usize, word: i64) {
        // SAFETY: as above.
        unsafe { self.words.store_unchecked(self.first + digit * self.stride, word) };
    }

    #[inline(always)]
    fn add(&self, digit: usize, amount: i64) {
        self.set(digit, self.word(digit).wrapping_add(amount));
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns;
    use super::super::grid::{DoubleProducts, Doubles, SingleProducts, Singles};
    use super::super::lane_memory::LaneMemory;
    use super::super::long_rows::lane_memory;
    use super::super::terms::Elements;
    use super::*;
    use crate::ops::SumOfSquares;
    use crate::reduce::exact::result::ExactOperator;

    #[test]
    fn lanes_share_superaccumulators_as_memory_allows() {
        type Lanes<G> = LaneSuperaccumulators<G>;
        assert_eq!(Lanes::<Singles>::DIGITS, 9);
        assert_eq!(Lanes::<SingleProducts>::DIGITS, 13);
        assert_eq!(Lanes::<Doubles>::DIGITS, 41);
        assert_eq!(Lanes::<DoubleProducts>::WORDS, 0);
        // Bytes for each lane.
        let of = |memory: LaneMemory, kib: usize| memory.bytes(512, kib * 1024) / 512;
        let (singles, doubles) = (lane_memory::<Elements<f32>>(), lane_memory::<Elements<f64>>());
        assert_eq!([48, 227].map(|kib| of(singles, kib)), [80, 80]);
        assert_eq!([16, 48, 64, 99, 163, 227].map(|kib| of(doubles, kib)), [0, 42, 84, 168, 168, 336]);
        type Squares = <SumOfSquares as ExactOperator<f32>>::Terms;
        assert_eq!([8, 16, 48, 64, 227].map(|kib| of(lane_memory::<Squares>(), kib)), [0, 14, 56, 112, 112]);
        let of_columns = columns::lane_memory::<Squares>();
        assert_eq!([24, 32, 48, 227].map(|kib| of_columns.bytes(256, kib * 1024) / 256), [0, 28, 56, 56]);
    }
}
