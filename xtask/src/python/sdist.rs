//! `cargo xtask python --sdist`: the source distribution.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::environment::oldest_python;
use super::folder;
use super::wheel::{builders, example, only_file, try_package};
use crate::{prebuilt, progress, workspace};

/// Makes the source distribution, and runs README's example with what pip builds from it.
pub fn run() -> anyhow::Result<()> {
    let sources = folder().join("sdist");
    let _ = fs::remove_dir_all(&sources);
    let mut maturin = builders()?.program("maturin");
    maturin
        .current_dir(workspace::root())
        .args(["sdist", "--manifest-path", "python/Cargo.toml", "--out"])
        .arg(&sources);
    let made = progress::run(&mut maturin, "making the source distribution")?;
    ensure!(made == 0, "maturin failed");
    let file = only_file(&sources, "gz")?;
    if let Some(why) = prebuilt::stale() {
        println!("the prebuilt kernels are stale ({why}): they are compiled from the sources");
        replace_kernels(&file, &prebuilt::pack_for_build(&folder())?)?;
    }
    println!("{}: {} bytes", file.display(), fs::metadata(&file)?.len());
    let packages: Vec<OsString> = vec!["numpy".into(), file.into()];
    try_package(&oldest_python()?, &packages, &example()?)
}

/// Replaces the prebuilt kernels in a source distribution by those in a folder.
fn replace_kernels(file: &Path, current: &Path) -> anyhow::Result<()> {
    let unpacked = folder().join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked)?;
    workspace::output(Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(&unpacked))?;
    let root: PathBuf = fs::read_dir(&unpacked)?.next().context("the source distribution is empty")??.path();
    for kernels in fs::read_dir(current.join("prebuilt"))? {
        let kernels = kernels?;
        fs::copy(kernels.path(), root.join("host/prebuilt").join(kernels.file_name()))?;
    }
    let name = root.file_name().context("a folder without a name")?;
    workspace::output(Command::new("tar").arg("-czf").arg(file).arg("-C").arg(&unpacked).arg(name)).map(|_| ())
}
