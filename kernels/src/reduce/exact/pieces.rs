//! How sums of lanes, warps and blocks become one: as integers, each with its position, and as limbs.

use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp::{
    FULL_MASK, WarpReduceValue, lane_id, warp_shuffle_idx, warp_vote_all, warp_vote_any, warp_vote_ballot,
};
use exact_sum::{Compact, digit};

use super::warp_sum::{Ended, WORDS};

/// An integer and its position, which has room in two words: most sums.
pub type Piece = Compact<112>;

/// Warps that a block may have.
pub const MOST_WARPS: usize = 24;

/// Where warps leave their sums for the first one.
#[derive(Clone, Copy)]
pub struct Scratch {
    /// The largest magnitude of each warp.
    pub largest: SharedArray<u32, MOST_WARPS>,
    /// A piece of each warp.
    pub pieces: SharedArray<[u64; 2], MOST_WARPS>,
    /// The limbs of each warp.
    pub limbs: LimbsOfWarps,
}

/// The limbs of each warp.
pub type LimbsOfWarps = SharedArray<i64, { MOST_WARPS * WORDS }>;

/// The sum over a block's threads, in the first warp: an integer, and in each lane a limb of all else. All threads
/// come here.
///
/// Blocks of more than 256 threads have one tile, so that no integer has more than 62 bits.
#[inline(always)]
pub fn fold_block(ended: Ended, scratch: &Scratch) -> Ended {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, thread::thread_idx_x() / 32, lane_id());
    let [low, middle, high] = add_lanes(split(ended.value));
    if warps == 1 {
        return Ended { value: join([low, middle, high]), ..ended };
    }
    if lane == 0 {
        let words = [u64::from(low) | u64::from(middle) << 32, u64::from(high) | u64::from(ended.has_limbs) << 32];
        scratch.pieces.store(warp as usize, words);
    }
    if ended.has_limbs && lane < WORDS as u32 {
        scratch.limbs.store(warp as usize * WORDS + lane as usize, ended.limb);
    }
    thread::sync_threads();
    if warp > 0 {
        return Ended { value: 0, limb: 0, has_limbs: false };
    }
    let [first, second] = if lane < warps { scratch.pieces.load(lane as usize) } else { [0; 2] };
    let value = join(add_lanes([first as u32, (first >> 32) as u32, second as u32]));
    let with_limbs = warp_vote_ballot(FULL_MASK, second >> 32 != 0);
    let limb = if with_limbs != 0 { add_limbs(with_limbs, &scratch.limbs) } else { 0 };
    Ended { value, limb, has_limbs: with_limbs != 0 }
}

/// 22, 22 and 20 bits of an integer, the highest with the sign: of 1,024 threads each has a sum of 32 bits.
#[inline(always)]
fn split(value: i64) -> [u32; 3] {
    const MASK: u32 = (1 << 22) - 1;
    [value as u32 & MASK, (value >> 22) as u32 & MASK, (value >> 44) as u32]
}

#[inline(always)]
fn add_lanes(parts: [u32; 3]) -> [u32; 3] {
    parts.map(|part| u32::reduce_add(FULL_MASK, part))
}

#[inline(always)]
fn join([low, middle, high]: [u32; 3]) -> i64 {
    i64::from(low) + (i64::from(middle) << 22) + (i64::from(high as i32) << 44)
}

/// This lane's limb of those of some warps.
#[cold]
#[inline(never)]
fn add_limbs(warps: u32, limbs: &LimbsOfWarps) -> i64 {
    let (mut limb, mut left, lane) = (0, warps, lane_id() as usize);
    while left != 0 {
        let warp = left.trailing_zeros() as usize;
        limb += if lane < WORDS { limbs.load(warp * WORDS + lane) } else { 0 };
        left &= left - 1;
    }
    limb
}

/// The sum over the block's warps, of which each has a piece, and a limb in each lane: of the first warp's lanes the
/// same. All threads come here. A barrier must stand between two uses of `scratch`.
#[inline(always)]
pub fn fold_warps(piece: Piece, limb: i64, scratch: &Scratch) -> (Piece, i64) {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, thread::thread_idx_x() / 32, lane_id());
    if warps == 1 {
        return (piece, limb);
    }
    if lane == 0 {
        scratch.pieces.store(warp as usize, words_of(piece));
    }
    if piece.has_limbs && lane < WORDS as u32 {
        scratch.limbs.store(warp as usize * WORDS + lane as usize, limb);
    }
    thread::sync_threads();
    if warp > 0 {
        return (Piece::ZERO, 0);
    }
    let of_warp = if lane < warps { piece_of(scratch.pieces.load(lane as usize)) } else { Piece::ZERO };
    let with_limbs = warp_vote_ballot(FULL_MASK, of_warp.has_limbs);
    let mut limb = if with_limbs != 0 { add_limbs(with_limbs, &scratch.limbs) } else { 0 };
    let piece = fold_lanes(of_warp, &mut limb);
    (piece, limb)
}

/// The sum of the lanes' pieces, which all lanes get. What has no room in one goes to limbs, of which each lane adds
/// to its own.
#[inline(always)]
pub fn fold_lanes(piece: Piece, limb: &mut i64) -> Piece {
    // A value of 68 bits and a sign, 31 places further up, in 32 lanes: 104 bits.
    const BITS: u32 = 68;
    let has_limbs = warp_vote_any(FULL_MASK, piece.has_limbs);
    let is_there = piece.value != 0;
    let lowest = u32::reduce_min(FULL_MASK, if is_there { piece.position } else { u32::MAX });
    let places = piece.position.wrapping_sub(lowest);
    let rest = (piece.value >> BITS) as i64;
    let fits = !is_there | (places < 32) & ((rest == 0) | (rest == -1));
    if warp_vote_all(FULL_MASK, fits) {
        let value = if is_there { piece.value << (places & 31) } else { 0 };
        let position = if lowest == u32::MAX { 0 } else { lowest };
        return Piece { value: sum_of_lanes(value), position, has_limbs, ..Piece::ZERO };
    }
    *limb += limb_of_lanes(words_of(piece));
    Piece { has_limbs: true, ..Piece::ZERO }
}

/// The sum of two pieces that all lanes have.
#[inline(always)]
pub fn add(a: Piece, b: Piece, limb: &mut i64) -> Piece {
    let (sum, left) = a.combine(b);
    match left {
        None => sum,
        Some((value, position)) => {
            *limb += limb_of(value, position);
            Piece { has_limbs: true, ..sum }
        }
    }
}

/// This lane's limb of the sum of the lanes' pieces. Out of line: it is hardly ever needed.
#[cold]
#[inline(never)]
fn limb_of_lanes(words: [u64; 2]) -> i64 {
    let (mut limb, mut lane) = (0, 0);
    while lane < 32 {
        lane = keep_rolled(lane);
        let of_lane = words.map(|word| warp_shuffle_idx(FULL_MASK, word, lane, 32).0);
        let piece = piece_of(of_lane);
        limb += limb_of(piece.value, piece.position);
        lane += 1;
    }
    limb
}

/// This lane's limb of a value that all lanes have.
#[inline(always)]
pub fn limb_of(value: i128, position: u32) -> i64 {
    const LOW: u32 = 56;
    let (low, high) = (value & ((1 << LOW) - 1), value >> LOW);
    digit(low as i64, position, lane_id()) + digit(high as i64, position + LOW, lane_id())
}

/// The sum of the lanes' values, each of at most 122 bits and a sign.
#[inline(always)]
fn sum_of_lanes(value: i128) -> i128 {
    const BITS: u32 = 26;
    let piece = |k: u32| i128::from(u32::reduce_add(FULL_MASK, (value >> (k * BITS)) as u32 & ((1 << BITS) - 1)));
    let highest = i128::from(i32::reduce_add(FULL_MASK, (value >> (4 * BITS)) as i32));
    piece(0) + (piece(1) << BITS) + (piece(2) << (2 * BITS)) + (piece(3) << (3 * BITS)) + (highest << (4 * BITS))
}

/// A piece as words to be stored.
#[inline(always)]
pub fn words_of(piece: Piece) -> [u64; 2] {
    let bits = piece.to_bits();
    [bits as u64, (bits >> 64) as u64]
}

/// The piece of such words.
#[inline(always)]
pub fn piece_of([low, high]: [u64; 2]) -> Piece {
    Piece::from_bits(u128::from(low) | u128::from(high) << 64)
}
