//! Transposes.
//!
//! | module | contents |
//! |---|---|
//! | [`registers`] | small matrices of whole vectors, in registers |
//! | [`tiled`] | tiles in shared memory |
//! | [`packed`] | tall-skinny and short-wide matrices, and matrices of short contiguous segments |
//! | [`copy`] | matrices of long contiguous segments; and copies between any two layouts, the general method |
//! | [`digits`] | the positions of elements in two layouts |
//! | [`tuning`] | the constants chosen by measurement |

pub mod copy;
pub mod digits;
pub mod packed;
pub mod registers;
pub mod tiled;
pub mod tuning;

use cuda_std::prelude::*;

use tuning::DEPENDENT_LAUNCH_BLOCKS;

/// Lets the next grid's blocks start, if this grid has at most [`DEPENDENT_LAUNCH_BLOCKS`].
#[inline(always)]
#[track_caller]
fn launch_dependents() {
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS {
        thread::launch_dependents();
    }
}
