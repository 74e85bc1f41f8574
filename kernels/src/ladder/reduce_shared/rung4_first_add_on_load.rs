use cuda_std::prelude::*;

use super::rung3_sequential::fold_halves;
use super::{FoldArgs, block_segment::store_first};
use crate::ops::Number;

/// Rung 4: each thread loads two elements and adds them on the way to shared memory.
///
/// In the previous rung, half of the threads load one element and are done. Here a block takes `2 * BLOCK` elements:
/// half as many blocks, each thread with two independent loads in flight, and the first step of the fold costs neither
/// a barrier nor shared memory. **Saves:** idle threads, half of the blocks. **Counters:** bytes in flight, blocks.
///
/// Source: seed 002, "remove idle threads".
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn first_add_on_load<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    load_two(&tile, &input);
    fold_halves::<T, BLOCK, 0>(&tile);
    store_first(&tile, &partials);
}

/// Loads the block's segment of `2 * BLOCK` elements, adds those that are `BLOCK` apart, and waits at a barrier.
#[inline(always)]
pub(super) fn load_two<T: Number, const BLOCK: usize>(tile: &SharedArray<T, BLOCK>, input: &Global<T>) {
    let thread = thread::index_in_block::<BLOCK>();
    let first = thread::block_idx_x() as usize * (2 * BLOCK) + thread;
    tile.store(thread, input.load_or(first, T::NEUTRAL).plus(input.load_or(first + BLOCK, T::NEUTRAL)));
    thread::sync_threads();
}
