//! A buffer of a type that not all bits are valid for.
use warpfold::Gpu;

fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::simt();
    let flags = gpu.upload(&[true, false])?;
    gpu.download(&flags)?;
    Ok(())
}
