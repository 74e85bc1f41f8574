//! Sums of any terms by whole warps: superaccumulators of bins, in shared memory.

use core::marker::PhantomData;

use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, sync_warp, warp_vote_any};
use exact_sum::{Binary, Window, digit};

use super::column_sums::Slots;
use super::format::{Format, Value};
use super::grid::Grid;
use super::superaccumulator::Superaccumulator;
use super::superaccumulator_words::Special;
use super::unrolled::each;
use super::warp_sum::largest_of;

/// The number of terms that a lane adds together.
pub const TERMS: usize = 8;

/// Exact sums of any terms, each in a superaccumulator of bins. Bin `j` is an integer in units of the grid's unit times
/// `2^(p j)`, with `p` the bits of a mantissa. A superaccumulator belongs to one warp, whose lanes must all call each
/// function.
///
/// Terms are extracted in the bin of the largest term and then in lower bins, until no residual is left. So the time of
/// an addition grows with the range of the terms' exponents.
///
/// Source: that of [`Window`]; Neal, "Fast exact summation using small and large superaccumulators", 2015.
#[derive(Clone, Copy)]
pub struct FullRangeSums<G: Grid> {
    words: Slots,
    grid: PhantomData<G>,
}

impl<G: Grid> FullRangeSums<G> {
    const MANTISSA: i32 = <G::Format as Binary>::MANTISSA as i32;

    /// The number of bins whose constants are finite, and which limbs cover.
    const BINS: i32 = {
        let finite = (G::Format::MAX_EXPONENT - 1 - Self::MANTISSA - G::UNIT) / Self::MANTISSA + 1;
        let needed = G::LIMBS as i32 * 32 / Self::MANTISSA + 1;
        if needed < finite { needed } else { finite }
    };

    /// Terms below `2^TOP` have a bin. Larger ones are scaled down by the range of two bins. `TOP` is at most the
    /// highest window, so that a bin's constant plus a term that is rounded up is finite.
    const TOP: i32 = {
        let (top, highest) = (G::UNIT + Self::MANTISSA * Self::BINS - 1, Window::<G::Format>::HIGHEST);
        if top < highest { top } else { highest }
    };

    /// The word of a superaccumulator for non-finite terms, after its bins, which fill slots.
    const SPECIALS: usize = (Self::BINS as usize + 2).next_multiple_of(2);

    /// Slots of a superaccumulator.
    const SLOTS: usize = (Self::SPECIALS + 1).div_ceil(2);

    /// Additions that fit in a bin after [`FullRangeSums::propagate_carries`].
    pub const ADDITIONS: u32 = {
        let bits = Self::MANTISSA as u32 - 1 + 5 + TERMS.ilog2();
        let additions = if bits > 40 { 1 << (62 - bits) } else { 1 << 20 };
        assert!((additions as i128) << bits <= 1 << 62);
        additions
    };

    /// Sums in slots with any contents.
    #[inline(always)]
    pub fn new(words: Slots) -> Self {
        Self { words, grid: PhantomData }
    }

    #[inline(always)]
    fn word(&self, sum: usize, k: usize) -> u64 {
        let words = self.words.load(sum * Self::SLOTS + k / 2);
        if k.is_multiple_of(2) { words[0] } else { words[1] }
    }

    #[inline(always)]
    fn set_word(&self, sum: usize, k: usize, word: u64) {
        let place = sum * Self::SLOTS + k / 2;
        let [low, high] = self.words.load(place);
        self.words.store(place, if k.is_multiple_of(2) { [word, high] } else { [low, word] });
    }

    /// Sets a sum to 0.
    #[inline(always)]
    pub fn begin(&self, sum: usize) {
        let mut slot = lane_id() as usize;
        while slot < Self::SLOTS {
            self.words.store(sum * Self::SLOTS + slot, [0; 2]);
            slot += 32;
        }
        sync_warp(FULL_MASK);
    }

    /// Adds terms.
    #[inline(always)]
    pub fn add(&self, sum: usize, mut terms: [G::Format; TERMS]) {
        let (mut others, mut above) = ([G::Format::default(); TERMS], 0);
        let mut exponent = exponent_of(&terms);
        if exponent > Self::TOP {
            if exponent > G::Format::MAX_EXPONENT {
                self.record_specials(sum, &mut terms);
            }
            each::<TERMS>(|i| {
                let is_large = terms[i].exponent_bound() > Self::TOP;
                others[i] = if is_large { G::Format::default() } else { terms[i] };
                terms[i] = if is_large { terms[i].scaled() } else { G::Format::default() };
            });
            above = 2;
            exponent = exponent_of(&terms);
        }
        loop {
            self.extract(sum, terms, exponent, above);
            if above == 0 {
                break;
            }
            (terms, above) = (others, 0);
            exponent = exponent_of(&terms);
        }
    }

    /// Adds terms below `2^exponent` to bins that are `above` places higher than their own.
    #[inline(always)]
    fn extract(&self, sum: usize, mut left: [G::Format; TERMS], exponent: i32, above: i32) {
        // The lowest bin whose half is above all terms.
        let bits = exponent - G::UNIT - (Self::MANTISSA - 1);
        let mut bin = if bits > 0 { (bits + Self::MANTISSA - 1) / Self::MANTISSA } else { 0 };
        loop {
            let constant = G::Format::one_and_a_half(G::UNIT + Self::MANTISSA * (bin + 1));
            let (mut words, mut any) = (G::Format::ZERO, G::Format::ZERO);
            each::<TERMS>(|i| {
                let with = constant + left[i];
                words = G::Format::add_words(words, with.bits());
                left[i] = left[i] - (with - constant);
                any = any | left[i].bits();
            });
            let value = G::Format::signed_difference(words, constant.bits(), TERMS as u32);
            let total = if const { size_of::<G::Format>() == 4 } {
                i64::from(i32::reduce_add(FULL_MASK, value as i32))
            } else {
                value.sum_of_lanes()
            };
            let k = (bin + above) as usize;
            if lane_id() == 0 {
                self.set_word(sum, k, self.word(sum, k).wrapping_add(total as u64));
            }
            // A residual of -0.0 counts as 0.
            if bin == 0 || !warp_vote_any(FULL_MASK, any & !G::Format::SIGN != G::Format::ZERO) {
                break;
            }
            bin -= 1;
        }
    }

    /// Records which terms are not finite, and replaces them with zeros.
    #[inline(always)]
    fn record_specials(&self, sum: usize, terms: &mut [G::Format; TERMS]) {
        let mut found = 0;
        each::<TERMS>(|i| {
            let term = terms[i];
            let bit = match (term.is_nan(), term.is_negative()) {
                (true, _) => Special::Nan,
                (_, true) => Special::NegativeInfinity,
                _ => Special::Infinity,
            };
            found |= if term.is_finite() { 0 } else { 1 << bit as u32 };
            terms[i] = if term.is_finite() { term } else { G::Format::default() };
        });
        let found = u32::reduce_or(FULL_MASK, found);
        if lane_id() == 0 {
            self.set_word(sum, Self::SPECIALS, self.word(sum, Self::SPECIALS) | u64::from(found));
        }
    }

    /// Propagates carries, so that each bin has little more than `MANTISSA` bits, the distance to the next bin.
    #[inline(always)]
    pub fn propagate_carries(&self, sum: usize) {
        sync_warp(FULL_MASK);
        let slot = lane_id() as usize;
        let (place, mut carry) = (sum * Self::SLOTS + slot, 0);
        if slot < Self::SPECIALS / 2 {
            let [low, high] = self.words.load(place).map(|word| word as i64);
            let high = high + (low >> Self::MANTISSA);
            carry = high >> Self::MANTISSA;
            let kept = |bin: i64| (bin & ((1 << Self::MANTISSA) - 1)) as u64;
            self.words.store(place, [kept(low), kept(high)]);
        }
        sync_warp(FULL_MASK);
        // The last slot has no next one.
        if slot + 1 < Self::SPECIALS / 2 {
            let [low, high] = self.words.load(place + 1);
            self.words.store(place + 1, [low.wrapping_add(carry as u64), high]);
        }
        sync_warp(FULL_MASK);
    }

    /// Adds a sum to a superaccumulator of limbs.
    #[inline(always)]
    pub fn end(&self, sum: usize, superacc: &Superaccumulator<G>) {
        /// Bins this far apart share no limb, because each touches three limbs.
        const APART: u32 = 8;
        const { assert!(APART as i32 * Self::MANTISSA >= 4 * 32) };
        sync_warp(FULL_MASK);
        let mut phase = 0;
        while phase < APART {
            let mut bin = lane_id();
            while bin % APART == phase && bin < Self::SPECIALS as u32 {
                let (value, position) = (self.word(sum, bin as usize) as i64, bin * Self::MANTISSA as u32);
                each::<3>(|j| {
                    let k = position / 32 + j as u32;
                    if value != 0 && k < G::LIMBS {
                        superacc.add_to(k, digit(value, position, k));
                    }
                });
                bin += 32;
            }
            sync_warp(FULL_MASK);
            phase += 1;
        }
        let specials = self.word(sum, Self::SPECIALS);
        for special in [Special::Nan, Special::Infinity, Special::NegativeInfinity] {
            superacc.add_special(special, specials >> special as u32 & 1 == 1);
        }
        sync_warp(FULL_MASK);
    }
}

/// An exponent above all magnitudes of a warp's terms.
#[inline(always)]
fn exponent_of<F: Format, const N: usize>(terms: &[F; N]) -> i32 {
    F::exponent_above(u32::reduce_max(FULL_MASK, largest_of(terms)))
}
