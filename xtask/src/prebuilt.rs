//! `cargo xtask build-ptx --pack`: the archive of prebuilt kernels in `host/prebuilt`.

// The checks of the archive that `host/build.rs` makes, too.
#[path = "../../host/build/sources.rs"]
mod sources;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cuda_builder::{Built, CudaBuilder, DeviceToolchain, Effort};
use ptx_archive::{Archive, Text, cubin_of};

use crate::build_ptx::{self, DEFAULT_ARCHS};
use crate::cubins::{self, Cubin};
use crate::{progress, setup, workspace};

/// The environment variable with a folder whose `prebuilt` replaces that of the package, in builds of a checkout.
pub const VARIABLE: &str = "WARPFOLD_PREBUILT";

/// Renews the archive. With `verify`, compiles the kernels, compares them with the archive, and fails if they differ.
pub fn run(verify: bool) -> anyhow::Result<()> {
    let root = workspace::root();
    let host = root.join("host");
    let kernels = Kernels::compile()?;
    if verify {
        let (archive, listed) = (host.join(sources::ARCHIVE), host.join(sources::SOURCES));
        return compare(root, &kernels.built, &kernels.contents, &archive, &listed);
    }
    kernels.write(&host)
}

/// Writes an archive of the current kernels and its list to `folder`, for a build with [`VARIABLE`]. Returns the value
/// of the variable.
pub fn pack_for_build(folder: &Path) -> anyhow::Result<PathBuf> {
    Kernels::compile()?.write(folder)?;
    Ok(folder.to_owned())
}

/// The kernels as they are now.
struct Kernels {
    built: Built,
    contents: Vec<Content>,
    /// The number of cubins among the contents.
    cubins: usize,
}

impl Kernels {
    fn compile() -> anyhow::Result<Self> {
        setup::run(false)?;
        let builder = CudaBuilder::new(workspace::root().join("kernels")).archs(DEFAULT_ARCHS);
        let builder = builder.target_dir(workspace::target().join("cuda-builder"));
        let built = progress::with_progress("compiling the kernels to PTX", || builder.build())?;
        let cubins = progress::with_progress("assembling cubins", || cubins::assemble(&built))?;
        Ok(Self { contents: contents(&built, &cubins), cubins: cubins.len(), built })
    }

    /// Writes the archive and the list of its sources to a folder with the structure of the package.
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let (archive, listed) = (folder.join(sources::ARCHIVE), folder.join(sources::SOURCES));
        let pack = || ptx_archive::pack(&texts(&self.contents), Effort::Small);
        let bytes = progress::with_progress("packing the kernels", pack)?;
        fs::create_dir_all(folder.join("prebuilt"))?;
        fs::write(&archive, &bytes).with_context(|| format!("cannot write `{}`", archive.display()))?;
        fs::write(&listed, list(workspace::root(), &self.built, &bytes)?)?;
        let raw: usize = self.contents.iter().map(|content| content.bytes.len()).sum();
        println!(
            "{}: {} entries, {} of them with a cubin, {} bytes of {raw}",
            archive.display(),
            self.contents.len() - self.cubins,
            self.cubins,
            bytes.len()
        );
        Ok(())
    }
}

/// A text of the archive.
struct Content {
    name: String,
    arch: u32,
    bytes: Vec<u8>,
}

/// What the archive contains: the PTX of all entries, and cubins.
fn contents(built: &Built, cubins: &[Cubin]) -> Vec<Content> {
    let ptx = built.modules.iter().flat_map(|(arch, module)| {
        module.entries().iter().map(|entry| Content {
            name: entry.name.clone(),
            arch: arch.number(),
            bytes: module.of_entry(entry).into_bytes(),
        })
    });
    let cubin = |Cubin { entry, arch, bytes }: &Cubin| Content {
        name: cubin_of(entry),
        arch: arch.number(),
        bytes: bytes.clone(),
    };
    ptx.chain(cubins.iter().map(cubin)).collect()
}

fn texts(contents: &[Content]) -> Vec<Text<'_>> {
    contents.iter().map(|Content { name, arch, bytes }| Text { name, arch: *arch, contents: bytes }).collect()
}

/// Why the archive is stale; `None` if it matches the sources.
pub fn stale() -> Option<String> {
    let host = workspace::root().join("host");
    let Ok(listed) = fs::read_to_string(host.join(sources::SOURCES)) else {
        return Some(format!("there is no host/{}", sources::SOURCES));
    };
    if !fs::read(host.join(sources::ARCHIVE)).is_ok_and(|archive| sources::is_of(&archive, &listed)) {
        return Some(format!("host/{} is missing or damaged", sources::ARCHIVE));
    }
    sources::difference(workspace::root(), &listed).map(|file| format!("{file} has changed since"))
}

/// Replaces the archive in a package's folder with one of the current kernels, for one architecture. `build-ptx` and
/// the tests compile the same PTX, so it may already exist. The archive is larger than for a release, but quickly
/// packed.
pub fn replace(package: &Path) -> anyhow::Result<()> {
    let built = build_ptx::build(&[build_ptx::NEWEST])?;
    let bytes = progress::with_progress("packing the PTX", || built.pack(Effort::Fast))?;
    fs::create_dir_all(package.join("prebuilt"))?;
    fs::write(package.join(sources::ARCHIVE), &bytes)?;
    let list = format!("archive {:016x}\n", sources::digest(&bytes));
    fs::write(package.join(sources::SOURCES), list).context("cannot write the list of sources")
}

/// Fails unless the archive and its list match the sources.
fn compare(root: &Path, built: &Built, contents: &[Content], archive: &Path, listed: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(archive).with_context(|| format!("cannot read `{}`", archive.display()))?;
    let found = fs::read_to_string(listed).with_context(|| format!("cannot read `{}`", listed.display()))?;
    let different = differences(contents, &bytes)?;
    if !different.is_empty() {
        let changed = sources::difference(root, &found);
        let since = changed.map_or_else(String::new, |file| format!(" ({file} has changed since)"));
        bail!("the archive differs from the sources' kernels{since}:\n  {}", different.join("\n  "));
    }
    if found != list(root, built, &bytes)? {
        let what = sources::difference(root, &found).unwrap_or_else(|| "a line".to_owned());
        bail!("the archive's kernels are current, but `{}` is not: {what} differs", listed.display());
    }
    println!(
        "{} is current: the kernels of {} source files, {} bytes",
        archive.display(),
        sources::files(&found).count(),
        bytes.len()
    );
    Ok(())
}

/// The texts that differ, and those that only the archive or only the sources have.
fn differences(contents: &[Content], bytes: &[u8]) -> anyhow::Result<Vec<String>> {
    let archive = Archive::parse(bytes)?;
    let mut different = Vec::new();
    let mut known = BTreeSet::new();
    for Content { name, arch, bytes } in contents {
        known.insert((name.as_str(), *arch));
        match archive.unpack(name, *arch)? {
            None => different.push(format!("`{name}` for sm_{arch} is not in the archive")),
            Some(packed) if packed != *bytes => different.push(format!("`{name}` for sm_{arch} differs")),
            Some(_) => {}
        }
    }
    for &name in archive.names() {
        for &arch in archive.archs() {
            if !known.contains(&(name, arch)) && archive.unpack(name, arch)?.is_some() {
                different.push(format!("`{name}` for sm_{arch} is no longer in the sources"));
            }
        }
    }
    Ok(different)
}

/// The files that affect the archive, but are not sources of the kernels.
const BUILDER: [&str; 4] = [
    "crates/cuda_builder/src/arch.rs",
    "crates/cuda_builder/src/cargo.rs",
    "crates/cuda_builder/src/ptx.rs",
    "xtask/src/cubins.rs",
];

/// The list of all inputs of the archive, in the format of `host/build/sources.rs`.
fn list(root: &Path, built: &Built, archive: &[u8]) -> anyhow::Result<String> {
    let mut text = format!("archive {:016x}\n", sources::digest(archive));
    let _ = writeln!(text, "compiler {}", DeviceToolchain::find()?.full_version);
    for package in packages()? {
        let _ = writeln!(text, "package {package}");
    }
    // The workspace's manifest and lock file change for other reasons, too: the `package` lines stand for them.
    let is_own = |file: &&Path| !matches!(file.to_str(), Some("Cargo.toml" | "Cargo.lock"));
    let builder = BUILDER.map(|file| root.join(file));
    let files = built.sources.iter().chain(&builder).filter_map(|file| file.strip_prefix(root).ok());
    let mut files: Vec<&Path> = files.filter(is_own).chain([Path::new("rust-toolchain.toml")]).collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let contents = fs::read(root.join(file)).with_context(|| format!("cannot read `{}`", file.display()))?;
        let _ = writeln!(text, "file {:016x} {}", sources::digest(&contents), file.display());
    }
    Ok(text)
}

/// The packages from crates.io that the kernels depend on, each as `name version`.
fn packages() -> anyhow::Result<BTreeSet<String>> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["tree", "--locked", "--package", "warpfold-kernels"]);
    cargo.args(["--edges", "normal", "--target", "nvptx64-nvidia-cuda", "--prefix", "none", "--format", "{p}"]);
    let tree = String::from_utf8(workspace::output(&mut cargo)?.stdout)?;
    let package = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split(' ').next()?;
        // The line of a workspace package has its folder in parentheses.
        (!line.contains("(/")).then(|| format!("{name} {version}"))
    };
    Ok(tree.lines().filter_map(package).collect())
}

#[cfg(test)]
mod tests {
    use cuda_builder::{Arch, Module};

    use super::*;

    fn built(entries: &[(&str, &str)]) -> Built {
        let entry = |(name, body): &(&str, &str)| format!(".visible .entry {name}()\n{{\n{body}\n}}\n");
        let text: String = entries.iter().map(entry).collect();
        let module = Module::parse(&format!(".version 7.8\n.target sm_90\n.address_size 64\n{text}"));
        Built { library: "k".to_owned(), modules: vec![(Arch::SM_90, module)], sources: Vec::new() }
    }

    #[test]
    fn kernels_that_differ_are_named() {
        let cubin = |bytes: &[u8]| Cubin { entry: "add".to_owned(), arch: Arch::SM_90, bytes: bytes.to_vec() };
        let pack = |contents: &[Content]| ptx_archive::pack(&texts(contents), Effort::Small).unwrap();
        let then = built(&[("add", "ret;"), ("mul", "ret;"), ("sub", "ret;")]);
        let archive = pack(&contents(&then, &[cubin(b"old")]));
        let now = contents(&built(&[("add", "ret;"), ("div", "ret;"), ("mul", "exit;")]), &[cubin(b"new")]);
        assert_eq!(
            differences(&now, &archive).unwrap(),
            [
                "`div` for sm_90 is not in the archive",
                "`mul` for sm_90 differs",
                "`cubin:add` for sm_90 differs",
                "`sub` for sm_90 is no longer in the sources"
            ]
        );
        assert!(differences(&now, &pack(&now)).unwrap().is_empty());
        assert!(differences(&now, &archive[1..]).is_err());
    }

    /// The dependencies of the library and its build script with these features.
    fn dependencies(features: &str) -> String {
        let mut cargo = workspace::cargo();
        cargo.current_dir(workspace::root()).args(["tree", "--locked", "--package", "warpfold"]);
        cargo.args(["--edges", "normal,build", "--prefix", "none", "--format", "{p}", "--features", features]);
        String::from_utf8(workspace::output(&mut cargo).unwrap().stdout).unwrap()
    }

    #[test]
    fn the_executor_and_the_kernel_builder_are_optional_dependencies() {
        let has = |tree: &str, name: &str| tree.lines().any(|line| line.starts_with(&format!("{name} v")));
        let (plain, executor, builder) = (dependencies(""), dependencies("simt"), dependencies("build-kernels"));
        assert!(has(&plain, "warpfold-ptx-archive") && has(&plain, "warpfold-cust"), "{plain}");
        for name in ["warpfold-simt", "corosensei", "warpfold-cuda-builder"] {
            assert!(!has(&plain, name), "{name}: {plain}");
        }
        assert!(has(&executor, "warpfold-simt") && !has(&executor, "warpfold-cuda-builder"), "{executor}");
        assert!(has(&builder, "warpfold-cuda-builder") && !has(&builder, "warpfold-simt"), "{builder}");
    }

    #[test]
    fn the_first_changed_source_is_named() {
        let dir = std::env::temp_dir().join(format!("warpfold-sources-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("a.rs"), "fn a() {}\n").unwrap();
        fs::write(dir.join("Cargo.lock"), "[[package]]\nname = \"half\"\nversion = \"2.7.1\"\n").unwrap();
        let file = format!("file {:016x} a.rs\n", sources::digest(b"fn a() {}\n"));
        let listed = format!("archive 0\ncompiler rustc 1.95.0\npackage half 2.7.1\n{file}");
        let found = sources::difference(&dir, &listed);
        // Git may check the file out like this on Windows.
        fs::write(dir.join("a.rs"), "fn a() {}\r\n").unwrap();
        let with_returns = sources::difference(&dir, &listed);
        fs::write(dir.join("a.rs"), "fn b() {}\n").unwrap();
        let changed = sources::difference(&dir, &listed);
        fs::remove_file(dir.join("a.rs")).unwrap();
        let missing = sources::difference(&dir, &listed);
        let newer = sources::difference(&dir, "package half 2.8.0\n");
        let files: Vec<&str> = sources::files(&listed).collect();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!((found, with_returns), (None, None));
        assert_eq!((changed.as_deref(), missing.as_deref()), (Some("a.rs"), Some("a.rs")));
        assert_eq!(newer.as_deref(), Some("`half` in Cargo.lock"));
        assert_eq!(files, ["a.rs"]);
    }
}
