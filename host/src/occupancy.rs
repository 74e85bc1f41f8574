//! How many blocks of a kernel a multiprocessor runs at once, and what limits their number.
//!
//! A multiprocessor has a limited number of threads, blocks, registers and bytes of shared memory. The one that a
//! kernel uses up first limits the number of blocks. The results here equal those of the driver
//! (`cuOccupancyMaxActiveBlocksPerMultiprocessor`; a test on a GPU compares them), but need no device.
//!
//! Occupancy is a means, not an end. What saturates the memory's bandwidth is bytes in flight ([`bytes_in_flight`]): a
//! few threads with many bytes in flight each are as fast as many threads with few.

/// The limits of one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Compute capability without its dot.
    pub compute: u32,
    /// Threads.
    pub threads: u32,
    /// Blocks.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Bytes of shared memory, for all blocks together.
    pub shared_bytes: u32,
    /// Bytes of shared memory that the system reserves in each block.
    pub reserved_shared_bytes: u32,
    /// Shared memory is allocated in multiples of this number of bytes.
    pub shared_granularity: u32,
}

/// Lanes of a warp.
const WARP: u32 = 32;

/// Registers are allocated to warps in multiples of this number, in each of a multiprocessor's four partitions.
const REGISTER_GRANULARITY: u32 = 256;

/// The partitions of a multiprocessor, each with its own registers and scheduler.
const PARTITIONS: u32 = 4;

/// The devices from Turing on.
///
/// Sources: CCCL 3, `cuda/__device/arch_traits.h` (threads, blocks, shared memory and its reserved bytes); CUDA 13,
/// `cuda_occupancy.h` (granularities).
const DEVICES: [Multiprocessor; 7] = [
    device(75, 1024, 16, 64, 0, 256),
    device(80, 2048, 32, 164, 1024, 128),
    device(86, 1536, 16, 100, 1024, 128),
    device(89, 1536, 24, 100, 1024, 128),
    device(90, 2048, 32, 228, 1024, 128),
    device(100, 2048, 32, 228, 1024, 128),
    device(120, 1536, 24, 100, 1024, 128),
];

const fn device(
    compute: u32,
    threads: u32,
    blocks: u32,
    shared_kib: u32,
    reserved_shared_bytes: u32,
    shared_granularity: u32,
) -> Multiprocessor {
    Multiprocessor {
        compute,
        threads,
        blocks,
        registers: 64 * 1024,
        shared_bytes: shared_kib * 1024,
        reserved_shared_bytes,
        shared_granularity,
    }
}

impl Multiprocessor {
    /// The multiprocessor of a compute capability (90 for `sm_90`), if this table has its limits.
    pub fn of(compute: u32) -> Option<Self> {
        DEVICES.into_iter().find(|device| device.compute == compute)
    }

    /// The compute capabilities whose limits this table has, oldest first.
    pub fn known() -> impl Iterator<Item = u32> {
        DEVICES.iter().map(|device| device.compute)
    }

    /// Warps.
    pub fn warps(&self) -> u32 {
        self.threads / WARP
    }

    /// How many blocks of a kernel run at once, and what limits them.
    pub fn occupancy(&self, kernel: Resources) -> Occupancy {
        let warps_per_block = kernel.threads_per_block.div_ceil(WARP).max(1);
        let by_threads = self.warps() / warps_per_block;
        let by_registers = match (kernel.registers_per_thread * WARP).next_multiple_of(REGISTER_GRANULARITY) {
            0 => self.blocks,
            of_warp => PARTITIONS * (self.registers / PARTITIONS / of_warp) / warps_per_block,
        };
        let shared = (kernel.shared_bytes + self.reserved_shared_bytes).next_multiple_of(self.shared_granularity);
        let by_shared = self.shared_bytes.checked_div(shared).unwrap_or(self.blocks);
        let limits = [
            (by_threads, Limit::Threads),
            (self.blocks, Limit::Blocks),
            (by_registers, Limit::Registers),
            (by_shared, Limit::SharedMemory),
        ];
        // Of equal limits, the first is reported.
        let (blocks, limit) = limits.into_iter().min_by_key(|(blocks, _)| *blocks).expect("there are four limits");
        let warps = blocks * warps_per_block;
        Occupancy { blocks, warps, ratio: f64::from(warps) / f64::from(self.warps()), limit }
    }
}

/// A kernel's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Threads of a block.
    pub threads_per_block: u32,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
}

/// What runs on a multiprocessor at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: u32,
    /// Warps.
    pub warps: u32,
    /// The ratio of the running warps to the multiprocessor's capacity for warps.
    pub ratio: f64,
    /// What prevents more blocks.
    pub limit: Limit,
}

/// What prevents a multiprocessor from running more blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The capacity for threads.
    Threads,
    /// The capacity for blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

impl Limit {
    /// The limit's name, for display.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Blocks => "blocks",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
        }
    }
}

/// The bytes that must be in flight to saturate a memory, by Little's law.
///
/// `bandwidth` is in bytes per second, and each byte takes `latency_ns` nanoseconds to arrive.
///
/// Source: seed 004 (`docs/ladder/sources.md`), "Little's law".
pub fn bytes_in_flight(bandwidth: f64, latency_ns: f64) -> f64 {
    bandwidth * latency_ns * 1e-9
}

#[cfg(test)]
mod tests {
    use approx::assert_abs_diff_eq;

    use super::*;

    fn on(compute: u32, threads_per_block: u32, registers_per_thread: u32, shared_bytes: u32) -> (u32, Limit) {
        let kernel = Resources { threads_per_block, registers_per_thread, shared_bytes };
        let occupancy = Multiprocessor::of(compute).unwrap().occupancy(kernel);
        (occupancy.blocks, occupancy.limit)
    }

    #[test]
    fn each_limit_in_turn() {
        assert_eq!(on(90, 1024, 16, 0), (2, Limit::Threads));
        assert_eq!(on(90, 32, 16, 0), (32, Limit::Blocks));
        assert_eq!(on(90, 512, 52, 132), (2, Limit::Registers));
        assert_eq!(on(90, 256, 32, 40 * 1024), (5, Limit::SharedMemory));
        assert_eq!(on(75, 1024, 16, 0), (1, Limit::Threads));
    }

    #[test]
    fn registers_are_rounded_up_for_each_warp() {
        // 33 registers of 32 lanes are 1056, rounded up to 1280: 12 warps in each partition's 16384.
        assert_eq!(on(90, 128, 33, 0), (12, Limit::Registers));
        assert_eq!(on(90, 128, 32, 0), (16, Limit::Threads));
    }

    #[test]
    fn a_block_that_does_not_fit_never_runs() {
        assert_eq!(on(75, 256, 32, 65 * 1024).0, 0);
    }

    #[test]
    fn littles_law() {
        assert_abs_diff_eq!(bytes_in_flight(4e12, 500.0), 2e6, epsilon = 1.0);
    }
}
