use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;

use super::block_sum::sum_of_block;
use crate::ops::Number;

/// Threads per block of [`single_launch`](fn@single_launch).
pub const SINGLE_LAUNCH_BLOCK: usize = 512;

/// 16-byte vectors that a thread has in flight at once.
const VECTORS_IN_FLIGHT: usize = 4;

/// The maximum number of blocks of a launch.
///
/// 528 is four blocks per multiprocessor of an H200, which has 132 multiprocessors and runs two such blocks on each at
/// a time. On an H200, 528 had the highest bandwidth at 2^28 and 2^30 elements, at most 0.4 % above 264
/// (`docs/notes/whole-inputs.md`). Every device has the same number, because it is part of the order of additions.
pub const MAX_BLOCKS: usize = 528;

/// The number of blocks that sum `len` elements of `size` bytes. It depends only on these two, so that the order of
/// additions, and with it the result's bits, is the same on every device.
///
/// One block for each round of loads, up to 264: two for each multiprocessor of an H200. Then one for each eight
/// rounds, up to [`MAX_BLOCKS`], so that launching a block costs little compared with its loads.
pub const fn blocks_for(len: usize, size: usize) -> usize {
    const TWO_PER_MULTIPROCESSOR: usize = 264;
    const ROUNDS_PER_BLOCK: usize = 8;
    let elements_per_round = SINGLE_LAUNCH_BLOCK * VECTORS_IN_FLIGHT * (16 / size);
    let rounds = len.div_ceil(elements_per_round);
    if rounds == 0 {
        1
    } else if rounds <= TWO_PER_MULTIPROCESSOR {
        rounds
    } else if rounds / ROUNDS_PER_BLOCK <= TWO_PER_MULTIPROCESSOR {
        TWO_PER_MULTIPROCESSOR
    } else if rounds / ROUNDS_PER_BLOCK < MAX_BLOCKS {
        rounds / ROUNDS_PER_BLOCK
    } else {
        MAX_BLOCKS
    }
}

/// Rung 10: the whole sum in one launch, by additions of floats.
///
/// - *Loads are 16 bytes wide*, four of them in flight in each thread before the first addition, and a warp's are
///   consecutive. A sum is bound by the bytes in flight (Little's law).
/// - *Blocks stride over the input*, so that a few hundred blocks sum any length: each thread adds in registers, and
///   each block uses shared memory once.
/// - *Warps reduce by shuffles.*
/// - *The last block to finish adds the partials.* Each block writes its sum, then draws a ticket; the block that draws
///   the last ticket knows that all sums are written. **Saves:** the second launch. The ticket wraps to 0
///   ([`atomic::inc`]), ready for the next launch. **Counters:** blocks, time.
///
/// Each addition rounds, so the result depends on the order of additions. This kernel fixes the order by length and
/// type: vectors go to threads by index, a thread adds element by element, and the partials are added in block order,
/// whichever block comes last. An address that is not a multiple of 16 changes the loads, not the order. The result is
/// still that of one order among many, and [`MAX_BLOCKS`] can never change without changing it. The next rung,
/// [`exact_long_rows`](fn@crate::reduce::exact::long_rows::exact_long_rows), is the kernel of the library: it adds
/// integers.
///
/// `partials` has an element for each block, `ticket` has one element, which must be 0, and `output` has one element.
///
/// Source: past the seeds; the ticket is `threadFenceReduction` in NVIDIA's samples.
#[kernel(instances = [f32, f64, i32, i64], block = SINGLE_LAUNCH_BLOCK)]
pub fn single_launch<T: Number>(
    input: Global<T>,
    partials: GlobalMut<T>,
    ticket: GlobalMut<u32>,
    output: GlobalMut<T>,
) {
    let warp_sums = shared_array![T; 32];
    let last_ticket = shared_array![u32; 1];
    let thread = thread::index_in_block::<SINGLE_LAUNCH_BLOCK>();
    let block = thread::block_idx_x() as usize;
    let blocks = thread::grid_dim_x() as usize;

    let sum = sum_of_block::<T, SINGLE_LAUNCH_BLOCK>(sum_of_thread::<T, SINGLE_LAUNCH_BLOCK>(&input), &warp_sums);
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
        // Volatile: other blocks wrote these during this launch, and L1 may hold old values.
        sum = sum.plus(partials.load_volatile(i));
        i += SINGLE_LAUNCH_BLOCK;
    }
    let sum = sum_of_block::<T, SINGLE_LAUNCH_BLOCK>(sum, &warp_sums);
    if thread == 0 {
        output.store(0, sum);
    }
}

/// The sum of a thread's elements, in a grid of blocks of `BLOCK` threads.
///
/// A round is [`VECTORS_IN_FLIGHT`] vectors, `BLOCK` vectors apart; the next round is a grid stride after it. The
/// elements past the last whole vector go to the first threads, one each.
#[inline(always)]
pub(super) fn sum_of_thread<T: Number, const BLOCK: usize>(input: &Global<T>) -> T {
    // Two loops, so that the one with 16-byte loads needs no test of the alignment.
    if input.elements_to_alignment() == 0 {
        sum_of_thread_by::<T, BLOCK, true>(input)
    } else {
        sum_of_thread_by::<T, BLOCK, false>(input)
    }
}

#[inline(always)]
fn sum_of_thread_by<T: Number, const BLOCK: usize, const ALIGNED: bool>(input: &Global<T>) -> T {
    let first = thread::block_idx_x() as usize * BLOCK * VECTORS_IN_FLIGHT + thread::index_in_block::<BLOCK>();
    let stride = thread::grid_dim_x() as usize * BLOCK * VECTORS_IN_FLIGHT;
    let lanes = T::Vector::LEN;
    let vectors = input.len() / lanes;
    // SAFETY: at every call below, `vector` is less than `vectors`.
    let load = |vector: usize| unsafe { load_vector::<T, ALIGNED>(input, vector * lanes) };

    let mut sums = [neutral_vector::<T>(); VECTORS_IN_FLIGHT];
    let mut vector = first;
    while vector + (VECTORS_IN_FLIGHT - 1) * BLOCK < vectors {
        let loaded = [load(vector), load(vector + BLOCK), load(vector + 2 * BLOCK), load(vector + 3 * BLOCK)];
        let mut i = 0;
        while i < VECTORS_IN_FLIGHT {
            sums[i] = plus_vector::<T>(sums[i], loaded[i]);
            i += 1;
        }
        vector += stride;
    }
    let mut i = 0;
    while i < VECTORS_IN_FLIGHT {
        if vector + i * BLOCK < vectors {
            sums[i] = plus_vector::<T>(sums[i], load(vector + i * BLOCK));
        }
        i += 1;
    }

    let all = plus_vector::<T>(plus_vector::<T>(sums[0], sums[1]), plus_vector::<T>(sums[2], sums[3]));
    let mut sum = all.get(0);
    let mut lane = 1;
    while lane < lanes {
        sum = sum.plus(all.get(lane));
        lane += 1;
    }
    // Fewer elements than a vector's are left: only threads of block 0, where `first` is the thread's index, have one.
    sum.plus(input.load_or(vectors * lanes + first, T::NEUTRAL))
}

/// The vector that begins at `start`: one load, or one load for each element if addresses are not multiples of 16.
///
/// # Safety
/// The vector is inside the view. If `ALIGNED`, the view begins at a multiple of 16 bytes.
#[inline(always)]
unsafe fn load_vector<T: Number, const ALIGNED: bool>(input: &Global<T>, start: usize) -> T::Vector {
    if ALIGNED {
        // SAFETY: as promised by the caller.
        return unsafe { input.load_vector_unchecked(start) };
    }
    let mut vector = neutral_vector::<T>();
    let mut lane = 0;
    while lane < T::Vector::LEN {
        // SAFETY: as promised by the caller.
        vector = vector.with(lane, unsafe { input.load_unchecked(start + lane) });
        lane += 1;
    }
    vector
}

#[inline(always)]
fn neutral_vector<T: Number>() -> T::Vector {
    T::Vector::splat(T::NEUTRAL)
}

#[inline(always)]
fn plus_vector<T: Number>(a: T::Vector, b: T::Vector) -> T::Vector {
    let mut sum = a;
    let mut lane = 0;
    while lane < T::Vector::LEN {
        sum = sum.with(lane, a.get(lane).plus(b.get(lane)));
        lane += 1;
    }
    sum
}
