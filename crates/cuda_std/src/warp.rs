//! Warp-level primitives: shuffles, votes, reductions and the warp barrier.
//!
//! Each operation takes a mask of the participating lanes, bit `i` for lane `i`. Every lane of the mask, the caller
//! among them, must execute the same operation with the same mask; diverged lanes reconverge there. A wrong mask
//! touches no memory, but on a GPU a lane that is not in its own mask traps, lanes whose partner never arrives hang,
//! and a value read from an inactive lane is undefined. The executor reports all three.

use core::mem::size_of;

use crate::backend;
use crate::element::Plain;

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

/// A value that a shuffle can move: 32 or 64 bits.
pub trait WarpShuffleValue: Copy + private::Sealed {
    /// The number of 32-bit words.
    #[doc(hidden)]
    const WORDS: usize;
    /// The value's bits, zero-extended.
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    /// The inverse of `to_bits`.
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod private {
    pub trait Sealed {}
}

macro_rules! shuffle_values {
    ($($type:ty, $words:literal, $to:expr, $from:expr;)*) => {$(
        impl private::Sealed for $type {}
        impl WarpShuffleValue for $type {
            const WORDS: usize = $words;
            #[inline(always)]
            fn to_bits(self) -> u64 {
                ($to)(self)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                ($from)(bits)
            }
        }
    )*};
}

shuffle_values! {
    u8, 1, |v: u8| v as u64, |b: u64| b as u8;
    i8, 1, |v: i8| v as u8 as u64, |b: u64| b as i8;
    u16, 1, |v: u16| v as u64, |b: u64| b as u16;
    i16, 1, |v: i16| v as u16 as u64, |b: u64| b as i16;
    half::f16, 1, |v: half::f16| v.to_bits() as u64, |b: u64| half::f16::from_bits(b as u16);
    half::bf16, 1, |v: half::bf16| v.to_bits() as u64, |b: u64| half::bf16::from_bits(b as u16);
    u32, 1, |v: u32| v as u64, |b: u64| b as u32;
    i32, 1, |v: i32| v as u32 as u64, |b: u64| b as i32;
    f32, 1, |v: f32| v.to_bits() as u64, |b: u64| f32::from_bits(b as u32);
    u64, 2, |v: u64| v, |b: u64| b;
    i64, 2, |v: i64| v as u64, |b: u64| b as i64;
    f64, 2, |v: f64| v.to_bits(), f64::from_bits;
}

/// The value of the lane `delta` above, within segments of `width` lanes (2, 4, 8, 16 or 32), and whether that lane
/// exists; if not, the caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_down<T: WarpShuffleValue>(mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
    let bits = backend::shuffle_down(backend::caller_location(), mask, value.to_bits(), delta, width, T::WORDS);
    // `delta` may be any number, so the sum could wrap.
    (T::from_bits(bits), delta < width && lane_id() % width + delta < width)
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
        1 | 2 | 4 => T::from_word(shuffle(low, 1)),
        8 => T::from_word(shuffle(low, 2)),
        16 => T::from_pair([shuffle(low, 2), shuffle(high, 2)]),
        _ => T::from_four_words([shuffle(low, 2), shuffle(high, 2), shuffle(third, 2), shuffle(fourth, 2)]),
    }
}

/// The value of the lane `delta` below, within segments of `width` lanes, and whether that lane exists; if not, the
/// caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_up<T: WarpShuffleValue>(mask: u32, value: T, delta: u32, width: u32) -> (T, bool) {
    let bits = backend::shuffle_up(backend::caller_location(), mask, value.to_bits(), delta, width, T::WORDS);
    (T::from_bits(bits), delta <= lane_id() % width)
}

/// The value of lane `lane % width` of the caller's segment of `width` lanes, and whether `lane` is less than `width`.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_idx<T: WarpShuffleValue>(mask: u32, value: T, lane: u32, width: u32) -> (T, bool) {
    // PTX uses only the low five bits of the lane, and takes the segment from the calling lane.
    let bits = backend::shuffle_idx(backend::caller_location(), mask, value.to_bits(), lane % width, width, T::WORDS);
    (T::from_bits(bits), lane < width)
}

/// The value of lane `lane_id() ^ lanes`, and whether that lane is in the caller's segment or an earlier one; if it is
/// in a later one, the caller's own value.
#[inline(always)]
#[track_caller]
pub fn warp_shuffle_xor<T: WarpShuffleValue>(mask: u32, value: T, lanes: u32, width: u32) -> (T, bool) {
    let bits = backend::shuffle_xor(backend::caller_location(), mask, value.to_bits(), lanes, width, T::WORDS);
    let last_of_segment = lane_id() | (width - 1);
    (T::from_bits(bits), (lane_id() ^ (lanes & 31)) <= last_of_segment)
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

/// A value that `redux.sync` combines: `u32` or `i32`.
pub trait WarpReduceValue: Copy + private::Sealed {
    /// The sum over the lanes of the mask, wrapping.
    fn reduce_add(mask: u32, value: Self) -> Self;
    /// The minimum over the lanes of the mask.
    fn reduce_min(mask: u32, value: Self) -> Self;
    /// The maximum over the lanes of the mask.
    fn reduce_max(mask: u32, value: Self) -> Self;
    /// AND over the lanes of the mask.
    fn reduce_and(mask: u32, value: Self) -> Self;
    /// OR over the lanes of the mask.
    fn reduce_or(mask: u32, value: Self) -> Self;
    /// XOR over the lanes of the mask.
    fn reduce_xor(mask: u32, value: Self) -> Self;
}

impl WarpReduceValue for u32 {
    #[inline(always)]
    #[track_caller]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::reduce_add(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::reduce_min(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::reduce_max(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_and(mask: u32, value: Self) -> Self {
        backend::reduce_and(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_or(mask: u32, value: Self) -> Self {
        backend::reduce_or(mask, value)
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_xor(mask: u32, value: Self) -> Self {
        backend::reduce_xor(mask, value)
    }
}

impl WarpReduceValue for i32 {
    #[inline(always)]
    #[track_caller]
    fn reduce_add(mask: u32, value: Self) -> Self {
        backend::reduce_add(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_min(mask: u32, value: Self) -> Self {
        backend::reduce_min_signed(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_max(mask: u32, value: Self) -> Self {
        backend::reduce_max_signed(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_and(mask: u32, value: Self) -> Self {
        backend::reduce_and(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_or(mask: u32, value: Self) -> Self {
        backend::reduce_or(mask, value as u32) as i32
    }
    #[inline(always)]
    #[track_caller]
    fn reduce_xor(mask: u32, value: Self) -> Self {
        backend::reduce_xor(mask, value as u32) as i32
    }
}
