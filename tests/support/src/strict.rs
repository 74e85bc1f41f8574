//! A reduction that can be made to fail.

use cuda_std::prelude::*;
use kernels::ops::Operator;
use kernels::reduce::columns::{self, ColumnArgs};
use kernels::reduce::long_rows::{LongRowArgs, VECTORS_IN_FLIGHT, fold_long_rows};
use warpfold::reduce::Kernels;

/// A sum that faults at NaN.
#[derive(Clone, Copy, Default)]
pub struct Strict;

impl Operator<f32> for Strict {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;

    fn lift(self, element: f32, _index: u64) -> f32 {
        assert!(!element.is_nan(), "it is no number");
        element
    }
    fn combine(a: f32, b: f32) -> f32 {
        a + b
    }
    fn finish(self, state: f32, _count: u64) -> f32 {
        state
    }
}

/// Its kernel for whole inputs.
///
/// # Safety
/// The arguments are those of a plan.
#[kernel(max_threads = 512)]
pub unsafe fn strict(args: LongRowArgs<f32, f32>) {
    // SAFETY: the arguments are those of the engine.
    unsafe { fold_long_rows::<Strict, f32, VECTORS_IN_FLIGHT>(args) };
}

/// Its kernel for columns.
///
/// # Safety
/// The arguments are those of a plan.
#[kernel(block = columns::BLOCK)]
pub unsafe fn strict_columns(args: ColumnArgs<f32, f32, f32>) {
    // SAFETY: the arguments are those of the engine.
    unsafe { columns::columns::<Strict, f32>(args) };
}

/// Its kernels.
pub fn strict_kernels() -> Kernels<Strict, f32> {
    // SAFETY: only the plans of `Kernels` launch them.
    unsafe { Kernels::new("the strict sum", handle()).with_columns(strict_columns::handle()) }
}
