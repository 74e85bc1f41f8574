//! The kernels that build scripts have embedded: warpfold's own, and those of other crates.

use crate::ptx::Library;

/// The [`Library`](crate::ptx::Library) of a kernel crate, from the file that `cuda_builder`'s `embed` wrote in the
/// build script.
///
/// ```ignore
/// // In build.rs: CudaBuilder::new("kernels").arch(Arch::SM_75).build()?.embed("my_kernels.rs")?;
/// static KERNELS: Library = warpfold::include_library!("my_kernels");
/// ```
///
/// The argument is the name of the kernel crate, by which a kernel's PTX is looked up, and of the file, without `.rs`.
/// The build script is responsible for the file's contents, as for all code that it generates: it must build the crate
/// that the program is linked with. PTX from anywhere else goes through [`interop::library`](crate::interop::library),
/// which is unsafe.
#[macro_export]
macro_rules! include_library {
    ($crate_name:literal) => {{
        let name: &str = $crate_name;
        let archive: &[u8] = include!(concat!(env!("OUT_DIR"), "/", $crate_name, ".rs"));
        // SAFETY: the build script wrote the file with `cuda_builder`, from the crate of that name.
        unsafe { $crate::interop::library(name, archive) }
    }};
}

/// warpfold's own kernels.
pub static KERNELS: Library = include_library!("kernels");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::cuda_version;

    #[test]
    fn a_kernel_says_which_driver_it_needs() {
        // No entries if the library was built without PTX.
        for name in KERNELS.entries().unwrap() {
            for compute in [75, 80, 90] {
                assert!(cuda_version(&KERNELS.ptx(name, compute).unwrap()).is_some(), "{name}");
            }
        }
    }
}
