//! The divergence and synchronisation lab, by name.

use kernels::ladder::control_flow::{self as lab, BLOCK, STEPS, multiply, shift};

use super::{find, grid_of};
use crate::{Buffer, Error, Gpu};

/// The kernels of the lab. In each of them, every thread reads one number and writes one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlFlowRung {
    /// [`kernels::ladder::control_flow::branch_by_thread`](fn@lab::branch_by_thread)
    BranchByThread,
    /// [`kernels::ladder::control_flow::branch_by_warp`](fn@lab::branch_by_warp)
    BranchByWarp,
    /// [`kernels::ladder::control_flow::predicated`](fn@lab::predicated)
    Predicated,
    /// [`kernels::ladder::control_flow::loop_rolled`](fn@lab::loop_rolled)
    LoopRolled,
    /// [`kernels::ladder::control_flow::loop_unrolled`](fn@lab::loop_unrolled)
    LoopUnrolled,
    /// [`kernels::ladder::control_flow::sync_count`](fn@lab::sync_count)
    SyncCount,
    /// [`kernels::ladder::control_flow::sync_and`](fn@lab::sync_and)
    SyncAnd,
    /// [`kernels::ladder::control_flow::sync_or`](fn@lab::sync_or)
    SyncOr,
}

impl ControlFlowRung {
    /// All kernels of the lab, in order.
    pub const ALL: [Self; 8] = [
        Self::BranchByThread,
        Self::BranchByWarp,
        Self::Predicated,
        Self::LoopRolled,
        Self::LoopUnrolled,
        Self::SyncCount,
        Self::SyncAnd,
        Self::SyncOr,
    ];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::BranchByThread => "branch_by_thread",
            Self::BranchByWarp => "branch_by_warp",
            Self::Predicated => "predicated",
            Self::LoopRolled => "loop_rolled",
            Self::LoopUnrolled => "loop_unrolled",
            Self::SyncCount => "sync_count",
            Self::SyncAnd => "sync_and",
            Self::SyncOr => "sync_or",
        }
    }

    /// A short description of what the kernel shows.
    pub fn summary(self) -> &'static str {
        match self {
            Self::BranchByThread => "every 2nd lane: a warp runs both branches",
            Self::BranchByWarp => "every 2nd warp: a warp runs one",
            Self::Predicated => "a short branch, replaced by predicates",
            Self::LoopRolled => "a counter, a test and a jump each step",
            Self::LoopUnrolled => "the same steps, eight in each iteration",
            Self::SyncCount => "a barrier that counts threads",
            Self::SyncAnd => "a barrier with the AND of a block",
            Self::SyncOr => "a barrier with the OR of a block",
        }
    }

    /// The rung with this name.
    ///
    /// # Errors
    /// No rung has this name. The error lists all names.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        find(&Self::ALL, name, Self::name)
    }

    /// Whether the rung does the work of the rung before it in another way, so that their times can be compared.
    pub fn is_variant(self) -> bool {
        matches!(self, Self::BranchByWarp | Self::LoopUnrolled | Self::SyncAnd | Self::SyncOr)
    }

    /// Starts the kernel over all of `input`.
    ///
    /// # Errors
    /// The lengths of `output` and `input` differ, or one of the two belongs to another device.
    pub fn start(self, gpu: &Gpu, input: &Buffer<u32>, output: &mut Buffer<u32>) -> Result<(), Error> {
        if output.len() != input.len() {
            let (found, expected) = (output.len(), input.len());
            return Err(Error::Length { operation: "run a lab kernel", what: "the output", found, expected });
        }
        if input.is_empty() {
            gpu.use_memory(input.view().memory(), "run a lab kernel")?;
            return gpu.use_memory(output.view().memory(), "run a lab kernel");
        }
        let plain = match self {
            Self::BranchByThread | Self::BranchByWarp | Self::LoopRolled => {
                let kernel = match self {
                    Self::BranchByThread => lab::branch_by_thread::handle(),
                    Self::BranchByWarp => lab::branch_by_warp::handle(),
                    _ => lab::loop_rolled::handle(),
                };
                let grid = grid_of(kernel.id(), input.len().div_ceil(BLOCK))?;
                let arguments = lab::SteppedArgs { input: input.view(), output: output.view_mut(), steps: STEPS };
                return gpu.launch(kernel, grid, arguments);
            }
            Self::Predicated => lab::predicated::handle(),
            Self::LoopUnrolled => lab::loop_unrolled::handle(),
            Self::SyncCount => lab::sync_count::handle(),
            Self::SyncAnd => lab::sync_and::handle(),
            Self::SyncOr => lab::sync_or::handle(),
        };
        let grid = grid_of(plain.id(), input.len().div_ceil(BLOCK))?;
        gpu.launch(plain, grid, lab::PlainArgs { input: input.view(), output: output.view_mut() })
    }

    /// The expected output for `input`, computed on the CPU.
    pub fn expected(self, input: &[u32]) -> Vec<u32> {
        let of_each = |f: &dyn Fn(usize, u32) -> u32| input.iter().enumerate().map(|(i, &x)| f(i % BLOCK, x)).collect();
        let of_block = |f: &dyn Fn(&[u32]) -> u32| {
            input.chunks(BLOCK).flat_map(|block| std::iter::repeat_n(f(block), block.len())).collect()
        };
        let choose = |first: bool, x| if first { multiply(x, STEPS) } else { shift(x, STEPS) };
        match self {
            Self::BranchByThread => of_each(&|thread, x| choose(thread % 2 == 0, x)),
            Self::BranchByWarp => of_each(&|thread, x| choose(thread / 32 % 2 == 0, x)),
            Self::Predicated => of_each(&|_, x| x.wrapping_add(if x % 2 == 1 { 8 } else { 1 })),
            Self::LoopRolled | Self::LoopUnrolled => of_each(&|_, x| multiply(x, STEPS)),
            Self::SyncCount => of_block(&|block| block.iter().filter(|&&x| x % 2 == 1).count() as u32),
            Self::SyncAnd => of_block(&|block| u32::from(block.iter().all(|&x| x % 2 == 1))),
            Self::SyncOr => of_block(&|block| u32::from(block.iter().any(|&x| x % 2 == 1))),
        }
    }
}
