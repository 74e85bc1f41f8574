use cuda_std::prelude::*;

use super::{FoldInPlaceArgs, rung7_unroll8_warp_tail::fold_last_warp};
use super::{add, add_blocks_apart, finish, segment_start};
use crate::ops::Number;

/// Rung 8: no loop. Each step is written out, and tests whether the block is large enough for it.
///
/// **Saves:** the loop's counter and branch; the test of the block size remains, at run time. **Counter:** instructions
/// per warp. The seed saw no difference, and neither does an H200: the rung is probably bound by memory.
///
/// Source: seed 000, `reduceCompleteUnrollWarp8`.
#[kernel(instances = [f32, i32])]
pub fn unroll8_complete<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(8);
    add_blocks_apart::<T, 8>(&data, start);
    let block = thread::block_dim_x() as usize;
    step::<T, 512>(&data, start, block);
    step::<T, 256>(&data, start, block);
    step::<T, 128>(&data, start, block);
    step::<T, 64>(&data, start, block);
    fold_last_warp(&data, start);
    finish(&data, &partials, start);
}

/// Adds the upper `STRIDE` elements to the lower ones, if the block has that many threads.
#[inline(always)]
pub(super) fn step<T: Number, const STRIDE: usize>(data: &GlobalMut<T>, start: usize, block: usize) {
    if block >= 2 * STRIDE {
        let thread = thread::thread_idx_x() as usize;
        if thread < STRIDE {
            add(data, start + thread, start + thread + STRIDE);
        }
        thread::sync_threads();
    }
}
