//! What has no room in the integers of a warp's lanes: a superaccumulator in shared memory.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_shuffle_idx, warp_vote_any};
use exact_sum::digit;

use super::pieces::{MOST_WARPS, warp_id};

/// Limbs of a sum of `f32`, in units of its least number.
pub const LIMBS: usize = 12;
/// The words behind the limbs: how often there was something that is not finite.
pub const NAN: u32 = LIMBS as u32;
/// Of infinity.
pub const INFINITY: u32 = NAN + 1;
/// Of minus infinity.
pub const NEGATIVE_INFINITY: u32 = NAN + 2;

/// A bit that says that a sum has something in limbs.
pub const IN_LIMBS: u32 = 1;
/// A bit that says that a sum has something in the window below its own.
pub const IN_BELOW: u32 = 2;

/// Words that are added up over warps and blocks, each by a lane.
pub const WORDS: usize = 16;

/// The sum of what windows leave to the windows below them.
const BELOW: usize = WORDS;

/// Words of a warp.
const OF_WARP: usize = WORDS + 1;

/// The words of all warps of a block.
pub type RestOfWarps = SharedArray<i64, { MOST_WARPS * OF_WARP }>;

/// What has no room in the integers of a warp's lanes. A lane adds to a limb of its own, so that no two meet.
#[derive(Clone, Copy)]
pub struct Rest {
    words: RestOfWarps,
}

impl Rest {
    /// That of this warp, which is nothing yet.
    #[inline(always)]
    pub fn begin(words: RestOfWarps) -> Self {
        let (first, lane) = (warp_id() * OF_WARP, lane_id() as usize);
        if lane < WORDS {
            words.store(first + lane, 0);
        }
        if lane == 0 {
            words.store(first + BELOW, 0);
        }
        Self { words }
    }

    /// Adds this lane's limb of a number.
    #[inline(always)]
    pub fn add(&self, limb: i64) {
        let lane = lane_id();
        if lane < WORDS as u32 {
            let place = warp_id() * OF_WARP + lane as usize;
            self.words.store(place, self.words.load(place) + limb);
        }
    }

    /// Adds what elements of the window have left to the one below, of at most 55 bits; gives where it is now.
    #[inline(always)]
    pub fn add_below(&self, sum: i64, position: u32) -> u32 {
        // Lane 0 alone knows the sum so far.
        let is_mine = lane_id() == 0;
        let sum = if is_mine { self.words.load(warp_id() * OF_WARP + BELOW) + sum } else { 0 };
        if is_mine {
            self.words.store(warp_id() * OF_WARP + BELOW, sum);
        }
        if !warp_vote_any(FULL_MASK, sum.unsigned_abs() > 1 << 56) {
            return IN_BELOW;
        }
        self.add_below_to_limbs(position);
        IN_LIMBS
    }

    /// Adds to limbs what was left to the window that is at this position.
    #[inline(always)]
    pub fn add_below_to_limbs(&self, position: u32) {
        let is_mine = lane_id() == 0;
        let sum = if is_mine { self.words.load(warp_id() * OF_WARP + BELOW) } else { 0 };
        if is_mine {
            self.words.store(warp_id() * OF_WARP + BELOW, 0);
        }
        self.add(digit(warp_shuffle_idx(FULL_MASK, sum, 0, 32).0, position, lane_id()));
    }

    /// What a warp has left to the window below.
    #[inline(always)]
    pub fn below(&self, warp: usize) -> i64 {
        self.words.load(warp * OF_WARP + BELOW)
    }

    /// This lane's word of the sum over all warps, which have ended. Out of line: it is not often needed.
    #[cold]
    #[inline(never)]
    pub fn sum(self, warps: u32) -> i64 {
        let (mut sum, mut warp, lane) = (0, 0, lane_id() as usize);
        while warp < warps as usize {
            sum += if lane < WORDS { self.words.load(warp * OF_WARP + lane) } else { 0 };
            warp += 1;
        }
        sum
    }

    /// Word `k` of this warp.
    #[inline(always)]
    pub fn word(&self, k: usize) -> i64 {
        self.words.load(warp_id() * OF_WARP + k)
    }

    /// Replaces this lane's word.
    #[inline(always)]
    pub fn replace(&self, word: i64) {
        sync_warp(FULL_MASK);
        if lane_id() < WORDS as u32 {
            self.words.store(warp_id() * OF_WARP + lane_id() as usize, word);
        }
        sync_warp(FULL_MASK);
    }
}
