use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<f32>, partials: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let arguments = FoldArgs { input: input.view(), partial: partials.view_mut() };
    gpu.launch(sequential::handle::<f32, 256>(), 1, arguments)
}

fn main() {}
