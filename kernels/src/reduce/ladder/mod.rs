//! The reduction ladders: each rung is one kernel that changes one thing of the rung before.
//!
//! [`global`] folds in global memory, in place, as the first of the source documents does; [`shared`] in shared memory,
//! from the other two documents' six rungs on to the production kernel.

pub mod global;
pub mod shared;
