//! Errors of a build.

use std::io;
use std::path::{Path, PathBuf};

use crate::Arch;
use crate::toolchain::NoToolchain;

/// The reason that a build failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No compiler on this machine can build for the device.
    #[error(transparent)]
    NoToolchain(#[from] NoToolchain),

    /// `cargo` could not be started.
    #[error("cannot run `{program}`: {source}")]
    Run {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },

    /// The kernel crate does not compile.
    #[error("the kernel crate `{package}` does not compile for {arch}:\n{output}")]
    Compile {
        /// The crate.
        package: String,
        /// The architecture.
        arch: Arch,
        /// The compiler's output.
        output: String,
    },

    /// A kernel uses a function or a static that its module does not define; PTX is not linked.
    #[error(
        "kernel `{kernel}` ({arch}) uses `{function}`, which no crate defines: avoid it (kernels cannot call functions \
         of C or of the standard library)"
    )]
    UnresolvedCall {
        /// The kernel.
        kernel: String,
        /// The function or static, as PTX spells its name.
        function: String,
        /// The architecture.
        arch: Arch,
    },

    /// The PTX does not assemble.
    #[error("the kernels do not assemble for {arch}:\n{output}")]
    Assemble {
        /// The architecture.
        arch: Arch,
        /// The output of ptxas.
        output: String,
    },

    /// The folder has no `Cargo.toml` with a package name.
    #[error("`{}` is not the folder of a crate: {reason}", path.display())]
    NotACrate {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },

    /// `embed` needs cargo's `OUT_DIR`.
    #[error("OUT_DIR is not set: `embed` is for build scripts")]
    NotABuildScript,

    /// The PTX cannot be packed.
    #[error("cannot pack the PTX: {0}")]
    Pack(io::Error),

    /// A file operation failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl BuildError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}
