//! A custom reduction that faults on demand.

use kernels::ops::Operator;

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

kernels::reductions! {
    Strict of f32: "the strict sum";
}
