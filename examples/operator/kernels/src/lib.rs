//! Custom operators: the largest absolute value, the number of elements above a limit, and the exact sums of absolute
//! values, of all or of those above a limit. All ignore NaN.
#![no_std]

use kernels::ops::{Fields, Operator};
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

/// The number of elements above a limit. NaN is not above it.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct CountAbove {
    /// The limit.
    pub limit: f32,
}

impl Operator<f32> for CountAbove {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    // A sum of integers has the same bits in any order.
    const ANY_ORDER: bool = true;
    // So several axes can be reduced at once.
    const USES_INDEX: bool = false;
    // Kernels get the limit.
    const FIELDS: Fields<Self> = Fields::plain();

    fn lift(self, element: f32, _index: u64) -> u64 {
        u64::from(element > self.limit)
    }
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    fn finish(self, state: u64, _count: u64) -> u64 {
        state
    }
}

kernels::reductions! {
    Peak of f32: "the peak";
    CountAbove of f32: "the number of elements above a limit";
}

/// The exact sum of absolute values, ignoring NaN.
#[derive(Clone, Copy, Default)]
pub struct Magnitude;

impl ExactTerm for Magnitude {
    type Element = f32;
    type Term = f32;
    type Sum = f32;

    fn term(self, x: f32) -> f32 {
        if x.is_nan() { 0.0 } else { x.abs() }
    }
}

/// The exact sum of the absolute values above a limit, ignoring NaN.
#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct Over {
    /// The limit.
    pub limit: f32,
}

impl ExactTerm for Over {
    type Element = f32;
    type Term = f32;
    type Sum = f32;
    // Kernels get the limit.
    const FIELDS: Fields<Self> = Fields::plain();

    fn term(self, x: f32) -> f32 {
        if x.abs() > self.limit { x.abs() } else { 0.0 }
    }
}

kernels::exact_reductions! {
    Magnitude of f32: "the sum of magnitudes";
    Over of f32: "the sum of magnitudes over a limit";
}
