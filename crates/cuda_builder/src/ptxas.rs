//! NVIDIA's assembler: where it is, and what it says of a kernel.
//!
//! PTX needs no assembler to run, the driver has its own. This one says without a device that a kernel assembles, and how
//! many registers it takes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Arch, BuildError};

/// ptxas, if it is on this machine: on the path, in a CUDA toolkit, or where `cargo xtask setup --ptxas` puts it, beside
/// the running program.
pub fn find() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let toolkit = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let program = env::current_exe().unwrap_or_default();
    let of_target = program.ancestors().skip(1).map(|folder| folder.join("tools").join("bin")).collect::<Vec<_>>();
    let folders = on_path.chain(toolkit).chain([PathBuf::from("/usr/local/cuda/bin")]).chain(of_target);
    folders.map(|folder| folder.join("ptxas")).find(|program| program.is_file())
}

/// What ptxas says of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The entry's name.
    pub entry: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory, in bytes.
    pub shared: u32,
    /// Bytes of registers that are spilled to memory, stores and loads.
    pub spilled: u32,
    /// Bytes of the stack frame: local memory, where an array went that registers cannot hold.
    pub stack: u32,
}

/// Assembles a module for `arch`, and gives what each of its entries uses. `scratch` is a file that the PTX is written to.
///
/// # Errors
/// The module does not assemble, or ptxas cannot be run.
pub fn assemble(ptxas: &Path, ptx: &str, arch: Arch, scratch: &Path) -> Result<Vec<Usage>, BuildError> {
    fs::write(scratch, ptx).map_err(|source| BuildError::io("write", scratch, source))?;
    let output = Command::new(ptxas)
        .arg("--verbose")
        .arg(format!("--gpu-name={arch}"))
        .args(["--output-file", "/dev/null"])
        .arg(scratch)
        .output()
        .map_err(|source| BuildError::Run { program: ptxas.display().to_string(), source })?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(BuildError::Assemble { arch, output: text.trim_end().to_owned() });
    }
    Ok(usages(&text))
}

fn usages(text: &str) -> Vec<Usage> {
    let mut all = Vec::<Usage>::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Usage { entry, ..Usage::default() });
        }
        let Some(usage) = all.last_mut() else { continue };
        let number_before = |what: &str| -> Option<u32> {
            let before = line.split_once(what)?.0;
            before.split(|c: char| !c.is_ascii_digit()).rfind(|word| !word.is_empty())?.parse().ok()
        };
        if let Some(stack) = number_before(" bytes stack frame") {
            usage.stack = stack;
            usage.spilled =
                number_before(" bytes spill stores").unwrap_or(0) + number_before(" bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = number_before(" registers") {
            usage.registers = registers;
            usage.shared = number_before(" bytes smem").unwrap_or(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptxas_reports_are_read() {
        let text = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'sum_f32_256' for 'sm_90'
ptxas info    : Function properties for sum_f32_256
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 16 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 2.808 ms
ptxas info    : Compiling entry function 'copy' for 'sm_90'
ptxas info    : Function properties for copy
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 400 bytes cmem[0]
";
        let expected = [
            Usage { entry: "sum_f32_256".into(), registers: 12, shared: 1024, spilled: 12, stack: 16 },
            Usage { entry: "copy".into(), registers: 8, shared: 0, spilled: 0, stack: 0 },
        ];
        assert_eq!(usages(text), expected);
    }
}
