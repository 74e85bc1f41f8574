//! The SIMT executor: runs CUDA-style kernels on the CPU.
//!
//! [`run`] calls a function once for each thread of a grid. The function learns which thread it is from [`lane`], and
//! synchronizes with other threads through it: barriers of the block, shuffles and votes of the warp, shared memory.
//! The device standard library `cuda_std` is built on `lane`. This crate does not know kernels' arguments.
//!
//! # How it works
//!
//! *Blocks are spread over the cores.* The executor's own threads take blocks in the order of their indices. So a block
//! may wait for an earlier block, never for a later one.
//!
//! *The lanes of a block run on one core, one at a time, as coroutines.* A lane runs until it has to wait for other
//! lanes. Then the scheduler runs the next lane, in the order of their indices, warp by warp. An operation of a warp
//! completes when all lanes of its mask have reached it, a barrier when all threads of the block have. So lanes need no
//! locks, and a run is repeatable.
//!
//! *A wait that cannot end is an error.* If no lane can run, and the lanes do not all wait at the same barrier, the
//! launch ends with a [`Fault`] that says which lanes wait where. A GPU would hang, or continue with wrong values.
//!
//! *Only lanes that wait need a stack of their own.* One fibre runs lane after lane. When a lane waits it keeps the
//! fibre, and the next lane gets another one.
//!
//! # Counters and checks
//!
//! Lanes report their accesses by [`lane::access`] and similar functions. In a watched launch ([`Launch::watch`]) the
//! accesses are counted ([`profile()`]: requests, sectors, bank conflicts) and checked ([`Check`]: races, reads of
//! unwritten memory). A [`Schedule`] changes the order in which lanes run.
//!
//! Data flows one way. `exec` runs lanes, and passes what they do to `sanitizer` and `counters` as the `events` that
//! lie below all three. Outside a watched launch, an access costs one comparison.
//!
//! # Rules for kernels
//!
//! - Lanes switch only where they wait by the functions of [`lane`]. So a lane that spins until another lane of its
//!   block writes something spins for ever, unless it calls [`lane::sleep`] in each round. A loop that waits for
//!   another block calls [`lane::spin`] in each round: the launch then ends with a fault if all running blocks wait for
//!   each other. Without that call, the wait goes unnoticed.
//! - A stack is 256 KiB. A lane that needs more hits the stack's guard page, and a signal ends the process.
//! - The lanes of a block share one OS thread, and so its thread-local variables. The initializer of a `thread_local!`
//!   must not wait for other lanes: another lane could initialize the variable meanwhile, and the reference of one of
//!   them would dangle. The executor cannot detect this, because it is not called in between. `const { .. }`
//!   initializers cannot wait. A `OnceLock` or `LazyLock` whose initializer waits blocks the core for ever when a
//!   second lane reaches it. A `RefCell` that stays borrowed over a wait panics.
//! - A kernel may use rayon and threads, but what runs on them is not a lane.
//! - When a block has a [`Fault`], its waiting lanes are unwound, without a panic message. Destructors run; those that
//!   wait for other lanes return at once. As everywhere, a panic or fault in a destructor that runs during unwinding
//!   ends the process.
//! - The first launch replaces the process's panic hook by one that forwards all panics except those of lanes.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! // 2 blocks of 64 threads. The lanes of each warp add up their indices by a reduction over the full mask.
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
mod text;

pub use counters::advice::Advice;
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
