//! Missing order between blocks.
//!
//! In each of these kernels a block reads values that other blocks have written, without the necessary fence, ticket or
//! barrier.

use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;
use cuda_std::tile_state;
use warpfold::Check::{GlobalRace, Scope as NarrowScope, SharedRace};
use warpfold::{Error, Gpu};

use super::Expected::Finding;
use super::{Case, case};

const BLOCKS: u32 = 8;

/// Launches a kernel in which each block stores a partial sum, and the last block folds them.
macro_rules! fold {
    ($gpu:ident, $name:ident) => {{
        let (mut partials, mut ticket, mut output) = buffers($gpu)?;
        let (partials, ticket) = (partials.view_mut(), ticket.view_mut());
        let arguments = $name::Args { partials, ticket, output: output.view_mut() };
        $gpu.launch($name::handle().with_block(64), BLOCKS, arguments)
    }};
}

type Buffers = (warpfold::Buffer<f32>, warpfold::Buffer<u32>, warpfold::Buffer<f32>);

fn buffers(gpu: &Gpu) -> Result<Buffers, Error> {
    Ok((gpu.zeroed(BLOCKS as usize)?, gpu.zeroed(1)?, gpu.zeroed(1)?))
}

pub fn cases() -> Vec<Case> {
    vec![
        case!(no_ticket, Finding(GlobalRace), |gpu| fold!(gpu, no_ticket)),
        case!(no_fence, Finding(GlobalRace), |gpu| fold!(gpu, no_fence)),
        case!(no_fence_after_the_ticket, Finding(GlobalRace), |gpu| fold!(gpu, no_fence_after_the_ticket)),
        case!(fence_only_after_the_ticket, Finding(GlobalRace), |gpu| fold!(gpu, fence_only_after_the_ticket)),
        case!(block_fence_between_blocks, Finding(GlobalRace), |gpu| fold!(gpu, block_fence_between_blocks)),
        case!(block_ticket_across_blocks, Finding(NarrowScope), |gpu| fold!(gpu, block_ticket_across_blocks)),
        case!(ticket_before_the_partial, Finding(GlobalRace), |gpu| fold!(gpu, ticket_before_the_partial)),
        case!(no_barrier_before_the_ticket, Finding(GlobalRace), |gpu| fold!(gpu, no_barrier_before_the_ticket)),
        case!(no_barrier_after_the_ticket, Finding(SharedRace), |gpu| fold!(gpu, no_barrier_after_the_ticket)),
        case!(volatile_flag, Finding(GlobalRace), |gpu| fold!(gpu, volatile_flag)),
        case!(tile_state_for_other_memory, Finding(GlobalRace), |gpu| {
            let (mut tile_states, mut output) = (gpu.zeroed::<[u64; 2]>(1)?, gpu.zeroed::<f32>(2)?);
            let (tile_states, output) = (tile_states.view_mut(), output.view_mut());
            let arguments = tile_state_for_other_memory::Args { tile_states, output };
            gpu.launch(tile_state_for_other_memory::handle().with_block(32), 2, arguments)
        }),
        case!(tile_state_read_without_a_wait, Finding(GlobalRace), |gpu| {
            let (mut tile_states, mut output) = (gpu.zeroed::<[u64; 2]>(1)?, gpu.zeroed::<u64>(1)?);
            let (tile_states, output) = (tile_states.view_mut(), output.view_mut());
            let arguments = tile_state_read_without_a_wait::Args { tile_states, output };
            gpu.launch(tile_state_read_without_a_wait::handle().with_block(32), 2, arguments)
        }),
    ]
}

fn store_partial(partials: &GlobalMut<f32>) {
    partials.store_volatile(thread::block_idx_x() as usize, 1.0);
}

fn fold_partials(partials: &GlobalMut<f32>, output: &GlobalMut<f32>) {
    let mut sum = 0.0;
    for i in 0..BLOCKS as usize {
        sum += partials.load_volatile(i);
    }
    output.store(0, sum);
}

/// The last block of the grid is not the last to finish.
#[kernel]
fn no_ticket(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    let _ = ticket;
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        thread::device_fence();
        if thread::block_idx_x() == BLOCKS - 1 {
            fold_partials(&partials, &output);
        }
    }
}

/// Volatile accesses are not ordered.
#[kernel]
fn no_fence(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device) == BLOCKS - 1 {
            fold_partials(&partials, &output);
        }
    }
}

/// A release without an acquire.
#[kernel]
fn no_fence_after_the_ticket(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        atomic::fence(Scope::Device);
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device) == BLOCKS - 1 {
            fold_partials(&partials, &output);
        }
    }
}

/// An acquire without a release.
#[kernel]
fn fence_only_after_the_ticket(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device) == BLOCKS - 1 {
            atomic::fence(Scope::Device);
            fold_partials(&partials, &output);
        }
    }
}

/// The fences have block scope, but order different blocks.
#[kernel]
fn block_fence_between_blocks(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        thread::block_fence();
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device) == BLOCKS - 1 {
            thread::block_fence();
            fold_partials(&partials, &output);
        }
    }
}

/// The ticket is atomic for the block only.
#[kernel]
fn block_ticket_across_blocks(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        thread::device_fence();
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Block) == BLOCKS - 1 {
            thread::device_fence();
            fold_partials(&partials, &output);
        }
    }
}

/// The block draws its ticket before it stores its partial.
#[kernel]
fn ticket_before_the_partial(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 0 {
        atomic::fence(Scope::Device);
        let drawn = atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device);
        atomic::fence(Scope::Device);
        store_partial(&partials);
        if drawn == BLOCKS - 1 {
            fold_partials(&partials, &output);
        }
    }
}

/// The second warp stores the partial, and the first does not wait for it.
#[kernel]
fn no_barrier_before_the_ticket(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() == 32 {
        store_partial(&partials);
    }
    if thread::thread_idx_x() == 0 {
        atomic::fence(Scope::Device);
        if atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device) == BLOCKS - 1 {
            atomic::fence(Scope::Device);
            fold_partials(&partials, &output);
        }
    }
}

/// All threads read the ticket before the first thread has stored it.
#[kernel]
fn no_barrier_after_the_ticket(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    let drawn = shared_array![u32; 1];
    if thread::thread_idx_x() == 0 {
        store_partial(&partials);
        atomic::fence(Scope::Device);
        drawn.store(0, atomic::inc(&ticket, 0, BLOCKS - 1, Scope::Device));
        atomic::fence(Scope::Device);
    }
    if drawn.load(0) == BLOCKS - 1 && thread::thread_idx_x() == 0 {
        fold_partials(&partials, &output);
    }
}

/// A flag must be atomic.
#[kernel]
fn volatile_flag(partials: GlobalMut<f32>, ticket: GlobalMut<u32>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() > 0 {
        return;
    }
    if thread::block_idx_x() == 0 {
        store_partial(&partials);
        thread::device_fence();
        ticket.store_volatile(0, 1);
    } else if ticket.load_volatile(0) == 1 && thread::block_idx_x() == 1 {
        thread::device_fence();
        output.store(0, partials.load_volatile(0));
    }
}

/// A tile state orders only its own word.
#[kernel]
fn tile_state_for_other_memory(tile_states: GlobalMut<[u64; 2]>, output: GlobalMut<f32>) {
    if thread::thread_idx_x() > 0 {
        return;
    }
    if thread::block_idx_x() == 0 {
        output.store(0, 1.0);
        tile_state::publish(&tile_states, 0, 7_u64);
    } else {
        let _: u64 = tile_state::wait(&tile_states, 0);
        output.store(1, output.load(0));
    }
}

/// The tile state is read without a wait, so the read may see the old or the new value.
#[kernel]
fn tile_state_read_without_a_wait(tile_states: GlobalMut<[u64; 2]>, output: GlobalMut<u64>) {
    if thread::thread_idx_x() > 0 {
        return;
    }
    if thread::block_idx_x() == 0 {
        tile_state::publish(&tile_states, 0, 7_u64);
    } else {
        output.store(0, tile_states.load(0)[0]);
    }
}
