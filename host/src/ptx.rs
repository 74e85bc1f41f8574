//! Kernels embedded in a program, found by name and device: PTX of all, and cubins of some.

use std::fmt;
use std::sync::OnceLock;

use cuda_driver::{Driver, DriverVersion};
use ptx_archive::{Archive, Damaged, cubin_of, is_cubin};

use crate::{Error, KernelId};

/// The PTX of one kernel crate: each entry is a module of its own, for one or more architectures. An entry is unpacked
/// when it is used.
///
/// An entry may have cubins, too, its machine code for some architectures, so that the driver need not compile it.
///
/// [`include_library!`](crate::include_library) makes one of the PTX that a build script has embedded.
pub struct Library {
    name: &'static str,
    bytes: &'static [u8],
    archive: OnceLock<Result<Archive<'static>, Damaged>>,
}

impl Library {
    /// The library of the crate `name`. [`crate::interop::library`] states the requirements.
    pub(crate) const fn new(name: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, bytes, archive: OnceLock::new() }
    }

    /// The crate's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The entries' names, sorted.
    ///
    /// # Errors
    /// [`Error::DamagedKernels`].
    pub fn entries(&self) -> Result<impl Iterator<Item = &'static str>, Error> {
        let names = self.archive()?.into_iter().flat_map(|archive| archive.names().iter().copied());
        Ok(names.filter(|name| !is_cubin(name)))
    }

    /// The newest PTX of an entry that a device of this compute capability (90 for `sm_90`) accepts.
    ///
    /// # Errors
    /// The library does not have the entry, or has it only for newer devices, or is damaged.
    pub fn ptx(&self, entry: &str, compute: u32) -> Result<String, Error> {
        let no_ptx = || Error::NoPtx { library: self.name.to_owned(), device: compute };
        let archive = self.archive()?.ok_or_else(no_ptx)?;
        let oldest = *archive.archs().last().ok_or_else(no_ptx)?;
        if compute < oldest {
            return Err(Error::UnsupportedDevice { kernel: entry.to_owned(), device: compute, oldest });
        }
        let unknown = || Error::UnknownKernel { entry: entry.to_owned(), library: self.name.to_owned() };
        let ptx = self.newest(archive, entry, |arch| arch <= compute)?.ok_or_else(unknown)?;
        String::from_utf8(ptx).map_err(|_| self.damaged(Damaged { what: "a text is not UTF-8" }))
    }

    /// The cubin of an entry for a device of this compute capability; `None` if the library has none.
    ///
    /// A cubin runs on devices of its major compute capability whose minor one is not lower than its own. Source: CUDA
    /// C++ Programming Guide, "Binary Compatibility".
    ///
    /// # Errors
    /// [`Error::DamagedKernels`].
    pub(crate) fn cubin(&self, entry: &str, compute: u32) -> Result<Option<Vec<u8>>, Error> {
        let Some(archive) = self.archive()? else { return Ok(None) };
        self.newest(archive, &cubin_of(entry), |arch| arch / 10 == compute / 10 && arch <= compute)
    }

    /// The text of this name for the newest of the architectures that run on the device.
    fn newest(&self, archive: &Archive<'_>, name: &str, runs: impl Fn(u32) -> bool) -> Result<Option<Vec<u8>>, Error> {
        let texts = archive.archs().iter().filter(|&&arch| runs(arch)).map(|&arch| archive.unpack(name, arch));
        texts.filter_map(Result::transpose).next().transpose().map_err(|damaged| self.damaged(damaged))
    }

    /// The archive; `None` if the program was built without one.
    fn archive(&self) -> Result<Option<&Archive<'static>>, Error> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        self.archive.get_or_init(|| Archive::parse(self.bytes)).as_ref().map(Some).map_err(|&error| self.damaged(error))
    }

    fn damaged(&self, Damaged { what }: Damaged) -> Error {
        Error::DamagedKernels { library: self.name.to_owned(), what }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("name", &self.name).field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The function by which a fake driver of the tests says that it runs no kernels.
const FAKE_DRIVER: &str = "warpfoldFakeDriver";

/// A stub for a kernel without PTX, if this is a fake driver: it loads the stub, and its launches do nothing. So the
/// tests of the calls into the driver need no build of the kernels. No other driver gets a stub, and none would accept
/// one: `.stub` is not PTX.
pub(crate) fn stub(driver: &Driver, entry: &str) -> Option<String> {
    driver.function(FAKE_DRIVER)?;
    // Whether a launch has attributes depends on this instruction.
    Some(format!(".version 6.3\n.target sm_75\n.stub griddepcontrol.wait\n.visible .entry {entry}()\n"))
}

/// Checks that a driver is new enough for a kernel's PTX.
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
    use ptx_archive::{Effort, Text};

    use super::*;

    /// A library of `a`, for two architectures and with a cubin for the older one, and `b`, for the newer one.
    fn packed() -> Vec<u8> {
        let text = |name, arch, contents: &'static str| Text { name, arch, contents: contents.as_bytes() };
        let texts = [
            text("a", 90, "new a"),
            text("a", 75, "old a"),
            text("cubin:a", 75, "machine code"),
            text("b", 90, "new b"),
        ];
        ptx_archive::pack(&texts, Effort::Small).unwrap()
    }

    fn library(bytes: Vec<u8>) -> Library {
        Library::new("k", bytes.leak())
    }

    #[test]
    fn a_device_gets_the_newest_ptx_that_it_accepts() {
        let library = library(packed());
        assert_eq!(library.ptx("a", 100).unwrap(), "new a");
        assert_eq!(library.ptx("b", 90).unwrap(), "new b");
        assert_eq!(library.ptx("a", 89).unwrap(), "old a");
        assert_eq!(library.entries().unwrap().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_device_gets_a_cubin_of_its_major_compute_capability() {
        let library = library(packed());
        let cubin = |entry, compute| library.cubin(entry, compute).unwrap();
        assert_eq!([cubin("a", 75), cubin("a", 78)], [(); 2].map(|()| Some(b"machine code".to_vec())));
        assert_eq!([cubin("a", 72), cubin("a", 80), cubin("a", 90), cubin("b", 75)], [const { None }; 4]);
        assert_eq!(Library::new("k", &[]).cubin("a", 75).unwrap(), None);
    }

    #[test]
    fn a_cubin_may_be_for_a_newer_architecture_than_the_ptx() {
        let texts = [("a", 75, "ptx"), ("cubin:a", 90, "machine code")];
        let texts = texts.map(|(name, arch, contents)| Text { name, arch, contents: contents.as_bytes() });
        let library = library(ptx_archive::pack(&texts, Effort::Fast).unwrap());
        assert_eq!(library.ptx("a", 90).unwrap(), "ptx");
        assert_eq!(library.cubin("a", 90).unwrap().as_deref(), Some(&b"machine code"[..]));
    }

    #[test]
    fn an_error_names_what_is_missing() {
        let full = library(packed());
        assert!(full.ptx("a", 70).unwrap_err().to_string().contains("sm_75"));
        assert!(full.ptx("d", 90).unwrap_err().to_string().contains("`d`"));
        assert!(matches!(full.ptx("b", 80), Err(Error::UnknownKernel { .. })));
        for bytes in [Vec::new(), ptx_archive::pack(&[], Effort::Fast).unwrap()] {
            let empty = library(bytes);
            assert!(matches!(empty.ptx("a", 90), Err(Error::NoPtx { .. })));
            assert_eq!(empty.entries().unwrap().count(), 0);
        }
    }

    #[test]
    fn a_flipped_byte_anywhere_is_an_error() {
        let bytes = packed();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0xFF;
            let library = library(flipped);
            let ptx = [("a", 90), ("a", 75), ("b", 90)].map(|(entry, compute)| library.ptx(entry, compute));
            let cubin = library.cubin("a", 75).map(|cubin| String::from_utf8_lossy(&cubin.unwrap()).into_owned());
            let all: Vec<_> = ptx.into_iter().chain([cubin]).collect();
            assert!(all.iter().any(|ptx| matches!(ptx, Err(Error::DamagedKernels { .. }))), "byte {at}: {all:?}");
            for (ptx, right) in all.iter().zip(["new a", "old a", "new b", "machine code"]) {
                assert!(ptx.as_ref().is_ok_and(|ptx| ptx == right) || ptx.is_err(), "byte {at}: {ptx:?}");
            }
        }
    }

    #[test]
    fn an_old_driver_is_reported_with_the_version_needed() {
        let kernel = KernelId { library: "k", entry: "a" };
        let check = |major, minor| check_driver(DriverVersion { major, minor }, kernel, ".version 7.8\n");
        let message = check(11, 7).unwrap_err().to_string();
        assert!(message.contains("11.7") && message.contains("11.8") && message.contains("`a`"), "{message}");
        assert!(check(11, 8).is_ok() && check(13, 0).is_ok());
    }

    #[test]
    fn a_text_says_which_driver_it_needs() {
        assert_eq!(cuda_version(".version 6.3\n"), Some(DriverVersion { major: 10, minor: 0 }));
        assert_eq!(cuda_version("// x\n.version 7.8\n"), Some(DriverVersion { major: 11, minor: 8 }));
    }
}
