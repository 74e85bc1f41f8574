use cuda_std::prelude::*;

/// Without a wait for the previous grid, there is nothing to read parameters before.
#[kernel(prefetch_blocks = 528)]
pub fn first(output: GlobalMut<f32>) {
    output.store(0, 1.0);
}

fn main() {}
