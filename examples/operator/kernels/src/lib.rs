//! Custom operators: the largest absolute value, and the exact sum of absolute values, NaN left out. warpfold's engines
//! do the rest.
#![no_std]

use cuda_std::prelude::*;
use kernels::ops::Operator;
use kernels::reduce::exact::custom::{ExactTerm, TermArgs, sum_terms};
use kernels::reduce::long_rows::{LongRowArgs, VECTORS_IN_FLIGHT, fold_long_rows};

/// The largest absolute value up to a limit; without NaN.
#[derive(Clone, Copy, Default)]
pub struct Peak {
    /// Larger absolute values are left out.
    pub limit: f32,
}

impl Operator<f32> for Peak {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;

    // The host gives the kernel the operator's fields as one word.
    fn to_word(self) -> u64 {
        self.limit.to_bits().into()
    }
    fn from_word(word: u64) -> Self {
        Self { limit: f32::from_bits(word as u32) }
    }
    fn lift(self, element: f32, _index: u64) -> f32 {
        if element.abs() <= self.limit { element.abs() } else { 0.0 }
    }
    fn combine(a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }
    fn finish(self, state: f32, _count: u64) -> f32 {
        state
    }
}

/// The kernel for whole buffers and long rows.
///
/// # Safety
/// The arguments are those that `warpfold::reduce::Kernels` launches it with: nothing here checks them.
#[kernel(max_threads = 512, min_blocks = 2, dependent_launch)]
pub unsafe fn peak(args: LongRowArgs<f32, f32>) {
    // SAFETY: the arguments are the engine's.
    unsafe { fold_long_rows::<Peak, f32, VECTORS_IN_FLIGHT>(args) };
}

/// The absolute value of what is a number: summed exactly.
pub struct Magnitude;

impl ExactTerm for Magnitude {
    type Element = f32;
    type Term = f32;

    fn term(x: f32) -> f32 {
        if x.is_nan() { 0.0 } else { x.abs() }
    }
}

/// The kernel for the exact sum over whole buffers and long rows, which is rounded once, to `f32`.
///
/// # Safety
/// The arguments are those that `warpfold::reduce::TermKernels` launches it with: nothing here checks them.
#[kernel(max_threads = 512, min_blocks = 1, dependent_launch)]
pub unsafe fn sum_of_magnitudes(args: TermArgs<f32, f32>) {
    // SAFETY: the arguments are the engine's.
    unsafe { sum_terms::<Magnitude, _>(args) };
}
