//! Exact sums of elements that are too short: for any, and for two terms.
use kernels::reduce::exact::custom::{ExactTerm, LowTerm};

pub struct OfBytes;

impl ExactTerm for OfBytes {
    type Element = u8;
    type Term = f32;
    type Sum = f32;
    fn term(x: u8) -> f32 {
        x.into()
    }
}

pub struct WithLow;

impl ExactTerm for WithLow {
    type Element = u16;
    type Term = f32;
    type Sum = f32;
    const LOW: Option<LowTerm<Self>> = Some(|_, term| term);
    fn term(x: u16) -> f32 {
        x.into()
    }
}

kernels::exact_reductions! {
    OfBytes of u8: "the sum of bytes";
    WithLow of u16: "the sum, twice";
}

fn main() {}
