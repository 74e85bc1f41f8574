//! The sum over the threads of a block, by shuffles: for the ladder's rungs from `warp_shuffle` on.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_down};

use crate::ops::Number;

/// One element for each warp of a block.
pub type WarpSums<T> = SharedArray<T, 32>;

/// The sum over the warp, in lane 0: five shuffles, no memory.
#[inline(always)]
pub fn sum_of_warp<T: Number>(value: T) -> T {
    let mut sum = value;
    let mut delta = 16;
    while delta > 0 {
        sum = sum.plus(warp_shuffle_down(FULL_MASK, sum, delta, 32).0);
        delta /= 2;
    }
    sum
}

/// The sum over a block of `BLOCK` threads, a multiple of 32, in thread 0.
///
/// Each warp reduces by shuffles and stores its sum to `sums` in shared memory; the first warp reduces those. A barrier
/// must separate two uses of `sums`.
#[inline(always)]
pub fn sum_of_block<T: Number, const BLOCK: usize>(value: T, sums: &WarpSums<T>) -> T {
    let thread = thread::index_in_block::<BLOCK>();
    let sum = sum_of_warp(value);
    if thread.is_multiple_of(32) {
        sums.store(thread / 32, sum);
    }
    thread::sync_threads();
    let warps = BLOCK / 32;
    let own = if thread < warps { sums.load(thread) } else { T::NEUTRAL };
    if thread < 32 { sum_of_warp(own) } else { own }
}
