//! Reductions in global memory, in place: the ladder of seed 000.
//!
//! A block reduces a contiguous segment of `data` to the segment's first element, in place, and copies that element to
//! `partials` at the block's index. The segment has one, two, four or eight elements for each thread. `data` is
//! overwritten, so the host gives a rung a scratch copy. The host launches the same rung over the partials until one
//! number is left.
//!
//! | rung | changes | removes |
//! |---|---|---|
//! | [`neighbored`](fn@neighbored) | | |
//! | [`neighbored_less`](fn@neighbored_less) | which threads work | divergent warps |
//! | [`interleaved`](fn@interleaved) | which elements they add | strided access |
//! | [`unroll2`](fn@unroll2), [`unroll4`](fn@unroll4), [`unroll8`](fn@unroll8) | work per thread | blocks, barriers |
//! | [`unroll8_warp_tail`](fn@unroll8_warp_tail) | the last 64 elements | block barriers |
//! | [`unroll8_complete`](fn@unroll8_complete) | the loop | loop arithmetic |
//! | [`unroll8_complete_const`](fn@unroll8_complete_const) | the block size is a constant | tests of the block size |
//!
//! The seed's kernels drop elements that do not fill the last block: `unroll4` and `unroll8` add only where all four or
//! eight elements exist. Here every index is compared with the length. A block is a power of two, at least 64.

mod rung1_neighbored;
mod rung2_neighbored_less;
mod rung3_interleaved;
mod rung4_to_6_unroll;
mod rung7_unroll8_warp_tail;
mod rung8_unroll8_complete;
mod rung9_unroll8_complete_const;

pub use rung1_neighbored::neighbored;
pub use rung2_neighbored_less::neighbored_less;
pub use rung3_interleaved::interleaved;
pub use rung4_to_6_unroll::{unroll2, unroll4, unroll8};
pub use rung7_unroll8_warp_tail::unroll8_warp_tail;
pub use rung8_unroll8_complete::unroll8_complete;
pub use rung9_unroll8_complete_const::unroll8_complete_const;

use cuda_std::prelude::*;

use crate::ops::Number;

/// The first index of the block's segment, which has `per_thread` elements for each thread.
#[inline(always)]
fn segment_start(per_thread: usize) -> usize {
    thread::block_idx_x() as usize * thread::block_dim_x() as usize * per_thread
}

/// Adds element `from` to element `to`, if `from` is inside the data.
#[inline(always)]
fn add<T: Number>(data: &GlobalMut<T>, to: usize, from: usize) {
    if from < data.len() {
        data.store(to, data.load(to).plus(data.load(from)));
    }
}

/// Adds to the thread's element `PER_THREAD - 1` more, which are a block apart. All loads are issued before the first
/// addition.
#[inline(always)]
fn add_blocks_apart<T: Number, const PER_THREAD: usize>(data: &GlobalMut<T>, start: usize) {
    let first = start + thread::thread_idx_x() as usize;
    let input = data.as_global();
    let mut loaded = [T::NEUTRAL; PER_THREAD];
    let mut i = 0;
    while i < PER_THREAD {
        loaded[i] = input.load_or(first + i * thread::block_dim_x() as usize, T::NEUTRAL);
        i += 1;
    }
    let mut sum = loaded[0];
    let mut i = 1;
    while i < PER_THREAD {
        sum = sum.plus(loaded[i]);
        i += 1;
    }
    if first < data.len() {
        data.store(first, sum);
    }
    thread::sync_threads();
}

/// Reduces the segment by halves, down to its first `last` elements.
#[inline(always)]
fn fold_by_halves<T: Number>(data: &GlobalMut<T>, start: usize, last: usize) {
    let thread = thread::thread_idx_x() as usize;
    let mut stride = thread::block_dim_x() as usize / 2;
    while stride >= last {
        if thread < stride {
            add(data, start + thread, start + thread + stride);
        }
        thread::sync_threads();
        stride /= 2;
    }
}

/// Thread 0 copies the segment's sum to the partials.
#[inline(always)]
fn finish<T: Number>(data: &GlobalMut<T>, partials: &GlobalMut<T>, start: usize) {
    if thread::thread_idx_x() == 0 {
        let sum = if start < data.len() { data.load_volatile(start) } else { T::NEUTRAL };
        partials.store(thread::block_idx_x() as usize, sum);
    }
}

/// The arguments of each rung.
#[arguments]
pub struct FoldInPlaceArgs<T: Plain> {
    /// The numbers, which are folded in place.
    pub data: GlobalMut<T>,
    /// A partial sum for each block.
    pub partials: GlobalMut<T>,
}
