//! The limits of a launch on a CUDA device.

use crate::backend::Launch;
use crate::{Dim3, Error};

/// A device's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub threads_per_block: u32,
    pub block: Dim3,
    pub grid: Dim3,
    /// The device's shared memory.
    pub shared: SharedMemory,
}

/// A device's shared memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    /// The most that a block can have, its kernel's arrays included.
    pub of_block: usize,
    /// For all blocks of a multiprocessor.
    pub of_multiprocessor: usize,
    /// What the system takes of it for each block.
    pub reserved: usize,
}

impl SharedMemory {
    /// What a block of `threads` threads can have if a multiprocessor is to run `threads_at_once` threads at once.
    pub fn available(self, threads: usize, threads_at_once: usize) -> usize {
        let share = self.of_multiprocessor.saturating_mul(threads) / threads_at_once;
        self.of_block.min(share.saturating_sub(self.reserved))
    }
}

impl Limits {
    /// Checks a launch before the driver does, because the driver's own error does not name the limit.
    pub(crate) fn check(&self, launch: &Launch<'_>) -> Result<(), Error> {
        let invalid = |what, value: String, limit: String| {
            Err(Error::InvalidLaunch { kernel: launch.kernel.entry.to_owned(), what, value, limit })
        };
        let sides = [
            ("the grid's size along x", launch.grid.x, self.grid.x),
            ("the grid's size along y", launch.grid.y, self.grid.y),
            ("the grid's size along z", launch.grid.z, self.grid.z),
            ("the block's size along x", launch.block.x, self.block.x),
            ("the block's size along y", launch.block.y, self.block.y),
            ("the block's size along z", launch.block.z, self.block.z),
        ];
        for (what, value, limit) in sides {
            if value == 0 || value > limit {
                return invalid(what, value.to_string(), format!("1 to {limit}"));
            }
        }
        let threads = launch.block.count();
        if threads > u128::from(self.threads_per_block) {
            return invalid("the block", format!("{threads} threads"), self.threads_per_block.to_string());
        }
        if launch.dynamic_shared > self.shared.of_block {
            let (value, limit) = (launch.dynamic_shared, self.shared.of_block);
            return invalid("dynamic shared memory", format!("{value} bytes"), format!("{limit} bytes"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelId;

    #[test]
    fn an_error_names_the_limit() {
        let limits = Limits {
            threads_per_block: 1024,
            block: Dim3::new(1024, 1024, 64),
            grid: Dim3::new(i32::MAX as u32, 65535, 65535),
            shared: SharedMemory { of_block: 48 * 1024, of_multiprocessor: 100 * 1024, reserved: 1024 },
        };
        let check = |grid: Dim3, block: Dim3, dynamic_shared| {
            let kernel = KernelId { library: "k", entry: "a" };
            let launch = Launch { kernel, grid, block, dynamic_shared, slots: &[], parameters: &[], thread: |_| () };
            limits.check(&launch).map_err(|error| error.to_string())
        };
        let one = Dim3::from(1);
        assert_eq!(check((1 << 30, 65535, 65535).into(), (32, 32).into(), 48 * 1024), Ok(()));
        let refused = [
            (check((1, 65536).into(), one, 0), "the grid's size along y is 65536, the limit is 1 to 65535"),
            (check(0.into(), one, 0), "the grid's size along x is 0, the limit is 1 to 2147483647"),
            (check(one, (1, 1, 65).into(), 0), "the block's size along z is 65, the limit is 1 to 64"),
            (check(one, (1024, 2).into(), 0), "the block is 2048 threads, the limit is 1024"),
            (check(one, one, 49153), "dynamic shared memory is 49153 bytes, the limit is 49152 bytes"),
        ];
        for (found, expected) in refused {
            assert_eq!(found, Err(format!("kernel `a` cannot be launched: {expected}")));
        }
    }
}
