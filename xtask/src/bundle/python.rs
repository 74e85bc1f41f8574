//! The Python package in the bundle: its wheel, the tests of arrays on GPUs, and the packages that these need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::{python, workspace};

/// The folders of `python/` whose tests and programs `run.sh python` runs. PyTorch, CuPy, JAX and Numba are the GPU
/// machine's own.
const FOLDERS: [&str; 3] = ["benchmarks", "gpu_tests", "torch_tests"];

/// What `run.sh ranks` runs besides, all in one folder, by paths in the checkout.
const OF_RANKS: [&str; 3] = ["python/tests/hashes.py", "tests/cases/one_hash.py", "tests/cases/one_hash.txt"];

/// What the tests need and a GPU machine may lack.
const PACKAGES: [&str; 2] = ["pytest", "hypothesis"];

/// Adds the package to a bundle, for a GPU machine with this version of Python, such as `3.12`.
pub fn add(bundle: &Path, version: &str) -> anyhow::Result<()> {
    let folder = bundle.join("python");
    let packages = folder.join("packages");
    fs::create_dir_all(&packages).context("cannot create the folder for packages")?;
    let wheel = newest_wheel()?;
    let name = wheel.file_name().context("the wheel has no name")?;
    fs::copy(&wheel, packages.join(name)).with_context(|| format!("cannot copy `{}`", wheel.display()))?;
    for name in FOLDERS {
        super::copy_folder(&workspace::root().join("python").join(name), &folder.join(name))?;
    }
    let (root, tests) = (workspace::root(), folder.join("tests"));
    super::copy_folder(&root.join("python/tests/on_ranks"), &tests.join("on_ranks"))?;
    for file in OF_RANKS.map(|path| root.join(path)) {
        let name = file.file_name().context("the file has no name")?;
        fs::copy(&file, tests.join(name)).with_context(|| format!("cannot copy `{}`", file.display()))?;
    }
    let mut pip = Command::new(python::oldest()?);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]);
    pip.args(["--platform", "manylinux2014_x86_64", "--python-version", version, "--dest"]).arg(&packages);
    workspace::output(pip.args(PACKAGES)).context("pip cannot download the packages of the tests")?;
    Ok(())
}

/// The wheel that was made last.
fn newest_wheel() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("python/wheels");
    let files = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let wheels = files.filter(|file| file.extension().is_some_and(|extension| extension == "whl"));
    let newest = wheels.max_by_key(|wheel| fs::metadata(wheel).and_then(|metadata| metadata.modified()).ok());
    let wheel = newest.with_context(|| {
        format!("there is no wheel in `{}`: make it with `cargo xtask python --wheel`", folder.display())
    })?;
    ensure!(wheel.is_file(), "`{}` is no file", wheel.display());
    Ok(wheel)
}
