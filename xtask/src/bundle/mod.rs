//! `cargo xtask bundle`: a folder of programs, tests and PTX for a GPU machine without Rust.

mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use cuda_builder::Arch;

use crate::{build_ptx, setup, workspace};

/// The maximum size of the bundle, which is the limit of a transfer to the GPU machine.
const MAX_BYTES: u64 = 64 << 20;

/// The benchmark and the examples.
const PROGRAMS: [&str; 8] = [
    "bench",
    "vecadd",
    "operator",
    "on_cudarc",
    "rust_cuda_guide",
    "rust_cuda_vecadd",
    "rust_cuda_async_api",
    "rust_cuda_gemm",
];

/// The test programs that run on the GPU machine.
const TESTS: [&str; 4] = ["gpu", "cust_gpu", "cli", "on_a_device"];

/// The script that runs the tests and the benchmark, from the folder where they are unpacked.
const RUN: &str = include_str!("../../run.sh");

/// Makes `target/bundle`, with PTX for these architectures, and the Python package if a version of Python is
/// given.
pub fn run(archs: &[Arch], python: Option<&str>) -> anyhow::Result<()> {
    setup::run(false)?;
    let bundle = workspace::target().join("bundle");
    if bundle.exists() {
        fs::remove_dir_all(&bundle).context("cannot remove the old bundle")?;
    }
    fs::create_dir_all(&bundle).context("cannot create the bundle's folder")?;

    let programs = workspace::target().join("bundle-programs");
    if programs.exists() {
        fs::remove_dir_all(&programs).context("cannot remove the old programs")?;
    }
    fs::create_dir_all(programs.join("tests")).context("cannot create the programs' folder")?;
    for (name, program) in executables(archs)? {
        let folder = if TESTS.contains(&name.as_str()) { programs.join("tests") } else { programs.clone() };
        let to = folder.join(&name);
        fs::copy(&program, &to).with_context(|| format!("cannot copy `{}`", program.display()))?;
    }
    pack(&programs, &bundle.join("programs.tar.xz"))?;
    // The PTX is tens of MiB of text in thousands of files.
    let ptx = workspace::target().join("bundle-ptx");
    build_ptx::build(archs)?.write_entries(&ptx)?;
    pack(&ptx, &bundle.join("ptx.tar.xz"))?;
    let peers = workspace::root().join("peers");
    if peers.exists() {
        copy_folder(&peers, &bundle.join("peers"))?;
    }
    if let Some(version) = python {
        python::add(&bundle, version)?;
    }
    fs::write(bundle.join("commit"), commit().unwrap_or_else(|_| "unknown".to_owned()) + "\n")
        .context("cannot write the commit's name")?;
    let run = bundle.join("run.sh");
    fs::write(&run, RUN).context("cannot write run.sh")?;
    make_executable(&run)?;

    let bytes = size(&bundle)?;
    ensure!(
        bytes <= MAX_BYTES,
        "the bundle is {} MiB, and the limit is {} MiB: build for fewer architectures",
        bytes >> 20,
        MAX_BYTES >> 20
    );
    println!(
        "{} ({:.1} MiB): copy it to a GPU machine, and run ./run.sh there",
        bundle.display(),
        bytes as f64 / f64::from(1 << 20)
    );
    Ok(())
}

/// The last commit, for the records of `run.sh tables`, marked if a tracked file differs from it.
fn commit() -> anyhow::Result<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = workspace::output(git.current_dir(workspace::root()).args(arguments))?;
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(if is_clean { commit } else { format!("{commit} with changes") })
}

/// Packs a folder with fast compression. A higher level would take far longer and save little; but each program has the
/// same kernels, which one dictionary for all programs stores once.
fn pack(folder: &Path, file: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.env("XZ_OPT", "--lzma2=preset=2,dict=160MiB").arg("-cJf").arg(file).arg("-C").arg(folder).arg(".");
    workspace::output(&mut tar)?;
    Ok(())
}

/// Builds the programs and the tests, and returns the name and the file of each.
fn executables(archs: &[Arch]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut cargo = workspace::cargo();
    let archs: Vec<String> = archs.iter().map(Arch::to_string).collect();
    cargo.current_dir(workspace::root()).env("WARPFOLD_ARCHS", archs.join(",")).args([
        "build",
        "--quiet",
        "--profile",
        "portable",
        "--message-format",
        "json",
    ]);
    cargo.args(PROGRAMS.iter().flat_map(|program| ["--bin", program]));
    cargo.args(TESTS.iter().flat_map(|test| ["--test", test]));
    let output = workspace::output(&mut cargo)?;
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let mut found = Vec::new();
    for line in text.lines() {
        let message: serde_json::Value = serde_json::from_str(line).context("cargo's messages are not JSON")?;
        if let (Some(name), Some(file)) = (message["target"]["name"].as_str(), message["executable"].as_str()) {
            found.push((name.to_owned(), PathBuf::from(file)));
        }
    }
    for wanted in TESTS.iter().chain(&PROGRAMS) {
        ensure!(found.iter().any(|(name, _)| name == wanted), "cargo did not build `{wanted}`");
    }
    Ok(found)
}

fn make_executable(file: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).context("cannot make run.sh executable")
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create `{}`", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list `{}`", from.display()))? {
        let (path, target) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if path.is_dir() {
            copy_folder(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy `{}`", path.display()))?;
        }
    }
    Ok(())
}

fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
