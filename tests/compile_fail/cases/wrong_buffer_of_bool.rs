//! A buffer of a type with invalid bit patterns.
use warpfold::Gpu;

fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::simt();
    let flags = gpu.upload(&[true, false])?;
    gpu.download(&flags)?;
    Ok(())
}
