//! The host program for the kernel of Rust-CUDA's guide, as short as possible: `cargo run --bin rust_cuda_guide`.

use anyhow::ensure;
use cust::prelude::*;

static PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

fn main() -> anyhow::Result<()> {
    let _context = cust::quick_init()?;
    let module = Module::from_ptx(PTX, &[])?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;

    let numbers = DeviceBuffer::from_slice(&[1.0_f32, 2.0, 3.0, 4.0])?;
    let sums = DeviceBuffer::<f32>::zeroed(4)?;
    let (address, length) = (numbers.as_device_ptr(), numbers.len());
    // SAFETY: the kernel takes two slices and a pointer, and both buffers have four elements.
    unsafe { launch!(module.add<<<1, 4, 0, stream>>>(address, length, address, length, sums.as_device_ptr()))? };
    stream.synchronize()?;

    let sums = sums.as_host_vec()?;
    ensure!(sums == [2.0, 4.0, 6.0, 8.0], "{sums:?}");
    println!("[1, 2, 3, 4] + [1, 2, 3, 4] = {sums:?}");
    Ok(())
}
