use cuda_std::prelude::*;

use super::block_sum::sum_of_block;
use super::{FoldArgs, rung7_grid_stride::sum_of_thread};
use crate::ops::Number;

/// Rung 8: lanes pass their sums from register to register.
///
/// A shuffle moves a value to another lane without memory, and waits for the lanes as a warp barrier does. Each warp
/// folds its 32 sums in five shuffles, and one barrier of the block later the first warp folds the warps' sums.
/// **Saves:** shared memory, except one word per warp, and all block barriers but one. **Counters:** shared requests,
/// barriers per block (1), shuffles (10 in the first warp, 5 in each other).
///
/// Source: past the seeds; NVIDIA, "Faster Parallel Reductions on Kepler" (2014).
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn warp_shuffle<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let warp_sums = shared_array![T; 32];
    let sum = sum_of_block::<T, BLOCK>(sum_of_thread::<T, BLOCK>(&input), &warp_sums);
    if thread::thread_idx_x() == 0 {
        partials.store(thread::block_idx_x() as usize, sum);
    }
}
