//! Embeds the kernels' PTX: the package's prebuilt archive, or, with the feature `build-kernels`, what it compiles.

#[cfg(not(feature = "build-kernels"))]
#[path = "build/sources.rs"]
mod sources;

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            // Cargo reports the lines above as the build's error. A failing exit code would hide them among other
            // output.
            ExitCode::SUCCESS
        }
    }
}

/// The environment variable with the architectures to build for instead of the usual ones, joined by commas: `sm_90`.
/// Fewer architectures build faster, and `none` builds no PTX, for a program that runs in the executor alone.
const ARCHS: &str = "WARPFOLD_ARCHS";

/// The environment variable with a folder whose `prebuilt` replaces that of the package, so that a checkout whose
/// kernels are newer than the package's can be built with current ones. `cargo xtask python --wheel` sets it.
#[cfg(not(feature = "build-kernels"))]
const PREBUILT: &str = "WARPFOLD_PREBUILT";

/// What to do about an old archive.
#[cfg(not(feature = "build-kernels"))]
const REMEDY: &str = "enable warpfold's feature `build-kernels`, which compiles the kernels from source (that needs \
                      rustc 1.95 or later and `rustup component add rust-src`), or set WARPFOLD_ARCHS=none to do \
                      without a GPU; for the Python package, run `cargo xtask python --wheel`";

fn embed() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={ARCHS}");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    println!("cargo::rerun-if-changed=build.rs");
    let archs = env::var(ARCHS).unwrap_or_default();
    // docs.rs has neither a network nor rust-src, and its builds are never run.
    if archs.trim() == "none" || env::var_os("DOCS_RS").is_some() {
        return write("&[]");
    }
    kernels(&archs)
}

/// The folder of the package `warpfold-kernels`. Where cargo unpacks packages, it is next to this package's folder,
/// with a version in its name; a folder `kernels` there may be another package.
#[cfg(feature = "build-kernels")]
fn sources_of_kernels() -> Result<PathBuf, Box<dyn Error>> {
    let names = [concat!("warpfold-kernels-", env!("CARGO_PKG_VERSION")), "warpfold-kernels", "kernels"];
    let mut folders = names.iter().map(|name| PathBuf::from("..").join(name));
    folders.find(|folder| folder.join("Cargo.toml").exists()).ok_or_else(|| {
        let package = env!("CARGO_MANIFEST_DIR");
        format!("`build-kernels` needs the kernels' sources next to `{package}`, in one of {names:?}").into()
    })
}

/// Compiles the kernels.
#[cfg(feature = "build-kernels")]
fn kernels(_: &str) -> Result<(), Box<dyn Error>> {
    use cuda_builder::{Arch, CudaBuilder};

    let usual = [Arch::SM_75, Arch::SM_80, Arch::SM_90];
    let mut builder = CudaBuilder::new(sources_of_kernels()?).archs(usual).archs_from(ARCHS)?;
    if cfg!(feature = "ladder") {
        builder = builder.feature("ladder");
    }
    let built = builder.build()?;
    built.rerun_if_changed();
    Ok(built.embed("kernels.rs")?)
}

/// Embeds the archive, unless this is a checkout whose kernels have changed since.
#[cfg(not(feature = "build-kernels"))]
fn kernels(archs: &str) -> Result<(), Box<dyn Error>> {
    if !archs.is_empty() {
        println!(
            "cargo::warning={ARCHS}={archs} has no effect: the prebuilt kernels are for sm_75, sm_80 and sm_90; the \
             feature `build-kernels` compiles others"
        );
    }
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-env-changed={PREBUILT}");
    let folder = env::var_os(PREBUILT).map_or_else(|| package.clone(), PathBuf::from);
    let [archive, sources] = [sources::ARCHIVE, sources::SOURCES].map(|file| folder.join(file));
    for file in [&archive, &sources] {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let Ok(listed) = fs::read_to_string(&sources) else {
        return Err(format!("there are no prebuilt kernels in `{}`: {REMEDY}", folder.display()).into());
    };
    let contents = fs::read(&archive).map_err(|error| format!("cannot read `{}`: {error}", archive.display()))?;
    if !sources::is_of(&contents, &listed) {
        return Err(format!("`{}` is damaged: get the package again, or {REMEDY}", archive.display()).into());
    }
    // Of a checkout. A package from a registry comes without the sources of its kernels, and in a source distribution
    // for Python, maturin has rewritten the manifests.
    let root = package.parent().unwrap_or(&package);
    if ["kernels", "crates/cuda_std", "xtask"].iter().all(|folder| root.join(folder).join("Cargo.toml").exists()) {
        sources::files(&listed).for_each(|file| println!("cargo::rerun-if-changed=../{file}"));
        println!("cargo::rerun-if-changed=../Cargo.lock");
        if let Some(changed) = sources::difference(root, &listed) {
            return Err(format!("the prebuilt kernels are older than {changed}: {REMEDY}").into());
        }
    }
    write(&format!("include_bytes!({:?})", archive.display().to_string()))
}

/// Writes the expression of the archive's bytes, for `include_library!`.
fn write(expression: &str) -> Result<(), Box<dyn Error>> {
    let out_dir = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    Ok(fs::write(PathBuf::from(out_dir).join("kernels.rs"), expression)?)
}
