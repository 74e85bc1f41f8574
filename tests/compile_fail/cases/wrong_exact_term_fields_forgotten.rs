//! A term with a field, whose kernels would get the default one.
use kernels::reduce::exact::custom::ExactTerm;

#[derive(Clone, Copy, Default)]
pub struct Over {
    limit: f32,
}

impl ExactTerm for Over {
    type Element = f32;
    type Term = f32;
    type Sum = f32;

    fn term(self, x: f32) -> f32 {
        if x > self.limit { x } else { 0.0 }
    }
}

kernels::exact_reductions! {
    Over of f32: "the sum over a limit";
}

fn main() {}
