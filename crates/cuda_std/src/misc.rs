//! A clock.

use crate::backend;

/// Reads a clock. On a GPU it counts cycles of the multiprocessor (`%clock64`), and no two multiprocessors agree. In
/// the executor it counts nanoseconds, and all threads share it.
#[inline(always)]
pub fn clock() -> u64 {
    backend::clock()
}
