//! Functions whose requirements only the caller can meet: the only `unsafe fn` of this crate.
//!
//! Everything else in this crate is safe with any arguments. The arguments of these functions cannot be checked, so
//! each function states what the caller promises.
//!
//! # Memory and streams of other libraries
//!
//! An array of another CUDA library (cudarc, candle, burn, PyTorch, CuPy, JAX) is reduced and copied where it lies, on
//! that library's stream: [`on_stream`] makes a handle, and [`borrow`] or [`borrow_mut`] an array. What the other
//! library starts on the stream before and after is then in order with this library's work, without waiting.
//!
//! ```no_run
//! use std::ffi::c_void;
//!
//! use warpfold::{Error, Gpu, interop, ops};
//!
//! /// The sums of the rows of a matrix in the memory of another library, which has queued work on `stream` before.
//! fn sums_of_rows(gpu: &Gpu, stream: *mut c_void, matrix: u64, shape: [usize; 2], sums: u64) -> Result<(), Error> {
//!     let [rows, columns] = shape;
//!     // SAFETY: the stream exists, and the other library accesses both arrays only in its order.
//!     let (gpu, matrix, mut sums) = unsafe {
//!         let gpu = interop::on_stream(gpu, stream)?;
//!         let matrix = interop::borrow::<f32>(&gpu, matrix, &[rows, columns], &[columns as isize, 1])?;
//!         let sums = interop::borrow_mut::<f32>(&gpu, sums, &[rows], &[1])?;
//!         (gpu, matrix, sums)
//!     };
//!     gpu.reduce_into(ops::Sum, matrix.view(), 1, sums.view_mut())
//! }
//! ```
//!
//! A handle costs memory for workspaces, about 80 KiB from its first reduction on, so keep one for each stream.
//!
//! # Captures
//!
//! Another library may capture the stream into a CUDA graph, as `torch.cuda.graph` does. Then calls add their work to
//! the graph. What returns data to the host is [`Error::Captured`](crate::Error::Captured), and the capture goes on.
//! The graph keeps the memory that the work needs, of workspaces, buffers, and borrowed memory with an owner. The graph
//! may run beside later calls, so a [`Reducer`](crate::Reducer) that is started in a capture is for that graph alone.

mod memory;
mod stream;

pub use memory::{Borrowed, BorrowedMut, borrow, borrow_mut, borrow_mut_unchecked, exact_states};
pub use stream::{StreamId, on_stream, on_stream_of, stream_id};

use crate::ptx::Library;

/// A library of PTX that does not come from [`include_library!`](crate::include_library): read from a file, or written
/// by hand.
///
/// `archive` is what `cuda_builder`'s `Built::pack` makes. An empty archive makes a library without PTX.
///
/// ```compile_fail,E0133
/// use warpfold::ptx::Library;
///
/// // Kernels of that crate would be launched by this PTX, which could do anything with their arguments.
/// static KERNELS: Library = warpfold::interop::library("my_kernels", b"");
/// ```
///
/// # Safety
/// The PTX of each entry is what `cuda_builder` makes of the crate `name` that the program is linked with: an entry
/// takes the parameters of the kernel of its name, and accesses only the memory that these give it. A launch checks its
/// arguments against the kernel's Rust signature, and cannot check whether the PTX agrees with that signature. A cubin
/// is what `ptxas` makes of an entry's PTX, and complete.
pub const unsafe fn library(name: &'static str, archive: &'static [u8]) -> Library {
    Library::new(name, archive)
}
