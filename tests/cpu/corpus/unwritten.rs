//! Reads of uninitialized shared memory.

use cuda_std::prelude::*;
use warpfold::Check::Unwritten;

use super::Expected::Finding;
use super::{Case, case, map};

pub fn cases() -> Vec<Case> {
    vec![
        case!(end_of_the_input, Finding(Unwritten), |gpu| map!(gpu, end_of_the_input, 2, 64, 100)),
        case!(sums_of_missing_warps, Finding(Unwritten), |gpu| map!(gpu, sums_of_missing_warps, 2, 64, 128)),
        case!(uninitialized_accumulator, Finding(Unwritten), |gpu| {
            map!(gpu, uninitialized_accumulator, 2, 64, 128)
        }),
        case!(halo, Finding(Unwritten), |gpu| map!(gpu, halo, 2, 64, 128)),
        case!(left_by_the_previous_block, Finding(Unwritten), |gpu| map!(gpu, left_by_the_previous_block, 8, 64, 512)),
        case!(atomics_on_uninitialized_memory, Finding(Unwritten), |gpu| map!(
            gpu,
            atomics_on_uninitialized_memory,
            2,
            64,
            128
        )),
        case!(half_of_a_vector, Finding(Unwritten), |gpu| map!(gpu, half_of_a_vector, 1, 32, 128)),
    ]
}

/// The last block loads fewer elements than it has threads, and folds one per thread.
#[kernel]
fn end_of_the_input(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let (thread, i) = (thread::thread_idx_x() as usize, thread::index_1d_wide());
    if i < input.len() {
        tile.store(thread, input.load(i));
    }
    thread::sync_threads();
    if thread == 0 {
        output.store(thread::block_idx_x() as usize, (0..64).fold(0.0, |sum, i| sum + tile.load(i)));
    }
}

/// Two warps store sums, and 32 are folded.
#[kernel]
fn sums_of_missing_warps(input: Global<f32>, output: GlobalMut<f32>) {
    let sums = shared_array![f32; 32];
    let thread = thread::thread_idx_x() as usize;
    if thread.is_multiple_of(32) {
        sums.store(thread / 32, input.load(thread::index_1d_wide()));
    }
    thread::sync_threads();
    if thread < 32 {
        output.store(thread::index_1d_wide(), sums.load(thread));
    }
}

/// A sum is accumulated without initialization.
#[kernel]
fn uninitialized_accumulator(input: Global<f32>, output: GlobalMut<f32>) {
    let sum = shared_array![f32; 1];
    if thread::thread_idx_x() == 0 {
        sum.store(0, sum.load(0) + input.load(thread::index_1d_wide()));
        output.store(thread::block_idx_x() as usize, sum.load(0));
    }
}

/// No thread loads the elements next to the block's own.
#[kernel]
fn halo(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 66];
    let thread = thread::thread_idx_x() as usize;
    tile.store(thread + 1, input.load(thread::index_1d_wide()));
    thread::sync_threads();
    output.store(thread::index_1d_wide(), tile.load(thread) + tile.load(thread + 2));
}

/// Shared memory does not outlive its block.
#[kernel]
fn left_by_the_previous_block(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 64];
    let thread = thread::thread_idx_x() as usize;
    if thread::block_idx_x() == 0 {
        tile.store(thread, input.load(thread));
    }
    thread::sync_threads();
    output.store(thread::index_1d_wide(), tile.load(thread));
}

/// Only half of every second vector is written.
#[kernel]
fn half_of_a_vector(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 128];
    let lane = thread::thread_idx_x() as usize;
    for i in 0..2 {
        tile.store(4 * lane + i, input.load(4 * lane + i));
    }
    warp::sync_warp(u32::MAX);
    output.store_vector(4 * lane, tile.load_vector(4 * lane));
}

/// Atomic operations add to an uninitialized element.
#[kernel]
fn atomics_on_uninitialized_memory(input: Global<f32>, output: GlobalMut<f32>) {
    let sum = shared_array![f32; 1];
    sum.fetch_add(0, input.load(thread::index_1d_wide()));
    thread::sync_threads();
    output.store(thread::index_1d_wide(), sum.load(0));
}
