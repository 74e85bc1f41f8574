//! Code that the tests share: the test kernels' PTX, checks that run on either backend, and references.

pub mod arrays;
pub mod by_length;
pub mod by_shape;
pub mod calls;
pub mod cases;
pub mod chunks;
pub mod custom;
pub mod depth;
pub mod device_library;
pub mod exact;
pub mod exact_cross;
pub mod exact_edges;
pub mod exact_sums;
pub mod exact_words;
pub mod large_transposes;
pub mod one_hash;
pub mod order;
pub mod pairs;
pub mod reductions;
pub mod reference;
pub mod rust_cuda;
pub mod shape;
pub mod sizes;
pub mod soak;
pub mod streams;
pub mod strict;
pub mod tiles;
pub mod transposes;

use kernels::ladder::control_flow::warps_of_cube as warps_kernel;
use warpfold::ptx::Library;
use warpfold::{Error, Gpu, SimtOptions};

/// The PTX of `test_kernels`.
pub static TEST_KERNELS: Library = warpfold::include_library!("test_kernels");

/// The first CUDA device, with the test kernels.
///
/// # Errors
/// If there is none, or it cannot be used.
pub fn first_gpu() -> Result<Gpu, Error> {
    Gpu::with_libraries(0, &[&TEST_KERNELS])
}

/// `all` if the environment asks for all cases, else `otherwise`. `cargo xtask test --all` tries the same properties
/// with more cases, and takes several times as long.
pub fn times<N>(otherwise: N, all: N) -> N {
    if std::env::var("WARPFOLD_TESTS").is_ok_and(|tests| tests == "all") { all } else { otherwise }
}

/// The executor without checks, for tests of results.
pub fn executor() -> Gpu {
    Gpu::simt_with(SimtOptions { checks: false, ..SimtOptions::default() })
}

/// Whether the threads of a block of 8 x 8 x 8 form warps as CUDA specifies: 32 consecutive values of x + 8 y + 64 z.
///
/// # Errors
/// If the kernel cannot be run.
pub fn warps_of_cube(gpu: &Gpu) -> Result<bool, Error> {
    let mut out = gpu.zeroed::<u32>(512)?;
    let arguments = warps_kernel::Args { output: out.view_mut() };
    gpu.launch(warps_kernel::handle(), 1, arguments)?;
    let expected = (0..512).map(|thread| 256 * (thread / 32 * 32) + thread % 32);
    Ok(gpu.download(&out)?.into_iter().eq(expected))
}
