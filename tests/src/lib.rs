//! What the tests share: the test kernels' PTX, and runs of them on either machine.

pub mod device_library;
pub mod reference;

use warpfold::ptx::Library;
use warpfold::{Error, Gpu};

/// The PTX of `test_kernels`.
pub static TEST_KERNELS: Library = Library::new("test_kernels", include!(concat!(env!("OUT_DIR"), "/test_kernels.rs")));

/// The first CUDA device with the test kernels.
///
/// # Errors
/// There is none, or it cannot be used.
pub fn first_gpu() -> Result<Gpu, Error> {
    Gpu::with_libraries(0, &[&TEST_KERNELS])
}
