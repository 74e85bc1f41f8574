//! The ladders: teaching kernels, from the slowest of the textbook to the fastest.
//!
//! Each rung is one kernel that changes one thing of the rung before it.
//!
//! | module | contents |
//! |---|---|
//! | [`reduce_global`] | sums in global memory, in place: the first source document |
//! | [`reduce_shared`] | sums in shared memory: the next two source documents, and on to the library's own kernel |
//! | [`transpose`] | transposes: the fourth source document, and on to 16-byte accesses |
//! | [`control_flow`] | the cost of branches, loops and barriers |
//!
//! Each rung says what it changes, what the change **saves** or **costs**, which **counter** shows it, and its source.
//! `docs/ladder/counters.md` has for each counter what it counts, the metric of Nsight Compute, and a command.
//! `docs/ladder/sources.md` has the numbered source documents ("seed 000", ...). `bench ladder reduce --rung
//! sequential` runs one rung alone.
//!
//! The library launches none of these kernels. They are compiled with the feature `ladder` alone.

pub mod control_flow;
pub mod reduce_global;
pub mod reduce_shared;
pub mod transpose;
