//! An operator with a field that is not plain.
use kernels::ops::{Fields, Operator};

#[derive(Clone, Copy, Default)]
pub struct CountAbove {
    is_upper: bool,
}

impl Operator<f32> for CountAbove {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const FIELDS: Fields<Self> = Fields::plain();

    fn lift(self, element: f32, _index: u64) -> u64 {
        u64::from(element > if self.is_upper { 1.0 } else { 0.0 })
    }
    fn combine(a: u64, b: u64) -> u64 {
        a + b
    }
    fn finish(self, state: u64, _count: u64) -> u64 {
        state
    }
}

kernels::reductions! {
    CountAbove of f32: "the number of elements above a limit";
}

fn main() {}
