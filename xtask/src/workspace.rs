//! Paths of the workspace, and functions that run other programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, bail};

/// The workspace's folder, from the variable that cargo sets when it runs xtask. The folder that xtask was built in may
/// be another one, if the checkout was moved or copied with its target folder.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let running = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).filter(|folder| folder.ends_with("xtask"));
        let xtask = running.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        xtask.parent().expect("xtask is a folder of the workspace").to_owned()
    })
}

/// The workspace's target folder.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => env::current_dir().unwrap_or_default().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs xtask. Its target folder is [`target`], whatever its working folder.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    if env::var_os("CARGO_TARGET_DIR").is_some() {
        cargo.env("CARGO_TARGET_DIR", target());
    }
    cargo
}

/// Runs a program with its output command_line, and returns its exit code.
pub fn exit_code(command: &mut Command) -> anyhow::Result<u8> {
    let status = command.status().with_context(|| format!("cannot run {}", command_line(command)))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Runs a program that must succeed, and returns its output.
pub fn output(command: &mut Command) -> anyhow::Result<Output> {
    let output = command.output().with_context(|| format!("cannot run {}", command_line(command)))?;
    if !output.status.success() {
        bail!("{} failed:\n{}", command_line(command), String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(output)
}

/// The command line in backquotes, for messages.
pub fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    format!("`{}`", words.join(" "))
}
