//! Custom operators: the largest absolute value, and the exact sum of absolute values. Both ignore NaN.
#![no_std]

use kernels::ops::Operator;
use kernels::reduce::exact::custom::ExactTerm;

/// The largest absolute value, ignoring NaN.
#[derive(Clone, Copy, Default)]
pub struct Peak;

impl Operator<f32> for Peak {
    type State = f32;
    type Output = f32;
    const NEUTRAL: f32 = 0.0;

    fn lift(self, element: f32, _index: u64) -> f32 {
        if element.is_nan() { 0.0 } else { element.abs() }
    }
    fn combine(a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }
    fn finish(self, state: f32, _count: u64) -> f32 {
        state
    }
}

kernels::reductions! {
    Peak of f32: "the peak";
}

/// The exact sum of absolute values, ignoring NaN.
#[derive(Clone, Copy)]
pub struct Magnitude;

impl ExactTerm for Magnitude {
    type Element = f32;
    type Term = f32;
    type Sum = f32;

    fn term(x: f32) -> f32 {
        if x.is_nan() { 0.0 } else { x.abs() }
    }
}

kernels::exact_reductions! {
    Magnitude of f32: "the sum of magnitudes";
}
