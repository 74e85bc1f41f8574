//! Words to the compiler, for kernels that show what it does when it is left alone.

use crate::machine;

/// Gives back `counter`, and keeps the loop that it counts as it was written: neither LLVM nor `ptxas` unrolls it.
///
/// Call it first in the loop's body, on the variable that decides when the loop ends.
#[inline(always)]
pub fn keep_rolled(counter: u32) -> u32 {
    machine::keep_rolled(counter)
}
