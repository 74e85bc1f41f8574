//! How the states of lanes, warps and blocks become one. The shape is fixed: by the block's size, the number of lanes and
//! the number of partials, never by which of them is first.

use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_down_plain};

use crate::ops::Operator;

/// One place for each warp that a block can have.
pub type WarpStates<S> = SharedArray<S, 32>;

/// The state over groups of `lanes` lanes, a power of two up to 32, in each group's first. All lanes of the warp come here.
#[inline(always)]
pub fn fold_lanes<O: Operator<T>, T: Element>(state: O::State, lanes: u32) -> O::State {
    let mut state = state;
    let mut delta = lanes / 2;
    while delta > 0 {
        // A group's last lanes take in what is not theirs; no lane that the first one folds is among them.
        state = O::combine(state, warp_shuffle_down_plain(FULL_MASK, state, delta, 32));
        delta /= 2;
    }
    state
}

/// The state over a block of one dimension, of whole warps, in thread 0. A barrier must stand between two uses of
/// `scratch`.
#[inline(always)]
pub fn fold_block<O: Operator<T>, T: Element>(state: O::State, scratch: &WarpStates<O::State>) -> O::State {
    let thread = thread::thread_idx_x() as usize;
    let warps = thread::block_dim_x() as usize / 32;
    let state = fold_lanes::<O, T>(state, 32);
    if thread.is_multiple_of(32) {
        scratch.store(thread / 32, state);
    }
    thread::sync_threads();
    let own = if thread < warps { scratch.load(thread) } else { O::NEUTRAL };
    if thread < 32 { fold_lanes::<O, T>(own, 32) } else { own }
}

/// Whether this block is the last of `blocks` to come here: then it sees all that the others have written before. All
/// threads of the block come here; `ticket` in `tickets` is 0 before, and again after the last.
///
/// Source: `threadFenceReduction` in NVIDIA's samples.
#[inline(always)]
pub fn is_last_block(tickets: &GlobalMut<u32>, ticket: usize, blocks: u32, drawn: &SharedArray<u32, 1>) -> bool {
    thread::device_fence();
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        drawn.store(0, atomic::inc(tickets, ticket, blocks - 1, Scope::Device));
    }
    thread::sync_threads();
    let is_last = drawn.load(0) == blocks - 1;
    thread::device_fence();
    is_last
}
