//! warpfold's build tool: `cargo xtask --help`.

mod build_ptx;
mod bundle;
mod ptxas;
mod setup;
mod workspace;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cuda_builder::Arch;

/// Sets up what warpfold's build needs, builds PTX, and runs the benchmark and the tests.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Examples:
  cargo xtask bench                      all ladders, on a GPU or in the executor
  cargo xtask bench --help               what the benchmark can do
  cargo xtask bench ladder reduce --rung sequential
  cargo xtask test                       all tests
  cargo xtask test --test reductions     some of them
  cargo xtask build-ptx --verify         the kernels' PTX, assembled for three architectures
  cargo xtask bundle                     a folder to carry to a CUDA machine without Rust"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Gives this machine what the device build needs. Does nothing where it is there
    Setup {
        /// Also brings ptxas, cuobjdump and nvdisasm, from PyPI, where there is no CUDA toolkit
        #[arg(long)]
        ptxas: bool,
    },
    /// Builds the kernels to target/ptx/ARCH/, a file for each entry
    BuildPtx {
        /// The architectures
        #[arg(long, value_delimiter = ',', default_value = "sm_75,sm_80,sm_90")]
        arch: Vec<Arch>,
        /// Also assembles every entry, and fails on an error or a register spill
        #[arg(long)]
        verify: bool,
    },
    /// Runs the benchmark; what follows is for it
    #[command(disable_help_flag = true)]
    Bench {
        /// The benchmark's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Runs all tests; what follows is for `cargo test`
    #[command(disable_help_flag = true)]
    Test {
        /// `cargo test`'s arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Makes target/bundle/: programs, tests and PTX, to carry to a CUDA machine without Rust
    Bundle {
        /// The architectures: a device runs what was made for it or for an older one
        #[arg(long, value_delimiter = ',', default_value = "sm_90")]
        arch: Vec<Arch>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Setup { ptxas } => setup::run(ptxas).map(|()| 0),
        Command::BuildPtx { arch, verify } => build_ptx::run(&arch, verify).map(|()| 0),
        Command::Bench { arguments } => bench(&arguments),
        Command::Test { arguments } => test(&arguments),
        Command::Bundle { arch } => {
            announce("the benchmark, the tests and the examples, to carry to another machine");
            bundle::run(&arch).map(|()| 0)
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says on standard error what is about to be built, where that may take minutes in which nothing else is printed.
fn announce(what: &str) {
    eprintln!("xtask: building {what}; a first build takes some minutes");
}

/// Gives the benchmark's own exit code.
fn bench(arguments: &[String]) -> anyhow::Result<u8> {
    setup::run(false)?;
    if !workspace::target().join("release").join("bench").exists() {
        announce("the benchmark and its kernels");
    }
    let mut cargo = workspace::cargo();
    // From the caller's folder, so that its relative paths mean what they say.
    cargo.args(["run", "--release", "--package", "warpfold", "--bin", "bench"]);
    if !io::stderr().is_terminal() {
        cargo.arg("--quiet");
    }
    cargo.arg("--manifest-path").arg(workspace::root().join("Cargo.toml")).arg("--").args(arguments);
    workspace::exit_code(&mut cargo)
}

fn test(arguments: &[String]) -> anyhow::Result<u8> {
    setup::run(false)?;
    // Without the assembler some tests can only say that they were skipped.
    if let Err(error) = setup::run(true) {
        eprintln!("warning: tests that need ptxas will be skipped: {error:#}");
    }
    announce("the tests and their kernels");
    let mut cargo = workspace::cargo();
    workspace::exit_code(cargo.current_dir(workspace::root()).args(["test", "--workspace"]).args(arguments))
}
