//! The ladder's sums, each without one of the barriers that it needs.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_down};
use warpfold::Check::{GlobalRace, SharedRace};

use super::Expected::Finding;
use super::{Case, case, map};

const BLOCK: usize = 256;

pub fn cases() -> Vec<Case> {
    vec![
        case!(no_barrier_after_the_load, Finding(SharedRace), |gpu| map!(gpu, no_barrier_after_the_load, 4, 256, 1024)),
        case!(divergent_modulo, Finding(SharedRace), |gpu| map!(gpu, divergent_modulo, 4, 256, 1024)),
        case!(strided_index, Finding(SharedRace), |gpu| map!(gpu, strided_index, 4, 256, 1024)),
        case!(sequential, Finding(SharedRace), |gpu| map!(gpu, sequential, 4, 256, 1024)),
        case!(first_add_on_load, Finding(SharedRace), |gpu| map!(gpu, first_add_on_load, 2, 256, 1024)),
        case!(unroll_last_warp, Finding(SharedRace), |gpu| map!(gpu, unroll_last_warp, 4, 256, 1024)),
        case!(tail_in_lockstep, Finding(SharedRace), |gpu| map!(gpu, tail_in_lockstep, 4, 256, 1024)),
        case!(tail_with_half_of_its_barriers, Finding(SharedRace), |gpu| {
            map!(gpu, tail_with_half_of_its_barriers, 4, 256, 1024)
        }),
        case!(complete_unroll, Finding(SharedRace), |gpu| map!(gpu, complete_unroll, 4, 256, 1024)),
        case!(grid_stride, Finding(SharedRace), |gpu| map!(gpu, grid_stride, 2, 256, 1024)),
        case!(warp_shuffle, Finding(SharedRace), |gpu| map!(gpu, warp_shuffle, 4, 256, 1024)),
        case!(scratch_reused_without_a_barrier, Finding(SharedRace), |gpu| map!(
            gpu,
            scratch_reused_without_a_barrier,
            4,
            256,
            1024
        )),
        case!(neighbored, Finding(GlobalRace), |gpu| {
            let mut numbers = gpu.upload(&[1.0_f32; 1024])?;
            gpu.launch(neighbored::handle().with_block(256), 4, neighbored::Args { numbers: numbers.view_mut() })
        }),
        case!(interleaved, Finding(GlobalRace), |gpu| {
            let mut numbers = gpu.upload(&[1.0_f32; 1024])?;
            gpu.launch(interleaved::handle().with_block(256), 4, interleaved::Args { numbers: numbers.view_mut() })
        }),
        case!(volatile_tail_in_global_memory, Finding(GlobalRace), |gpu| {
            let mut numbers = gpu.upload(&[1.0_f32; 1024])?;
            gpu.launch(
                volatile_tail_in_global_memory::handle().with_block(32),
                4,
                volatile_tail_in_global_memory::Args { numbers: numbers.view_mut() },
            )
        }),
    ]
}

fn load_to(tile: &SharedArray<f32, BLOCK>, input: &Global<f32>) -> usize {
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    thread
}

fn store_sum(tile: &SharedArray<f32, BLOCK>, output: &GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        output.store(thread::block_idx_x() as usize, tile.load(0));
    }
}

/// Threads add elements that others may not have loaded yet.
#[kernel]
fn no_barrier_after_the_load(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    let mut stride = BLOCK / 2;
    while stride > 0 {
        if thread < stride {
            tile.store(thread, tile.load(thread) + tile.load(thread + stride));
        }
        thread::sync_threads();
        stride /= 2;
    }
    store_sum(&tile, &output);
}

/// Rung 1 without the barrier of its loop.
#[kernel]
fn divergent_modulo(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    let mut stride = 1;
    while stride < BLOCK {
        if thread.is_multiple_of(2 * stride) {
            tile.store(thread, tile.load(thread) + tile.load(thread + stride));
        }
        stride *= 2;
    }
    store_sum(&tile, &output);
}

/// Rung 2 without the barrier of its loop.
#[kernel]
fn strided_index(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    let mut stride = 1;
    while stride < BLOCK {
        let left = 2 * stride * thread;
        if left < BLOCK {
            tile.store(left, tile.load(left) + tile.load(left + stride));
        }
        stride *= 2;
    }
    store_sum(&tile, &output);
}

/// Rung 3 without the barrier of its loop.
#[kernel]
fn sequential(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    let mut stride = BLOCK / 2;
    while stride > 0 {
        if thread < stride {
            tile.store(thread, tile.load(thread) + tile.load(thread + stride));
        }
        stride /= 2;
    }
    store_sum(&tile, &output);
}

/// Rung 4 without a barrier after the load: the addition before the store is no barrier.
#[kernel]
fn first_add_on_load(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    let first = thread::block_idx_x() as usize * 2 * BLOCK + thread;
    tile.store(thread, input.load(first) + input.load(first + BLOCK));
    if thread < BLOCK / 2 {
        tile.store(thread, tile.load(thread) + tile.load(thread + BLOCK / 2));
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

/// Rung 5: the first warp folds the last 64 elements, but the second warp writes half of them, without a barrier.
#[kernel]
fn unroll_last_warp(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    if thread < 32 {
        let sum = tile.load_volatile(thread) + tile.load_volatile(thread + 32);
        warp::sync_warp(FULL_MASK);
        tile.store_volatile(thread, sum);
        warp::sync_warp(FULL_MASK);
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

/// The tail of seeds 000 and 002: volatile, on the assumption that lanes run in lockstep.
#[kernel]
fn tail_in_lockstep(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    if thread < 32 {
        for stride in [32, 16, 8, 4, 2, 1] {
            tile.store_volatile(thread, tile.load_volatile(thread) + tile.load_volatile(thread + stride));
        }
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

/// A barrier after each write, but none between a lane's read and its neighbour's write.
#[kernel]
fn tail_with_half_of_its_barriers(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    if thread < 32 {
        for stride in [32, 16, 8, 4, 2, 1] {
            tile.store_volatile(thread, tile.load_volatile(thread) + tile.load_volatile(thread + stride));
            warp::sync_warp(FULL_MASK);
        }
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

/// Rung 6: one of the unrolled steps has lost its barrier.
#[kernel]
fn complete_unroll(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = load_to(&tile, &input);
    thread::sync_threads();
    if thread < 128 {
        tile.store(thread, tile.load(thread) + tile.load(thread + 128));
    }
    if thread < 64 {
        tile.store(thread, tile.load(thread) + tile.load(thread + 64));
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

/// Rung 7: no barrier between the loop over the input and the fold.
#[kernel]
fn grid_stride(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    let mut i = thread::index_1d_wide();
    let mut sum = 0.0;
    while i < input.len() {
        sum += input.load(i);
        i += BLOCK * thread::grid_dim_x() as usize;
    }
    tile.store(thread, sum);
    if thread < 128 {
        tile.store(thread, tile.load(thread) + tile.load(thread + 128));
    }
    thread::sync_threads();
    store_sum(&tile, &output);
}

fn sum_of_warp(mut sum: f32) -> f32 {
    for delta in [16, 8, 4, 2, 1] {
        sum += warp_shuffle_down(FULL_MASK, sum, delta, 32).0;
    }
    sum
}

/// Rung 8: warps store their sums, and the first warp loads them without a barrier.
#[kernel]
fn warp_shuffle(input: Global<f32>, output: GlobalMut<f32>) {
    let sums = shared_array![f32; 8];
    let thread = thread::thread_idx_x() as usize;
    let sum = sum_of_warp(input.load(thread::index_1d_wide()));
    if thread.is_multiple_of(32) {
        sums.store(thread / 32, sum);
    }
    if thread == 0 {
        let total = (0..8).fold(0.0, |total, warp| total + sums.load(warp));
        output.store(thread::block_idx_x() as usize, total);
    }
}

/// The second sum's warps write to the scratch memory while the first sum is still being read.
#[kernel]
fn scratch_reused_without_a_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    let sums = shared_array![f32; 8];
    let thread = thread::thread_idx_x() as usize;
    let number = input.load(thread::index_1d_wide());
    let mut total = 0.0;
    for power in [number, number * number] {
        let sum = sum_of_warp(power);
        if thread.is_multiple_of(32) {
            sums.store(thread / 32, sum);
        }
        thread::sync_threads();
        if thread == 0 {
            total += (0..8).fold(0.0, |total, warp| total + sums.load(warp));
        }
    }
    if thread == 0 {
        output.store(thread::block_idx_x() as usize, total);
    }
}

/// Rung 1 of the ladder in global memory, without the barrier of its loop.
#[kernel]
fn neighbored(numbers: GlobalMut<f32>) {
    let (thread, i) = (thread::thread_idx_x() as usize, thread::index_1d_wide());
    let mut stride = 1;
    while stride < BLOCK {
        if thread.is_multiple_of(2 * stride) {
            numbers.store(i, numbers.load(i) + numbers.load(i + stride));
        }
        stride *= 2;
    }
}

/// Rung 3 of the ladder in global memory: `sync_warp` where the block's barrier belongs.
#[kernel]
fn interleaved(numbers: GlobalMut<f32>) {
    let (thread, i) = (thread::thread_idx_x() as usize, thread::index_1d_wide());
    let mut stride = BLOCK / 2;
    while stride > 0 {
        if thread < stride {
            numbers.store(i, numbers.load(i) + numbers.load(i + stride));
        }
        warp::sync_warp(FULL_MASK);
        stride /= 2;
    }
}

/// Seed 000's tail, which relies on lanes in lockstep.
#[kernel]
fn volatile_tail_in_global_memory(numbers: GlobalMut<f32>) {
    let (lane, i) = (thread::thread_idx_x(), thread::index_1d_wide());
    for stride in [16, 8, 4, 2, 1] {
        if lane < stride {
            numbers.store_volatile(i, numbers.load_volatile(i) + numbers.load_volatile(i + stride as usize));
        }
    }
}
