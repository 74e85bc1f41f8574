//! Compiler hints.

use crate::backend;

/// Returns `counter`, and keeps the loop that it counts rolled: neither LLVM nor `ptxas` unrolls it. For kernels that
/// show the cost of a rolled loop.
///
/// Call it first in the loop's body, on the variable that decides when the loop ends.
#[inline(always)]
pub fn keep_rolled(counter: u32) -> u32 {
    backend::keep_rolled(counter)
}

/// Returns `word`, and makes the compiler compute it here, not later in the one branch that uses it, so that its inputs
/// free their registers. Emits no instruction.
#[inline(always)]
pub fn compute_now(word: u32) -> u32 {
    backend::compute_now(word)
}

/// Returns `number`, opaque to the compiler, so that values computed from it are computed again instead of kept in
/// registers. Where registers are full, a few more instructions cost less than spills. Emits no instruction.
#[inline(always)]
pub fn compute_anew(number: usize) -> usize {
    backend::compute_anew(number)
}
