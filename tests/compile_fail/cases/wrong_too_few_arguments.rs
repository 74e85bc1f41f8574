use warpfold::Gpu;

fn launch(gpu: &Gpu, input: &warpfold::Buffer<f32>) -> Result<(), warpfold::Error> {
    gpu.launch(kernels::reduce::ladder::shared::sequential::handle::<f32, 256>(), 1, (input.view(),))
}

fn main() {}
