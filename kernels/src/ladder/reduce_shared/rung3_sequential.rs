use cuda_std::prelude::*;

use super::FoldArgs;
use super::block_segment::{load_one, store_first};
use crate::ops::Number;

/// Rung 3: the stride starts at half the block and halves, so that neighbouring threads read neighbouring elements.
///
/// Thread `t` adds element `t + stride` to element `t`: the lanes of a warp read 32 words in a row, one from each bank.
/// **Saves:** every bank conflict. **Remaining cost:** half of the threads only load one element, and each later step
/// leaves half of the rest idle. **Counter:** bank conflicts (0).
///
/// Source: seed 003, `reduce2`.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn sequential<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    load_one(&tile, &input);
    fold_halves::<T, BLOCK, 0>(&tile);
    store_first(&tile, &partials);
}

/// Adds the upper half of `tile` to the lower half, then the upper half of that, and so on, as long as the stride
/// exceeds `LAST`.
#[inline(always)]
pub(super) fn fold_halves<T: Number, const BLOCK: usize, const LAST: usize>(tile: &SharedArray<T, BLOCK>) {
    let thread = thread::index_in_block::<BLOCK>();
    let mut stride = BLOCK / 2;
    while stride > LAST {
        if thread < stride {
            tile.store(thread, tile.load(thread).plus(tile.load(thread + stride)));
        }
        thread::sync_threads();
        stride /= 2;
    }
}
