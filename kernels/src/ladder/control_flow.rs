//! The divergence and synchronization lab, after seed 001: what branches, loops and barriers cost.
//!
//! | kernel | shows |
//! |---|---|
//! | [`branch_by_thread`](fn@branch_by_thread) | a condition on the lane: each warp runs both branches |
//! | [`branch_by_warp`](fn@branch_by_warp) | the same work, a condition on the warp: each warp runs one |
//! | [`predicated`](fn@predicated) | a small branch that the compiler turns into a select |
//! | [`loop_rolled`](fn@loop_rolled) | a loop whose length the compiler does not know |
//! | [`loop_unrolled`](fn@loop_unrolled) | the same steps, eight in each iteration |
//! | [`sync_count`](fn@sync_count), [`sync_and`](fn@sync_and), [`sync_or`](fn@sync_or) | barriers that also count |
//! | [`warps_of_cube`](fn@warps_of_cube) | which threads of a block of 8 x 8 x 8 share a warp |
//!
//! In all but the last, each thread computes one number from one number, in blocks of 256 threads.
//!
//! [The ladders](super) explain the terms used in each kernel's documentation.

use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp as warps;

/// Threads per block.
pub const BLOCK: usize = 256;

/// Steps of the work in a branch or loop.
pub const STEPS: u32 = 64;

/// One step of work by multiplication. It is quadratic, because the compiler merges eight linear steps into one.
#[inline(always)]
pub const fn multiply_step(x: u32) -> u32 {
    x.wrapping_mul(x | 5).wrapping_add(1_013_904_223)
}

/// One step of a xorshift generator (Marsaglia's first triple). It differs from [`multiply_step`], so that the compiler
/// cannot merge two branches into one loop.
#[inline(always)]
pub const fn shift_step(x: u32) -> u32 {
    let x = x ^ x << 13;
    let x = x ^ x >> 17;
    x ^ x << 5
}

/// `steps` times [`multiply_step`].
#[inline(always)]
pub const fn multiply(x: u32, steps: u32) -> u32 {
    let (mut x, mut i) = (x, 0);
    while i < steps {
        x = multiply_step(x);
        i += 1;
    }
    x
}

/// `steps` times [`shift_step`].
#[inline(always)]
pub const fn shift(x: u32, steps: u32) -> u32 {
    let (mut x, mut i) = (x, 0);
    while i < steps {
        x = shift_step(x);
        i += 1;
    }
    x
}

/// The thread's index in arrays of one number for each thread of the grid.
#[inline(always)]
fn global_index() -> usize {
    thread::block_idx_x() as usize * BLOCK + thread::index_in_block::<BLOCK>()
}

/// The arguments of the kernels that take a number of steps.
#[arguments]
pub struct SteppedArgs {
    /// The input.
    pub input: Global<u32>,
    /// A result for each number.
    pub output: GlobalMut<u32>,
    /// The number of steps.
    pub steps: u32,
}

/// Even lanes do one kind of work, odd lanes the other.
///
/// All lanes of a warp share one instruction at a time: the warp runs the first branch with half of them idle, then the
/// second with the other half. **Costs:** the time of both branches. **Counter:** lanes active (16 of 32).
///
/// Source: seed 001, (1): a branch inside a warp.
#[kernel(block = BLOCK)]
pub fn branch_by_thread(SteppedArgs { input, output, steps }: SteppedArgs) {
    let i = global_index();
    let x = input.load_or(i, 0);
    let y = if thread::thread_idx_x().is_multiple_of(2) { multiply(x, steps) } else { shift(x, steps) };
    if i < output.len() {
        output.store(i, y);
    }
}

/// Even warps do one kind of work, odd warps the other: the same work as in `branch_by_thread`.
///
/// The condition is the same in all lanes of a warp, so each warp runs one branch. **Saves:** half of the instructions.
/// **Counter:** lanes active (32 of 32).
///
/// Source: seed 001, (1): `threadIdx / warpSize`. The seed says that this does not work in a block of several
/// dimensions; with the linear index ([`thread::linear_index`]) it does.
#[kernel(block = BLOCK)]
pub fn branch_by_warp(SteppedArgs { input, output, steps }: SteppedArgs) {
    let i = global_index();
    let x = input.load_or(i, 0);
    let y = if (thread::linear_index() / 32).is_multiple_of(2) { multiply(x, steps) } else { shift(x, steps) };
    if i < output.len() {
        output.store(i, y);
    }
}

/// The arguments of the kernels that take no number of steps.
#[arguments]
pub struct PlainArgs {
    /// The input.
    pub input: Global<u32>,
    /// A result for each number.
    pub output: GlobalMut<u32>,
}

/// Adds 8 to odd numbers and 1 to even ones.
///
/// The branch is so small that the compiler computes both values and selects one: no jump and no divergence, whatever
/// the lanes hold. **Counter:** branches (none: the selection is `selp` in PTX).
///
/// Source: seed 001, (3): predication.
#[kernel(block = BLOCK)]
pub fn predicated(PlainArgs { input, output }: PlainArgs) {
    let i = global_index();
    if i < output.len() {
        let x = input.load(i);
        output.store(i, if x % 2 == 1 { x.wrapping_add(8) } else { x.wrapping_add(1) });
    }
}

/// `steps` steps in a loop whose length is an argument of the launch.
///
/// Each step is a multiplication and an addition. The loop adds a counter, a comparison and a jump, which cost time
/// although no lane diverges. Without [`keep_rolled`], the compiler would unroll this loop, too, and make it the same
/// as [`loop_unrolled`](fn@loop_unrolled). **Counters:** instructions per warp, branches.
///
/// Source: seed 001, (2): the cost of a loop's control.
#[kernel(block = BLOCK)]
pub fn loop_rolled(SteppedArgs { input, output, steps }: SteppedArgs) {
    let i = global_index();
    if i < output.len() {
        let mut x = input.load(i);
        let mut left = steps;
        while left > 0 {
            left = keep_rolled(left);
            x = multiply_step(x);
            left -= 1;
        }
        output.store(i, x);
    }
}

/// [`STEPS`] steps, eight in each iteration of the loop.
///
/// **Saves:** seven of eight tests and jumps. **Counters:** instructions per warp, branches.
///
/// Source: seed 001, (2): `do_something(); do_something(); ...`
#[kernel(block = BLOCK)]
pub fn loop_unrolled(PlainArgs { input, output }: PlainArgs) {
    let i = global_index();
    if i < output.len() {
        let mut x = input.load(i);
        let mut left = STEPS / 8;
        while left > 0 {
            left = keep_rolled(left);
            x = multiply_step(multiply_step(multiply_step(multiply_step(x))));
            x = multiply_step(multiply_step(multiply_step(multiply_step(x))));
            left -= 1;
        }
        output.store(i, x);
    }
}

/// Gives each thread the number of odd numbers in its block.
///
/// The barrier itself counts the threads: one instruction instead of a reduction. **Counters:** barriers per block (1),
/// shared requests (0).
///
/// Source: seed 001, on `__syncthreads_count`.
#[kernel(block = BLOCK)]
pub fn sync_count(PlainArgs { input, output }: PlainArgs) {
    let i = global_index();
    let count = thread::sync_threads_count(input.load_or(i, 0) & 1);
    if i < output.len() {
        output.store(i, count);
    }
}

/// Gives each thread 1 if all numbers of its block are odd, else 0. Numbers past the end count as odd.
///
/// Source: seed 001, on `__syncthreads_and`.
#[kernel(block = BLOCK)]
pub fn sync_and(PlainArgs { input, output }: PlainArgs) {
    let i = global_index();
    let all = thread::sync_threads_and(input.load_or(i, 1) & 1);
    if i < output.len() {
        output.store(i, all);
    }
}

/// Gives each thread 1 if some number of its block is odd, else 0.
///
/// Source: seed 001, on `__syncthreads_or`.
#[kernel(block = BLOCK)]
pub fn sync_or(PlainArgs { input, output }: PlainArgs) {
    let i = global_index();
    let any = thread::sync_threads_or(input.load_or(i, 0) & 1);
    if i < output.len() {
        output.store(i, any);
    }
}

/// Writes `256 * first + lane` for each thread of a block of 8 x 8 x 8, at index `x + 8 y + 64 z`: `lane` is the
/// thread's lane, `first` the linear index of its warp's lane 0, obtained by a shuffle.
///
/// Threads form warps in the order x, then y, then z: (0, 0, 0) and (1, 0, 0) share one, (7, 7, 0) and (7, 7, 1) do
/// not. A layer of z is two warps, so eight threads along z are in eight warps.
///
/// Source: seed 001, (1): the block of (8, 8, 8).
#[kernel(block = [8, 8, 8])]
pub fn warps_of_cube(output: GlobalMut<u32>) {
    let own = thread::linear_index();
    let first = warps::warp_shuffle_idx(warps::FULL_MASK, own, 0, 32).0;
    output.store(own as usize, 256 * first + warps::lane_id());
}
