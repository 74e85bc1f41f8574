//! Builds the test programs of the copy, or finds the mutants that do not compile.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::copy;
use crate::backend::ARCHS;
use crate::workspace;

/// A package whose sources are mutated, or whose tests are run.
#[derive(Clone, Debug)]
pub struct Package {
    pub name: String,
    /// The path from the workspace's root.
    pub folder: String,
    pub has_lib: bool,
    /// The package's test programs.
    pub tests: Vec<String>,
    /// The features that the test programs need.
    pub features: BTreeSet<String>,
}

/// A test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The package, and the target's name unless it is the package's unit tests.
    pub name: String,
    pub executable: PathBuf,
    pub folder: PathBuf,
}

/// The workspace's packages that contain these paths, and `warpfold-tests` unless `own_tests`.
pub fn packages(paths: &[String], own_tests: bool) -> anyhow::Result<Vec<Package>> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let metadata: Value =
        serde_json::from_slice(&workspace::output(&mut cargo)?.stdout).context("cannot parse cargo's metadata")?;
    let mut packages = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(workspace::root()).ok());
        let Some(folder) = folder.and_then(|folder| folder.to_str()).map(str::to_owned) else { continue };
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let across = name == "warpfold-tests";
        if across && own_tests || !across && !paths.iter().any(|path| path.starts_with(&format!("{folder}/"))) {
            continue;
        }
        let targets = package["targets"].as_array().into_iter().flatten();
        let of_kind = |target: &&Value, kind: &str| target["kind"].as_array().is_some_and(|k| k.contains(&kind.into()));
        let tests = targets.clone().filter(|target| of_kind(target, "test") && (!across || target["name"] == "cpu"));
        let features = tests.clone().filter_map(|target| target["required-features"].as_array()).flatten();
        packages.push(Package {
            has_lib: !across && targets.clone().any(|target| of_kind(&target, "lib")),
            features: features.filter_map(Value::as_str).map(|feature| format!("{name}/{feature}")).collect(),
            tests: tests.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect(),
            name,
            folder,
        });
    }
    Ok(packages)
}

/// The result of a build.
pub enum Built {
    Programs(Vec<Program>),
    /// Mutants that do not compile.
    Unviable(BTreeSet<u32>),
}

/// Builds the test programs. `mutants` has the position of each mutant in each rewritten file.
pub fn build(packages: &[Package], mutants: &BTreeMap<String, Vec<(u32, Range<usize>)>>) -> anyhow::Result<Built> {
    let mut cargo = workspace::cargo();
    cargo.current_dir(copy::root()).args(["test", "--no-run", "--message-format=json"]);
    cargo.args(packages.iter().flat_map(|package| ["--package", &package.name]));
    if packages.iter().any(|package| package.has_lib) {
        cargo.arg("--lib");
    }
    cargo.args(packages.iter().flat_map(|package| &package.tests).flat_map(|test| ["--test", test]));
    cargo.args(packages.iter().flat_map(|package| &package.features).flat_map(|feature| ["--features", feature]));
    cargo.env(ARCHS, "none").env("CARGO_TARGET_DIR", copy::folder().join("target"));
    // Only the switch uses unstable features. Lints are capped because a mutant may trigger them.
    cargo.env("RUSTC_BOOTSTRAP", "mutant_switch").env("RUSTFLAGS", "--cap-lints=allow");
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
        cargo.env_remove(variable);
    }
    let output = run(&mut cargo)?;
    let mut programs = Vec::new();
    let mut unviable = BTreeSet::new();
    let mut elsewhere = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
        if message["reason"] == "compiler-artifact" && message["profile"]["test"] == true {
            programs.extend(program(&message));
        }
        if message["reason"] == "compiler-message" && message["message"]["level"] == "error" {
            let message = &message["message"];
            let at = culprits(message, mutants);
            if at.is_empty() && message["spans"].as_array().is_some_and(|spans| !spans.is_empty()) {
                elsewhere.push(message["rendered"].as_str().unwrap_or_default().to_owned());
            }
            unviable.extend(at);
        }
    }
    if output.status.success() {
        return Ok(Built::Programs(programs));
    }
    if unviable.is_empty() {
        bail!("the copy does not build:\n{}{}", elsewhere.join("\n"), String::from_utf8_lossy(&output.stderr));
    }
    Ok(Built::Unviable(unviable))
}

fn run(cargo: &mut Command) -> anyhow::Result<std::process::Output> {
    cargo.stdin(Stdio::null());
    let output = crate::progress::with_progress("building the tests with the mutants", || cargo.output());
    output.with_context(|| format!("cannot run {}", workspace::command_line(cargo)))
}

fn program(message: &Value) -> Option<Program> {
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let target = message["target"]["name"].as_str()?;
    let is_lib = message["target"]["kind"].as_array()?.contains(&"lib".into());
    let name = if is_lib { format!("{target} (unit)") } else { target.to_owned() };
    Some(Program { name, executable, folder })
}

/// The mutants that cause a compiler error: the innermost one that contains a span of the error, or else all that
/// overlap the span. Primary spans are tried first.
fn culprits(message: &Value, mutants: &BTreeMap<String, Vec<(u32, Range<usize>)>>) -> BTreeSet<u32> {
    let mut spans = Vec::new();
    let mut queue: Vec<&Value> = message["spans"].as_array().into_iter().flatten().collect();
    while let Some(span) = queue.pop() {
        if let (Some(file), Some(start), Some(end)) =
            (span["file_name"].as_str(), span["byte_start"].as_u64(), span["byte_end"].as_u64())
        {
            spans.push((file.to_owned(), start as usize..end as usize, span["is_primary"] == true));
        }
        if !span["expansion"].is_null() {
            queue.push(&span["expansion"]["span"]);
        }
    }
    spans.sort_by_key(|(_, _, is_primary)| !is_primary);
    for (file, range, _) in spans {
        let there = mutants.get(&file).into_iter().flatten();
        let containing = there.clone().filter(|(_, at)| at.start <= range.start && range.end <= at.end);
        if let Some((number, _)) = containing.min_by_key(|(_, at)| at.len()) {
            return BTreeSet::from([*number]);
        }
        let overlapping: BTreeSet<u32> =
            there.filter(|(_, at)| at.start < range.end && range.start < at.end).map(|(number, _)| *number).collect();
        if !overlapping.is_empty() {
            return overlapping;
        }
    }
    BTreeSet::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_error_belongs_to_the_innermost_mutant() {
        let mutants = BTreeMap::from([("a.rs".to_owned(), vec![(1, 10..50), (2, 20..30), (3, 60..70)])]);
        let of = |start: u64, end: u64| {
            let span = serde_json::json!({
                "file_name": "a.rs", "byte_start": start, "byte_end": end, "is_primary": true, "expansion": null,
            });
            culprits(&serde_json::json!({ "spans": [span] }), &mutants)
        };
        assert_eq!(of(22, 24), BTreeSet::from([2]));
        assert_eq!(of(12, 24), BTreeSet::from([1]));
        assert_eq!(of(0, 65), BTreeSet::from([1, 2, 3]));
        assert_eq!(of(51, 55), BTreeSet::new());
    }
}
