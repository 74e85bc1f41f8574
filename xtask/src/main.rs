//! warpfold's build tool: `cargo xtask --help`.

mod backend;
mod build_ptx;
mod bundle;
mod mutants;
mod progress;
mod ptxas;
mod setup;
mod soundness;
mod tables;
mod timings;
mod workspace;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;

use clap::{Parser, Subcommand};
use cuda_builder::Arch;

use crate::backend::{ARCHS, Backend};

/// Sets up what warpfold's build needs, builds PTX, and runs the benchmark and the tests.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Examples:
  cargo xtask bench                      all ladders, on a GPU or in the executor
  cargo xtask bench --help               what the benchmark can do
  cargo xtask bench ladder reduce --rung sequential
  cargo xtask test                       all tests
  cargo xtask test --test cpu reductions   some of them
  cargo xtask build-ptx --verify         the kernels' PTX, assembled for three architectures
  cargo xtask soundness                  Miri and valgrind over the tests that they can run
  cargo xtask bundle                     a folder to carry to a CUDA machine without Rust
  cargo xtask tables h100 target/tables  docs/benchmarks/h100.md, from what `./run.sh tables` measured there"
)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
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
        /// As often and with as many orders of lanes as they can: several times as long
        #[arg(long)]
        all: bool,
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
    /// Writes docs/benchmarks/DEVICE.md from the JSON that `./run.sh tables` of the bundle has left in a folder
    Tables {
        /// The page's name: h200, h100
        device: String,
        /// The folder of JSON files
        folder: PathBuf,
    },
    /// Runs Miri and valgrind over the tests that they can run, and prints how many those are. Installs what is missing
    #[command(after_help = "Examples:
  cargo xtask soundness             both tools; some minutes
  cargo xtask soundness valgrind    only the executor's tests, compiled, under valgrind's memcheck

The exit code is 1 if a tool has found something or a test has failed, or if no tool could run. A tool that
cannot be installed is named in the last lines.")]
    Soundness {
        /// Only these tools; one that is named and cannot be installed is an error
        #[arg(value_enum)]
        tools: Vec<soundness::Tool>,
    },
    /// Plants errors in kernels, plans and cuda_std, and reports which of them no test notices: up to an hour
    Mutants(mutants::Options),
    /// Measures how long builds and tests take here, each from a fresh clone of the last commit: nearly an hour on two
    /// cores
    Timings {
        /// Only these rows; the table that is printed has their names
        #[arg(value_enum)]
        rows: Vec<timings::Row>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Task::Setup { ptxas } => setup::run(ptxas).map(|()| 0),
        Task::BuildPtx { arch, verify } => build_ptx::run(&arch, verify).map(|()| 0),
        Task::Bench { arguments } => bench(&arguments),
        Task::Test { all, arguments } => test(all, &arguments),
        Task::Bundle { arch } => progress::while_saying("building the bundle", || bundle::run(&arch)).map(|()| 0),
        Task::Soundness { tools } => soundness::run(&tools),
        Task::Mutants(options) => mutants::run(&options),
        Task::Tables { device, folder } => tables::run(&device, &folder).map(|()| 0),
        Task::Timings { rows } => timings::run(&rows).map(|()| 0),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the benchmark and gives its own exit code.
///
/// On a GPU it is the release build, as its host code is measured, too. In the executor it is the tests' build, without
/// PTX.
fn bench(arguments: &[String]) -> anyhow::Result<u8> {
    let backend = Backend::find();
    let profile = match backend {
        Backend::Gpu => {
            setup::run(false)?;
            "release"
        }
        Backend::Executor => "dev",
    };
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root());
    cargo.args(["build", "--bin", "bench", "--profile", profile]);
    cargo.envs(backend.archs().map(|archs| (ARCHS, archs)));
    let built = progress::run(&mut cargo, "building the benchmark")?;
    if built != 0 {
        return Ok(built);
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    let mut bench = Command::new(workspace::target().join(folder).join("bench"));
    bench.args(arguments);
    // Only here does the executor's build need PTX: of one architecture, in a folder.
    if backend == Backend::Executor
        && let Some(arch) = occupancy_without_ptx(arguments)
    {
        bench.arg("--ptx").arg(build_ptx::in_folder(&[build_ptx::newest_up_to(arch)])?);
    }
    progress::run(&mut bench, "measuring")
}

/// The architecture that `bench occupancy --arch sm_90` asks for, if it names no folder of PTX.
fn occupancy_without_ptx(arguments: &[String]) -> Option<Arch> {
    let at = |name: &str| arguments.iter().position(|argument| argument == name);
    if !arguments.iter().any(|argument| argument == "occupancy") || at("--ptx").is_some() {
        return None;
    }
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--arch="));
    joined.or_else(|| arguments.get(at("--arch")? + 1).map(String::as_str))?.parse().ok()
}

/// Runs all tests, or what `arguments` choose of them. Without a GPU the library is built without PTX; the tests of the
/// PTX build it themselves, if they are among them.
fn test(all: bool, arguments: &[String]) -> anyhow::Result<u8> {
    let backend = Backend::find();
    setup::run(false)?;
    // Without the assembler some tests can only say that they were skipped.
    if let Err(error) = setup::run(true) {
        eprintln!("warning: tests that need ptxas will be skipped: {error:#}");
    }
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["test", "--workspace"]).args(arguments);
    cargo.envs(backend.archs().map(|archs| (ARCHS, archs)));
    if all {
        cargo.env("WARPFOLD_TESTS", "all").env("WARPFOLD_TEST_ARCHS", "sm_75,sm_80,sm_90");
    }
    // All tests look at the PTX, too. It is one long compilation: beside those of cargo it keeps no core waiting.
    thread::scope(|scope| {
        if arguments.is_empty() {
            // What is wrong with it the tests say.
            scope.spawn(|| build_ptx::prepare(&[build_ptx::NEWEST]));
        }
        progress::run(&mut cargo, "building and running the tests")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupancy_asks_for_the_ptx_of_its_architecture() {
        let of = |line: &str| occupancy_without_ptx(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("occupancy sequential --arch sm_86"), Some(Arch::SM_86));
        assert_eq!(of("--device simt occupancy sequential --arch=sm_90 --format json"), Some(Arch::SM_90));
        assert_eq!(of("occupancy sequential --arch sm_90 --ptx target/ptx"), None);
        assert_eq!(of("occupancy sequential --arch nonsense"), None);
        assert_eq!(of("ladder reduce"), None);
    }
}
