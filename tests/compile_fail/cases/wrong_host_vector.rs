//! A vector of the host in place of memory of the device.

use warpfold::Gpu;

fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::new(0)?;
    let numbers = vec![1.0_f32, 2.0];
    println!("{}", gpu.sum(&numbers)?);
    let mut copy = [0.0_f32; 2];
    gpu.copy_array(&gpu.upload(&numbers)?, &mut copy)?;
    Ok(())
}
