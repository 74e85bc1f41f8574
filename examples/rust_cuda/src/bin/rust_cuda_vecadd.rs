//! Adds two vectors, with the block size that the driver suggests: `cargo run --bin rust_cuda_vecadd`.

use anyhow::ensure;
use cust::prelude::*;

static PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

const LENGTH: usize = 100_000;

fn main() -> anyhow::Result<()> {
    // The context must be kept: objects can be created only while a context is current on this thread.
    let _context = cust::quick_init()?;
    let module = Module::from_ptx(PTX, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;

    let a: Vec<f32> = (0..LENGTH).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..LENGTH).map(|i| 0.5 * i as f32).collect();
    let (a_on_device, b_on_device) = (a.as_slice().as_dbuf()?, b.as_slice().as_dbuf()?);
    let mut sums = vec![0.0_f32; LENGTH];
    let out = sums.as_slice().as_dbuf()?;

    let add = module.get_function("add")?;
    let (_, block) = add.suggested_launch_configuration(0, 0.into())?;
    let grid = (LENGTH as u32).div_ceil(block);
    println!("{grid} blocks of {block} threads");

    // SAFETY: a slice takes two arguments, its address and its length. All three buffers have the same length, and none
    // is used before the stream's work has completed.
    unsafe {
        launch!(add<<<grid, block, 0, stream>>>(
            a_on_device.as_device_ptr(),
            a_on_device.len(),
            b_on_device.as_device_ptr(),
            b_on_device.len(),
            out.as_device_ptr(),
        ))?;
    }
    stream.synchronize()?;
    out.copy_to(&mut sums)?;

    let wrong = (0..LENGTH).find(|&i| sums[i] != a[i] + b[i]);
    ensure!(wrong.is_none(), "the sum at {wrong:?} is wrong");
    println!("{} + {} = {}: {LENGTH} sums are right", a[LENGTH - 1], b[LENGTH - 1], sums[LENGTH - 1]);
    Ok(())
}
