use cuda_std::prelude::*;
use warpfold::{Buffer, Gpu};

#[kernel]
pub fn add(numbers: GlobalMut<u32>, number: u32) {
    numbers.store(0, numbers.load(0) + number);
}

fn launch(gpu: &Gpu, numbers: &mut Buffer<u32>, number: usize) -> Result<(), warpfold::Error> {
    let kernel = add::handle().with_block(1);
    gpu.launch(kernel, 1, add::Args { numbers: numbers.view_mut(), number })
}

fn main() {}
