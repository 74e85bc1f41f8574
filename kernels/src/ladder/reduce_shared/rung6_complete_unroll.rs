use cuda_std::prelude::*;

use super::rung5_unroll_last_warp::finish_by_last_warp;
use super::{FoldArgs, rung4_first_add_on_load::load_two};
use crate::ops::Number;

/// Rung 6: no loop at all. The block size is a compile-time constant, so each step is kept or dropped when the kernel
/// is compiled.
///
/// The seed's version tests `BLOCKSIZE >= 512` down to 128, which would leave out the first step of a block of 1024;
/// here it is included. **Saves:** the loop's counter, test and branch. **Counter:** instructions per warp. A compiler
/// that knows `BLOCK` unrolls the loop of the previous rung by itself, so the two differ little: that is the lesson.
///
/// Source: seed 002, 2.2.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn complete_unroll<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    load_two(&tile, &input);
    fold_to_64(&tile);
    finish_by_last_warp(&tile, &partials);
}

/// Folds all of `tile` to its first 64 elements, by the steps that a block of this size has.
#[inline(always)]
pub(super) fn fold_to_64<T: Number, const BLOCK: usize>(tile: &SharedArray<T, BLOCK>) {
    let thread = thread::index_in_block::<BLOCK>();
    step::<T, BLOCK, 512>(tile, thread);
    step::<T, BLOCK, 256>(tile, thread);
    step::<T, BLOCK, 128>(tile, thread);
    step::<T, BLOCK, 64>(tile, thread);
}

/// Adds the upper `STRIDE` elements to the lower ones, if the block has that many.
#[inline(always)]
fn step<T: Number, const BLOCK: usize, const STRIDE: usize>(tile: &SharedArray<T, BLOCK>, thread: usize) {
    if BLOCK >= 2 * STRIDE {
        if thread < STRIDE {
            tile.store(thread, tile.load(thread).plus(tile.load(thread + STRIDE)));
        }
        thread::sync_threads();
    }
}
