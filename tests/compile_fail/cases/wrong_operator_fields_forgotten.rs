//! An operator with a field, whose kernels would get the default one.
use kernels::ops::Operator;

#[derive(Clone, Copy, Default)]
pub struct CountAbove {
    limit: f32,
}

impl Operator<f32> for CountAbove {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;

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
    CountAbove of f32: "the number of elements above a limit";
}

fn main() {}
