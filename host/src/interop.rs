//! Functions whose requirements only the caller can meet: the only `unsafe fn` of this crate.
//!
//! Everything else in this crate is safe with any arguments. The arguments of these functions cannot be checked, so
//! each function states what the caller promises.

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
