//! An operator with more fields than a kernel gets.
use kernels::ops::{Fields, Operator};

#[derive(Clone, Copy, Default, cuda_std::Plain)]
#[repr(C)]
pub struct CountAbove {
    limits: [f32; 3],
}

impl Operator<f32> for CountAbove {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const FIELDS: Fields<Self> = Fields::plain();

    fn lift(self, element: f32, _index: u64) -> u64 {
        u64::from(element > self.limits[0])
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
