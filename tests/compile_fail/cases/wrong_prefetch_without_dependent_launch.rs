use cuda_std::prelude::*;

/// Parameters are read before the wait for the previous grid, which this kernel does not have.
#[kernel(prefetch_blocks = 528)]
pub fn first(output: GlobalMut<f32>) {
    output.store(0, 1.0);
}

fn main() {}
