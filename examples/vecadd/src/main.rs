//! Adds two vectors with custom kernels, on a GPU or in the executor: `cargo run -p vecadd`.

use anyhow::ensure;
use vecadd_kernels::{vecadd, vecadd_views};
use warpfold::Gpu;
use warpfold::ptx::Library;

static KERNELS: Library = warpfold::include_library!("vecadd_kernels");

fn main() -> anyhow::Result<()> {
    let gpu = Gpu::first_or_simt_with_libraries(&[&KERNELS])?;
    println!("on {}", gpu.info()?.name);

    let n = 100_000_u32;
    let a = gpu.upload(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;
    let b = gpu.upload(&(0..n).map(|i| (2 * i) as f32).collect::<Vec<_>>())?;
    let mut c = gpu.zeroed::<f32>(n as usize)?;
    let blocks = n.div_ceil(256);

    // SAFETY: in each launch with this handle, `c` has as many elements as `a`.
    let with_pointer = unsafe { vecadd::handle() }.with_block(256);
    gpu.launch(with_pointer, blocks, vecadd::Args { a: a.view(), b: b.view(), c: c.view_mut() })?;
    check(&gpu.download(&c)?)?;

    let mut c = gpu.zeroed::<f32>(n as usize)?;
    let with_views = vecadd_views::handle().with_block(256);
    gpu.launch(with_views, blocks, vecadd_views::Args { a: a.view(), b: b.view(), c: c.view_mut() })?;
    check(&gpu.download(&c)?)?;

    println!("{n} sums are right, twice");
    Ok(())
}

fn check(sums: &[f32]) -> anyhow::Result<()> {
    let wrong = sums.iter().enumerate().find(|(i, sum)| **sum != (3 * i) as f32);
    ensure!(wrong.is_none(), "the sum at {wrong:?} is wrong");
    Ok(())
}
