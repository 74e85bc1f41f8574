//! The first loads and the last store of the rungs whose blocks have a contiguous segment each.
//!
//! A rung's file shows what the rung changes. Loading and the last store are the same in all rungs, and are here. A
//! function that a rung introduces is in that rung's file, even if later rungs use it (`load_two` in rung 4,
//! `fold_last_warp` in rung 5, ...).

use cuda_std::prelude::*;

use crate::ops::Number;

/// Loads the block's segment of `BLOCK` elements to `tile`, an element per thread, and waits at a barrier.
///
/// Always inlined, as is every function with a barrier: the compiler could move or copy a call.
#[inline(always)]
pub(super) fn load_one<T: Number, const BLOCK: usize>(tile: &SharedArray<T, BLOCK>, input: &Global<T>) {
    let thread = thread::index_in_block::<BLOCK>();
    let block = thread::block_idx_x() as usize;
    tile.store(thread, input.load_or(block * BLOCK + thread, T::NEUTRAL));
    thread::sync_threads();
}

/// Writes the block's sum, which is the first element of `tile` after the last barrier, to the block's index.
#[inline(always)]
pub(super) fn store_first<T: Number, const BLOCK: usize>(tile: &SharedArray<T, BLOCK>, partials: &GlobalMut<T>) {
    if thread::index_in_block::<BLOCK>() == 0 {
        partials.store(thread::block_idx_x() as usize, tile.load(0));
    }
}
