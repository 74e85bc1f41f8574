//! Runs launches: blocks on cores, and the lanes of a block as coroutines.
//!
//! | module | what it does |
//! |---|---|
//! | `launch` | a launch's shape and limits |
//! | `run` | runs a launch: spreads its blocks over the cores, and gathers faults and findings |
//! | `pool`, `worker` | the threads that run blocks, one block at a time |
//! | `scheduler` | runs the lanes of a block in an order |
//! | `warp_operations`, `barrier` | complete the operations that all of their lanes have reached |
//! | `arrivals` | which lanes have reached an operation |
//! | `warp` | what an operation of a warp computes |
//! | `stack` | switches between stacks |
//! | `slot`, `context` | the state of a block's lanes, and of the block that a core runs |
//! | `park` | how a lane waits, yields and ends |
//! | `fibres` | the coroutines that lanes run on |
//! | `spin`, `deadlock` | how a lane waits for another block, and when such waits never end |
//! | `shared` | shared memory |
//! | `lane` | what a kernel calls |
//! | `listener`, `hooks` | how a lane's accesses reach the monitor |
//! | `monitor` | passes events to `sanitizer` and `counters` |
//! | `operation`, `schedule`, `fault` | plain types |

mod arrivals;
mod barrier;
mod context;
mod deadlock;
pub(crate) mod fault;
mod fibres;
mod hooks;
pub mod lane;
pub(crate) mod launch;
mod listener;
mod monitor;
mod operation;
mod park;
mod pool;
pub(crate) mod run;
pub(crate) mod schedule;
mod scheduler;
mod shared;
mod slot;
mod spin;
mod stack;
mod warp;
mod warp_operations;
mod worker;
