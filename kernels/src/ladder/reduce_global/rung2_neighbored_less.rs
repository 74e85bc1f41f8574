use cuda_std::prelude::*;

use super::{FoldInPlaceArgs, add, finish, segment_start};
use crate::ops::Number;

/// Rung 2: the same additions, by the first threads of the block.
///
/// Thread `t` adds at `2 * stride * t`, so the threads that work are neighbours, and warps without work skip the step.
/// The addresses are as far apart as in rung 1. **Saves:** divergence. **Counters:** lanes active, load efficiency
/// (still a quarter).
///
/// Source: seed 000's table, second row. (The seed swaps the names of the first two kernels.)
#[kernel(instances = [f32, i32])]
pub fn neighbored_less<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(1);
    let thread = thread::thread_idx_x() as usize;
    let block = thread::block_dim_x() as usize;

    let mut stride = 1;
    while stride < block {
        let left = 2 * stride * thread;
        if left < block {
            add(&data, start + left, start + left + stride);
        }
        thread::sync_threads();
        stride *= 2;
    }
    finish(&data, &partials, start);
}
