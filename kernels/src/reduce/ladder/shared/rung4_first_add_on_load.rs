use cuda_std::prelude::*;

use crate::ops::Number;

/// Rung 4: each thread loads two elements and adds them on the way to shared memory.
///
/// In the rung before, half of the threads load one element and are done. Here a block takes `2 * BLOCK` elements: half
/// as many blocks, each thread with two independent loads in flight, and the first step of the fold costs neither a
/// barrier nor shared memory. **Saves:** idle threads, half of the blocks. **Counter:** bytes in flight per thread.
///
/// Source: seed 002, "remove idle threads".
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn first_add_on_load<T: Number, const BLOCK: usize>(input: Global<T>, partials: GlobalMut<T>) {
    let tile = shared_array![T; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    let block = thread::block_idx_x() as usize;

    let first = block * (2 * BLOCK) + thread;
    tile.store(thread, input.load_or(first, T::NEUTRAL).plus(input.load_or(first + BLOCK, T::NEUTRAL)));
    thread::sync_threads();

    let mut stride = BLOCK / 2;
    while stride > 0 {
        if thread < stride {
            tile.store(thread, tile.load(thread).plus(tile.load(thread + stride)));
        }
        thread::sync_threads();
        stride /= 2;
    }

    if thread == 0 {
        partials.store(block, tile.load(0));
    }
}
