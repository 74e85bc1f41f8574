//! The sum of a whole buffer in one launch.

use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;

use super::block::sum_of_block;
use crate::ops::Number;

/// Threads of a block.
pub const BLOCK: usize = 512;

/// 16-byte packs that a thread has in flight at once.
const PACKS_IN_FLIGHT: usize = 4;

/// The most blocks that are launched.
///
/// Blocks beyond those that a device runs at once only wait for them: 528 are four for each of an H200's 132
/// multiprocessors, which had the highest bandwidth from 2^28 elements on (see `docs/benchmarks/h200.md`). The number
/// is the same for every device, because it is part of the order of additions.
pub const MAX_BLOCKS: usize = 528;

/// How many blocks fold `len` elements of `size` bytes: a function of these two alone, so that the sum's order, and its
/// bits, are the same on every machine.
///
/// One for each round of loads, up to two for each multiprocessor of an H200; then as many as have eight rounds each,
/// so that starting a block costs little beside what it loads.
pub const fn blocks_for(len: usize, size: usize) -> usize {
    const TWO_EACH: usize = 264;
    const ROUNDS_EACH: usize = 8;
    let elements_per_round = BLOCK * PACKS_IN_FLIGHT * (16 / size);
    let rounds = len.div_ceil(elements_per_round);
    if rounds == 0 {
        1
    } else if rounds <= TWO_EACH {
        rounds
    } else if rounds / ROUNDS_EACH <= TWO_EACH {
        TWO_EACH
    } else if rounds / ROUNDS_EACH < MAX_BLOCKS {
        rounds / ROUNDS_EACH
    } else {
        MAX_BLOCKS
    }
}

/// The last rung: the whole sum in one launch, and the kernel behind `Gpu::sum`.
///
/// - *Loads are 16 bytes wide*, four of them in flight in each thread before the first addition, and a warp's are
///   consecutive. What bounds a sum is how many bytes are on their way from memory (Little's law), and this is what
///   puts them there.
/// - *Blocks stride over the input* so that a few hundred blocks fold any length: each thread adds in registers, and
///   shared memory is touched once for each block.
/// - *Warps fold by shuffles.*
/// - *The last block to finish folds the partials.* Each block writes its sum, then draws a ticket; who draws the last
///   one knows that all sums are written. That saves a second launch, which costs more than the whole sum of a short
///   input. The ticket goes back to 0 by itself ([`atomic::inc`]).
///
/// The order of additions is fixed by length and type: packs go to threads by index, a thread adds lane by lane, and
/// the partials are folded in block order, whichever block comes last. An address that is not a multiple of 16 changes
/// the instructions, not the order.
///
/// `partials` has a place for each block, `ticket` is one 0, `output` one element.
///
/// Sources: the ticket is `threadFenceReduction` in NVIDIA's samples; the rest is past the seeds.
#[kernel(instances = [f32, f64, i32, i64], block = BLOCK)]
pub fn single_launch<T: Number>(
    input: Global<T>,
    partials: GlobalMut<T>,
    ticket: GlobalMut<u32>,
    output: GlobalMut<T>,
) {
    let warp_sums = shared_array![T; 32];
    let last_ticket = shared_array![u32; 1];
    let thread = thread::index_in_block::<BLOCK>();
    let block = thread::block_idx_x() as usize;
    let blocks = thread::grid_dim_x() as usize;

    let sum = sum_of_block::<T, BLOCK>(sum_of_thread::<T, BLOCK>(&input), &warp_sums);
    if blocks == 1 {
        if thread == 0 {
            output.store(0, sum);
        }
        return;
    }

    if thread == 0 {
        partials.store_volatile(block, sum);
        thread::device_fence();
        last_ticket.store(0, atomic::inc(&ticket, 0, blocks as u32 - 1, Scope::Device));
    }
    thread::sync_threads();
    if last_ticket.load(0) as usize != blocks - 1 {
        return;
    }

    thread::device_fence();
    let mut sum = T::NEUTRAL;
    let mut i = thread;
    while i < blocks {
        // The other blocks wrote these during this launch: L1 may not answer for them.
        sum = sum.plus(partials.load_volatile(i));
        i += BLOCK;
    }
    let sum = sum_of_block::<T, BLOCK>(sum, &warp_sums);
    if thread == 0 {
        output.store(0, sum);
    }
}

/// What one thread adds in a grid of blocks of `BLOCK` threads: rounds of [`PACKS_IN_FLIGHT`] packs that lie a block
/// apart, each round a whole grid's behind the last; then the elements behind the last whole pack, one for each of the
/// first threads.
#[inline(always)]
pub(super) fn sum_of_thread<T: Number, const BLOCK: usize>(input: &Global<T>) -> T {
    // Two loops, so that the one with wide loads tests nothing.
    if input.elements_to_alignment() == 0 {
        sum_of_thread_by::<T, BLOCK, true>(input)
    } else {
        sum_of_thread_by::<T, BLOCK, false>(input)
    }
}

#[inline(always)]
fn sum_of_thread_by<T: Number, const BLOCK: usize, const ALIGNED: bool>(input: &Global<T>) -> T {
    let first = thread::block_idx_x() as usize * BLOCK * PACKS_IN_FLIGHT + thread::index_in_block::<BLOCK>();
    let stride = thread::grid_dim_x() as usize * BLOCK * PACKS_IN_FLIGHT;
    let lanes = T::Pack::LEN;
    let packs = input.len() / lanes;
    // SAFETY: at every call below, `pack` is less than `packs`.
    let load = |pack: usize| unsafe { load_pack::<T, ALIGNED>(input, pack * lanes) };

    let mut sums = [neutral_pack::<T>(); PACKS_IN_FLIGHT];
    let mut pack = first;
    while pack + (PACKS_IN_FLIGHT - 1) * BLOCK < packs {
        let loaded = [load(pack), load(pack + BLOCK), load(pack + 2 * BLOCK), load(pack + 3 * BLOCK)];
        let mut i = 0;
        while i < PACKS_IN_FLIGHT {
            sums[i] = plus_pack::<T>(sums[i], loaded[i]);
            i += 1;
        }
        pack += stride;
    }
    let mut i = 0;
    while i < PACKS_IN_FLIGHT {
        if pack + i * BLOCK < packs {
            sums[i] = plus_pack::<T>(sums[i], load(pack + i * BLOCK));
        }
        i += 1;
    }

    let all = plus_pack::<T>(plus_pack::<T>(sums[0], sums[1]), plus_pack::<T>(sums[2], sums[3]));
    let mut sum = all.get(0);
    let mut lane = 1;
    while lane < lanes {
        sum = sum.plus(all.get(lane));
        lane += 1;
    }
    // `first` counts up from 0 over the first block's threads, and there are fewer such elements than those.
    sum.plus(input.load_or(packs * lanes + first, T::NEUTRAL))
}

/// The pack that begins at `start`: in one load, or an element at a time where addresses are not multiples of 16.
///
/// # Safety
/// The pack is inside of the view, and if it is said to be `ALIGNED`, so is the view.
#[inline(always)]
unsafe fn load_pack<T: Number, const ALIGNED: bool>(input: &Global<T>, start: usize) -> T::Pack {
    if ALIGNED {
        // SAFETY: as promised by the caller.
        return unsafe { input.load_pack_unchecked(start) };
    }
    let mut pack = neutral_pack::<T>();
    let mut lane = 0;
    while lane < T::Pack::LEN {
        // SAFETY: as promised by the caller.
        pack = pack.with(lane, unsafe { input.load_unchecked(start + lane) });
        lane += 1;
    }
    pack
}

#[inline(always)]
fn neutral_pack<T: Number>() -> T::Pack {
    T::Pack::splat(T::NEUTRAL)
}

#[inline(always)]
fn plus_pack<T: Number>(a: T::Pack, b: T::Pack) -> T::Pack {
    let mut sum = a;
    let mut lane = 0;
    while lane < T::Pack::LEN {
        sum = sum.with(lane, a.get(lane).plus(b.get(lane)));
        lane += 1;
    }
    sum
}
