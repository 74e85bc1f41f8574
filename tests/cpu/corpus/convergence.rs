//! Barriers and warp operations that some threads do not reach, or not together.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, activemask, sync_warp, warp_shuffle_down, warp_shuffle_idx, warp_vote_ballot};
use warpfold::Check::{DivergentBarrier, DivergentWarp, MissingLane, WrongMask};

use super::Expected::{Fault, Finding, FindingAndFault};
use super::{Case, case, map};

pub fn cases() -> Vec<Case> {
    vec![
        case!(barrier_of_one_warp, Fault("never reach"), |gpu| map!(gpu, barrier_of_one_warp, 1, 64, 64)),
        case!(return_before_the_barrier, Fault("never reach"), |gpu| map!(gpu, return_before_the_barrier, 2, 64, 100)),
        case!(a_barrier_in_each_branch, Finding(DivergentBarrier), |gpu| map!(
            gpu,
            a_barrier_in_each_branch,
            1,
            64,
            64
        )),
        case!(barriers_of_two_kinds, Fault("another kind of barrier"), |gpu| map!(
            gpu,
            barriers_of_two_kinds,
            1,
            64,
            64
        )),
        case!(barrier_in_a_divergent_loop, Fault("never reach"), |gpu| {
            map!(gpu, barrier_in_a_divergent_loop, 1, 64, 64)
        }),
        case!(barrier_after_leaving, Fault("it waits after it has left"), |gpu| {
            map!(gpu, barrier_after_leaving, 1, 64, 64)
        }),
        case!(store_after_leaving, Fault("it accesses memory after it has left"), |gpu| {
            map!(gpu, store_after_leaving, 1, 64, 64)
        }),
        case!(shuffle_beyond_the_mask, Finding(MissingLane), |gpu| map!(gpu, shuffle_beyond_the_mask, 1, 32, 32)),
        case!(shuffle_beyond_the_block, Finding(MissingLane), |gpu| map!(gpu, shuffle_beyond_the_block, 1, 40, 40)),
        case!(shuffle_in_a_branch, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            shuffle_in_a_branch,
            1,
            32,
            32
        )),
        case!(shuffle_after_a_return, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            shuffle_after_a_return,
            1,
            32,
            20
        )),
        case!(a_shuffle_in_each_branch, Finding(DivergentWarp), |gpu| map!(gpu, a_shuffle_in_each_branch, 1, 32, 32)),
        case!(not_in_its_own_mask, Fault("is not in the mask"), |gpu| map!(gpu, not_in_its_own_mask, 1, 32, 32)),
        case!(masks_that_differ, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            masks_that_differ,
            1,
            32,
            32
        )),
        case!(vote_in_a_branch, FindingAndFault(WrongMask, "waits for"), |gpu| map!(gpu, vote_in_a_branch, 1, 32, 32)),
        case!(stale_active_mask, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            stale_active_mask,
            1,
            32,
            32
        )),
        case!(
            full_mask_after_lanes_returned,
            FindingAndFault(WrongMask, "threads 20-31, which never reach it"),
            |gpu| { map!(gpu, full_mask_after_lanes_returned, 1, 32, 20) }
        ),
        case!(lane_in_both_masks, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            lane_in_both_masks,
            1,
            32,
            32
        )),
        case!(divergent_iterations, FindingAndFault(WrongMask, "waits for"), |gpu| map!(
            gpu,
            divergent_iterations,
            1,
            32,
            32
        )),
        case!(warp_and_block, FindingAndFault(WrongMask, "waits for"), |gpu| map!(gpu, warp_and_block, 1, 64, 64)),
        case!(stale_ballot_after_a_return, FindingAndFault(WrongMask, "waits for"), |gpu| {
            map!(gpu, stale_ballot_after_a_return, 1, 32, 32)
        }),
        case!(width_not_a_power_of_two, Fault("a shuffle of width 24"), |gpu| {
            map!(gpu, width_not_a_power_of_two, 1, 32, 32)
        }),
    ]
}

fn copy(input: &Global<f32>, output: &GlobalMut<f32>) {
    output.store(thread::index_1d_wide(), input.load(thread::index_1d_wide()));
}

/// Half of the block never reaches the barrier.
#[kernel]
fn barrier_of_one_warp(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() < 32 {
        thread::sync_threads();
    }
    copy(&input, &output);
}

/// The last block's idle threads return before the barrier.
#[kernel]
fn return_before_the_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::index_1d_wide() >= input.len() {
        return;
    }
    thread::sync_threads();
    copy(&input, &output);
}

/// Each branch waits at its own barrier.
#[kernel]
#[allow(clippy::if_same_then_else, reason = "that is the mistake")]
fn a_barrier_in_each_branch(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x().is_multiple_of(2) {
        thread::sync_threads();
    } else {
        thread::sync_threads();
    }
    copy(&input, &output);
}

/// One branch counts, the other only waits.
#[kernel]
fn barriers_of_two_kinds(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() < 32 {
        thread::sync_threads_count(1);
    } else {
        thread::sync_threads();
    }
    copy(&input, &output);
}

/// Threads have different numbers of iterations, with a barrier in each.
#[kernel]
fn barrier_in_a_divergent_loop(input: Global<f32>, output: GlobalMut<f32>) {
    let mut i = thread::thread_idx_x();
    while i < 96 {
        thread::sync_threads();
        i += 64;
    }
    copy(&input, &output);
}

/// Threads that have left meet the others once more.
#[kernel]
fn barrier_after_leaving(input: Global<f32>, output: GlobalMut<f32>) {
    copy(&input, &output);
    thread::sync_threads_or_leave(thread::thread_idx_x() < 32);
    thread::sync_threads();
}

/// Threads store their elements when they have left.
#[kernel]
fn store_after_leaving(input: Global<f32>, output: GlobalMut<f32>) {
    thread::sync_threads_or_leave(thread::thread_idx_x() < 32);
    copy(&input, &output);
}

/// Lanes 0 to 15 read lanes 8 to 23.
#[kernel]
fn shuffle_beyond_the_mask(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    if lane < 16 {
        output.store(lane, warp_shuffle_down(0xFFFF, input.load(lane), 8, 32).0);
    }
}

/// The second warp has eight lanes.
#[kernel]
fn shuffle_beyond_the_block(input: Global<f32>, output: GlobalMut<f32>) {
    let mut sum = input.load(thread::index_1d_wide());
    for delta in [16, 8, 4, 2, 1] {
        sum += warp_shuffle_down(FULL_MASK, sum, delta, 32).0;
    }
    output.store(thread::index_1d_wide(), sum);
}

/// The full mask, in a branch that only half of the lanes take.
#[kernel]
fn shuffle_in_a_branch(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    if lane < 16 {
        output.store(lane, warp_shuffle_down(FULL_MASK, input.load(lane), 16, 32).0);
    }
}

/// Lanes past the end have returned.
#[kernel]
fn shuffle_after_a_return(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    if lane >= input.len() {
        return;
    }
    output.store(lane, warp_shuffle_idx(FULL_MASK, input.load(lane), 0, 32).0);
}

/// Lanes exchange values across branches.
#[kernel]
fn a_shuffle_in_each_branch(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    let own = input.load(lane);
    let other =
        if lane < 16 { warp_shuffle_idx(FULL_MASK, own, 16, 32).0 } else { warp_shuffle_idx(FULL_MASK, own, 0, 32).0 };
    output.store(lane, other);
}

/// The mask contains the lower half, but all lanes use it.
#[kernel]
fn not_in_its_own_mask(input: Global<f32>, output: GlobalMut<f32>) {
    sync_warp(0x0000_FFFF);
    copy(&input, &output);
}

/// Each lane's mask names itself and the lane above.
#[kernel]
fn masks_that_differ(input: Global<f32>, output: GlobalMut<f32>) {
    sync_warp(3_u32.rotate_left(thread::thread_idx_x()));
    copy(&input, &output);
}

/// The vote names all lanes, but only some vote.
#[kernel]
fn vote_in_a_branch(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    if !lane.is_multiple_of(3) {
        output.store(lane, warp_vote_ballot(FULL_MASK, input.load(lane) > 4.0) as f32);
    }
}

/// An old active mask, after the active lanes have changed.
#[kernel]
fn stale_active_mask(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    let mask = activemask();
    if lane < 16 {
        output.store(lane, warp_shuffle_idx(mask, input.load(lane), 0, 32).0);
    }
}

/// `sync_warp` of a whole warp, part of which has returned.
#[kernel]
fn full_mask_after_lanes_returned(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::index_1d_wide() >= input.len() {
        return;
    }
    sync_warp(FULL_MASK);
    copy(&input, &output);
}

/// Both branches' masks contain lane 16.
#[kernel]
fn lane_in_both_masks(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    let is_large = input.load(lane) > 4.0;
    let votes =
        if lane < 16 { warp_vote_ballot(0x0001_FFFF, is_large) } else { warp_vote_ballot(0xFFFF_0000, !is_large) };
    output.store(lane, votes as f32);
}

/// Lanes that are done wait after the loop for the others, which shuffle from them inside the loop.
#[kernel]
fn divergent_iterations(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    let mut sum = 0.0;
    for _ in 0..=lane % 4 {
        sum += warp_shuffle_idx(FULL_MASK, input.load(lane), 0, 32).0;
    }
    sync_warp(FULL_MASK);
    output.store(lane, sum);
}

/// One half of the warp waits for the other, which waits for the block.
#[kernel]
fn warp_and_block(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() % 32 < 16 {
        sync_warp(FULL_MASK);
    }
    thread::sync_threads();
    copy(&input, &output);
}

/// The mask is from before some of its lanes returned.
#[kernel]
fn stale_ballot_after_a_return(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    let asked = warp_vote_ballot(FULL_MASK, lane < 24);
    if lane >= 16 {
        return;
    }
    output.store(lane, warp_shuffle_down(asked, input.load(lane), 1, 32).0);
}

/// A segment width must be a power of two.
#[kernel]
fn width_not_a_power_of_two(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    output.store(lane, warp_shuffle_down(FULL_MASK, input.load(lane), 1, 24).0);
}
