use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

use super::rung4_first_add_on_load::load_two;
use super::{FoldArgs, rung3_sequential::fold_halves};
use crate::ops::Number;

/// Rung 5: the last 64 elements need no barrier of the block, because one warp folds them.
///
/// Once the stride is 32, only the first warp works. The loop stops there, the other warps leave, and six unrolled
/// steps by `fold_last_warp` finish. **Saves:** six block barriers and their loop. **Counter:** barriers per block
/// (`log2` of the block, less 5).
///
/// Source: seed 002, 2.1.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn unroll_last_warp<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    load_two(&tile, &input);
    fold_halves::<T, BLOCK, 32>(&tile);
    finish_by_last_warp(&tile, &partials);
}

/// The end of a rung: the first warp folds the last 64 elements, and its first thread writes the block's sum.
#[inline(always)]
pub(super) fn finish_by_last_warp<T: Number, const BLOCK: usize>(
    tile: &SharedArray<T, BLOCK>,
    partials: &GlobalMut<T>,
) {
    let thread = thread::index_in_block::<BLOCK>();
    if thread < 32 {
        fold_last_warp(tile, thread);
    }
    if thread == 0 {
        partials.store(thread::block_idx_x() as usize, tile.load_volatile(0));
    }
}

/// Folds the first 64 elements of `tile` to its first, by the 32 threads of one warp.
///
/// Volatile keeps the compiler from holding an element in a register while another lane needs it. It does not order the
/// lanes: since Volta each has its own program counter, and the seeds' version, which relies on lock-step, is a race.
/// So a warp barrier separates the read and the write of each step, and another follows the write.
///
/// Lanes from `stride` on add too, to elements that are not read again: all lanes must reach the barriers, and a branch
/// would cost more than the additions.
#[inline(always)]
pub(super) fn fold_last_warp<T: Number, const BLOCK: usize>(tile: &SharedArray<T, BLOCK>, lane: usize) {
    fold_step::<T, BLOCK, 32>(tile, lane);
    fold_step::<T, BLOCK, 16>(tile, lane);
    fold_step::<T, BLOCK, 8>(tile, lane);
    fold_step::<T, BLOCK, 4>(tile, lane);
    fold_step::<T, BLOCK, 2>(tile, lane);
    fold_step::<T, BLOCK, 1>(tile, lane);
}

#[inline(always)]
fn fold_step<T: Number, const BLOCK: usize, const STRIDE: usize>(tile: &SharedArray<T, BLOCK>, lane: usize) {
    let sum = tile.load_volatile(lane).plus(tile.load_volatile(lane + STRIDE));
    warp::sync_warp(FULL_MASK);
    tile.store_volatile(lane, sum);
    warp::sync_warp(FULL_MASK);
}
