use cuda_std::prelude::*;

/// A slice, also in parentheses.
#[kernel]
pub fn first(x: (&[u32]), y: GlobalMut<u32>) {
    y.store(0, x[0]);
}

fn main() {}
