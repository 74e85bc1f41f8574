//! The teaching kernels, by name: each rung of the ladders, ready to be run, checked and timed.
//!
//! | ladder | rungs | kernels |
//! |---|---|---|
//! | reductions | [`ReduceRung`] | [`kernels::ladder::reduce_global`], [`kernels::ladder::reduce_shared`] |
//! | transposes | [`TransposeRung`] | [`kernels::ladder::transpose`] |
//! | control flow and synchronisation | [`ControlFlowRung`] | [`kernels::ladder::control_flow`] |

mod control_flow;
mod reduce;
mod single_launch;
mod transpose;

pub use control_flow::ControlFlowRung;
pub use reduce::{BLOCKS, LadderElement, PreparedSum, ReduceRung};
pub use transpose::TransposeRung;

use cuda_std::launch::KernelId;

use crate::Error;

/// The grid of `blocks` blocks along x.
fn grid_of(kernel: KernelId, blocks: usize) -> Result<u32, Error> {
    // CUDA's limit along x, on every device.
    const MAX_BLOCKS: usize = i32::MAX as usize;
    u32::try_from(blocks).ok().filter(|_| blocks <= MAX_BLOCKS).ok_or_else(|| Error::InvalidLaunch {
        kernel: kernel.entry.to_owned(),
        what: "the grid's size along x",
        value: blocks.to_string(),
        limit: MAX_BLOCKS.to_string(),
    })
}

/// The rung with this name.
fn find<R: Copy>(rungs: &[R], name: &str, name_of: impl Fn(R) -> &'static str) -> Result<R, Error> {
    rungs.iter().copied().find(|&rung| name_of(rung) == name).ok_or_else(|| Error::NoSuchRung {
        what: "rung",
        value: name.to_owned(),
        allowed: rungs.iter().map(|&rung| name_of(rung).to_owned()).collect(),
    })
}
