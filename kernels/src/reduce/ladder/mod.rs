//! The reduction ladders: each rung is one kernel that changes one thing of the rung before.
//!
//! [`global`] folds in global memory, in place, as the first of the source documents does; [`shared`] in shared memory,
//! from the other two documents' six rungs on to the kernel that sums floats in the library.
//!
//! Each rung says what it changes, what that **saves** or **costs**, which **counter** shows it, and where it is from.
//! `docs/ladder/counters.md` has for each counter what it counts, the metric of Nsight Compute, and a command;
//! `docs/ladder/sources.md` has the numbered source documents ("seed 000", ...). One rung alone:
//! `bench ladder reduce --rung sequential`.

pub mod global;
pub mod shared;
