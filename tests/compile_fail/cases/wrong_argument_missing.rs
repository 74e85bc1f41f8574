use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::{Buffer, Gpu};

fn launch(gpu: &Gpu, input: &Buffer<f32>) -> Result<(), warpfold::Error> {
    gpu.launch(sequential::handle::<f32, 256>(), 1, FoldArgs { input: input.view() })
}

fn main() {}
