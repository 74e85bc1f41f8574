use cuda_std::prelude::*;

use super::FoldArgs;
use super::block_segment::{load_one, store_first};
use crate::ops::Number;

/// Rung 2: the same additions, by the first threads of the block instead of scattered ones.
///
/// Thread `t` adds at index `2 * stride * t`. The working threads are neighbours, so whole warps work or do not: no
/// warp diverges until fewer than 32 threads are left. But the lanes of a warp now read at a distance of `2 * stride`,
/// which is 2, 4, ... 32 words, so that several lanes access the same bank. **Saves:** idle lanes. **Costs:** bank
/// conflicts: 2-, 4- and 8-way in the first steps, fewer when fewer lanes are left (a block of 1024 has one step with
/// 32-way conflicts). **Counter:** bank conflicts.
///
/// Source: seed 003, `reduce1`.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn strided_index<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    load_one(&tile, &input);

    let mut stride = 1;
    while stride < BLOCK {
        let left = 2 * stride * thread;
        if left < BLOCK {
            tile.store(left, tile.load(left).plus(tile.load(left + stride)));
        }
        thread::sync_threads();
        stride *= 2;
    }

    store_first(&tile, &partials);
}
