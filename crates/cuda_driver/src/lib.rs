//! Lets programs that use [`cust`](https://docs.rs/cust/0.3.2) link and start on a machine without
//! CUDA, and use the NVIDIA driver where there is one.
//!
//! `cust` declares the functions of the driver (`cuInit`, `cuLaunchKernel`, ...) and expects the
//! linker to find them in `libcuda.so`, which only a machine with a driver or a CUDA toolkit has.
//! This crate takes the place of that library:
//!
//! - The folder `toolkit/` of this package satisfies `cust`'s build script when the environment variable
//!   `CUDA_LIBRARY_PATH` names it. It holds an empty `lib64/libcuda.so`, so that `-lcuda` links nothing.
//! - The crate itself defines every driver function that `cust` declares, as a trampoline: a jump through a table of
//!   addresses.
//! - [`load()`] finds the driver at run time and fills the table. Until then, and on a machine without a driver, every
//!   function returns `CUDA_ERROR_STUB_LIBRARY` (34), which `cust` reports as `CudaError::UnknownError`. Only
//!   `cuGetErrorString` succeeds, because `cust` cannot print an error without it.
//!
//! ```no_run
//! let driver = cuda_driver::load()?;
//! println!("CUDA {} at {}", driver.version(), driver.path().display());
//! // From here on, `cust::init` and everything else in `cust` reaches the driver.
//! # Ok::<(), cuda_driver::LoadError>(())
//! ```
//!
//! A program that uses `cust` and never calls [`load()`] still links, if it mentions this crate
//! (`use cuda_driver as _;`). It never reaches a driver.
//!
//! Linux on x86-64 and on aarch64. Set [`OVERRIDE_VARIABLE`] to choose the driver library by hand,
//! or to do without one.

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!(
    "cuda_driver supports Linux on x86-64 and on aarch64; src/trampoline.rs says what another \
     target needs"
);

mod error;
mod load;
mod stub;
mod symbols;
mod trampoline;
mod version;

pub use error::{Attempt, LoadError};
pub use load::{Driver, OVERRIDE_VARIABLE, load};
pub use version::DriverVersion;
