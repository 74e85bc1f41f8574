use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, both: &mut Buffer<f32>) -> Result<(), warpfold::Error> {
    let arguments = FoldArgs { input: both.view(), partials: both.view_mut() };
    gpu.launch(sequential::handle::<f32, 256>(), 1, arguments)
}

fn main() {}
