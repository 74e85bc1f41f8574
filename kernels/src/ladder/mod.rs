//! The ladders: teaching kernels, from the textbook's slowest to the fastest.
//!
//! Each rung is a kernel that differs from the previous rung in one thing.
//!
//! | module | contents |
//! |---|---|
//! | [`reduce_global`] | sums in global memory, in place: seed 000 |
//! | [`reduce_shared`] | sums in shared memory: seeds 002 and 003, and on to the library's own kernel |
//! | [`transpose`] | transposes: seed 004, and on to 16-byte accesses |
//! | [`control_flow`] | the cost of branches, loops and barriers: seed 001 |
//!
//! Each rung says what it changes, what the change **saves** or **costs**, which **counter** shows it, and its source.
//! `docs/ladder/counters.md` lists, for each counter, what it counts, the metric of Nsight Compute, and a command that
//! shows it. `docs/ladder/sources.md` lists the source documents, which are numbered ("seed 000", ...). `bench ladder
//! reduce --rung sequential` runs a single rung.
//!
//! The library launches none of these kernels. They are compiled only with the feature `ladder`.

pub mod control_flow;
pub mod reduce_global;
pub mod reduce_shared;
pub mod transpose;
