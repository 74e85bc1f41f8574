//! Superaccumulators in shared memory, for bits that do not fit in the integers of a warp's lanes.

use core::marker::PhantomData;

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_shuffle_idx, warp_vote_any, warp_vote_ballot};

use exact_sum::Leading;

use super::format::{Format, Value};
use super::grid::Grid;
use super::superaccumulator_words::{MAX_WARPS, OTHER_WORDS, SPECIALS, SharedWords, Special};
use super::unrolled::each;

/// Set if limbs hold some of a sum.
pub const IN_LIMBS: u32 = 1;
/// Set if the word for the window below holds some of a sum.
pub const IN_BELOW: u32 = 2;

/// The number of words that are summed over warps and blocks: limbs, and counts of non-finite terms.
pub const fn words<G: Grid>() -> u32 {
    G::LIMBS + SPECIALS as u32
}

/// The maximum number of words of a lane.
const MAX_WORDS_PER_LANE: usize = 5;

/// This warp's index in its block.
#[inline(always)]
pub fn warp_id() -> usize {
    // The remainder lets the compiler remove bounds checks.
    thread::thread_idx_x() as usize / 32 % MAX_WARPS
}

/// The [`Superaccumulator`] of each warp of a block, in shared memory that is declared here.
macro_rules! declare_superaccumulator {
    () => {
        $crate::reduce::exact::superaccumulator::Superaccumulator::of_words(
            $crate::reduce::exact::superaccumulator_words::SharedWords::declare::<
                { cuda_std::shared::array_id(file!(), line!(), column!()) },
            >(),
        )
    };
}
pub(crate) use declare_superaccumulator;

/// A superaccumulator for bits that do not fit in the integers of a warp's lanes. Each lane has some of the limbs, and
/// adds only to these, so that there are no races.
#[derive(Clone, Copy)]
pub struct Superaccumulator<G: Grid> {
    words: G::Words,
    /// The superaccumulator's index: the warp's, if it has only one.
    slot: usize,
    grid: PhantomData<G>,
}

impl<G: Grid> Superaccumulator<G> {
    /// Words of a warp.
    const OF_WARP: usize = G::LIMBS as usize + OTHER_WORDS;
    /// The word for the sum of the residuals, in units of the window below.
    const BELOW: usize = Self::OF_WARP - 1;

    /// For [`declare_superaccumulator`].
    #[doc(hidden)]
    #[inline(always)]
    pub fn of_words(words: G::Words) -> Self {
        Self { words, slot: warp_id(), grid: PhantomData }
    }

    /// Calls a function with each of this lane's words.
    #[inline(always)]
    pub fn each_word(mut f: impl FnMut(u32)) {
        let mut k = lane_id();
        while k < words::<G>() {
            f(k);
            k += 32;
        }
    }

    #[inline(always)]
    fn place(&self, k: u32) -> usize {
        self.slot * Self::OF_WARP + k as usize
    }

    /// Sets all words to 0.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn begin(self) -> Self {
        Self::each_word(|k| self.words.store(self.place(k), 0));
        if lane_id() == 0 {
            self.words.store(self.place(Self::BELOW as u32), 0);
        }
        self
    }

    /// Adds a number by its limbs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn add(&self, limb: impl Fn(u32) -> i64) {
        Self::each_word(|k| {
            if k < G::LIMBS {
                self.words.store(self.place(k), self.words.load(self.place(k)) + limb(k));
            }
        });
    }

    /// Adds to word `k`, from any lane. No other lane may do so at the same time.
    #[inline(always)]
    pub fn add_to(&self, k: u32, amount: i64) {
        self.words.store(self.place(k), self.words.load(self.place(k)) + amount);
    }

    /// Counts a non-finite term, if one exists in a lane.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn add_special(&self, special: Special, exists: bool) {
        let k = G::LIMBS + special as u32;
        if warp_vote_any(FULL_MASK, exists) && lane_id() == k % 32 {
            self.words.store(self.place(k), 1);
        }
    }

    /// Adds a sum of residuals of at most 55 bits, in units of the window below. Returns which words hold it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn add_below(&self, sum: i64, position: u32) -> u32 {
        // Only lane 0 has the sum.
        let is_lane_0 = lane_id() == 0;
        let place = self.place(Self::BELOW as u32);
        let sum = if is_lane_0 { self.words.load(place) + sum } else { 0 };
        if is_lane_0 {
            self.words.store(place, sum);
        }
        if !warp_vote_any(FULL_MASK, sum.unsigned_abs() > 1 << 56) {
            return IN_BELOW;
        }
        self.add_below_to_limbs(position);
        IN_LIMBS
    }

    /// Adds the sum of the residuals, in units of the window at this position, to limbs.
    #[inline(always)]
    pub fn add_below_to_limbs(&self, position: u32) {
        if !G::Format::HAS_BELOW {
            return;
        }
        let is_lane_0 = lane_id() == 0;
        let place = self.place(Self::BELOW as u32);
        let sum = if is_lane_0 { self.words.load(place) } else { 0 };
        if is_lane_0 {
            self.words.store(place, 0);
        }
        let sum = warp_shuffle_idx(FULL_MASK, sum, 0, 32).0;
        self.add(|k| sum.digit(position, k));
    }

    /// The sum of a warp's residuals, in units of the window below.
    #[inline(always)]
    pub fn below(&self, warp: usize) -> i64 {
        self.words.load(warp * Self::OF_WARP + Self::BELOW)
    }

    /// Word `k` of the sum over all warps, which must have finished. Out of line, since it is rarely needed.
    #[cold]
    #[inline(never)]
    pub fn sum(self, warps: u32, k: u32) -> i64 {
        let (mut sum, mut warp) = (0, 0);
        while warp < warps as usize {
            sum += self.words.load(warp * Self::OF_WARP + k as usize);
            warp += 1;
        }
        sum
    }

    /// Word `k` of this warp.
    #[inline(always)]
    pub fn word(&self, k: u32) -> i64 {
        self.words.load(self.place(k))
    }

    /// The sign of the sum of this warp's limbs, and its magnitude's highest 128 bits. Leaves the magnitude in the
    /// limbs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn leading(&self) -> Leading {
        self.propagate_carries();
        let is_negative = self.word(G::LIMBS - 1) < 0;
        if is_negative {
            sync_warp(FULL_MASK);
            Self::each_word(|k| self.words.store(self.place(k), -self.word(k)));
            sync_warp(FULL_MASK);
            self.propagate_carries();
        }
        // The indices of the lowest and of the highest nonzero limb.
        let (mut lowest, mut highest) = (u32::MAX, 0);
        each::<{ MAX_WORDS_PER_LANE }>(|j| {
            let k = lane_id() + 32 * j as u32;
            let ones = warp_vote_ballot(FULL_MASK, k < G::LIMBS && self.word(k) != 0);
            if ones != 0 {
                let first = 32 * j as u32 + ones.trailing_zeros();
                lowest = if first < lowest { first } else { lowest };
                highest = 32 * j as u32 + 31 - ones.leading_zeros();
            }
        });
        if lowest == u32::MAX {
            return Leading::ZERO;
        }
        // Five limbs hold the highest 128 bits.
        let limb = |below: u32| if below <= highest { self.word(highest - below) as u32 } else { 0 };
        let upper = (1..4).fold(u128::from(limb(0)), |bits, below| bits << 32 | u128::from(limb(below)));
        let (zeros, last) = (upper.leading_zeros(), limb(4));
        let bits = upper << zeros | (u128::from(last) << zeros) >> 32;
        let is_inexact = last << zeros != 0 || lowest + 4 < highest;
        Leading { is_negative, bits, position: 32 * (highest as i32 - 3) - zeros as i32, is_inexact }
    }

    /// Propagates carries, so that all limbs but the last are in `0..2^32`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn propagate_carries(&self) {
        loop {
            let mut limbs = [0; MAX_WORDS_PER_LANE];
            let mut has_carry = false;
            each::<{ MAX_WORDS_PER_LANE }>(|j| {
                let k = lane_id() + 32 * j as u32;
                if k < G::LIMBS {
                    let (own, below) = (self.word(k), if k > 0 { self.word(k - 1) } else { 0 });
                    let is_last = k + 1 == G::LIMBS;
                    has_carry |= !is_last & (own >> 32 != 0);
                    limbs[j] = if is_last { own } else { own as u32 as i64 } + (below >> 32);
                }
            });
            if !warp_vote_any(FULL_MASK, has_carry) {
                return;
            }
            sync_warp(FULL_MASK);
            each::<{ MAX_WORDS_PER_LANE }>(|j| {
                let k = lane_id() + 32 * j as u32;
                if k < G::LIMBS {
                    self.words.store(self.place(k), limbs[j]);
                }
            });
            sync_warp(FULL_MASK);
        }
    }

    /// Adds the words of all other warps, and `extra`, to this warp's. All warps must have finished.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn gather(&self, warps: u32, extra: impl Fn(u32) -> i64) {
        self.replace(|k| self.sum(warps, k) + extra(k));
    }

    /// Replaces each word.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn replace(&self, by: impl Fn(u32) -> i64) {
        Self::each_word(|k| self.words.store(self.place(k), by(k)));
        sync_warp(FULL_MASK);
    }
}
