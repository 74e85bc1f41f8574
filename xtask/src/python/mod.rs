//! `cargo xtask python`: builds the Python package, tests it, and makes its wheel and its source distribution.

mod environment;
mod sdist;
mod wheel;

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::backend::{ARCHS, Backend};
use crate::{progress, workspace};
use environment::{Environment, oldest_python};

/// If this environment variable is `required`, `cargo xtask test` fails where the Python package cannot be tested.
pub const VARIABLE: &str = "WARPFOLD_PYTHON";

/// The library with which tests take the place of the CUDA driver, so that they need no GPU.
const FAKE_DRIVER: &str = "fake_driver";

/// The oldest supported Python of this machine.
pub fn oldest() -> anyhow::Result<PathBuf> {
    oldest_python().map(|python| python.program)
}

/// The options of `cargo xtask python`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Makes the release wheel, and tries it in a fresh environment of each Python of this machine
    #[arg(long, conflicts_with = "arguments")]
    wheel: bool,
    /// Makes the source distribution, and builds and tries it in a fresh environment
    #[arg(long, conflicts_with_all = ["arguments", "wheel"])]
    sdist: bool,
    /// Arguments of pytest
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds and tests the package, or makes its wheel.
pub fn run(options: &Options) -> anyhow::Result<u8> {
    if options.wheel {
        return wheel::run().map(|()| 0);
    }
    if options.sdist {
        return sdist::run().map(|()| 0);
    }
    let environment = environment()?;
    test(&environment, &options.arguments)
}

/// As a part of all tests: without a suitable Python or PyPI, the tests of the package are left out, unless they are
/// required.
pub fn run_with_all_tests() -> anyhow::Result<u8> {
    let is_required = std::env::var_os(VARIABLE).is_some_and(|value| value == "required");
    match environment() {
        Ok(environment) => test(&environment, &[]),
        Err(why) if is_required => Err(why.context("the tests of the Python package cannot run")),
        Err(why) => {
            let why = format!("{why:#}").lines().collect::<Vec<_>>().join(" ");
            println!("xtask: left out the tests of the Python package: {why}");
            Ok(0)
        }
    }
}

/// The folder for what this command makes.
fn folder() -> PathBuf {
    workspace::target().join("python")
}

/// An environment with all that the tests need.
fn environment() -> anyhow::Result<Environment> {
    let requirements = workspace::root().join("python/requirements.txt");
    Environment::with_requirements(&oldest_python()?, &folder().join("environment"), &requirements)
}

/// Builds the package and runs its tests. Returns the exit code of the first program that fails.
fn test(environment: &Environment, arguments: &[OsString]) -> anyhow::Result<u8> {
    let package = build()?;
    let python = workspace::root().join("python");
    let mut pytest = environment.python();
    pytest.current_dir(&python).env("PYTHONPATH", &package);
    pytest.env("HYPOTHESIS_STORAGE_DIRECTORY", folder().join("hypothesis"));
    let fake_driver = format!("debug/examples/{DLL_PREFIX}{FAKE_DRIVER}{DLL_SUFFIX}");
    pytest.env("WARPFOLD_FAKE_DRIVER", workspace::target().join(fake_driver));
    pytest.args(["-m", "pytest", "--quiet", "tests"]).args(arguments);
    let tested = progress::run(&mut pytest, "testing the Python package")?;
    if tested != 0 || !arguments.is_empty() {
        return Ok(tested);
    }
    let mut stubtest = environment.python();
    stubtest.current_dir(folder()).env("PYTHONPATH", &package).env("MYPYPATH", &package);
    stubtest.args(["-m", "mypy.stubtest", "warpfold", "--allowlist"]).arg(python.join("stubtest_allowlist.txt"));
    progress::run(&mut stubtest, "comparing the stubs with the package")
}

/// Builds the module as the tests of the workspace build the library, and puts it beside the package's other files.
/// Returns the folder for Python's search path.
fn build() -> anyhow::Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root());
    // Cargo unites the features of all that it builds at a time. Those of `cargo test --workspace`, with the
    // dependencies of tests, give a library that has already been compiled, so a small test is built, too.
    cargo.args(["build", "--quiet", "--workspace", "--lib", "--test", "bytes", "--example", FAKE_DRIVER]);
    cargo.envs(Backend::detect().archs().map(|archs| (ARCHS, archs)));
    let built = progress::run(&mut cargo, "building the Python module")?;
    ensure!(built == 0, "the Python module does not build");
    let package = folder().join("package");
    let _ = fs::remove_dir_all(&package);
    let files = package.join("warpfold");
    fs::create_dir_all(&files).context("cannot create the folder of the package")?;
    for entry in fs::read_dir(workspace::root().join("python/src/warpfold")).context("cannot list the package")? {
        let file = entry?.path();
        if file.is_file() {
            copy(&file, &files)?;
        }
    }
    let module = workspace::target().join("debug/lib_warpfold.so");
    fs::copy(&module, files.join("_warpfold.abi3.so"))
        .with_context(|| format!("there is no `{}`", module.display()))?;
    Ok(package)
}

fn copy(file: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = file.file_name().context("a file without a name")?;
    fs::copy(file, folder.join(name)).with_context(|| format!("cannot copy `{}`", file.display())).map(|_| ())
}
