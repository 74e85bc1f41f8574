//! Rust-CUDA's host API over the NVIDIA driver, without a CUDA toolkit.
//!
//! The names and signatures are those of Rust-CUDA's crate of the same name. The driver is loaded when it is first
//! used, by [`cuda_driver`]: a program links and starts on a machine without one, where [`init`] and [`quick_init`]
//! return [`error::CudaError::NoDriver`], whose text says what was looked for.
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
//! Safe code cannot cause undefined behavior. What a kernel does is not known here, so launches are unsafe, and so is
//! every copy that goes on after the call has returned.
//!
//! - An object ([`module::Module`], [`stream::Stream`], [`event::Event`], [`graph::Graph`], a buffer) keeps the context
//!   that it was created in alive, and enters it for what it does. It can be used and dropped on any thread, whatever
//!   context is current there. An error in `drop` is ignored; `DeviceBuffer::drop` and the like return it.
//! - A kernel can only be launched in a stream of its module's context. Anything else is
//!   [`error::CudaError::InvalidHandle`].
//! - A copy between slices of different lengths panics, as `copy_from_slice` does.
//! - A copy or a fill that is not `async` is done when it returns. Device memory that was just filled can be used in a
//!   stream of any flags.
//! - Slices of device memory ([`memory::DeviceSlice`]) borrow the buffer.
//! - Only types that are [`memory::DeviceCopy`] go to the device and come back: plain bits without references to the
//!   host's memory.
//! - The arguments of a launch are `DeviceCopy`, too. Their number and their types are **not** checked: the driver does
//!   not know them.
//!
//! # What differs from Rust-CUDA
//!
//! - [`error::CudaError`] has a variant for codes without a name, so it is no `u32`: `error.code().0` is.
//! - [`memory::DeviceSlice`] is unsized and borrowed, as a slice is; Rust-CUDA's can outlive its memory.
//! - [`stream::StreamFlags::NON_BLOCKING`] means what it says. Rust-CUDA ignores it.
//! - [`stream::Stream::add_callback`] takes closures that are `'static`, as they run later.
//! - PTX has to be text: a binary in its place is refused, and binaries are loaded by unsafe functions.
//! - Not here: textures, surfaces and arrays, external memory, the linker, the legacy context API, `UnifiedBox`,
//!   `LockedBox`, `DeviceVariable`, `Symbol`, and graphs that are built node by node.

#![warn(missing_docs)]

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
    /// Flags of [`init`]: none exist.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct CudaFlags: u32 {}
}

/// Loads the driver, if that has not been done, and starts it. It may be called again.
///
/// # Errors
/// No driver, no device, or another error of the driver.
pub fn init(flags: CudaFlags) -> CudaResult<()> {
    // SAFETY: passes an integer.
    unsafe { driver()?.cuInit(flags.bits())? };
    Ok(())
}

/// Starts the driver, and makes the context of the first device this thread's current one.
///
/// ```no_run
/// let _context = cust::quick_init()?;
/// # Ok::<(), cust::error::CudaError>(())
/// ```
///
/// # Errors
/// No driver, no device, or another error of the driver.
#[must_use = "the context is released when it is dropped, if nothing was created in it"]
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

/// A version of CUDA's driver interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaApiVersion {
    pub(crate) version: i32,
}

impl CudaApiVersion {
    /// The newest version that the driver implements.
    ///
    /// # Errors
    /// No driver.
    pub fn get() -> CudaResult<Self> {
        let mut version = 0;
        // SAFETY: writes one integer.
        unsafe { driver()?.cuDriverGetVersion(&mut version)? };
        Ok(Self { version })
    }

    /// The 13 of 13.0.
    pub fn major(self) -> i32 {
        self.version / 1000
    }

    /// The 0 of 13.0.
    pub fn minor(self) -> i32 {
        self.version % 1000 / 10
    }
}

/// What only this crate implements.
pub(crate) mod private {
    pub trait Sealed {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_two_parts() {
        let version = CudaApiVersion { version: 12040 };
        assert_eq!((version.major(), version.minor()), (12, 4));
    }
}
