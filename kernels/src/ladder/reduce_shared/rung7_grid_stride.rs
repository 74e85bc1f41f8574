use cuda_std::prelude::*;

use super::rung6_complete_unroll::fold_to_64;
use super::{FoldArgs, rung5_unroll_last_warp::fold_last_warp};
use crate::ops::Number;

/// Rung 7: few blocks, each of which strides over the whole input.
///
/// In the previous rungs, a block ends after two elements per thread, and the next one is launched: half a million
/// blocks for 2^28 elements. Here a thread adds every `grid * BLOCK`-th element in a register, and a block folds in
/// shared memory once. **Saves:** block launches, and nearly all barriers. **Counters:** blocks, barriers per block
/// (the same number, for many more elements).
///
/// Source: past the seeds; Harris, "Optimizing Parallel Reduction in CUDA" (2007), kernel 7.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn grid_stride<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();

    tile.store(thread, sum_of_thread::<T, BLOCK>(&input));
    thread::sync_threads();
    fold_to_64(&tile);
    if thread < 32 {
        fold_last_warp(&tile, thread);
    }
    if thread == 0 {
        partials.store(thread::block_idx_x() as usize, tile.load_volatile(0));
    }
}

/// The sum of a thread's elements, which are a grid stride apart.
#[inline(always)]
pub(super) fn sum_of_thread<T: Number, const BLOCK: usize>(input: &Global<T>) -> T {
    let mut i = thread::block_idx_x() as usize * BLOCK + thread::index_in_block::<BLOCK>();
    let stride = thread::grid_dim_x() as usize * BLOCK;
    let mut sum = T::NEUTRAL;
    while i < input.len() {
        sum = sum.plus(input.load(i));
        i += stride;
    }
    sum
}
