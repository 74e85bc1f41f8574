//! Races in shared memory.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_down};
use warpfold::Check::SharedRace;

use super::Expected::{Finding, FindingAndFault};
use super::{Case, case, map};

const BLOCK: usize = 128;

pub fn cases() -> Vec<Case> {
    vec![
        case!(broadcast, Finding(SharedRace), |gpu| map!(gpu, broadcast, 2, 128, 256)),
        case!(histogram, Finding(SharedRace), |gpu| map!(gpu, histogram, 2, 128, 256)),
        case!(stencil, Finding(SharedRace), |gpu| map!(gpu, stencil, 2, 128, 256)),
        case!(stencil_in_place, Finding(SharedRace), |gpu| map!(gpu, stencil_in_place, 2, 128, 256)),
        case!(scan_with_one_barrier, Finding(SharedRace), |gpu| map!(gpu, scan_with_one_barrier, 2, 128, 256)),
        case!(warp_barrier_between_warps, Finding(SharedRace), |gpu| {
            map!(gpu, warp_barrier_between_warps, 2, 128, 256)
        }),
        case!(barrier_of_half_a_warp, Finding(SharedRace), |gpu| map!(gpu, barrier_of_half_a_warp, 2, 32, 64)),
        case!(shuffle_as_a_barrier, Finding(SharedRace), |gpu| map!(gpu, shuffle_as_a_barrier, 2, 32, 64)),
        case!(double_buffer_switched_too_late, Finding(SharedRace), |gpu| map!(
            gpu,
            double_buffer_switched_too_late,
            2,
            128,
            256
        )),
        case!(bytes_that_overlap, Finding(SharedRace), |gpu| map!(gpu, bytes_that_overlap, 1, 32, 32)),
        case!(dynamic, Finding(SharedRace), |gpu| {
            let mut output = gpu.zeroed::<f32>(256)?;
            gpu.launch(
                dynamic::handle().with_block(128).with_dynamic_shared(512),
                2,
                dynamic::Args { output: output.view_mut() },
            )
        }),
        case!(race_before_a_wrong_index, FindingAndFault(SharedRace, "index 128 of a shared array"), |gpu| {
            map!(gpu, race_before_a_wrong_index, 3, 128, 384)
        }),
        case!(
            race_before_an_incomplete_barrier,
            FindingAndFault(SharedRace, "which threads 32-127 never reach"),
            |gpu| { map!(gpu, race_before_an_incomplete_barrier, 2, 128, 256) }
        ),
        case!(atomics_beside_a_load, Finding(SharedRace), |gpu| map!(gpu, atomics_beside_a_load, 2, 64, 128)),
        case!(store_beside_atomics, Finding(SharedRace), |gpu| map!(gpu, store_beside_atomics, 2, 64, 128)),
        case!(fence_as_a_barrier, Finding(SharedRace), |gpu| map!(gpu, fence_as_a_barrier, 2, 128, 256)),
    ]
}

/// Threads read the first thread's word before it is written.
#[kernel]
fn broadcast(input: Global<f32>, output: GlobalMut<f32>) {
    let word = shared_array![f32; 1];
    if thread::thread_idx_x() == 0 {
        word.store(0, input.load(0));
    }
    output.store(thread::index_1d_wide(), word.load(0));
}

/// Threads count in one element without atomics.
#[kernel]
fn histogram(input: Global<f32>, output: GlobalMut<f32>) {
    let counts = shared_array![u32; 8];
    let thread = thread::thread_idx_x() as usize;
    if thread < 8 {
        counts.store(thread, 0);
    }
    thread::sync_threads();
    let bin = input.load(thread::index_1d_wide()) as usize % 8;
    counts.store(bin, counts.load(bin) + 1);
    thread::sync_threads();
    output.store(thread::index_1d_wide(), counts.load(bin) as f32);
}

/// Neighbours' elements are read before they are written.
#[kernel]
fn stencil(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    let left = if thread > 0 { tile.load(thread - 1) } else { 0.0 };
    output.store(thread::index_1d_wide(), left + tile.load(thread));
}

/// A thread overwrites an element that its neighbour still reads.
#[kernel]
fn stencil_in_place(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    thread::sync_threads();
    let left = if thread > 0 { tile.load(thread - 1) } else { 0.0 };
    tile.store(thread, left + tile.load(thread));
    thread::sync_threads();
    output.store(thread::index_1d_wide(), tile.load(thread));
}

/// A scan needs a barrier after the reads of a step as well as after its writes.
#[kernel]
fn scan_with_one_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    let mut distance = 1;
    while distance < BLOCK {
        thread::sync_threads();
        if thread >= distance {
            tile.store(thread, tile.load(thread) + tile.load(thread - distance));
        }
        distance *= 2;
    }
    thread::sync_threads();
    output.store(thread::index_1d_wide(), tile.load(thread));
}

/// Data written by another warp needs a block barrier.
#[kernel]
fn warp_barrier_between_warps(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    warp::sync_warp(FULL_MASK);
    output.store(thread::index_1d_wide(), tile.load(BLOCK - 1 - thread));
}

/// The mask leaves out the half of the warp whose data are read.
#[kernel]
fn barrier_of_half_a_warp(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 32];
    let lane = thread::thread_idx_x() as usize;
    tile.store(lane, input.load(thread::index_1d_wide()));
    warp::sync_warp(if lane < 16 { 0x0000_FFFF } else { 0xFFFF_0000 });
    output.store(thread::index_1d_wide(), tile.load(31 - lane));
}

/// A shuffle synchronizes lanes, but orders no memory.
#[kernel]
fn shuffle_as_a_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; 32];
    let lane = thread::thread_idx_x() as usize;
    let own = input.load(thread::index_1d_wide());
    tile.store(lane, own);
    let (above, _) = warp_shuffle_down(FULL_MASK, own, 1, 32);
    output.store(thread::index_1d_wide(), above + tile.load(31 - lane));
}

/// Double buffering saves a barrier per iteration, but only if the other buffer is written.
#[kernel]
fn double_buffer_switched_too_late(input: Global<f32>, output: GlobalMut<f32>) {
    let buffers = shared_array![f32; 256];
    let thread = thread::index_in_block::<BLOCK>();
    let mut sum = 0.0;
    for round in 0..4 {
        let buffer = round / 2 % 2 * BLOCK;
        buffers.store(buffer + thread, input.load(thread::index_1d_wide()));
        thread::sync_threads();
        sum += buffers.load(buffer + BLOCK - 1 - thread);
    }
    output.store(thread::index_1d_wide(), sum);
}

/// Each lane writes two bytes, the second of which is its neighbour's.
#[kernel]
fn bytes_that_overlap(input: Global<f32>, output: GlobalMut<f32>) {
    let bytes = shared_array![u8; 33];
    let lane = thread::thread_idx_x() as usize;
    bytes.store(lane, input.load(lane) as u8);
    bytes.store(lane + 1, 0);
    warp::sync_warp(FULL_MASK);
    output.store(lane, f32::from(bytes.load(lane)));
}

/// Dynamic shared memory is shared as well.
#[kernel]
fn dynamic(output: GlobalMut<f32>) {
    let memory = cuda_std::shared::dynamic_shared::<f32>();
    let thread = thread::thread_idx_x() as usize;
    memory.store(thread, thread as f32);
    output.store(thread::index_1d_wide(), memory.load(memory.len() - 1 - thread));
}

/// A fence orders a thread's own accesses; it does not wait for other threads.
#[kernel]
fn fence_as_a_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    thread::block_fence();
    output.store(thread::index_1d_wide(), tile.load(BLOCK - 1 - thread));
}

/// Two mistakes, the second of which ends the launch.
#[kernel]
fn race_before_a_wrong_index(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    let other = tile.load(BLOCK - 1 - thread);
    thread::sync_threads();
    output.store(thread::index_1d_wide(), other + tile.load(thread + 1));
}

/// The second mistake is a barrier that most threads never reach.
#[kernel]
fn race_before_an_incomplete_barrier(input: Global<f32>, output: GlobalMut<f32>) {
    let tile = shared_array![f32; BLOCK];
    let thread = thread::index_in_block::<BLOCK>();
    tile.store(thread, input.load(thread::index_1d_wide()));
    output.store(thread::index_1d_wide(), tile.load(BLOCK - 1 - thread));
    if thread < 32 {
        thread::sync_threads();
    }
}

/// A load of a sum without a barrier after the atomic operations.
#[kernel]
fn atomics_beside_a_load(input: Global<f32>, output: GlobalMut<f32>) {
    let sum = shared_array![f32; 1];
    if thread::thread_idx_x() == 0 {
        sum.store(0, 0.0);
    }
    thread::sync_threads();
    sum.fetch_add(0, input.load(thread::index_1d_wide()));
    output.store(thread::index_1d_wide(), sum.load(0));
}

/// A sum is initialized without a barrier before the atomic operations.
#[kernel]
fn store_beside_atomics(input: Global<f32>, output: GlobalMut<f32>) {
    let sum = shared_array![f32; 1];
    if thread::thread_idx_x() == 0 {
        sum.store(0, 0.0);
    }
    sum.fetch_add(0, input.load(thread::index_1d_wide()));
    thread::sync_threads();
    output.store(thread::index_1d_wide(), sum.load(0));
}
