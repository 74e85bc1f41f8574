//! `cargo xtask setup`: installs the compiler that builds kernels, with rustup or apt-get.

use std::env;
use std::process::Command;

use anyhow::bail;
use cuda_builder::DeviceToolchain;
use cuda_builder::toolchain::{OLDEST, Origin};

use crate::{ptxas, workspace};

/// The environment variable that names the compiler for kernels.
const OVERRIDE: &str = "WARPFOLD_DEVICE_RUSTC";

/// The packages of Debian and Ubuntu: a compiler, and the sources of its standard library.
const PACKAGES: [(&str, &str); 3] =
    [("rustc-web", "rust-web-src"), ("rustc-1.95", "rust-1.95-src"), ("rustc", "rust-src")];

/// Finds or installs the compiler for kernels, and with `ptxas` the assembler.
pub fn run(ptxas: bool) -> anyhow::Result<()> {
    let toolchain = match DeviceToolchain::find() {
        Ok(present) => present,
        // A compiler that the user has named must not be replaced silently.
        Err(missing) if env::var_os(OVERRIDE).is_some() => {
            bail!("{OVERRIDE} names no compiler for kernels: {}; correct it, or unset it", missing.tried.join("; "))
        }
        Err(missing) => install(&missing.tried)?,
    };
    if toolchain.origin != Origin::Toolchain {
        eprintln!("setup: kernels are compiled by {} ({})", toolchain.rustc.display(), toolchain.version);
    }
    if ptxas {
        ptxas::find_or_install()?;
    }
    Ok(())
}

fn install(missing: &[String]) -> anyhow::Result<DeviceToolchain> {
    eprintln!("setup: no compiler here can build kernels: {}", missing.join("; "));
    let mut failures = Vec::new();
    for attempt in [rustup as fn() -> anyhow::Result<()>, apt] {
        match attempt() {
            Ok(()) => match DeviceToolchain::find() {
                Ok(found) => {
                    eprintln!("setup: kernels can be built, by {} ({})", found.rustc.display(), found.version);
                    return Ok(found);
                }
                Err(still) => failures
                    .push(format!("a compiler was installed, but cannot build kernels: {}", still.tried.join("; "))),
            },
            Err(why) => failures.push(format!("{why:#}")),
        }
    }
    bail!(
        "no compiler for kernels could be installed:\n  - {}\nWhere the network reaches rustup's server, run\n  \
         rustup component add rust-src --toolchain 1.95.0\nand try again",
        failures.iter().map(|failure| failure.replace('\n', "\n    ")).collect::<Vec<_>>().join("\n  - ")
    )
}

/// Installs the component rust-src for rustup's current toolchain.
fn rustup() -> anyhow::Result<()> {
    let mut command = Command::new("rustup");
    command.current_dir(workspace::root()).args(["component", "add", "rust-src"]);
    eprintln!("setup: installing rust-src with {}", workspace::command_line(&command));
    workspace::output(&mut command).map(|_| ())
}

/// Installs the first of [`PACKAGES`] that is recent enough.
fn apt() -> anyhow::Result<()> {
    // If the update fails, an old package list may suffice.
    let _ = privileged("apt-get").args(["update", "-qq"]).output();
    let recent =
        PACKAGES.into_iter().find(|(compiler, _)| candidate(compiler).is_some_and(|version| version >= OLDEST));
    let Some((compiler, sources)) = recent else {
        bail!("apt-get has no rustc of {}.{} or later", OLDEST.0, OLDEST.1);
    };
    apt_install(&[compiler, sources])
}

/// Installs a package of Debian or Ubuntu.
pub fn install_package(package: &str) -> anyhow::Result<()> {
    // If the update fails, an old package list may suffice.
    let _ = privileged("apt-get").args(["update", "-qq"]).output();
    apt_install(&[package])
}

fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    let mut command = privileged("apt-get");
    command.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    eprintln!("setup: installing {} with {}", packages.join(" and "), workspace::command_line(&command));
    workspace::output(&mut command).map(|_| ())
}

/// The major and the minor version of a package that apt-get would install.
fn candidate(package: &str) -> Option<(u32, u32)> {
    let output = Command::new("apt-cache").args(["policy", package]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// A command that runs as root: with `sudo -n`, which never asks for a password, unless this process is root.
fn privileged(program: &str) -> Command {
    let id = Command::new("id").arg("-u").output();
    let is_root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if is_root {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}
