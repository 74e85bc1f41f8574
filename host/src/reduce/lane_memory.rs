//! The dynamic shared memory of kernels that sum wide data in superaccumulators of their lanes.

use kernels::reduce::exact::lane_superaccumulators::LaneMemory;

use crate::Gpu;

/// The bytes of dynamic shared memory of a block of `threads` threads: as many as its sums can use, and the device has
/// if a multiprocessor is to run `threads_at_once` threads at once.
pub(super) fn lane_memory_bytes(gpu: &Gpu, memory: LaneMemory, threads: usize, threads_at_once: usize) -> usize {
    memory.bytes(threads, gpu.backend().shared_memory().available(threads, threads_at_once))
}
