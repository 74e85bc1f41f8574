//! Exact sums: the one result that is right, rounded once, whatever the order.
//!
//! | module | what is in it |
//! |---|---|
//! | [`warp_sum`] | what a warp has summed, of any elements |
//! | [`pieces`] | how sums of lanes, warps and blocks become one |
//! | [`result`] | what is made of the sum: a float, a mean |
//!
//! The arithmetic is that of the crate `exact_sum`.

pub mod pieces;
pub mod result;
pub mod warp_sum;

use cuda_std::atomic::{self, Atomic, Scope};
use cuda_std::global::issue_loads;
use cuda_std::mailbox;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, sync_warp, warp_vote_any};
use half::{bf16, f16};

use self::pieces::{MOST_WARPS, Piece, Scratch, add, fold_block, fold_lanes, fold_warps};
use self::result::{OfExactSum, UNIT, of_limbs};
use self::warp_sum::{Single, WORDS, WarpSum, largest_of_warp, window_above};
use super::remainder::{packs_of_block, stride};
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
    let scratch = Scratch {
        largest: shared_array!(u32; 24),
        pieces: shared_array!([u64; 2]; 24),
        limbs: shared_array!(i64; 384),
    };
    let part = Part::of_block(parts, tiles, longer);
    part.admit_next_grid();
    let (sum, position) = sum_run::<T, PACKS_IN_FLIGHT>(&input, part.span * pitch, len, part.run(), &scratch.largest);
    part.admit_next_grid_at_last();
    let of_block = fold_block(sum.end(), &scratch);
    let is_first_warp = thread::thread_idx_x() < 32;
    if parts == 1 {
        if is_first_warp {
            if of_block.has_limbs {
                let piece = Piece { value: of_block.value.into(), position, ..Piece::ZERO };
                put_out_limbs::<O>(piece, of_block.limb, &scratch, len, part.span, &output);
            } else if lane_id() == 0 {
                output.store(part.span, O::of_word(of_block.value, UNIT + position as i32, len as u64));
            }
        }
        return;
    }

    let (first, words) = (part.span * parts as usize, part.span * WORDS + lane_id() as usize);
    if is_first_warp {
        if of_block.has_limbs {
            if of_block.limb != 0 {
                i64::fetch_add(&residues, words, of_block.limb, Scope::Device);
            }
            sync_warp(FULL_MASK);
            atomic::fence(Scope::Device);
        }
        if lane_id() == 0 {
            let tag = u64::from(position) << 2 | u64::from(of_block.has_limbs) << 1 | 1;
            mailbox::post_tagged(&mailboxes, first + part.part as usize, of_block.value as u64, tag);
        }
    }
    // The last part's block waits for the others, which have been started before it.
    if part.part + 1 < parts {
        return;
    }
    thread::sync_threads();
    let (piece, mut limb) = sum_parts(parts, first, &mailboxes, &scratch);
    if is_first_warp {
        if piece.has_limbs {
            if lane_id() < WORDS as u32 {
                limb += residues.load_volatile(words);
                residues.store_volatile(words, 0);
            }
            put_out_limbs::<O>(piece, limb, &scratch, len, part.span, &output);
        } else if lane_id() == 0 {
            output.store(part.span, O::of_integer(piece.value, UNIT + piece.position as i32, len as u64));
        }
    }
}

/// The sum of a run of neighbouring tiles of the span of `len` elements that begins at `start`, and the position of the
/// window that all warps of the block begin with.
#[inline(always)]
fn sum_run<T: Single, const PACKS: usize>(
    input: &Global<T>,
    start: usize,
    len: usize,
    run: Run,
    scratch: &SharedArray<u32, MOST_WARPS>,
) -> (WarpSum, u32) {
    let (stride, tile) = (stride::<T>(), packs_of_block::<T>(PACKS as u32));
    let own = thread::thread_idx_x() as usize;
    // Packs begin behind these, at a multiple of 16 bytes; these and what is behind the last whole pack are taken at
    // the end.
    let lead = elements_to_alignment(input, start, len);
    let (start, len) = (start + lead, len - lead);
    let whole = len / T::Pack::LEN * T::Pack::LEN;
    let end = run.tiles.end * tile;
    let end = start + if end < whole { end } else { whole };
    let mut i = start + run.tiles.start * tile + own * T::Pack::LEN;

    let load = |is_there: bool, i: usize| {
        // SAFETY: the element is inside of the span.
        if is_there { unsafe { input.load_unchecked(i) } } else { T::default() }
    };
    let has_singles = run.is_last && (lead > 0 || whole < len);
    let before = load(has_singles && own < lead, start.wrapping_sub(lead) + own);
    let behind = load(has_singles && whole + own < len, start + whole + own);
    // SAFETY: whole packs before `end` are inside of the span, and begin at multiples of 16 bytes.
    let mut packs = unsafe { input.load_aligned_packs_before::<PACKS>(i, stride, end) };
    issue_loads();
    let mut sum = WarpSum::in_window(match T::WINDOW {
        Some(exponent) => exponent,
        None => window_above(largest_of_block(largest_of_warp::<T, PACKS>(&packs), scratch)),
    });
    let position = sum.position();
    // The same for all threads of the block.
    let mut next_tile = start + (run.tiles.start + 1) * tile;
    loop {
        i += tile;
        // SAFETY: as above; behind the last tile there is none.
        let next = unsafe { input.load_aligned_packs_before::<PACKS>(i, stride, end) };
        issue_loads();
        sum.take::<T, PACKS>(packs);
        if next_tile >= end {
            break;
        }
        packs = next;
        next_tile += tile;
    }
    if has_singles {
        sum.take_two([before, behind]);
    }
    (sum, position)
}

/// The largest of the warps' numbers. All threads come here.
#[inline(always)]
fn largest_of_block(of_warp: u32, scratch: &SharedArray<u32, MOST_WARPS>) -> u32 {
    let (warps, lane) = (thread::block_dim_x() / 32, lane_id());
    if warps == 1 {
        return of_warp;
    }
    if lane == 0 {
        scratch.store(thread::thread_idx_x() as usize / 32, of_warp);
    }
    thread::sync_threads();
    u32::reduce_max(FULL_MASK, if lane < warps { scratch.load(lane as usize) } else { 0 })
}

/// The sum of what the blocks of a span have left, in the first warp. All threads come here.
#[inline(always)]
fn sum_parts(parts: u32, first: usize, mailboxes: &GlobalMut<[u64; 2]>, scratch: &Scratch) -> (Piece, i64) {
    let (mut sum, mut limb) = (Piece::ZERO, 0);
    let mut i = thread::thread_idx_x();
    while warp_vote_any(FULL_MASK, i < parts) {
        let has_one = i < parts;
        let place = first + if has_one { i as usize } else { 0 };
        let (value, tag) = mailbox::take_tagged_by_warp(mailboxes, place, has_one);
        let value = if has_one { i128::from(value as i64) } else { 0 };
        let has_limbs = has_one & (tag & 2 != 0);
        let of_part = Piece { value, position: (tag >> 2) as u32, has_limbs, ..Piece::ZERO };
        sum = add(sum, fold_lanes(of_part, &mut limb), &mut limb);
        i += thread::block_dim_x();
    }
    if sum.has_limbs {
        // By whoever has taken a sum: then the residue is known to the threads behind the next barrier.
        atomic::fence(Scope::Device);
    }
    fold_warps(sum, limb, scratch)
}

/// Stores the result of a sum, of which the first warp's lanes have the limbs.
#[inline(always)]
fn put_out_limbs<O: OfExactSum>(
    piece: Piece,
    limb: i64,
    scratch: &Scratch,
    len: usize,
    span: usize,
    output: &GlobalMut<f32>,
) {
    let lane = lane_id() as usize;
    sync_warp(FULL_MASK);
    if lane < WORDS {
        scratch.limbs.store(lane, limb);
    }
    sync_warp(FULL_MASK);
    if lane == 0 {
        output.store(span, of_limbs::<O>(piece, &scratch.limbs, len as u64));
    }
}
