//! New crates, each a `Cargo.toml` and a `main.rs`, that depend on the packages in a local registry.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::registry::Registry;
use crate::backend::Backend;
use crate::{progress, workspace};

/// The oldest supported Rust, as rustup names it.
const OLDEST: &str = "1.88";

/// A program that needs a GPU, without the feature `simt`.
const GPU_PROGRAM: &str = "\
use warpfold::Gpu;

fn main() -> Result<(), warpfold::Error> {
    let gpu = Gpu::new(0)?;
    let x = gpu.upload(&[1.5_f32, 2.5, 3.0])?;
    println!(\"{}\", gpu.sum(&x)?);
    Ok(())
}
";

/// A program that compiles only with the feature `simt`.
const EXECUTOR_PROGRAM: &str = "\
fn main() {
    let _ = warpfold::Gpu::first_or_simt();
}
";

/// A new crate, and the compiler that builds it.
struct NewCrate<'a> {
    registry: &'a Registry,
    folder: PathBuf,
    /// A toolchain of rustup; `None` for the one that runs xtask.
    toolchain: Option<&'a str>,
}

/// Builds and runs new crates. With `all`, also with the executor, and with the oldest supported Rust.
pub fn try_all(registry: &Registry, all: bool) -> anyhow::Result<()> {
    let before = registry.files()?;
    let oldest = if all { installed(OLDEST)? } else { None };
    for toolchain in [None].into_iter().chain(oldest.as_deref().map(Some)) {
        try_without_executor(registry, toolchain)?;
        if all {
            try_with_executor(registry, toolchain)?;
        }
    }
    if all && oldest.is_none() {
        println!("skipped Rust {OLDEST}: install it with `rustup toolchain install {OLDEST} --profile minimal`");
    }
    let after = registry.files()?;
    let changed = after.iter().find(|(file, state)| before.get(*file) != Some(state));
    ensure!(changed.is_none(), "a build has changed `{}`, which belongs to a package", changed.unwrap().0.display());
    Ok(())
}

/// Checks that a program for a GPU prints its sum, or on a machine without a GPU the error that says so, and that a
/// program with the executor does not compile without the feature `simt`.
fn try_without_executor(registry: &Registry, toolchain: Option<&str>) -> anyhow::Result<()> {
    let new = NewCrate::create(registry, "gpu", "", toolchain)?;
    let (built, time) = new.build(GPU_PROGRAM)?;
    ensure!(built.status.success(), "the new crate does not build:\n{}", printed_by(&built));
    let output = new.run()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let what = if Backend::detect() == Backend::Gpu {
        ensure!(
            output.status.success() && output.stdout == b"7\n",
            "the program must print 7, and printed:\n{}",
            printed_by(&output)
        );
        "the right sum"
    } else {
        // A program whose `main` returns an error exits with 1.
        let is_right = output.status.code() == Some(1)
            && text.starts_with("Error: ")
            && text.contains("enable the feature `simt` of `warpfold`");
        ensure!(
            is_right,
            "without a driver, the program must fail and name the feature `simt`: {:?}\n{}",
            output.status,
            printed_by(&output)
        );
        "the right error without a driver"
    };
    println!("for the GPU alone, {}: built in {} s, {what}", new.compiler()?, time.as_secs());
    let (built, _) = new.build(EXECUTOR_PROGRAM)?;
    let text = String::from_utf8_lossy(&built.stderr);
    let is_right = !built.status.success() && text.contains("E0599") && text.contains("`first_or_simt`");
    ensure!(is_right, "without the feature `simt`, `first_or_simt` must be unknown:\n{text}");
    Ok(())
}

/// Checks that README's program, run in the executor, prints the numbers in its comments.
fn try_with_executor(registry: &Registry, toolchain: Option<&str>) -> anyhow::Result<()> {
    let readme = fs::read_to_string(workspace::root().join("README.md")).context("cannot read README.md")?;
    let program = rust_block(&readme).context("README.md has no program")?;
    let new = NewCrate::create(registry, "readme", "simt", toolchain)?;
    let (built, time) = new.build(program)?;
    ensure!(built.status.success(), "README's program does not build:\n{}", printed_by(&built));
    let output = new.run()?;
    ensure!(output.status.success(), "README's program fails:\n{}", printed_by(&output));
    compare(program, &String::from_utf8_lossy(&output.stdout))?;
    println!("with the executor, {}: built in {} s, the numbers of README.md", new.compiler()?, time.as_secs());
    Ok(())
}

impl<'a> NewCrate<'a> {
    fn create(registry: &'a Registry, name: &str, feature: &str, toolchain: Option<&'a str>) -> anyhow::Result<Self> {
        let name =
            toolchain.map_or_else(|| name.to_owned(), |toolchain| format!("{name}-{}", toolchain.replace('.', "-")));
        let folder = registry.home().join(&name);
        fs::create_dir_all(folder.join("src")).context("cannot create the new crate")?;
        let features = if feature.is_empty() { String::new() } else { format!("{feature:?}") };
        let manifest = format!(
            "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nwarpfold = {{ version = {:?}, features = [{features}] }}\n",
            registry.package("warpfold")?.version
        );
        fs::write(folder.join("Cargo.toml"), manifest).context("cannot write the new crate's manifest")?;
        let new = Self { registry, folder, toolchain };
        new.write("fn main() {}\n")?;
        new.registry.add_dependencies_of(&new.folder)?;
        Ok(new)
    }

    fn write(&self, program: &str) -> anyhow::Result<()> {
        fs::write(self.folder.join("src/main.rs"), program).context("cannot write the new crate's program")
    }

    /// Cargo as a user runs it, without the variables that cargo and this workspace set.
    fn cargo(&self) -> Command {
        let mut cargo = match self.toolchain {
            None => Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]).env_remove("RUSTUP_TOOLCHAIN");
                rustup
            }
        };
        let of_workspace = |name: &str| {
            name.starts_with("CARGO") && name != "CARGO_HOME"
                || ["RUSTC", "RUSTDOC", "RUSTFLAGS", "WARPFOLD"].iter().any(|prefix| name.starts_with(prefix))
        };
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(of_workspace) {
                cargo.env_remove(name);
            }
        }
        cargo.current_dir(&self.folder);
        cargo
    }

    fn build(&self, program: &str) -> anyhow::Result<(Output, Duration)> {
        self.write(program)?;
        let start = Instant::now();
        let mut cargo = self.cargo();
        cargo.args(["build", "--offline"]);
        let output = progress::with_progress("building a new crate", || cargo.output());
        Ok((output.with_context(|| format!("cannot run {}", workspace::command_line(&cargo)))?, start.elapsed()))
    }

    fn run(&self) -> anyhow::Result<Output> {
        let mut cargo = self.cargo();
        cargo.args(["run", "--offline", "--quiet"]);
        cargo.output().with_context(|| format!("cannot run {}", workspace::command_line(&cargo)))
    }

    fn compiler(&self) -> anyhow::Result<String> {
        let output = workspace::output(self.cargo().arg("--version"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn printed_by(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The name of the installed toolchain of this version, if any.
fn installed(version: &str) -> anyhow::Result<Option<String>> {
    let Ok(output) = Command::new("rustup").args(["toolchain", "list"]).output() else { return Ok(None) };
    let list = String::from_utf8(output.stdout).context("rustup's list is not UTF-8")?;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| name.starts_with(version)).map(str::to_owned).next())
}

/// The first Rust code block of a Markdown page.
fn rust_block(page: &str) -> Option<&str> {
    Some(page.split_once("```rust\n")?.1.split_once("```")?.0)
}

/// Compares the printed lines with the comments after `println!`, each up to its colon.
fn compare(program: &str, printed: &str) -> anyhow::Result<()> {
    let prints = program.lines().filter(|line| line.contains("println!"));
    let expected: Vec<&str> = prints
        .map(|line| line.rsplit_once("// ").map_or("", |(_, comment)| comment.split(':').next().unwrap_or_default()))
        .collect();
    let printed: Vec<&str> = printed.lines().collect();
    if printed.is_empty() || printed != expected {
        bail!("README's program prints {printed:?}, and its comments say {expected:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_lines_must_equal_the_comments() {
        let page = "# Title\n```sh\nls\n```\n```rust\nlet a = 1;\nprintln!(\"{a}\"); // 1: the number\n```\n";
        let program = rust_block(page).unwrap();
        assert_eq!(program.lines().next(), Some("let a = 1;"));
        assert!(compare(program, "1\n").is_ok());
        for wrong in ["2\n", "1\n1\n", ""] {
            assert!(compare(program, wrong).is_err(), "{wrong}");
        }
        assert!(compare("println!();", "\n").is_ok());
    }

    #[test]
    fn each_println_of_the_readme_has_a_comment() {
        let readme = fs::read_to_string(workspace::root().join("README.md")).unwrap();
        let program = rust_block(&readme).unwrap();
        assert!(program.lines().filter(|line| line.contains("println!")).all(|line| line.contains("// ")));
    }
}
