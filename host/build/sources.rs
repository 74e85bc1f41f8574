//! The sources of the prebuilt kernels, and whether they have changed since.
//!
//! `cargo xtask build-ptx --pack` writes this file beside the archive:
//!
//! ```text
//! archive 0123456789abcdef                    the archive's digest
//! compiler rustc 1.95.0 (59807616e 2026-04-14)
//! package half 2.7.1                          a package from a registry that the kernels use
//! file 0123456789abcdef kernels/src/lib.rs    a source file's digest
//! ```
//!
//! The files are those that the compiler read for the device. A file that is added also changes a file listed here: the
//! one with its `mod`.

use std::fs;
use std::path::Path;

/// The archive, in the folder of the package.
pub const ARCHIVE: &str = "prebuilt/kernels.ptx-archive";

/// The list of the archive's sources, in the folder of the package.
pub const SOURCES: &str = "prebuilt/kernels.sources";

/// FNV-1a of a text, without carriage returns, which git may add.
pub fn digest(text: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.iter().filter(|byte| **byte != b'\r').fold(0xcbf2_9ce4_8422_2325_u64, fold)
}

/// Whether `sources` was written together with this archive.
pub fn is_of(archive: &[u8], sources: &str) -> bool {
    let expected = sources.lines().find_map(|line| line.strip_prefix("archive "));
    expected == Some(&format!("{:016x}", digest(archive)))
}

/// The first file or package in the workspace `root` that differs from `sources`, for a message.
pub fn difference(root: &Path, sources: &str) -> Option<String> {
    let lock = fs::read_to_string(root.join("Cargo.lock")).map(|lock| lock.replace('\r', ""));
    sources.lines().find_map(|line| {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["file", expected, file] => {
                let same = fs::read(root.join(file)).is_ok_and(|text| format!("{:016x}", digest(&text)) == expected);
                (!same).then(|| file.to_owned())
            }
            ["package", name, version] => {
                let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
                let same = lock.as_ref().is_ok_and(|lock| lock.contains(&entry));
                (!same).then(|| format!("`{name}` in Cargo.lock"))
            }
            _ => None,
        }
    })
}

/// The files in `sources`.
pub fn files(sources: &str) -> impl Iterator<Item = &str> {
    sources.lines().filter_map(|line| line.strip_prefix("file ")?.split_once(' ').map(|(_, file)| file))
}
