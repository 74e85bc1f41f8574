//! The dynamic shared memory of kernels that sum wide data in superaccumulators of their lanes.

use kernels::reduce::exact::lane_memory::LaneMemory;

use crate::Gpu;
use crate::backend::SharedMemory;

/// The bytes of dynamic shared memory of a block of `threads` threads: as many as its sums can use, and the device has
/// if a multiprocessor is to run `threads_at_once` threads at once. 0 if there are too few: then the kernel sums wide
/// data without superaccumulators.
pub(super) fn lane_memory_bytes(gpu: &Gpu, memory: LaneMemory, threads: usize, threads_at_once: usize) -> usize {
    memory.bytes(threads, gpu.backend().shared_memory().available(threads, threads_at_once))
}

/// [`lane_memory_bytes`] for a kernel that cannot do without the memory. Where there is too little for all
/// `threads_at_once`, a multiprocessor runs fewer threads.
pub(super) fn required_lane_memory_bytes(
    gpu: &Gpu,
    memory: LaneMemory,
    threads: usize,
    threads_at_once: usize,
) -> usize {
    required_bytes(gpu.backend().shared_memory(), memory, threads, threads_at_once)
}

fn required_bytes(shared: SharedMemory, memory: LaneMemory, threads: usize, threads_at_once: usize) -> usize {
    match memory.bytes(threads, shared.available(threads, threads_at_once)) {
        0 => memory.bytes(threads, shared.of_block),
        bytes => bytes,
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};
    use kernels::ops::{Sum, SumOfSquares};
    use kernels::reduce::columns::BLOCK;
    use kernels::reduce::exact::columns::{MIN_BLOCKS, lane_memory};
    use kernels::reduce::exact::long_rows::{self, MAX_THREADS};
    use kernels::reduce::exact::result::ExactOperator;

    use super::*;
    use crate::occupancy::Multiprocessor;

    fn shared_of(compute: u32) -> SharedMemory {
        let Multiprocessor { shared_bytes, reserved_shared_bytes, .. } = Multiprocessor::of(compute).unwrap();
        let [of_multiprocessor, reserved] = [shared_bytes, reserved_shared_bytes].map(|bytes| bytes as usize);
        SharedMemory { of_block: of_multiprocessor - reserved, of_multiprocessor, reserved }
    }

    #[test]
    fn columns_and_whole_inputs_have_the_memory_that_they_need_on_every_device() {
        fn of<O: ExactOperator<T>, T: cuda_std::element::Element>(shared: SharedMemory) -> usize {
            required_bytes(shared, lane_memory::<O::Terms>(), BLOCK, MIN_BLOCKS * BLOCK)
        }
        // Without opting in, as in the executor; and all devices.
        let least = SharedMemory { of_block: 48 * 1024, of_multiprocessor: usize::MAX, reserved: 0 };
        for shared in Multiprocessor::known().map(shared_of).chain([least]) {
            let sums =
                [of::<Sum, f32>(shared), of::<Sum, f64>(shared), of::<Sum, f16>(shared), of::<Sum, bf16>(shared)];
            assert!(sums.iter().all(|&bytes| bytes > 0), "{shared:?}: {sums:?}");
            assert!(of::<SumOfSquares, f32>(shared) > 0, "{shared:?}");
        }
        // Whole inputs of squares. Blocks of one warp have too little on sm_75, and sum wide data without it.
        for shared in Multiprocessor::known().map(shared_of) {
            let memory = long_rows::lane_memory::<<SumOfSquares as ExactOperator<f32>>::Terms>();
            for threads in [64, 128, 256, MAX_THREADS] {
                assert!(memory.bytes(threads, shared.available(threads, MAX_THREADS)) > 0, "{threads}, {shared:?}");
            }
        }
        // Two blocks of `f32` do not fit on a multiprocessor of sm_75, with 64 KiB.
        let turing = SharedMemory { of_block: 64 * 1024, of_multiprocessor: 64 * 1024, reserved: 0 };
        assert_eq!(lane_memory::<<Sum as ExactOperator<f32>>::Terms>().bytes(BLOCK, turing.available(BLOCK, 512)), 0);
    }
}
