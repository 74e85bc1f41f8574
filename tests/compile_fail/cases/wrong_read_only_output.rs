use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<f32>, partials: &Buffer<f32>) -> Result<(), warpfold::Error> {
    let kernel = kernels::reduce::ladder::shared::sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, (input.view(), partials.view()))
}

fn main() {}
