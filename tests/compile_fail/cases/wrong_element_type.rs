use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<i32>, partials: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let kernel = kernels::reduce::ladder::shared::sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, (input.view(), partials.view_mut()))
}

fn main() {}
