use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<i32>, partials: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let arguments = FoldArgs { input: input.view(), partials: partials.view_mut() };
    gpu.launch(sequential::handle::<f32, 256>(), 1, arguments)
}

fn launch_at_once(gpu: &Gpu, input: &Buffer<i32>, partials: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let kernel = sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, FoldArgs { input: input.view(), partials: partials.view_mut() })
}

fn main() {}
