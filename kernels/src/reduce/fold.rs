//! Folds of the states of lanes, warps and blocks. Their shape depends on the block's size and on the numbers of lanes
//! and partials, not on which lane or block is first.

use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_down_plain};

use crate::ops::{Operator, constant};

/// One entry for each warp that a block can have.
pub type WarpStates<S> = SharedArray<S, 32>;

/// The state over each group of `lanes` lanes, a power of two up to 32, in the group's first lane. All lanes of the
/// warp must call this.
#[inline(always)]
pub fn fold_lanes<O: Operator<T>, T: Element>(state: O::State, lanes: u32) -> O::State {
    let mut state = state;
    let mut delta = lanes / 2;
    while delta > 0 {
        // A group's last lanes combine states of the next group, but their results do not reach the group's first lane.
        state = O::combine(state, warp_shuffle_down_plain(FULL_MASK, state, delta, 32));
        delta /= 2;
    }
    state
}

/// The state over the first `warps` warps of a one-dimensional block, in thread 0; other warps' states are ignored. All
/// threads must call this, with a barrier between two uses of `scratch`. With `others_leave`, those of other warps then
/// do nothing more: see [`thread::sync_threads_or_leave`].
#[inline(always)]
pub fn fold_warps<O: Operator<T>, T: Element>(
    state: O::State,
    warps: u32,
    scratch: &WarpStates<O::State>,
    others_leave: bool,
) -> O::State {
    let thread = thread::thread_idx_x();
    let state = fold_lanes::<O, T>(state, 32);
    if warps == 1 {
        return state;
    }
    if thread.is_multiple_of(32) {
        scratch.store(thread as usize / 32, state);
    }
    thread::sync_threads_or_leave(thread < 32 || !others_leave);
    let own = if thread < warps { scratch.load(thread as usize) } else { constant!(O::NEUTRAL) };
    if thread < 32 { fold_lanes::<O, T>(own, warps.next_power_of_two()) } else { own }
}

/// Whether this block is the last of `blocks` to call this. The last block sees all that the other blocks wrote before
/// their calls. All threads of the block must call this. `tickets[ticket]` is 0 before the first call, and again after
/// the last.
///
/// The first thread's fence covers the whole block: the other threads' writes precede the barrier, and the barrier
/// precedes the fence.
///
/// Source: `threadFenceReduction` in NVIDIA's samples; PTX ISA, "Memory Consistency Model", on fences being cumulative.
#[inline(always)]
pub fn is_last_block(
    tickets: &GlobalMut<u32>,
    ticket: usize,
    blocks: u32,
    shared_ticket: &SharedArray<u32, 1>,
) -> bool {
    thread::sync_threads();
    if thread::thread_idx_x() == 0 {
        atomic::fence(Scope::Device);
        shared_ticket.store(0, atomic::inc(tickets, ticket, blocks - 1, Scope::Device));
        atomic::fence(Scope::Device);
    }
    thread::sync_threads();
    shared_ticket.load(0) == blocks - 1
}
