//! The compiler of the device build.
//!
//! Any rustc of 1.95 or later works if it comes with the sources of the standard library, because `core` is compiled
//! for the device too. rustup's component `rust-src` adds them to its compiler; Debian's and Ubuntu's packages
//! `rustc-web` and `rust-web-src` contain both.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest version of rustc that is known to compile the kernels.
pub const OLDEST: (u32, u32) = (1, 95);

/// The environment variables that select the compiler.
pub const VARIABLES: [&str; 2] = ["WARPFOLD_DEVICE_RUSTC", "RUSTUP_TOOLCHAIN"];

/// The compiler of Debian's and Ubuntu's packages.
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// A compiler with the sources of its standard library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceToolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// Its version: `1.95.0`.
    pub version: String,
    /// Its version with the commit: `rustc 1.95.0 (59807616e 2026-04-14)`.
    pub full_version: String,
    /// The compiler's origin.
    pub origin: Origin,
}

/// The origin of a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The compiler of the build itself: rustup's, with the component `rust-src`.
    Toolchain,
    /// The packages of Debian or Ubuntu.
    Distribution,
    /// The path in `WARPFOLD_DEVICE_RUSTC`.
    Environment,
}

/// No compiler on this machine can build for the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no compiler here can build kernels ({}): run `cargo xtask setup` (or `rustup component add rust-src`)",
    tried.join("; ")
)]
pub struct NoToolchain {
    /// Each compiler that was tried, and what it lacks.
    pub tried: Vec<String>,
}

impl DeviceToolchain {
    /// The first usable compiler: the one in `WARPFOLD_DEVICE_RUSTC`, the build's own, Debian's.
    ///
    /// # Errors
    /// If none is usable.
    pub fn find() -> Result<Self, NoToolchain> {
        if let Some(named) = env::var_os("WARPFOLD_DEVICE_RUSTC") {
            return Self::inspect(Path::new(&named), Origin::Environment)
                .map_err(|why| NoToolchain { tried: vec![why] });
        }
        let own = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
        let mut tried = Vec::new();
        for (rustc, origin) in
            [(Path::new(&own), Origin::Toolchain), (Path::new(DISTRIBUTION_RUSTC), Origin::Distribution)]
        {
            match Self::inspect(rustc, origin) {
                Ok(found) => return Ok(found),
                Err(why) => tried.push(why),
            }
        }
        Err(NoToolchain { tried })
    }

    /// Checks one compiler; the error says what it lacks.
    fn inspect(rustc: &Path, origin: Origin) -> Result<Self, String> {
        let says = |argument: &[&str]| {
            let output = Command::new(rustc).args(argument).output().ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let name = rustc.display();
        let full_version = says(&["--version"]).ok_or_else(|| format!("`{name}` does not exist"))?;
        let version = full_version.split_whitespace().nth(1).unwrap_or_default().to_owned();
        if !is_recent(&version) {
            return Err(format!("`{name}` is {version}, older than {}.{}", OLDEST.0, OLDEST.1));
        }
        let sysroot = says(&["--print", "sysroot"]).ok_or_else(|| format!("`{name}` has no sysroot"))?;
        let sources = Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock");
        if !sources.exists() {
            return Err(format!("`{name}` {version} has no rust-src"));
        }
        Ok(Self { rustc: rustc.to_owned(), version, full_version, origin })
    }
}

fn is_recent(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_recent("1.95.0") && is_recent("1.100.0-nightly") && is_recent("2.0.0"));
        assert!(!is_recent("1.63.0") && !is_recent("1.9.0") && !is_recent("unknown"));
    }

    #[test]
    fn a_missing_compiler_is_named() {
        let why = DeviceToolchain::inspect(Path::new("/no/such/rustc"), Origin::Environment).unwrap_err();
        assert!(why.contains("/no/such/rustc"), "{why}");
    }
}
