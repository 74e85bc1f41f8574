use cuda_std::prelude::*;

use super::{FoldInPlaceArgs, add, finish, segment_start};
use crate::ops::Number;

/// Rung 1: thread `t` adds its neighbour at distance 1, 2, 4, ... if `t` is a multiple of twice the distance.
///
/// In the first step every second lane of each warp works, then every fourth: every warp runs every step, with fewer
/// and fewer active lanes. The active lanes are far apart, and so are their addresses. **Costs:** divergence, and only
/// a part of each loaded 32-byte sector is used. **Counters:** lanes active, load efficiency (the seed: 25 %).
///
/// Source: seed 000's table, first row; the kernel is in the post before it.
#[kernel(instances = [f32, i32])]
pub fn neighbored<T: Number>(FoldInPlaceArgs { data, partials }: FoldInPlaceArgs<T>) {
    let start = segment_start(1);
    let thread = thread::thread_idx_x() as usize;
    let block = thread::block_dim_x() as usize;

    let mut stride = 1;
    while stride < block {
        if thread.is_multiple_of(2 * stride) {
            add(&data, start + thread, start + thread + stride);
        }
        thread::sync_threads();
        stride *= 2;
    }
    finish(&data, &partials, start);
}
