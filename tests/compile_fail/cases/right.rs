//! The correct launch, of which other cases are wrong versions.
use kernels::ladder::reduce_shared::{FoldArgs, sequential};
use warpfold::Gpu;

pub fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::simt();
    let input = gpu.upload(&[1.0_f32; 256])?;
    let mut partials = gpu.zeroed::<f32>(1)?;
    let kernel = sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, FoldArgs { input: input.view(), partials: partials.view_mut() })?;
    assert_eq!(gpu.download(&partials)?, [256.0]);
    Ok(())
}
