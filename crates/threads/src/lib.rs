//! Threads that work on the parts of a call.
//!
//! [`run`] calls a function with the number of each part, on the caller's thread and on those of a pool. The pool is
//! the process': a child that was forked has none of its parent's threads, and makes its own, without a lock that
//! another thread might have held during the fork. So a call works in any process, at any time.
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! let sum = AtomicUsize::new(0);
//! threads::run(10, &|part| {
//!     sum.fetch_add(part, Ordering::Relaxed);
//! });
//! assert_eq!(sum.into_inner(), 45);
//! ```
//!
//! [`Process`] tells a process from those that were forked from it.

mod call;
mod limit;
mod per_process;
mod pool;
mod process;

pub use limit::{VARIABLE, max, set_max};
pub use per_process::PerProcess;
pub use pool::run;
pub use process::Process;
