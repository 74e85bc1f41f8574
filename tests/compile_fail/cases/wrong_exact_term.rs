//! Exact sums of elements that are too short: for any, and for two terms.
use kernels::reduce::exact::custom::{ExactTerm, LowTerm};

#[derive(Clone, Copy, Default)]
pub struct OfBytes;

impl ExactTerm for OfBytes {
    type Element = u8;
    type Term = f32;
    type Sum = f32;
    fn term(self, x: u8) -> f32 {
        x.into()
    }
}

#[derive(Clone, Copy, Default)]
pub struct WithLow;

impl ExactTerm for WithLow {
    type Element = u16;
    type Term = f32;
    type Sum = f32;
    const LOW: Option<LowTerm<Self>> = Some(|_, _, term| term);
    fn term(self, x: u16) -> f32 {
        x.into()
    }
}

kernels::exact_reductions! {
    OfBytes of u8: "the sum of bytes";
    WithLow of u16: "the sum, twice";
}

fn main() {}
