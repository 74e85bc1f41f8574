use cuda_std::prelude::*;

/// Accesses through a slice or a pointer are not checked, so the kernel must be an `unsafe fn`.
#[kernel]
pub fn first(input: &[f32], output: *mut f32) {
    let _ = (input, output);
}

fn main() {}
