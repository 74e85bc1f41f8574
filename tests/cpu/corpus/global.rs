//! Races in global memory.

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use warpfold::Check::{GlobalRace, Scope as NarrowScope};

use super::Expected::Finding;
use super::{Case, case, map};

pub fn cases() -> Vec<Case> {
    vec![
        case!(sum_without_atomics, Finding(GlobalRace), |gpu| map!(gpu, sum_without_atomics, 4, 64, 256)),
        case!(all_write_the_result, Finding(GlobalRace), |gpu| map!(gpu, all_write_the_result, 4, 64, 256)),
        case!(one_too_many, Finding(GlobalRace), |gpu| map!(gpu, one_too_many, 4, 64, 256)),
        case!(stencil_of_blocks, Finding(GlobalRace), |gpu| {
            let mut numbers = gpu.upload(&[1.0_f32; 256])?;
            gpu.launch(
                stencil_of_blocks::handle().with_block(64),
                4,
                stencil_of_blocks::Args { numbers: numbers.view_mut() },
            )
        }),
        case!(reversed_in_place, Finding(GlobalRace), |gpu| {
            let mut numbers = gpu.upload(&[1.0_f32; 256])?;
            gpu.launch(
                reversed_in_place::handle().with_block(64),
                4,
                reversed_in_place::Args { numbers: numbers.view_mut() },
            )
        }),
        case!(atomics_beside_a_store, Finding(GlobalRace), |gpu| {
            let mut count = gpu.zeroed::<u32>(1)?;
            gpu.launch(
                atomics_beside_a_store::handle().with_block(64),
                2,
                atomics_beside_a_store::Args { count: count.view_mut() },
            )
        }),
        case!(block_atomics_across_blocks, Finding(NarrowScope), |gpu| {
            let mut count = gpu.zeroed::<u32>(1)?;
            gpu.launch(
                block_atomics_across_blocks::handle().with_block(64),
                2,
                block_atomics_across_blocks::Args { count: count.view_mut() },
            )
        }),
        case!(load_beside_atomics, Finding(GlobalRace), |gpu| {
            let (mut count, mut output) = (gpu.zeroed::<u32>(1)?, gpu.zeroed::<u32>(128)?);
            let arguments = load_beside_atomics::Args { count: count.view_mut(), output: output.view_mut() };
            gpu.launch(load_beside_atomics::handle().with_block(64), 2, arguments)
        }),
        case!(vectors_that_overlap, Finding(GlobalRace), |gpu| map!(gpu, vectors_that_overlap, 1, 32, 256)),
    ]
}

/// Every thread adds to the same element.
#[kernel]
fn sum_without_atomics(input: Global<f32>, output: GlobalMut<f32>) {
    output.store(0, output.load(0) + input.load(thread::index_1d_wide()));
}

/// All blocks store to the same element.
#[kernel]
fn all_write_the_result(input: Global<f32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        output.store(0, input.load(thread::index_1d_wide()));
    }
}

/// Each block's segment is one element too long.
#[kernel]
fn one_too_many(input: Global<f32>, output: GlobalMut<f32>) {
    let first = thread::block_idx_x() as usize * 64;
    let mut i = thread::thread_idx_x() as usize;
    while i <= 64 {
        if first + i < output.len() {
            output.store(first + i, input.load(first + i));
        }
        i += 64;
    }
}

/// The barrier waits for the block, but the neighbour's element belongs to another block.
#[kernel]
fn stencil_of_blocks(numbers: GlobalMut<f32>) {
    let i = thread::index_1d_wide();
    let left = if i > 0 { numbers.load(i - 1) } else { 0.0 };
    thread::sync_threads();
    numbers.store(i, left + numbers.load(i));
}

/// Each thread swaps its element with the one at the opposite end, and so does the thread there.
#[kernel]
fn reversed_in_place(numbers: GlobalMut<f32>) {
    let i = thread::index_1d_wide();
    numbers.store(numbers.len() - 1 - i, numbers.load(i));
}

/// One thread resets the counter while others count.
#[kernel]
fn atomics_beside_a_store(count: GlobalMut<u32>) {
    if thread::index_1d() == 0 {
        count.store(0, 0);
    }
    u32::fetch_add(&count, 0, 1, Scope::Device);
}

/// The atomics have block scope, but two blocks count.
#[kernel]
fn block_atomics_across_blocks(count: GlobalMut<u32>) {
    u32::fetch_add(&count, 0, 1, Scope::Block);
}

/// An ordinary load concurrent with atomics.
#[kernel]
fn load_beside_atomics(count: GlobalMut<u32>, output: GlobalMut<u32>) {
    u32::fetch_add(&count, 0, 1, Scope::Device);
    output.store(thread::index_1d_wide(), count.load(0));
}

/// Vectors are four bytes too close, so each overlaps the next.
#[kernel]
fn vectors_that_overlap(input: Global<f32>, output: GlobalMut<f32>) {
    let lane = thread::thread_idx_x() as usize;
    output.store_vector(lane / 2 * 4, input.load_vector(4 * lane));
}
