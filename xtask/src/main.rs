//! warpfold's build tool: `cargo xtask --help`.

mod api;
mod backend;
mod build_ptx;
mod bundle;
mod mutants;
mod package;
mod prebuilt;
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

/// Installs what warpfold's build needs, builds PTX, and runs the benchmark and the tests.
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
  cargo xtask build-ptx --pack           the library's prebuilt kernels, for a release
  cargo xtask package                    the packages for crates.io, tried by a new crate
  cargo xtask api                        what has changed in the public API
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
    /// Installs what the device build needs, unless this machine has it
    Setup {
        /// Also installs ptxas, cuobjdump and nvdisasm from PyPI, unless there is a CUDA toolkit
        #[arg(long)]
        ptxas: bool,
    },
    /// Builds the kernels to target/ptx/ARCH/, one file per entry
    BuildPtx {
        /// The architectures
        #[arg(long, value_delimiter = ',', default_value = "sm_75,sm_80,sm_90")]
        arch: Vec<Arch>,
        /// Also assembles every entry, and fails on an error or a register spill
        #[arg(long)]
        verify: bool,
        /// Renews the library's prebuilt kernels, host/prebuilt; with --verify, compares them with the sources instead
        #[arg(long, conflicts_with = "arch")]
        pack: bool,
    },
    /// Runs the benchmark with the following arguments
    #[command(disable_help_flag = true)]
    Bench {
        /// The benchmark's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Runs all tests; the following arguments go to `cargo test`
    #[command(disable_help_flag = true)]
    Test {
        /// Runs all cases and lane orders: several times as long
        #[arg(long)]
        all: bool,
        /// `cargo test`'s arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Makes target/bundle/: programs, tests and PTX, for a CUDA machine without Rust
    Bundle {
        /// The architectures: a device runs PTX for its own and for older architectures
        #[arg(long, value_delimiter = ',', default_value = "sm_90")]
        arch: Vec<Arch>,
    },
    /// Compares the public API of the libraries with the lists in xtask/api, and fails if it differs
    Api {
        /// Writes the lists instead
        #[arg(long)]
        renew: bool,
    },
    /// Makes the packages for crates.io, target/package/*.crate, and builds and runs a new crate with them
    Package(package::Options),
    /// Writes docs/benchmarks/DEVICE.md from a folder of JSON files by `./run.sh tables` of the bundle
    Tables {
        /// The page's name: h200, h100
        device: String,
        /// The folder of JSON files
        folder: PathBuf,
    },
    /// Runs Miri and valgrind over the tests that they support, and prints their number. Installs missing tools
    #[command(after_help = "Examples:
  cargo xtask soundness             both tools; some minutes
  cargo xtask soundness valgrind    only the executor's tests, compiled, under valgrind's memcheck

The exit code is 1 if a tool has found something or a test has failed, or if no tool could run. A tool that
cannot be installed is named in the last lines.")]
    Soundness {
        /// Only these tools; a named tool that cannot be installed is an error
        #[arg(value_enum)]
        tools: Vec<soundness::Tool>,
    },
    /// Plants errors in kernels, plans and cuda_std, and reports those that no test detects: up to an hour
    Mutants(mutants::Options),
    /// Measures how long builds and tests take here, each in a fresh clone of the last commit: nearly an hour on two
    /// cores
    Timings {
        /// Only these rows; the printed table has their names
        #[arg(value_enum)]
        rows: Vec<timings::Row>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Task::Setup { ptxas } => setup::run(ptxas).map(|()| 0),
        Task::BuildPtx { pack: true, verify, .. } => prebuilt::run(verify).map(|()| 0),
        Task::BuildPtx { arch, verify, .. } => build_ptx::run(&arch, verify).map(|()| 0),
        Task::Bench { arguments } => bench(&arguments),
        Task::Test { all, arguments } => test(all, &arguments),
        Task::Bundle { arch } => progress::while_saying("building the bundle", || bundle::run(&arch)).map(|()| 0),
        Task::Api { renew } => api::run(renew).map(|()| 0),
        Task::Package(options) => package::run(&options).map(|()| 0),
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

/// Builds and runs the benchmark, and returns its exit code.
///
/// On a GPU it is the release build, because its host code is measured, too. For the executor it is the tests' build,
/// without PTX.
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
    // Only this command of the executor's build needs PTX: for one architecture, in a folder.
    if backend == Backend::Executor
        && let Some(arch) = occupancy_without_ptx(arguments)
    {
        bench.arg("--ptx").arg(build_ptx::in_folder(&[build_ptx::newest_up_to(arch)])?);
    }
    progress::run(&mut bench, "measuring")
}

/// The architecture in `bench occupancy --arch sm_90`, unless the arguments name a folder of PTX.
fn occupancy_without_ptx(arguments: &[String]) -> Option<Arch> {
    let at = |name: &str| arguments.iter().position(|argument| argument == name);
    if !arguments.iter().any(|argument| argument == "occupancy") || at("--ptx").is_some() {
        return None;
    }
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--arch="));
    joined.or_else(|| arguments.get(at("--arch")? + 1).map(String::as_str))?.parse().ok()
}

/// Runs all tests, or those that `arguments` select. Without a GPU the library is built without PTX; the tests of the
/// PTX build it themselves if they are selected.
fn test(all: bool, arguments: &[String]) -> anyhow::Result<u8> {
    let backend = Backend::find();
    setup::run(false)?;
    // Without the assembler some tests can only report that they were skipped.
    if let Err(error) = setup::run(true) {
        eprintln!("warning: tests that need ptxas will be skipped: {error:#}");
    }
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["test", "--workspace"]).args(arguments);
    cargo.envs(backend.archs().map(|archs| (ARCHS, archs)));
    if all {
        cargo.env("WARPFOLD_TESTS", "all").env("WARPFOLD_TEST_ARCHS", "sm_75,sm_80,sm_90");
    }
    // All tests include those of the PTX. It is one long compilation, which leaves the other cores to cargo.
    thread::scope(|scope| {
        if arguments.is_empty() {
            // The tests report its errors.
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
