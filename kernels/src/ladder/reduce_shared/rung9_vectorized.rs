use cuda_std::prelude::*;

use super::FoldArgs;
use super::block_sum::sum_of_block;
use super::rung10_single_launch::sum_of_thread;
use crate::ops::Number;

/// Rung 9: each load takes 16 bytes, and a thread issues four of them before its first addition.
///
/// A sum is bound by the bytes in flight: bandwidth times latency, about 2 MB on an H200 (Little's law). One 4-byte
/// load at a time from 2048 threads of each multiprocessor is 1 MB. (Four loads are independent in PTX. To save
/// registers, `ptxas` keeps two of them in flight for blocks below 1024.) **Saves:** three of four load instructions.
/// **Counters:** bytes in flight, load requests.
///
/// Source: past the seeds; NVIDIA, "CUDA Pro Tip: Increase Performance with Vectorized Memory Access" (2013).
#[kernel(instances = [f32, f64, i32, i64] x [64, 128, 256, 512, 1024], block = BLOCK)]
pub fn vectorized<T: Number, const BLOCK: usize>(FoldArgs { input, partials }: FoldArgs<T>) {
    let warp_sums = shared_array![T; 32];
    let sum = sum_of_block::<T, BLOCK>(sum_of_thread::<T, BLOCK>(&input), &warp_sums);
    if thread::thread_idx_x() == 0 {
        partials.store(thread::block_idx_x() as usize, sum);
    }
}
