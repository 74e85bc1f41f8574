//! What fits nowhere else.

use crate::backend;

/// A clock: on a GPU the multiprocessor's, in cycles (`%clock64`), which differs from one multiprocessor to another; in
/// the executor one for all threads, in nanoseconds.
#[inline(always)]
pub fn clock() -> u64 {
    backend::clock()
}
