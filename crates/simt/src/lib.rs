//! The SIMT executor: runs CUDA-style kernels on the CPU.
//!
//! A launch is a function that is called once for each thread of a grid ([`run`]). Inside of it the functions of
//! [`lane`] say which thread it is, and let it meet others: barriers of the block, shuffles and votes of the warp,
//! shared memory. The device standard library `cuda_std` is these functions' user; this crate knows nothing of kernels'
//! arguments.
//!
//! # How it works
//!
//! *Blocks* are independent, so they are spread over the cores: threads of the executor's own, which take them in the
//! order of their indices. So a block may wait for one before it, never for one after it.
//!
//! *The lanes of one block run on one core, one at a time*, as coroutines. A lane runs until it has to wait for others.
//! Then the scheduler (`block.rs`) runs the next one, in the order of their numbers, warp by warp. Operations of a warp
//! are done as soon as all lanes of their mask have come; the block's barrier when all lanes of the block have. So
//! lanes need no locks, and a run is repeatable.
//!
//! *A wait that cannot end is an error.* When no lane can go on, and not all of them wait at the same barrier, the
//! launch ends with a [`Fault`] that says who waits where. A GPU would hang, or go on with wrong values.
//!
//! A coroutine costs a stack. A lane that never waits needs none of its own: one fibre (`fibres.rs`) runs lane after
//! lane, and only when a lane waits does it keep the fibre, and the next lane gets another.
//!
//! # What can be seen of a launch
//!
//! What lanes do with memory is told to the executor by [`lane::access`] and its like. While a launch is watched
//! ([`Launch::watch`]) it is counted ([`profile`]: requests, sectors, bank conflicts, ...) and checked ([`Check`]:
//! races, reads of what nobody has written, ...); see the module `watch`. A [`Schedule`] changes the order in which
//! lanes run.
//!
//! # What a kernel must know
//!
//! - A lane that spins until another lane of its block writes something spins for ever: lanes change only where they
//!   wait by the functions of [`lane`]. A wait for another block calls [`lane::spin`] in each round, so that a launch
//!   ends with a fault when all blocks that run wait for each other. A loop that does not call it is not noticed.
//! - Its stack is 256 KiB. A lane that needs more ends the process at the stack's guard page, by a signal.
//! - The lanes of a block share one OS thread, and so its thread-local variables. An initialiser of a `thread_local!`
//!   must not wait for other lanes: one of them could initialise the variable meanwhile, and its reference would
//!   outlive what it refers to. The executor cannot notice that, as no call of its own lies between. `const { .. }`
//!   initialisers cannot wait. A `OnceLock` or `LazyLock` whose initialiser waits blocks the core's thread for ever as
//!   soon as a second lane comes to it; a `RefCell` that stays borrowed over a wait panics.
//! - It may use rayon and threads, but what runs on them is no lane.
//! - A lane that waits when its block has a [`Fault`] is unwound, without a panic's message: destructors run, and those
//!   that wait for others go on at once. As everywhere, a panic or fault inside of a destructor that runs while its
//!   thread unwinds ends the process.
//! - The process's panic hook is replaced once, at the first launch, by one that passes on all panics but those of
//!   lanes.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! // 2 blocks of 64 threads; each warp's lanes add their numbers by a reduction over the full mask.
//! let total = AtomicU32::new(0);
//! let launch = simt::Launch::new("example", 2, 64);
//! simt::run(&launch, &|| {
//!     let sum = simt::lane::vote(simt::lane::Vote::ReduceAdd, u32::MAX, simt::lane::lane_id());
//!     if simt::lane::lane_id() == 0 {
//!         total.fetch_add(sum, Ordering::Relaxed);
//!     }
//! })?;
//! assert_eq!(total.into_inner(), 4 * (31 * 32 / 2));
//! # Ok::<(), simt::Fault>(())
//! ```

mod counters;
mod dim;
mod events;
mod exec;
mod memory;
mod random;
mod sanitizer;

pub use counters::profile::{KernelProfile, Line, Profile};
pub use counters::traffic::{AtomicTraffic, Counters, GlobalTraffic, Range, SharedTraffic};
pub use dim::Dim3;
pub use exec::fault::{Fault, Place, Threads};
pub use exec::lane;
pub use exec::launch::{Launch, Limits, Watch};
pub use exec::run::{profile, run};
pub use exec::schedule::Schedule;
pub use memory::Argument;
pub use sanitizer::findings::{Check, Finding, Findings, ThreadEvent};
