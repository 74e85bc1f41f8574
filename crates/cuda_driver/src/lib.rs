//! The NVIDIA driver's functions, loaded at run time.
//!
//! A program that uses this crate links and starts on a machine without CUDA, and needs no CUDA toolkit to build:
//! [`load()`] opens the driver's library, `libcuda.so.1` or `nvcuda.dll`, when it is first called. A [`Driver`] has a
//! method for each of the driver's functions that [`cust`](../cust/index.html) and warpfold use, under the driver's
//! own name.
//!
//! ```no_run
//! let driver = cuda_driver::load()?;
//! println!("CUDA {} at {}", driver.version(), driver.path().display());
//! // SAFETY: the function takes no pointer.
//! unsafe { driver.cuInit(0)? };
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **A missing driver** is a [`LoadError`], which lists the libraries that were tried.
//! - **A missing function** of an older driver is a [`MissingFunction`], with the function's name and the version of
//!   CUDA that introduced it. The lookup of one function does not affect the others.
//! - **A result code** is a [`CUresult`], an integer with named constants. A code of a newer driver without a constant
//!   here is an error with its number.
//!
//! The types have the names of `cuda.h`. If a function has a newer version with a suffix (`cuMemAlloc_v2`), this crate
//! uses the newer version. In C, a macro adds the suffix.
//!
//! The crate supports 64-bit Linux (also in WSL) and Windows. [`OVERRIDE_VARIABLE`] selects a library, or none.

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
