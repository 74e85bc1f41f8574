//! Exact sums: the one result that is right, rounded once, whatever the order.
//!
//! | module | what is in it |
//! |---|---|
//! | [`warp_sum`] | what a warp has summed, of any elements |
//! | [`rest`] | what has no room in its lanes' integers |
//! | [`pieces`] | how sums of lanes, warps and blocks become one |
//! | [`result`] | what is made of the sum: a float, a mean |
//! | [`rows`] | short rows |
//!
//! The arithmetic is that of the crate `exact_sum`.

pub mod pieces;
pub mod rest;
pub mod result;
pub mod rows;
pub mod warp_sum;

use cuda_std::atomic::{self, Atomic, Scope};
use cuda_std::global::issue_loads;
use cuda_std::hint::keep_rolled;
use cuda_std::mailbox;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_vote_any};
use half::{bf16, f16};

use self::pieces::{Piece, PiecesOfWarps, add, fold_block, fold_pieces, warp_id};
use self::rest::{Rest, WORDS};
use self::result::{OfExactSum, result_of};
use self::warp_sum::{Single, WarpSum, largest_of_warp, window_above};
use super::remainder::packs_of_block;
use super::run::{Run, elements_to_alignment};
use super::spans::Part;
use crate::ops::{Mean, Sum};

/// 16-byte packs of a tile that each thread takes; as many of the next tile are on their way meanwhile.
pub const PACKS_IN_FLIGHT: usize = 4;

/// Words of a span's residue: limbs, and how often there was something that is not finite.
pub const WORDS_OF_RESIDUE: usize = WORDS;

/// [`spans`](fn@super::spans::spans) whose sums are exact.
///
/// Blocks leave each other their sums in mailboxes, and what has no room there in `residues`, to which they add limb by
/// limb: integers, so that it does not matter who is first. Both are 0 before and after.
///
/// # Safety
/// As of [`spans`](fn@super::spans::spans), with a mailbox for each part, and [`WORDS_OF_RESIDUE`] words of
/// `residues` for each span, if there is more than one part.
#[kernel(
    instances = [Sum, Mean] x [f32, f16, bf16],
    max_threads = 768,
    min_blocks = 1,
    early
)]
pub unsafe fn exact_spans<O: OfExactSum, T: Single>(
    input: Global<T>,
    len: usize,
    pitch: usize,
    parts: u32,
    tiles: u32,
    longer: u32,
    mailboxes: GlobalMut<[u64; 2]>,
    residues: GlobalMut<i64>,
    output: GlobalMut<f32>,
) {
    let (pieces, rest) = (shared_array!([u64; 2]; 32), Rest::begin(shared_array!(i64; 544)));
    let part = Part::of_block(parts, tiles, longer);
    part.admit_next_grid();
    let start = part.span * pitch;
    let sum = match size_of::<T>() {
        2 => sum_run::<T, PACKS_IN_FLIGHT, 1, 8>(&input, start, len, part.run(), &rest),
        _ => sum_run::<T, PACKS_IN_FLIGHT, 4, 16>(&input, start, len, part.run(), &rest),
    };
    part.admit_next_grid_at_last();
    let mut piece = fold_block(sum, pieces, &rest);
    let (mut limb, warp, warps) = (0, warp_id(), thread::block_dim_x() / 32);
    if parts > 1 {
        let (first, words) = (part.span * parts as usize, part.span * WORDS + lane_id() as usize);
        // The last part's block waits for the others, which have been started before it.
        if part.part + 1 < parts {
            if warp == 0 {
                if piece.has_limbs {
                    let limb = rest.sum(warps);
                    if limb != 0 {
                        i64::fetch_add(&residues, words, limb, Scope::Device);
                    }
                    sync_warp(FULL_MASK);
                    atomic::fence(Scope::Device);
                }
                if lane_id() == 0 {
                    let (bits, place) = (piece.to_bits(), first + part.part as usize);
                    mailbox::post_tagged(&mailboxes, place, (bits >> 64) as u64, bits as u64 | IS_THERE);
                }
            }
            return;
        }
        // Its own limbs stay where they are.
        let keeps_limbs = piece.has_limbs;
        let own = Piece { has_limbs: false, ..piece };
        piece = sum_parts(own, parts - 1, first, &mailboxes, shared_array!([u64; 2]; 32), &rest);
        if warp == 0 && piece.has_limbs && lane_id() < WORDS as u32 {
            limb = residues.load_volatile(words);
            residues.store_volatile(words, 0);
        }
        piece.has_limbs |= keeps_limbs;
    }
    if warp == 0 {
        if piece.has_limbs {
            rest.replace(limb + rest.sum(warps));
        }
        if lane_id() == 0 {
            output.store(part.span, result_of::<O>(piece, rest, len as u64));
        }
    }
}

/// A bit that is 1 in all pieces in mailboxes: the one of NaN, of which limbs know.
const IS_THERE: u64 = 1 << 12;

/// The sum of a run of neighbouring tiles of the span of `len` elements that begins at `start`.
#[inline(always)]
fn sum_run<T: Single, const PACKS: usize, const FEW: usize, const N: usize>(
    input: &Global<T>,
    start: usize,
    len: usize,
    run: Run,
    rest: &Rest,
) -> WarpSum {
    // A warp's packs lie beside each other, so that a lane's are at distances that the compiler knows.
    let (stride, tile) = (32 * T::Pack::LEN, packs_of_block::<T>(PACKS as u32));
    // Packs begin behind these, at a multiple of 16 bytes; these and what is behind the last whole pack are singles,
    // which are taken at the end.
    let lead = elements_to_alignment(input, start, len);
    let (start, len) = (start + lead, len - lead);
    let whole = len / T::Pack::LEN * T::Pack::LEN;
    let (first, last) = (run.tiles.start * tile, run.tiles.end * tile);
    let end = start + if last < whole { last } else { whole };
    // Elements before the first aligned one may have been all that there was of the last tile.
    let mut left = (run.tiles.end - run.tiles.start) as u32;
    left -= u32::from(left > 1 && last - tile >= whole);
    let is_last_whole = first + left as usize * tile <= whole;
    let mut i = start + first + (warp_id() * PACKS * 32 + lane_id() as usize) * T::Pack::LEN;

    const MOST: usize = 8;
    let own = thread::thread_idx_x() as usize;
    let has_singles = run.is_last && (lead > 0 || whole < len);
    let (is_single, single) = match own < MOST {
        true => (own < lead, start.wrapping_sub(lead) + own),
        false => (own < MOST + (len - whole), start + whole + own - MOST),
    };
    // SAFETY: the element is inside of the span.
    let single = if has_singles && is_single { unsafe { input.load_unchecked(single) } } else { T::default() };
    // SAFETY: whole packs before `end` are inside of the span, and begin at multiples of 16 bytes.
    let load_tile = |i| unsafe { input.load_aligned_packs_before::<PACKS>(i, stride, end) };
    let mut packs = load_tile(i);
    issue_loads();
    let mut sum = WarpSum::in_window(match T::WINDOW {
        Some(exponent) => exponent,
        None => window_above(largest_of_warp::<T, PACKS>(&packs)),
    });
    loop {
        // Tiles whose elements are in the window, the next one on its way meanwhile.
        let is_taken = loop {
            let next = if left <= 1 {
                packs
            } else if left > 2 || is_last_whole {
                // SAFETY: a whole tile is inside of the span.
                unsafe { input.load_aligned_packs_unchecked::<PACKS>(i + tile, stride) }
            } else {
                load_tile(i + tile)
            };
            issue_loads();
            let is_taken = sum.take::<T, PACKS>(packs);
            if !is_taken || left <= 1 {
                break is_taken;
            }
            packs = next;
            left -= 1;
            i += tile;
        };
        if is_taken {
            break;
        }
        // Others, until there is one again whose elements are. A loop of its own, so that those have all registers.
        let mut is_taken = false;
        while left > 0 && !is_taken {
            is_taken = true;
            let mut k = 0;
            while k < (PACKS / FEW) as u32 {
                k = keep_rolled(k);
                // SAFETY: as above.
                let few = unsafe { input.load_aligned_packs_before::<FEW>(i + k as usize * FEW * stride, stride, end) };
                is_taken &= sum.take_any::<T, FEW, N>(few, rest);
                k += 1;
            }
            left -= 1;
            i += tile;
        }
        if left == 0 {
            break;
        }
        packs = load_tile(i);
    }
    if has_singles {
        sum.take_one(single, rest);
    }
    sum
}

/// The sum of the first warp's piece and of what the other blocks of a span have left, in the first warp; it has limbs
/// if one of the blocks' has, or if something of it went to the rest. All threads come here.
///
/// The other warps wait for the blocks, while the first one still makes its piece.
#[inline(always)]
fn sum_parts(
    own: Piece,
    others: u32,
    first: usize,
    mailboxes: &GlobalMut<[u64; 2]>,
    pieces: PiecesOfWarps,
    rest: &Rest,
) -> Piece {
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut sum = if thread == 0 { own } else { Piece::ZERO };
    let waiting = if threads > 32 { threads - 32 } else { threads };
    let mut i = thread.wrapping_sub(threads - waiting);
    while warp_vote_any(FULL_MASK, i < others) {
        let has_one = i < others;
        let place = first + if has_one { i as usize } else { 0 };
        let (high, low) = mailbox::take_tagged_by_warp(mailboxes, place, has_one);
        let bits = u128::from(high) << 64 | u128::from(low & !IS_THERE);
        let of_part = if has_one { Piece::from_bits(bits) } else { Piece::ZERO };
        sum = add(sum, of_part, rest);
        i += waiting;
    }
    if warp_vote_any(FULL_MASK, sum.has_limbs) {
        // By whoever has taken a sum: then the residue is known to the threads behind the next barrier.
        atomic::fence(Scope::Device);
        sync_warp(FULL_MASK);
    }
    fold_pieces(sum, pieces, rest)
}
