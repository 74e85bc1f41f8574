use cuda_std::prelude::*;

use super::FoldArgs;
use super::block_segment::{load_one, store_first};
use crate::ops::Number;

/// Rung 1: thread `t` works in a step if `t` is a multiple of twice the stride.
///
/// In the first step every second lane of each warp works, in the second every fourth: each warp runs all steps with
/// fewer and fewer active lanes. (The `%` is free here: the block size is a compile-time constant, so the compiler
/// unrolls the loop and turns `%` into a mask.) The bodies are so small that `ptxas` predicates them: no branch
/// diverges, but the idle lanes cost the same as in a divergent branch. **Costs:** every warp runs every step.
/// **Counter:** lanes active.
///
/// Source: seed 003, `reduce0`.
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn divergent_modulo<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let tile = shared_array![T; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    load_one(&tile, &input);

    let mut stride = 1;
    while stride < BLOCK {
        if thread.is_multiple_of(2 * stride) {
            tile.store(thread, tile.load(thread).plus(tile.load(thread + stride)));
        }
        thread::sync_threads();
        stride *= 2;
    }

    store_first(&tile, &partials);
}
