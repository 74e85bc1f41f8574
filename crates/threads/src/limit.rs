//! How many threads work on a call.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The environment variable with the maximum number of threads of a call. A value that is no number above 0 is ignored.
pub const VARIABLE: &str = "WARPFOLD_THREADS";

/// The number that was set, or 0.
static SET: AtomicUsize = AtomicUsize::new(0);

/// The maximum number of threads that work on a call, with the caller's: what was [set](set_max), else the value of the
/// environment variable `WARPFOLD_THREADS` when this was first asked, else the number of cores that the process may
/// use.
pub fn max() -> NonZero<usize> {
    static DEFAULT: OnceLock<NonZero<usize>> = OnceLock::new();
    let default = || {
        let variable = std::env::var(VARIABLE).ok().and_then(|text| text.trim().parse().ok());
        variable.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
    };
    NonZero::new(SET.load(Ordering::Relaxed)).unwrap_or_else(|| *DEFAULT.get_or_init(default))
}

/// Sets the maximum number of threads that work on a call from now on, in the whole process. With 1, a call works on
/// its caller's thread alone.
pub fn set_max(threads: NonZero<usize>) {
    SET.store(threads.get(), Ordering::Relaxed);
}
