//! Words to the compiler.

use crate::backend;

/// Gives back `counter`, and keeps the loop that it counts as it was written: neither LLVM nor `ptxas` unrolls it.
/// For kernels that show what happens when a loop is left alone.
///
/// Call it first in the loop's body, on the variable that decides when the loop ends.
#[inline(always)]
pub fn keep_rolled(counter: u32) -> u32 {
    backend::keep_rolled(counter)
}

/// Gives back `word`, which is computed here: not later, in the one branch that needs it, with all that it is
/// computed of kept until then. Makes no instruction.
#[inline(always)]
pub fn compute_now(word: u32) -> u32 {
    backend::compute_now(word)
}

/// Gives back `number`. What was computed of it before is not kept for what is computed of it after this: where
/// registers are full, a few instructions more take less time than what is kept elsewhere. Makes no instruction.
#[inline(always)]
pub fn compute_anew(number: usize) -> usize {
    backend::compute_anew(number)
}
