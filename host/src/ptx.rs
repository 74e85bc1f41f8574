//! PTX embedded in a program, found by kernel and device.

use cuda_driver::DriverVersion;

use crate::{Error, KernelId};

/// The PTX of one kernel crate: each entry is its own module, for one or more architectures.
///
/// [`include_library!`](crate::include_library) makes one of what a build script has embedded.
#[derive(Debug)]
pub struct Library {
    name: &'static str,
    archs: &'static [(u32, &'static [Entry])],
}

/// An entry's name and its PTX, compressed by raw DEFLATE.
pub type Entry = (&'static str, &'static [u8]);

/// The [`Library`](crate::ptx::Library) of a kernel crate, from the file of that name that `cuda_builder`'s `embed` has
/// written in the build script.
///
/// ```ignore
/// // In build.rs: CudaBuilder::new("kernels").arch(Arch::SM_75).build()?.embed("my_kernels.rs")?;
/// static KERNELS: Library = warpfold::include_library!("my_kernels");
/// ```
///
/// The name is the crate's, by which a kernel finds its PTX. The build script is responsible for the file's contents,
/// as for all code that it generates: it builds the crate that the program is linked with. PTX from anywhere else goes
/// through [`interop::library`](crate::interop::library), which is unsafe.
#[macro_export]
macro_rules! include_library {
    ($crate_name:literal) => {{
        let name: &str = $crate_name;
        let archs: &[(u32, &[$crate::ptx::Entry])] = include!(concat!(env!("OUT_DIR"), "/", $crate_name, ".rs"));
        // SAFETY: the build script has written the file, by `cuda_builder`, of the crate of that name.
        unsafe { $crate::interop::library(name, archs) }
    }};
}

/// warpfold's own kernels.
pub static KERNELS: Library = include_library!("kernels");

impl Library {
    /// The library of the crate `name`, as [`crate::interop::library`] says.
    pub(crate) const fn new(name: &'static str, archs: &'static [(u32, &'static [Entry])]) -> Self {
        Self { name, archs }
    }

    /// The crate's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The entries' names, for the newest architecture.
    pub fn entries(&self) -> impl Iterator<Item = &'static str> {
        self.archs.first().into_iter().flat_map(|(_, entries)| entries.iter().map(|(name, _)| *name))
    }

    /// The newest PTX of an entry that a device of this compute capability (90 for `sm_90`) accepts, if any.
    pub fn ptx(&self, entry: &str, compute: u32) -> Option<String> {
        let (_, entries) = self.archs.iter().find(|(arch, _)| *arch <= compute)?;
        entries.binary_search_by_key(&entry, |(name, _)| name).ok().and_then(|i| unpack(entries[i].1))
    }

    /// The newest PTX of a kernel that a device of this compute capability accepts.
    pub(crate) fn find(&self, kernel: KernelId, compute: u32) -> Result<String, Error> {
        let Some((oldest, _)) = self.archs.last() else {
            return Err(Error::NoPtx { library: kernel.library.to_owned(), device: compute });
        };
        let oldest = *oldest;
        if compute < oldest {
            return Err(Error::UnsupportedDevice { kernel: kernel.entry.to_owned(), device: compute, oldest });
        }
        self.ptx(kernel.entry, compute)
            .ok_or_else(|| Error::UnknownKernel { entry: kernel.entry.to_owned(), library: kernel.library.to_owned() })
    }
}

/// The text of a compressed entry; none for bytes that `cuda_builder` has not compressed.
fn unpack(packed: &[u8]) -> Option<String> {
    String::from_utf8(miniz_oxide::inflate::decompress_to_vec(packed).ok()?).ok()
}

/// Checks that a driver can read a kernel's PTX.
pub(crate) fn check_driver(have: DriverVersion, kernel: KernelId, ptx: &str) -> Result<(), Error> {
    match cuda_version(ptx) {
        Some(need) if need > have => Err(Error::DriverTooOld { have, need, kernel: kernel.entry.to_owned() }),
        _ => Ok(()),
    }
}

/// The first CUDA version that reads this PTX, from its `.version`.
///
/// Source: PTX ISA, "Release Notes": 6.3 to 6.5 came with CUDA 10.0 to 10.2; from 7.0 on, PTX x.y came with CUDA (x +
/// 4).y.
pub(crate) fn cuda_version(ptx: &str) -> Option<DriverVersion> {
    let version = ptx.lines().find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = version.trim().split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(if major >= 7 {
        DriverVersion { major: major + 4, minor }
    } else {
        DriverVersion { major: 10, minor: minor.saturating_sub(3) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each a stored block, the plainest form of DEFLATE: a byte for "last", length and its complement, the bytes.
    static LIBRARY: Library = Library::new(
        "k",
        &[
            (90, &[("a", b"\x01\x05\0\xfa\xffnew a"), ("b", b"\x01\x05\0\xfa\xffnew b")]),
            (75, &[("a", b"\x01\x05\0\xfa\xffold a")]),
        ],
    );

    fn kernel(entry: &'static str) -> KernelId {
        KernelId { library: "k", entry }
    }

    #[test]
    fn the_newest_that_the_device_takes() {
        assert_eq!(LIBRARY.find(kernel("a"), 100).unwrap(), "new a");
        assert_eq!(LIBRARY.find(kernel("b"), 90).unwrap(), "new b");
        assert_eq!(LIBRARY.find(kernel("a"), 89).unwrap(), "old a");
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert!(LIBRARY.find(kernel("a"), 70).unwrap_err().to_string().contains("sm_75"));
        assert!(LIBRARY.find(kernel("c"), 90).unwrap_err().to_string().contains("`c`"));
        let error = Library::new("k", &[]).find(kernel("a"), 90).unwrap_err();
        assert!(matches!(error, Error::NoPtx { .. }), "{error}");
    }

    #[test]
    fn a_driver_that_is_too_old_is_named_with_what_it_should_be() {
        let check = |major, minor| check_driver(DriverVersion { major, minor }, kernel("a"), ".version 7.8\n");
        let message = check(11, 7).unwrap_err().to_string();
        assert!(message.contains("11.7") && message.contains("11.8") && message.contains("`a`"), "{message}");
        assert!(check(11, 8).is_ok() && check(13, 0).is_ok());
    }

    #[test]
    fn a_module_says_which_driver_it_needs() {
        // No entries if the library was built without PTX.
        for (_, entries) in KERNELS.archs {
            for (name, packed) in *entries {
                assert!(unpack(packed).is_some_and(|ptx| cuda_version(&ptx).is_some()), "{name}");
            }
        }
        assert_eq!(cuda_version(".version 6.3\n"), Some(DriverVersion { major: 10, minor: 0 }));
        assert_eq!(cuda_version("// x\n.version 7.8\n"), Some(DriverVersion { major: 11, minor: 8 }));
    }
}
