//! Warp-level primitives: shuffles, votes, reductions and the warp barrier.
//!
//! Each operation takes a mask of the participating lanes, bit `i` for lane `i`. Every lane of the mask, the caller
//! among them, must execute the same operation with the same mask; diverged lanes reconverge there. A wrong mask
//! accesses no memory, but on a GPU a lane that is not in its own mask traps, lanes whose partner never arrives hang,
//! and a value read from an inactive lane is undefined. The executor reports all three.

use core::mem::size_of;

use crate::backend;
use crate::element::Plain;

mod matches;
mod reduce;

pub use matches::{WarpMatchValue, warp_match_all, warp_match_any};
pub use reduce::{
    WarpReduceValue, WarpReductionOp, warp_reduce, warp_reduce_add, warp_reduce_and, warp_reduce_max, warp_reduce_min,
    warp_reduce_or, warp_reduce_xor,
};

/// The mask of all lanes.
pub const FULL_MASK: u32 = u32::MAX;

/// The thread's lane in its warp, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::index::lane_id()
}

/// The lanes that execute this instruction together at the moment. The scheduler chooses them: never use it as the mask
/// of "all lanes that took this branch".
#[inline(always)]
#[track_caller]
pub fn activemask() -> u32 {
    backend::active_mask()
}

/// The warp barrier (`__syncwarp`): waits for the lanes of `mask`, and orders their memory accesses.
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

/// A value that a shuffle can move: any plain value of up to 32 bytes. Each 4 bytes are a `shfl.sync`.
pub trait WarpShuffleValue: Plain {}

impl<T: Plain> WarpShuffleValue for T {}

/// The value of the lane `delta` above, within segments of `width` lanes (2, 4, 8, 16 or 32), and whether that lane
/// exists; if not, the caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_down<T: WarpShuffleValue>(mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
    // `delta` may be any number, so the sum could wrap.
    (warp_shuffle_down_plain(mask, value, delta, width), delta < width && lane_id() % width + delta < width)
}

/// [`warp_shuffle_down`] for any plain value: the value of the lane `delta` above, within segments of `width` lanes, or
/// the caller's own value if there is no such lane.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_down_plain<T: Plain>(mask: u32, value: T, delta: u32, width: u32) -> T {
    let caller_location = backend::caller_location();
    by_words(value, |half, words| backend::shuffle_down(caller_location, mask, half, delta, width, words))
}

/// [`warp_shuffle_xor`] for any plain value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_xor_plain<T: Plain>(mask: u32, value: T, lanes: u32, width: u32) -> T {
    let caller_location = backend::caller_location();
    by_words(value, |half, words| backend::shuffle_xor(caller_location, mask, half, lanes, width, words))
}

/// Moves a value as one word of 32 or 64 bits, or as two or four of 64.
#[inline(always)]
#[track_caller]
fn by_words<T: Plain>(value: T, shuffle: impl Fn(u64, usize) -> u64) -> T {
    let [low, high, third, fourth] = value.to_four_words();
    match size_of::<T>() {
        0..=4 => T::from_word(shuffle(low, 1)),
        5..=8 => T::from_word(shuffle(low, 2)),
        9..=16 => T::from_pair([shuffle(low, 2), shuffle(high, 2)]),
        _ => T::from_four_words([shuffle(low, 2), shuffle(high, 2), shuffle(third, 2), shuffle(fourth, 2)]),
    }
}

/// The value of the lane `delta` below, within segments of `width` lanes, and whether that lane exists; if not, the
/// caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_up<T: WarpShuffleValue>(mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
    let caller_location = backend::caller_location();
    let value = by_words(value, |half, words| backend::shuffle_up(caller_location, mask, half, delta, width, words));
    (value, delta <= lane_id() % width)
}

/// The value of lane `lane % width` of the caller's segment of `width` lanes, and whether `lane` is less than `width`.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_idx<T: WarpShuffleValue>(mask: u32, value: T, lane: u32, width: u32) -> (T, bool) {
    // PTX uses only the low five bits of the lane, and takes the segment from the calling lane.
    let (caller_location, source) = (backend::caller_location(), lane % width);
    let value = by_words(value, |half, words| backend::shuffle_idx(caller_location, mask, half, source, width, words));
    (value, lane < width)
}

/// The value of lane `lane_id() ^ lanes`, and whether that lane is in the caller's segment or an earlier one; if it is
/// in a later one, the caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_xor<T: WarpShuffleValue>(mask: u32, value: T, lanes: u32, width: u32) -> (T, bool) {
    let last_of_segment = lane_id() | (width - 1);
    (warp_shuffle_xor_plain(mask, value, lanes, width), (lane_id() ^ (lanes & 31)) <= last_of_segment)
}

/// Whether `predicate` holds in every lane of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    backend::vote_all(mask, predicate)
}

/// Whether `predicate` holds in any lane of the mask.
#[inline(always)]
#[track_caller]
pub fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    backend::vote_any(mask, predicate)
}

/// The lanes of the mask where `predicate` holds, as a mask.
#[inline(always)]
#[track_caller]
pub fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    backend::vote_ballot(mask, predicate)
}
