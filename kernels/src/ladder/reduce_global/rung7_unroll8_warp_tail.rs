use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

use super::{FoldInPlaceArgs, add_blocks_apart, finish, fold_by_halves, segment_start};
use crate::ops::Number;

/// Rung 7: the last 64 elements are folded by one warp, by volatile accesses and without the block's barrier.
///
/// **Saves:** six of the block's barriers. **Counters:** barriers per block, barrier stalls. The seed expected fewer
/// barrier stalls and measured more; warps probably wait longer at the remaining barriers.
///
/// Source: seed 000, `reduceUnrollWarp8`.
#[kernel(instances = [f32, i32])]
pub fn unroll8_warp_tail<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(8);
    add_blocks_apart::<T, 8>(&data, start);
    fold_by_halves(&data, start, 64);
    fold_last_warp(&data, start);
    finish(&data, &partials, start);
}

/// The first warp folds the segment's first 64 elements into the first one.
///
/// As in shared memory, volatile accesses keep values out of registers, but do not order the lanes, which since Volta
/// do not run in lock-step. The warp's barriers order them: one between the reads and the writes of a step, and one
/// after the writes.
#[inline(always)]
pub(super) fn fold_last_warp<T: Number>(data: &GlobalMut<T>, start: usize) {
    if thread::thread_idx_x() < 32 {
        fold_step::<T, 32>(data, start);
        fold_step::<T, 16>(data, start);
        fold_step::<T, 8>(data, start);
        fold_step::<T, 4>(data, start);
        fold_step::<T, 2>(data, start);
        fold_step::<T, 1>(data, start);
    }
}

#[inline(always)]
fn fold_step<T: Number, const STRIDE: usize>(data: &GlobalMut<T>, start: usize) {
    let own = start + thread::thread_idx_x() as usize;
    let at = |i: usize| if i < data.len() { data.load_volatile(i) } else { T::NEUTRAL };
    let sum = at(own).plus(at(own + STRIDE));
    warp::sync_warp(FULL_MASK);
    if own < data.len() {
        data.store_volatile(own, sum);
    }
    warp::sync_warp(FULL_MASK);
}
