//! Lanes and masks, shuffles, matches and reductions.

use cuda_std::prelude::*;
use cuda_std::warp::{self, WarpReductionOp};

/// Lanes, masks and barriers of a warp.
///
/// # Safety
/// `output` has a word for each thread of a block of 64.
#[kernel]
pub unsafe fn warp_functions(output: *mut u32) {
    let lane = warp::lane_id();
    let active = warp::activemask();
    warp::sync_warp(0xFFFF_FFFF);
    if lane < 16 {
        warp::sync_warp(0x0000_FFFF);
    }
    let is_active = active >> lane & 1;
    // SAFETY: as promised by the launch.
    unsafe { *output.add(thread::thread_idx_x() as usize) = lane + 100 * is_active };
}

/// The number of words that [`warp_shuffle`](fn@warp_shuffle) writes for each lane.
pub const SHUFFLE_WORDS: usize = 14;

/// Shuffles of values of every width, in every direction.
///
/// # Safety
/// `output` has [`SHUFFLE_WORDS`] words for each lane of a warp.
#[kernel]
pub unsafe fn warp_shuffle(output: *mut u64) {
    const MASK: u32 = 0xFFFF_FFFF;
    let lane = warp::lane_id();
    let wide = u128::from(lane) << 100 | u128::from(lane);
    let (xor_i8, _) = warp::warp_shuffle_xor(MASK, lane as i8 - 16, 1, 32);
    let (xor_u16, _) = warp::warp_shuffle_xor(MASK, lane as u16 * 1000, 2, 32);
    let (xor_i32, in_range) = warp::warp_shuffle_xor(MASK, -(lane as i32), 8, 8);
    let (xor_f64, _) = warp::warp_shuffle_xor(MASK, f64::from(lane) + 0.5, 16, 32);
    let (xor_u128, _) = warp::warp_shuffle_xor(MASK, wide, 31, 32);
    let (xor_i128, _) = warp::warp_shuffle_xor(MASK, -(wide as i128), 1, 32);
    let (half, _) = warp::warp_shuffle_xor(MASK, half::f16::from_bits(lane as u16), 4, 32);
    let (down, below_end) = warp::warp_shuffle_down(MASK, lane as f32, 3, 16);
    let (up, from_start) = warp::warp_shuffle_up(MASK, u64::from(lane) << 40, 5, 32);
    let (first, _) = warp::warp_shuffle_idx(MASK, i64::from(lane) - 7, 5, 8);
    let (three, _) = warp::warp_shuffle_idx(MASK, [lane as f32, 1.0, 2.0], 9, 32);
    let words = [
        xor_i8 as u64,
        u64::from(xor_u16),
        xor_i32 as u64,
        u64::from(in_range),
        xor_f64.to_bits(),
        (xor_u128 >> 96) as u64 ^ xor_u128 as u64,
        (xor_i128 >> 64) as u64,
        u64::from(half.to_bits()),
        u64::from(down.to_bits()),
        u64::from(below_end),
        up,
        u64::from(from_start),
        first as u64,
        u64::from(three[0].to_bits()) << 32 | u64::from(three[2].to_bits()),
    ];
    for (at, word) in words.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(lane as usize * SHUFFLE_WORDS + at) = word };
    }
}

/// The lanes with equal values, among all lanes, and among the upper and the lower half.
///
/// # Safety
/// `values` has an element and `output` two for each lane of a block of 64.
#[kernel]
pub unsafe fn warp_match_any(values: &[u64], output: *mut u32) {
    let t = thread::thread_idx_x() as usize;
    let half = if warp::lane_id() < 16 { 0x0000_FFFF } else { 0xFFFF_0000 };
    let of_all = warp::warp_match_any(u32::MAX, values[t]);
    let of_half = warp::warp_match_any(half, values[t] as i32);
    // SAFETY: as promised by the launch.
    unsafe {
        *output.add(2 * t) = of_all;
        *output.add(2 * t + 1) = of_half;
    }
}

/// The lanes of each warp if their values are equal, else 0; of 64 bits, and of 32.
///
/// # Safety
/// As for [`warp_match_any`](fn@warp_match_any).
#[kernel]
pub unsafe fn warp_match_all(values: &[u64], output: *mut u32) {
    let t = thread::thread_idx_x() as usize;
    let of_words = warp::warp_match_all(u32::MAX, values[t]).unwrap_or(0);
    let of_floats = warp::warp_match_all(u32::MAX, f32::from_bits(values[t] as u32)).unwrap_or(0);
    // SAFETY: as promised by the launch.
    unsafe {
        *output.add(2 * t) = of_words;
        *output.add(2 * t + 1) = of_floats;
    }
}

/// Every reduction of the lanes of a warp, signed and unsigned.
///
/// # Safety
/// `values` has an element and `output` twelve for each thread of a block of 64.
#[kernel]
pub unsafe fn warp_reduce(values: &[u32], output: *mut u32) {
    use WarpReductionOp::{Add, And, Max, Min, Or, Xor};
    let t = thread::thread_idx_x() as usize;
    let own = values[t];
    for (at, op) in [Add, Min, Max, And, Or, Xor].into_iter().enumerate() {
        let of_unsigned = warp::warp_reduce(u32::MAX, own, op);
        let of_signed = warp::warp_reduce(u32::MAX, own as i32, op);
        // SAFETY: as promised by the launch.
        unsafe {
            *output.add(12 * t + 2 * at) = of_unsigned;
            *output.add(12 * t + 2 * at + 1) = of_signed as u32;
        }
    }
    let again = [
        warp::warp_reduce_add(u32::MAX, own),
        warp::warp_reduce_min(u32::MAX, own),
        warp::warp_reduce_max(u32::MAX, own),
        warp::warp_reduce_and(u32::MAX, own),
        warp::warp_reduce_or(u32::MAX, own),
        warp::warp_reduce_xor(u32::MAX, own),
    ];
    for (at, word) in again.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        assert_eq!(word, unsafe { *output.add(12 * t + 2 * at) });
    }
}
