//! The limits of a launch on a CUDA device.

use crate::backend::Launch;
use crate::{Dim3, Error};

/// A device's limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub threads_per_block: u32,
    pub block: Dim3,
    pub grid: Dim3,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: usize,
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
        if launch.dynamic_shared > self.shared_bytes {
            let (value, limit) = (launch.dynamic_shared, self.shared_bytes);
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
            shared_bytes: 48 * 1024,
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
