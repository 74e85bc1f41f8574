//! Rust-CUDA's host API over the NVIDIA driver, without a CUDA toolkit.
//!
//! The names and signatures are those of Rust-CUDA's crate of the same name. The first call loads the driver, through
//! [`cuda_driver`], so a program links and starts on a machine without a driver. On such a machine, [`init`] and
//! [`quick_init`] return [`error::CudaError::NoDriver`], whose message lists the libraries that were tried.
//!
//! ```no_run
//! use cust::prelude::*;
//!
//! static PTX: &str = "..."; // In a real program: `include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"))`
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let _context = cust::quick_init()?;
//!     let module = Module::from_ptx(PTX, &[])?;
//!     let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
//!
//!     let x = [1.0_f32, 2.0, 3.0].as_dbuf()?;
//!     let mut doubled = [0.0_f32; 3];
//!     let out = doubled.as_dbuf()?;
//!     // SAFETY: the kernel is `fn double(x: &[f32], out: *mut f32)` and writes as many elements as it reads.
//!     unsafe { launch!(module.double<<<1, 3, 0, stream>>>(x.as_device_ptr(), x.len(), out.as_device_ptr()))? };
//!     stream.synchronize()?;
//!     out.copy_to(&mut doubled)?;
//!     Ok(())
//! }
//! ```
//!
//! # What is checked
//!
//! Safe code cannot cause undefined behavior. Launches are unsafe, because the crate does not know what a kernel does.
//! Asynchronous copies are unsafe, because they continue after the call has returned.
//!
//! - An object ([`module::Module`], [`stream::Stream`], [`event::Event`], [`graph::Graph`], a buffer) keeps its context
//!   alive, and makes it current during its own operations. So it can be used and dropped on any thread, whatever
//!   context is current there. Dropping a value ignores errors; the function `DeviceBuffer::drop` and those of the
//!   other types return them.
//! - A launch in a stream of another context than that of the kernel's module returns
//!   [`error::CudaError::InvalidHandle`].
//! - A copy between slices of different lengths panics, as `copy_from_slice` does.
//! - A synchronous copy or fill has completed when it returns. The memory can then be used in any stream.
//! - Slices of device memory ([`memory::DeviceSlice`]) borrow the buffer.
//! - Only types that implement [`memory::DeviceCopy`] can be copied to and from the device: plain bits without
//!   references to host memory.
//! - The arguments of a launch are `DeviceCopy`, too. Their number and their types are **not** checked, because the
//!   driver does not report them.
//!
//! # What differs from Rust-CUDA
//!
//! - [`error::CudaError`] has a variant for unknown codes, so it cannot be cast to a number: use `error.code().0`.
//! - [`memory::DeviceSlice`] is unsized and borrowed, as a slice is. Rust-CUDA's can outlive its memory.
//! - [`stream::StreamFlags::NON_BLOCKING`] has an effect. Rust-CUDA ignores it.
//! - [`stream::Stream::add_callback`] requires `'static` closures, because they run later.
//! - A binary in place of PTX is an error. Unsafe functions load binaries.
//! - New, for libraries: [`context::Context::retain`] and [`context::Context::enter`] leave the thread's current
//!   context as it is, and [`graph::RelaxedCapture`] leaves other libraries' captures alone.
//! - Missing: textures, surfaces and arrays, external memory, the linker, the legacy context API, `UnifiedBox`,
//!   `LockedBox`, `DeviceVariable`, `Symbol`, and graphs that are built node by node.

#![warn(missing_docs)]

pub mod capture;
pub mod context;
pub mod device;
pub mod error;
pub mod event;
pub mod function;
pub mod graph;
pub mod memory;
pub mod module;
pub mod prelude;
pub mod stream;
pub mod util;

pub use cuda_driver as sys;
pub use cust_derive::DeviceCopy;

use cuda_driver::Driver;

use crate::context::{Context, ContextFlags};
use crate::device::Device;
use crate::error::{CudaError, CudaResult};

// For `#[derive(DeviceCopy)]` in this crate's own tests.
#[cfg(test)]
extern crate self as cust;

bitflags::bitflags! {
    /// Flags of [`init`]: there are none.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CudaFlags: u32 {}
}

/// Initializes the driver. The first call loads it; later calls have no effect.
///
/// # Errors
/// No driver, no device, or another error of the driver.
pub fn init(flags: CudaFlags) -> CudaResult<()> {
    // SAFETY: passes an integer.
    unsafe { driver()?.cuInit(flags.bits())? };
    Ok(())
}

/// Initializes the driver, and makes the first device's context current on this thread.
///
/// ```no_run
/// let _context = cust::quick_init()?;
/// # Ok::<(), cust::error::CudaError>(())
/// ```
///
/// # Errors
/// No driver, no device, or another error of the driver.
#[must_use = "dropping the context releases it, unless an object was created in it"]
pub fn quick_init() -> CudaResult<Context> {
    init(CudaFlags::empty())?;
    let context = Context::new(Device::get_device(0)?)?;
    context.set_flags(ContextFlags::SCHED_AUTO)?;
    Ok(context)
}

/// The driver, loaded at the first call.
#[inline]
pub(crate) fn driver() -> CudaResult<&'static Driver> {
    cuda_driver::load().map_err(|_| CudaError::NoDriver)
}

/// A version of the CUDA driver API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaApiVersion {
    pub(crate) version: i32,
}

impl CudaApiVersion {
    /// The newest version that the driver implements.
    ///
    /// # Errors
    /// The driver is missing.
    pub fn get() -> CudaResult<Self> {
        let mut version = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDriverGetVersion(&mut version)? };
        Ok(Self { version })
    }

    /// The major version: 13 for 13.0.
    pub fn major(self) -> i32 {
        self.version / 1000
    }

    /// The minor version: 0 for 13.0.
    pub fn minor(self) -> i32 {
        self.version % 1000 / 10
    }
}

/// The supertrait of the traits that only this crate can implement.
pub(crate) mod private {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_a_major_and_a_minor_part() {
        let version = CudaApiVersion { version: 12040 };
        assert_eq!((version.major(), version.minor()), (12, 4));
    }
}
