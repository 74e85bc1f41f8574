//! Functions whose requirements only the caller can meet: the only `unsafe fn` of this crate.
//!
//! Everything else in this crate is safe with any arguments. The arguments of these functions cannot be checked, so
//! each function states what the caller promises.

use crate::ptx::Library;

/// A library of PTX that [`include_library!`](crate::include_library) has not embedded: read from elsewhere, or written
/// by hand.
///
/// `archive` is what `cuda_builder`'s `Built::pack` makes. An empty archive makes a library without PTX.
///
/// ```compile_fail,E0133
/// use warpfold::ptx::Library;
///
/// // Kernels of that name would be launched with their own arguments, and this PTX could do anything with them.
/// static KERNELS: Library = warpfold::interop::library("my_kernels", b"");
/// ```
///
/// # Safety
/// The PTX of each entry is what `cuda_builder` makes of the crate `name` that the program is linked with: an entry
/// takes the parameters of the kernel of its name, and accesses no memory but what those allow. A launch checks its
/// arguments against the kernel's Rust signature, and cannot see whether the PTX agrees with it.
pub const unsafe fn library(name: &'static str, archive: &'static [u8]) -> Library {
    Library::new(name, archive)
}
