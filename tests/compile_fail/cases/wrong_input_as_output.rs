use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, both: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let kernel = kernels::reduce::ladder::shared::sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, (both.view(), both.view_mut()))
}

fn main() {}
