//! How sums of lanes, warps and blocks become one: integers, each with its position.

use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, sync_warp, warp_shuffle_idx, warp_vote_all, warp_vote_any};
use exact_sum::{Binary, Compact, digit};

use super::rest::{IN_BELOW, IN_LIMBS, Rest};
use super::warp_sum::WarpSum;

/// An integer and its position, which has room in two words: most sums.
pub type Piece = Compact<112>;

/// Warps that a block may have.
pub const MOST_WARPS: usize = 32;

/// The number of this warp in its block.
#[inline(always)]
pub fn warp_id() -> usize {
    // For whoever checks an index by it.
    thread::thread_idx_x() as usize / 32 % MOST_WARPS
}

/// A piece of each warp.
pub type PiecesOfWarps = SharedArray<[u64; 2], MOST_WARPS>;

/// The sum over a block's threads, of which each has an integer in units of its warp's window, in the first warp. All
/// threads come here.
#[inline(always)]
pub fn fold_block(sum: WarpSum, pieces: PiecesOfWarps, rest: &Rest) -> Piece {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, warp_id(), lane_id());
    if warps == 1 {
        return fold_warp(sum, rest);
    }
    let parts = add_lanes(split(sum.end()));
    if lane == 0 {
        let [low, middle, high] = parts.map(u64::from);
        pieces.store(warp, [low | middle << 32, high | u64::from(tag_of(sum)) << 32]);
    }
    thread::sync_threads();
    if warp > 0 {
        return Piece::ZERO;
    }
    let position = sum.position();
    let [first, second] = if lane < warps { pieces.load(lane as usize) } else { [0, u64::from(position) << 32] };
    let parts = [first as u32, (first >> 32) as u32, second as u32];
    fold_parts(parts, (second >> 32) as u32, lane as usize, position, rest)
}

/// The sum over the lanes of a warp.
#[inline(always)]
pub fn fold_warp(sum: WarpSum, rest: &Rest) -> Piece {
    let (parts, position) = (add_lanes(split(sum.end())), sum.position());
    // Once, not for each lane.
    let (parts, tag) = if lane_id() == 0 { (parts, tag_of(sum)) } else { ([0; 3], position) };
    fold_parts(parts, tag, warp_id(), position, rest)
}

/// The position of a sum, of 12 bits, and what of it is in the rest.
#[inline(always)]
fn tag_of(sum: WarpSum) -> u32 {
    sum.position() | sum.in_rest() << IN_REST
}

const IN_REST: u32 = 16;

/// The sum of warps' sums, of which each lane has one, with its tag and the warp's number. Mostly all have the same
/// position, and nothing in the rest.
#[inline(always)]
fn fold_parts(parts: [u32; 3], tag: u32, of_warp: usize, position: u32, rest: &Rest) -> Piece {
    if warp_vote_all(FULL_MASK, tag == position) {
        return Piece { value: join(add_lanes(parts)), position, ..Piece::ZERO };
    }
    sync_warp(FULL_MASK);
    let in_rest = tag >> IN_REST;
    let below = if in_rest & IN_BELOW != 0 { rest.below(of_warp) } else { 0 };
    let position = tag & ((1 << IN_REST) - 1);
    fold_lanes(with_below(join(parts), position, (below, in_rest & IN_LIMBS != 0), rest), rest)
}

/// The sum of what a warp has in its window and in the one below.
#[inline(always)]
fn with_below(value: i128, position: u32, (below, is_used): (i64, bool), rest: &Rest) -> Piece {
    let piece = Piece { value, position, has_limbs: is_used, ..Piece::ZERO };
    if !warp_vote_any(FULL_MASK, below != 0) {
        return piece;
    }
    add(piece, Piece { value: below.into(), position: position.saturating_sub(BELOW), ..Piece::ZERO }, rest)
}

/// How far the window below is, unless that is the lowest.
const BELOW: u32 = 2 * <f32 as Binary>::MANTISSA;

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
fn join([low, middle, high]: [u32; 3]) -> i128 {
    i128::from(i64::from(low) + (i64::from(middle) << 22)) + (i128::from(high as i32) << 44)
}

/// The sum over a block's lanes of their pieces, in the first warp. All threads come here. A barrier must stand between
/// two uses of `pieces`.
#[inline(always)]
pub fn fold_pieces(piece: Piece, pieces: PiecesOfWarps, rest: &Rest) -> Piece {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, warp_id(), lane_id());
    let piece = fold_lanes(piece, rest);
    if warps == 1 {
        return piece;
    }
    if lane == 0 {
        let bits = piece.to_bits();
        pieces.store(warp, [bits as u64, (bits >> 64) as u64]);
    }
    thread::sync_threads();
    if warp > 0 {
        return Piece::ZERO;
    }
    let [low, high] = if lane < warps { pieces.load(lane as usize) } else { [0; 2] };
    fold_lanes(Piece::from_bits(u128::from(low) | u128::from(high) << 64), rest)
}

/// The sum of the lanes' pieces, which all lanes get. What has no room in one goes to the rest.
#[inline(always)]
fn fold_lanes(piece: Piece, rest: &Rest) -> Piece {
    let is_nothing = piece.value == 0;
    let highest = u32::reduce_max(FULL_MASK, if is_nothing { 0 } else { piece.position });
    let word = piece.value as i64;
    let is_word = (piece.position == highest) & (i128::from(word) == piece.value);
    if warp_vote_all(FULL_MASK, (is_nothing | is_word) & !piece.has_limbs) {
        return Piece { value: join(add_lanes(split(word))), position: highest, ..Piece::ZERO };
    }
    Piece::from_bits(fold_any(piece.to_bits(), *rest))
}

/// [`fold_lanes`] of any pieces. Out of line: sums of most warps are in units of one window.
#[cold]
#[inline(never)]
fn fold_any(bits: u128, rest: Rest) -> u128 {
    let piece = Piece::from_bits(bits);
    let is_nothing = piece.value == 0;
    let has_limbs = warp_vote_any(FULL_MASK, piece.has_limbs);
    let lowest = u32::reduce_min(FULL_MASK, if is_nothing { u32::MAX } else { piece.position });
    // The sum of 32 has five bits more.
    let shifted = Compact::<106>::shifted(piece.value, if is_nothing { 0 } else { piece.position - lowest });
    let of = |value, position, has_limbs| Piece { value, position, has_limbs, ..Piece::ZERO };
    if warp_vote_all(FULL_MASK, shifted.is_some()) {
        let position = if lowest == u32::MAX { 0 } else { lowest };
        return of(sum_of_lanes(shifted.unwrap_or(0)), position, has_limbs).to_bits();
    }
    add_to_rest(piece, &rest);
    of(0, 0, true).to_bits()
}

/// The sum of two pieces of a lane; what has no room goes to the rest. All lanes of the warp come here.
#[inline(always)]
pub fn add(a: Piece, b: Piece, rest: &Rest) -> Piece {
    if !warp_vote_any(FULL_MASK, a != Piece::ZERO) {
        return b;
    }
    Piece::from_bits(add_any(a.to_bits(), b.to_bits(), *rest))
}

/// [`add`] of any two. Out of line: a lane seldom has two pieces, or something in the window below.
#[cold]
#[inline(never)]
fn add_any(a: u128, b: u128, rest: Rest) -> u128 {
    let (sum, left) = Piece::from_bits(a).combine(Piece::from_bits(b));
    if !warp_vote_any(FULL_MASK, left.is_some()) {
        return sum.to_bits();
    }
    let (value, position) = left.unwrap_or((0, 0));
    add_to_rest(Piece { value, position, ..Piece::ZERO }, &rest);
    Piece { has_limbs: true, ..sum }.to_bits()
}

/// Adds the lanes' pieces to the rest.
#[inline(always)]
fn add_to_rest(piece: Piece, rest: &Rest) {
    rest.add(limb_of_lanes([piece.value as u64, (piece.value >> 64) as u64], piece.position));
}

/// This lane's limb of the sum of the lanes' integers. Out of line: it is hardly ever needed.
#[cold]
#[inline(never)]
fn limb_of_lanes(words: [u64; 2], position: u32) -> i64 {
    const LOW: u32 = 56;
    let (mut limb, mut lane) = (0, 0);
    while lane < 32 {
        lane = keep_rolled(lane);
        let [low, high] = words.map(|word| warp_shuffle_idx(FULL_MASK, word, lane, 32).0);
        let position = warp_shuffle_idx(FULL_MASK, position, lane, 32).0;
        let value = (u128::from(low) | u128::from(high) << 64) as i128;
        let (low, high) = (value & ((1 << LOW) - 1), value >> LOW);
        limb += digit(low as i64, position, lane_id()) + digit(high as i64, position + LOW, lane_id());
        lane += 1;
    }
    limb
}

/// The sum of the lanes' values, each of at most 105 bits and a sign.
#[inline(always)]
fn sum_of_lanes(value: i128) -> i128 {
    const BITS: u32 = 26;
    let piece = |k: u32| i128::from(u32::reduce_add(FULL_MASK, (value >> (k * BITS)) as u32 & ((1 << BITS) - 1)));
    let highest = i128::from(i32::reduce_add(FULL_MASK, (value >> (4 * BITS)) as i32));
    piece(0) + (piece(1) << BITS) + (piece(2) << (2 * BITS)) + (piece(3) << (3 * BITS)) + (highest << (4 * BITS))
}
