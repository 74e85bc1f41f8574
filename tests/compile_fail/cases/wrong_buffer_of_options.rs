//! A buffer of a type whose bits cannot be checked.
use warpfold::Gpu;

fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::simt();
    let flags = gpu.upload(&[Some(1_u8), None])?;
    gpu.download(&flags)?;
    Ok(())
}
