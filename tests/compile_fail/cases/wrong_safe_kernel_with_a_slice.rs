use cuda_std::prelude::*;

/// Nothing checks what a kernel does with a slice or a pointer, so it has to be an `unsafe fn`.
#[kernel]
pub fn first(input: &[f32], output: *mut f32) {
    let _ = (input, output);
}

fn main() {}
