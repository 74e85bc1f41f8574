//! `cargo xtask python --wheel`: the release wheel.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::environment::{Environment, Python, oldest_python};
use super::folder;
use crate::backend::ARCHS;
use crate::{prebuilt, progress, workspace};

/// The programs that make the wheel: zig links it with the functions of an old C library.
const BUILDERS: [&str; 2] = ["maturin==1.16.0", "ziglang==0.17.1"];

/// The platform of the wheel: Linux distributions from 2014 on.
const PLATFORM: &str = "manylinux_2_17";

/// The maximum size in bytes.
const MAX_BYTES: u64 = 15 << 20;

/// Makes the wheel, and runs README's example with it on each Python.
pub fn run() -> anyhow::Result<()> {
    let wheel = build(&builders()?)?;
    let bytes = fs::metadata(&wheel)?.len();
    println!("{}: {bytes} bytes", wheel.display());
    ensure!(bytes <= MAX_BYTES, "the wheel is larger than {MAX_BYTES} bytes");
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(name.contains("-cp311-abi3-") && name.contains(PLATFORM), "the wheel has another tag: {name}");
    let (packages, example): (Vec<OsString>, _) = (vec!["numpy".into(), wheel.into()], example()?);
    Python::all().iter().try_for_each(|python| try_package(python, &packages, &example))
}

/// An environment with the programs that make packages.
pub fn builders() -> anyhow::Result<Environment> {
    let builders: Vec<OsString> = BUILDERS.map(OsString::from).into();
    Environment::create(&oldest_python()?, &folder().join("builders"), &builders)
}

/// Writes README's Python example to a file.
pub fn example() -> anyhow::Result<PathBuf> {
    let readme = fs::read_to_string(workspace::root().join("README.md")).context("cannot read README.md")?;
    let file = folder().join("readme.txt");
    fs::write(&file, python_block(&readme).context("README.md has no Python example")?)?;
    Ok(file)
}

/// Makes the wheel with maturin.
fn build(environment: &Environment) -> anyhow::Result<PathBuf> {
    let wheels = folder().join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = environment.program("maturin");
    maturin.current_dir(workspace::root());
    maturin.args(["build", "--release", "--zig", "--locked", "--compatibility", PLATFORM]);
    maturin.args(["--manifest-path", "python/Cargo.toml", "--out"]).arg(&wheels);
    maturin.env("CARGO_TARGET_DIR", workspace::target());
    // The variable would leave the kernels out.
    maturin.env_remove(ARCHS);
    if let Some(why) = prebuilt::stale() {
        println!("the prebuilt kernels are stale ({why}): they are compiled from the sources");
        maturin.env(prebuilt::VARIABLE, prebuilt::pack_for_build(&folder())?);
    }
    let built = progress::run(&mut maturin, "making the wheel")?;
    ensure!(built == 0, "maturin failed");
    only_file(&wheels, "whl")
}

/// The file in a folder that has this extension.
pub fn only_file(folder: &Path, extension: &str) -> anyhow::Result<PathBuf> {
    let mut files = fs::read_dir(folder).context("maturin made no file")?.flatten().map(|entry| entry.path());
    files.find(|file| file.extension().is_some_and(|found| found == extension)).context("maturin made no file")
}

/// Installs packages in a fresh environment, and runs the example as a doctest there.
pub fn try_package(python: &Python, packages: &[OsString], example: &Path) -> anyhow::Result<()> {
    let (major, minor) = python.version;
    let environment = Environment::create(python, &folder().join(format!("python{major}.{minor}")), packages)?;
    let mut doctest = environment.python();
    doctest.current_dir(folder()).args(["-m", "doctest"]).arg(example);
    let output = doctest.output().context("cannot run Python")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && printed.is_empty(), "README's Python example fails:\n{printed}");
    println!("Python {major}.{minor}: installed, README's example is right");
    Ok(())
}

/// The first Python code block of a Markdown page.
fn python_block(page: &str) -> Option<&str> {
    Some(page.split_once("```python\n")?.1.split_once("```")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_an_example_with_results() {
        let readme = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let example = python_block(&readme).unwrap();
        assert!(example.lines().filter(|line| line.starts_with(">>> ")).count() > 4, "{example}");
        assert!(example.lines().any(|line| !line.starts_with(">>> ")), "{example}");
        assert!(example.contains("warpfold as wf"), "{example}");
    }
}
