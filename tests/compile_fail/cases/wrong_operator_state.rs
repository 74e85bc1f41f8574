//! An operator with a state of a size that threads cannot exchange.
use kernels::ops::Operator;

#[derive(Clone, Copy, Default)]
pub struct Moments;

impl Operator<f64> for Moments {
    type State = [f64; 5];
    type Output = [f64; 5];
    const NEUTRAL: [f64; 5] = [0.0; 5];

    fn lift(self, element: f64, _index: u64) -> [f64; 5] {
        [1, 2, 3, 4, 5].map(|power| element.powi(power))
    }
    fn combine(a: [f64; 5], b: [f64; 5]) -> [f64; 5] {
        core::array::from_fn(|i| a[i] + b[i])
    }
    fn finish(self, state: [f64; 5], _count: u64) -> [f64; 5] {
        state
    }
}

kernels::reductions! {
    Moments of f64: "the moments";
}

fn main() {}
