//! `cargo xtask package`: makes the packages for crates.io, and builds new crates that depend on them.

mod licences;
mod new_crate;
mod registry;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{build_ptx, prebuilt, progress, workspace};
use registry::Registry;

/// The options of `cargo xtask package`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also runs README's program in the executor, both programs with the oldest supported Rust, and cargo-deny
    #[arg(long)]
    all: bool,
    /// Between releases: takes uncommitted files, and if the prebuilt kernels are stale, compiles them for one
    /// architecture
    #[arg(long)]
    unreleased: bool,
}

/// The maximum size of a file on crates.io.
const MAX_BYTES: u64 = 10 << 20;

/// The files that each package must contain.
const REQUIRED_FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// A package that can be published.
#[derive(Clone, Debug)]
pub struct Package {
    pub name: String,
    pub version: String,
}

impl Package {
    /// The package's name and version, as cargo writes them in file names.
    pub fn full_name(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// The file that `cargo package` makes.
    fn file(&self) -> PathBuf {
        workspace::target().join("package").join(format!("{}.crate", self.full_name()))
    }
}

/// Makes the packages, and builds new crates with them.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let stale = prebuilt::stale();
    if let (Some(why), false) = (&stale, options.unreleased) {
        anyhow::bail!(
            "the prebuilt kernels are stale: {why}; for a release, renew them with `cargo xtask build-ptx --pack` and \
             commit host/prebuilt; between releases, use `cargo xtask package --unreleased`"
        );
    }
    let packages = packages()?;
    make(&packages, options.unreleased)?;
    let files = packages.iter().map(Package::file);
    println!("{:<40} {:>9}", "package", "bytes");
    for file in files {
        let bytes = fs::metadata(&file).with_context(|| format!("cargo did not make `{}`", file.display()))?.len();
        println!("{:<40} {bytes:>9}", file.file_name().unwrap_or_default().display());
        ensure!(bytes <= MAX_BYTES, "`{}` is larger than the {MAX_BYTES} bytes of crates.io", file.display());
    }
    let start = Instant::now();
    let registry = Registry::create(&packages)?;
    if let Some(why) = stale {
        let arch = build_ptx::NEWEST;
        println!("the prebuilt kernels are stale ({why}): they are compiled from the sources, for {arch}");
        prebuilt::replace(&registry.folder_of("warpfold")?)?;
    }
    new_crate::try_all(&registry, options.all)?;
    if options.all {
        licences::check()?;
    }
    println!("{} packages, tried in {} s", packages.len(), start.elapsed().as_secs());
    Ok(())
}

/// The workspace's packages without `publish = false`.
fn packages() -> anyhow::Result<Vec<Package>> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let metadata: Value =
        serde_json::from_slice(&workspace::output(&mut cargo)?.stdout).context("cannot parse cargo's metadata")?;
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let name = text("name").context("cargo names no package")?;
        if !package["publish"].is_null() {
            continue;
        }
        for key in ["description", "license", "repository", "readme"] {
            ensure!(text(key).is_some(), "the manifest of `{name}` has no `{key}`");
        }
        packages.push(Package { version: text("version").context("a package has no version")?, name });
    }
    Ok(packages)
}

/// Makes the packages' files.
fn make(packages: &[Package], is_unreleased: bool) -> anyhow::Result<()> {
    let mut cargo = workspace::cargo();
    // Cargo need not verify the packages, because the new crates build them.
    cargo.current_dir(workspace::root()).args(["package", "--quiet", "--no-verify", "--locked"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", &package.name]));
    if is_unreleased {
        cargo.arg("--allow-dirty");
    }
    progress::with_progress("making the packages", || workspace::output(&mut cargo)).map(|_| ())
}
