//! Multiplies matrices with two kernels, a naive one and one with tiles in shared memory.
//!
//! `cargo run --release --bin rust_cuda_gemm`

use anyhow::ensure;
use cust::event::{Event, EventFlags};
use cust::function::{BlockSize, GridSize};
use cust::launch;
use cust::memory::{CopyDestination as _, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::util::SliceExt as _;

static PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// The sizes of the square matrices. The first is not a multiple of [`TILE`].
const SIZES: [usize; 5] = [50, 128, 512, 1024, 2048];
const RUNS: u32 = 10;
const TILE: u32 = 16;

/// Row-major matrices on the device: `a` is `m` x `k`, `b` is `k` x `n`, `c` is `m` x `n`.
struct Product {
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    c: DeviceBuffer<f32>,
    m: usize,
    n: usize,
    k: usize,
}

impl Product {
    /// Computes `c = alpha * a * b + beta * c`.
    fn launch(&mut self, module: &Module, kernel: &str, stream: &Stream, alpha: f32, beta: f32) -> anyhow::Result<()> {
        let &mut Self { m, n, k, .. } = self;
        assert!(self.a.len() == m * k && self.b.len() == k * n && self.c.len() == m * n);
        let function = module.get_function(kernel)?;
        let tiles = |length: usize| length.div_ceil(TILE as usize) as u32;
        // In the naive kernel, x is the row; in the other one, it is the column.
        let is_naive = kernel == "gemm_naive";
        let grid = if is_naive { GridSize::xy(tiles(m), tiles(n)) } else { GridSize::xy(tiles(n), tiles(m)) };
        // SAFETY: the arguments match the parameters of both kernels, and the buffers have the lengths asserted above.
        unsafe {
            launch!(function<<<grid, BlockSize::xy(TILE, TILE), 0, stream>>>(
                self.a.as_device_ptr(),
                self.a.len(),
                self.b.as_device_ptr(),
                self.b.len(),
                self.c.as_device_ptr(),
                m,
                n,
                k,
                alpha,
                beta,
            ))?;
        }
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let _context = cust::quick_init()?;
    let module = Module::from_ptx(PTX, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    for kernel in ["gemm_naive", "gemm_tiled"] {
        check(&module, kernel, &stream)?;
        for size in SIZES {
            measure(&module, kernel, &stream, size)?;
        }
    }
    Ok(())
}

/// Compares a product of matrices that are not square with the host's. The elements are small integers, so the sums are
/// exact in any order.
fn check(module: &Module, kernel: &str, stream: &Stream) -> anyhow::Result<()> {
    let (m, n, k) = (37, 50, 70);
    let values = |count: usize, seed: usize| (0..count).map(move |i| ((i * seed) % 7) as f32 - 3.0).collect::<Vec<_>>();
    let (a, b, c) = (values(m * k, 5), values(k * n, 3), values(m * n, 11));
    let (on_a, on_b, on_c) = (a.as_slice().as_dbuf()?, b.as_slice().as_dbuf()?, c.as_slice().as_dbuf()?);
    let mut product = Product { a: on_a, b: on_b, c: on_c, m, n, k };
    product.launch(module, kernel, stream, 2.0, -1.0)?;
    stream.synchronize()?;
    let mut found = vec![0.0; m * n];
    product.c.copy_to(&mut found)?;
    for row in 0..m {
        for column in 0..n {
            let sum: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum();
            let (found, expected) = (found[row * n + column], 2.0 * sum - c[row * n + column]);
            ensure!(found == expected, "{kernel}: element ({row}, {column}) is {found}, expected {expected}");
        }
    }
    println!("{kernel}: {m} x {k} by {k} x {n} is right");
    Ok(())
}

/// Measures the product of square matrices, and prints its time.
fn measure(module: &Module, kernel: &str, stream: &Stream, size: usize) -> anyhow::Result<()> {
    let ones = vec![1.0_f32; size * size];
    let buffer = || DeviceBuffer::from_slice(&ones);
    let mut product = Product { a: buffer()?, b: buffer()?, c: buffer()?, m: size, n: size, k: size };
    product.launch(module, kernel, stream, 1.0, 0.0)?;
    let (start, stop) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
    start.record(stream)?;
    for _ in 0..RUNS {
        product.launch(module, kernel, stream, 1.0, 0.0)?;
    }
    stop.record(stream)?;
    stop.synchronize()?;
    let milliseconds = stop.elapsed_time_f32(&start)? / RUNS as f32;
    ensure!(product.c.as_host_vec()?.iter().all(|sum| *sum == size as f32), "{kernel}: {size} x {size} is wrong");
    println!("{kernel}: {size} x {size} in {milliseconds:.4} ms");
    Ok(())
}
