//! The backend that this machine runs kernels on, and the PTX that a build for it needs.

use std::env;
use std::path::Path;
use std::process::Command;

use cuda_builder::Arch;

/// The environment variable with the architectures that warpfold's build script compiles PTX for.
pub const ARCHS: &str = "WARPFOLD_ARCHS";

/// Where kernels run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// On a GPU, or [`ARCHS`] names architectures to build for.
    Gpu,
    /// In the executor, which needs no PTX.
    Executor,
}

impl Backend {
    /// The backend of this machine: by the value of [`ARCHS`], or if it is unset, by whether NVIDIA's driver is loaded.
    pub fn detect() -> Self {
        match env::var(ARCHS) {
            Ok(archs) if archs.trim() == "none" => Self::Executor,
            Ok(_) => Self::Gpu,
            Err(_) if has_driver() => Self::Gpu,
            Err(_) => Self::Executor,
        }
    }

    /// The value of [`ARCHS`] for a build whose programs run here; `None` if the variable is set, or if the GPUs are
    /// unknown, so that the build script's default applies.
    pub fn archs(&self) -> Option<String> {
        match (env::var_os(ARCHS), self) {
            (Some(_), _) => None,
            (None, Self::Executor) => Some("none".to_owned()),
            (None, Self::Gpu) => own_archs(),
        }
    }
}

/// Whether the driver's kernel module is loaded, or WSL passes a GPU through.
fn has_driver() -> bool {
    ["/proc/driver/nvidia/version", "/dev/dxg"].iter().any(|file| Path::new(file).exists())
}

/// The architectures of this machine's GPUs, according to `nvidia-smi`.
fn own_archs() -> Option<String> {
    let output = Command::new("nvidia-smi").args(["--query-gpu=compute_cap", "--format=csv,noheader"]).output().ok()?;
    archs_of(&String::from_utf8_lossy(&output.stdout))
}

/// The newest architecture that each GPU runs, from a list of compute capabilities (`9.0`), one per line.
fn archs_of(capabilities: &str) -> Option<String> {
    let mut archs = Vec::new();
    for line in capabilities.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let number: u32 = line.replace('.', "").parse().ok()?;
        archs.push(Arch::ALL.into_iter().rfind(|arch| arch.number() <= number)?);
    }
    archs.sort_unstable();
    archs.dedup();
    let names: Vec<String> = archs.iter().map(Arch::to_string).collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_gets_the_newest_architecture_that_it_runs() {
        assert_eq!(archs_of("9.0\n"), Some("sm_90".to_owned()));
        assert_eq!(archs_of("9.0\n8.7\n9.0\n"), Some("sm_86,sm_90".to_owned()));
        assert_eq!(archs_of("7.0\n"), None, "older than every architecture");
        assert_eq!(archs_of("NVIDIA-SMI has failed\n"), None);
        assert_eq!(archs_of(""), None);
    }
}
