//! The copy of the workspace that contains the mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::workspace;

/// The source of `mutant_switch`, the crate that activates a mutant. It exists only in the copy.
const SWITCH: &str = include_str!("switch.rs");

const SWITCH_MANIFEST: &str = "[package]
name = \"mutant_switch\"
version = \"0.1.0\"
edition = \"2024\"
publish = false
";

/// `target/mutants`, which contains all files of this tool.
pub fn folder() -> PathBuf {
    workspace::target().join("mutants")
}

/// The copy's folder.
pub fn root() -> PathBuf {
    folder().join("source")
}

/// The workspace's files that git tracks or would add, relative to the root.
pub fn files() -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(workspace::root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = String::from_utf8(workspace::output(&mut git)?.stdout).context("a file's name is not UTF-8")?;
    let exists = |file: &&str| !file.is_empty() && workspace::root().join(file).is_file();
    Ok(listed.split('\0').filter(exists).map(str::to_owned).collect())
}

/// Updates the copy: the workspace's files, those in `mutated` with their new text, and the switch, on which the
/// packages in the folders `packages` depend. Unchanged files are not written, so cargo does not build them again.
pub fn update(files: &[String], mutated: &BTreeMap<String, String>, packages: &BTreeSet<String>) -> anyhow::Result<()> {
    let root = root();
    let mut kept = BTreeSet::from([root.join("mutant_switch/src/lib.rs"), root.join("mutant_switch/Cargo.toml")]);
    for file in files {
        let to = root.join(file);
        let content = match mutated.get(file) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(workspace::root().join(file)).with_context(|| format!("cannot read `{file}`"))?,
        };
        let content = match file.strip_suffix("/Cargo.toml") {
            Some(package) if packages.contains(package) => with_switch(package, &content)?.into_bytes(),
            _ => content,
        };
        // Cargo adds the switch to the copy's lock file, so only the first one is copied.
        if file != "Cargo.lock" || !to.exists() {
            write(&to, &content)?;
        }
        kept.insert(to);
    }
    write(&root.join("mutant_switch/src/lib.rs"), SWITCH.as_bytes())?;
    write(&root.join("mutant_switch/Cargo.toml"), SWITCH_MANIFEST.as_bytes())?;
    remove_others(&root, &kept)
}

/// A package's manifest with the switch among its dependencies.
fn with_switch(package: &str, manifest: &[u8]) -> anyhow::Result<String> {
    let manifest = String::from_utf8(manifest.to_vec()).context("a manifest is not UTF-8")?;
    let up = "../".repeat(package.split('/').count());
    let line = format!("mutant_switch = {{ path = \"{up}mutant_switch\" }}\n");
    Ok(match manifest.split_once("[dependencies]\n") {
        Some((before, after)) => format!("{before}[dependencies]\n{line}{after}"),
        None => format!("{manifest}\n[dependencies]\n{line}"),
    })
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|existing| existing == content) {
        return Ok(());
    }
    let folder = path.parent().context("a file without a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    fs::write(path, content).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Removes the Rust sources and manifests that are not in `kept`.
fn remove_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    ensure!(folder.starts_with(self::folder()), "`{}` is not the copy", folder.display());
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml")
            && !kept.contains(&path)
        {
            fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::with_switch;

    #[test]
    fn a_manifest_depends_on_the_switch() {
        let line = "mutant_switch = { path = \"../../mutant_switch\" }\n";
        let with = with_switch("crates/a", b"[package]\n\n[dependencies]\nb = \"1\"\n").unwrap();
        assert_eq!(with, format!("[package]\n\n[dependencies]\n{line}b = \"1\"\n"));
        let without = with_switch("crates/a", b"[package]\n").unwrap();
        assert_eq!(without, format!("[package]\n\n[dependencies]\n{line}"));
    }
}
