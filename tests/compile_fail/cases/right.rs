//! The launch that the others get wrong.
use warpfold::Gpu;

pub fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::simt();
    let input = gpu.upload(&[1.0_f32; 256])?;
    let mut partials = gpu.zeroed::<f32>(1)?;
    let kernel = kernels::reduce::ladder::shared::sequential::handle::<f32, 256>();
    gpu.launch(kernel, 1, (input.view(), partials.view_mut()))?;
    assert_eq!(gpu.download(&partials)?, [256.0]);
    Ok(())
}
