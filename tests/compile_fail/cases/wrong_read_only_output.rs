use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<f32>, partials: &Buffer<f32>) -> Result<(), warpfold::Error> {
    let kernel = sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, FoldArgs { input: input.view(), partials: partials.view() })
}

fn main() {}
