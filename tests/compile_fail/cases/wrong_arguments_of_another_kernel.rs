use cuda_std::prelude::*;
use warpfold::{Buffer, Gpu};

#[kernel]
pub fn add(numbers: GlobalMut<u32>, number: u32) {
    numbers.store(0, numbers.load(0) + number);
}

/// Parameters with the same names and types as those of `add`.
#[kernel]
pub fn multiply(numbers: GlobalMut<u32>, number: u32) {
    numbers.store(0, numbers.load(0) * number);
}

fn launch(gpu: &Gpu, numbers: &mut Buffer<u32>) -> Result<(), warpfold::Error> {
    let kernel = add::handle().with_block(1);
    gpu.launch(kernel, 1, multiply::Args { numbers: numbers.view_mut(), number: 3 })
}

fn main() {}
