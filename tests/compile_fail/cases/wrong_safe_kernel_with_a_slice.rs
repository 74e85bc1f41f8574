use cuda_std::prelude::*;

/// Nothing checks the accesses through a slice or a pointer, so the kernel must be an `unsafe fn`.
#[kernel]
pub fn first(input: &[f32], output: *mut f32) {
    let _ = (input, output);
}

fn main() {}
