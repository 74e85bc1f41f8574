//! The NVIDIA driver's functions, loaded at run time.
//!
//! A program that uses this crate needs no CUDA toolkit to build, and starts on a machine without CUDA. The first call
//! of [`load()`] opens the driver's library, `libcuda.so.1` or `nvcuda.dll`. A [`Driver`] has a method for each driver
//! function that [`cust`](../cust/index.html) and warpfold use, under the function's own name.
//!
//! ```no_run
//! let driver = cuda_driver::load()?;
//! println!("CUDA {} at {}", driver.version(), driver.path().display());
//! // SAFETY: the function takes no pointer.
//! unsafe { driver.cuInit(0)? };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **If the driver is missing**, `load()` returns a [`LoadError`], which lists the libraries that were tried.
//! - **If the driver is too old for a function**, its method returns a [`MissingFunction`], with the function's name
//!   and the version of CUDA that introduced it. All other functions still work.
//! - **A result code** is a [`CUresult`], an integer with named constants. A code of a newer driver, without a constant
//!   here, is an error with its number.
//!
//! The types have the names of `cuda.h`. If a function has a newer version with a suffix (`cuMemAlloc_v2`), this crate
//! has the newer version. (In C, a macro of `cuda.h` adds the suffix.)
//!
//! The crate supports 64-bit Linux (also in WSL) and Windows. The environment variable [`OVERRIDE_VARIABLE`] selects
//! another library, or none.

#![warn(missing_docs)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("CUDA drivers are for 64-bit machines: a device address has 64 bits");

mod error;
mod functions;
mod load;
mod result;
mod types;
mod version;

pub use error::{Attempt, LoadError};
pub use functions::{Driver, FUNCTIONS};
pub use load::{OVERRIDE_VARIABLE, load};
pub use result::{CUresult, DriverError, MissingFunction};
pub use types::*;
pub use version::DriverVersion;
