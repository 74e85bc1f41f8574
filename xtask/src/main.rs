//! warpfold's build tool: `cargo xtask --help`.

mod api;
mod backend;
mod build_ptx;
mod bundle;
mod compare_ptx;
mod cubins;
mod mutants;
mod package;
mod prebuilt;
mod progress;
mod ptxas;
mod python;
mod setup;
mod soundness;
mod tables;
mod timings;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;

use clap::{Parser, Subcommand};
use cuda_builder::Arch;

use crate::backend::{ARCHS, Backend};

/// Builds, tests, measures and packages warpfold.
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Examples:
  cargo xtask bench                       measure all ladders, on a GPU or in the executor
  cargo xtask bench --help                the benchmark's own commands
  cargo xtask test                        run all tests
  cargo xtask test --test cpu reductions  run the tests of one program whose names contain a text
  cargo xtask build-ptx --verify          assemble the kernels' PTX for three architectures
  cargo xtask api                         check the public API for unintended changes
  cargo xtask help build-ptx              the options of a command, with examples

Most changes need only `bench` and `test`. For a release: `build-ptx --pack`, then `package --all`.
.ci/run has the checks that every change must pass."
)]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Builds the benchmark and runs it
    #[command(
        disable_help_flag = true,
        after_help = "Examples:
  cargo xtask bench                                  all ladders
  cargo xtask bench --help                           the benchmark's own help
  cargo xtask bench ladder reduce --rung sequential  one rung of a ladder
  cargo xtask bench sum --n 2^20                     a sum of random numbers

On a machine with an NVIDIA GPU this is a release build with PTX for that GPU.
On another machine it is a debug build without PTX, which runs the kernels in the executor.
WARPFOLD_ARCHS=none selects the executor's build."
    )]
    Bench {
        /// The benchmark's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Runs all tests, or those that `cargo test` selects by the arguments
    #[command(after_help = "Examples:
  cargo xtask test                                  all tests of the workspace
  cargo xtask test --test cpu reductions            those of the program `cpu` that match
  cargo xtask test -p warpfold-exact-sum            the tests of one package
  cargo xtask test --all                            with all cases and lane orders
  cargo xtask test --test cpu reductions -- --list  the names of these tests

`cargo test --help` lists the other arguments.
Without a GPU, the tests that need one are reported as ignored.")]
    Test {
        /// Runs all cases and lane orders, which takes several times as long
        #[arg(long)]
        all: bool,
        /// Arguments of `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Installs the compiler that builds kernels, unless this machine has it
    #[command(after_help = "Examples:
  cargo xtask setup          the sources of the standard library (rust-src) for rustup's toolchain,
                             or a compiler with its sources from apt-get
  cargo xtask setup --ptxas  NVIDIA's assembler, too: `build-ptx --verify` and some tests need it

`test`, `build-ptx`, `bundle`, and on a machine with a GPU `bench`, do this by themselves.")]
    Setup {
        /// Also installs ptxas, cuobjdump and nvdisasm from PyPI, unless this machine has ptxas
        #[arg(long)]
        ptxas: bool,
    },
    /// Compiles the kernels to PTX, one file per entry: target/ptx/ARCH/ENTRY.ptx
    #[command(after_help = "Examples:
  cargo xtask build-ptx --arch sm_90     the kernels' PTX for one architecture
  cargo xtask build-ptx --verify         registers, shared memory and spills of each kernel
  cargo xtask build-ptx --pack           renew host/prebuilt, for a release
  cargo xtask build-ptx --pack --verify  compare host/prebuilt with the sources
  cargo xtask build-ptx --arch sm_90 --compare HEAD~1  what the last commit changed in each kernel; nothing, if it only
                                                       moved code")]
    BuildPtx {
        /// The architectures, separated by commas
        #[arg(long, value_delimiter = ',', default_value = "sm_75,sm_80,sm_90")]
        arch: Vec<Arch>,
        /// Also assembles every entry; an error or too large a register spill fails
        #[arg(long)]
        verify: bool,
        /// Renews the library's prebuilt kernels, host/prebuilt; with --verify, compares them with the sources instead
        #[arg(long, conflicts_with = "arch")]
        pack: bool,
        /// Prints the entries whose PTX differs from that of another commit, with their registers, spills and
        /// instructions; exit code 1 if there are any
        #[arg(long, value_name = "COMMIT", conflicts_with_all = ["verify", "pack"])]
        compare: Option<String>,
    },
    /// Compares the libraries' public API with the lists in xtask/api, and fails if it differs
    #[command(after_help = "Examples:
  cargo xtask api          print the added and the removed items
  cargo xtask api --renew  accept them; `git diff xtask/api` shows what has changed")]
    Api {
        /// Writes the lists instead of comparing them
        #[arg(long)]
        renew: bool,
    },
    /// Builds the Python package and tests it, or makes its wheel or its source distribution
    #[command(after_help = "Examples:
  cargo xtask python              build and test the package; a part of `cargo xtask test`
  cargo xtask python -- -k sums   the tests whose names contain a text; other arguments of pytest work, too
  cargo xtask python --wheel      target/python/wheels: the wheel for a release, tried on each Python found here
  cargo xtask python --sdist      target/python/sdist: the source distribution, tried on one Python

The tests need a Python of 3.11 or later, and install packages from PyPI under target/python.
`cargo xtask test` leaves them out where that is not possible, unless WARPFOLD_PYTHON=required.")]
    Python(python::Options),
    /// Makes the packages for crates.io, and builds and runs a new crate that depends on them
    #[command(after_help = "Examples:
  cargo xtask package               target/package/*.crate, as they would be published
  cargo xtask package --unreleased  the same between releases, from uncommitted files
  cargo xtask package --all         all checks, before a release")]
    Package(package::Options),
    /// Makes target/bundle: programs, tests and PTX for a GPU machine without Rust
    #[command(after_help = "Examples:
  cargo xtask bundle                     for compute capability 9.0 and newer
  cargo xtask bundle --arch sm_80,sm_90  for 8.0 and newer

Copy the folder to the GPU machine. There, run in it:
  ./run.sh           the tests, the examples and the benchmark
  ./run.sh tables    the measurements of docs/benchmarks, as JSON for `cargo xtask tables`
  ./run.sh sanitize  the GPU tests under compute-sanitizer
  ./run.sh python    the tests of the Python package with PyTorch, CuPy, JAX and Numba, if the bundle has it
  ./run.sh ranks     the tests of sums over ranks of torchrun, which may share a GPU, and their benchmark")]
    Bundle {
        /// The architectures, separated by commas; a GPU runs PTX for its own and for older architectures
        #[arg(long, value_delimiter = ',', default_value = "sm_90")]
        arch: Vec<Arch>,
        /// Adds the wheel that `cargo xtask python --wheel` made last, and its tests, for this version of Python
        #[arg(long, value_name = "VERSION", num_args = 0..=1, default_missing_value = "3.12")]
        python: Option<String>,
    },
    /// Writes docs/benchmarks/DEVICE.md from the JSON files of `./run.sh tables`
    #[command(after_help = "Examples:
  cargo xtask tables h100 target/tables  docs/benchmarks/h100.md, from the files in target/tables

`./run.sh tables` writes the files on the GPU machine: see `cargo xtask help bundle`.")]
    Tables {
        /// The name of the page, such as h100
        device: String,
        /// The folder of JSON files
        folder: PathBuf,
    },
    /// Runs Miri and valgrind over the tests that they support, and installs missing tools
    #[command(after_help = "Examples:
  cargo xtask soundness           both tools; some minutes
  cargo xtask soundness valgrind  only valgrind, over compiled tests of the executor

The exit code is 1 if a tool has found an error, a test has failed, or no tool could run.
The last lines name each tool that could not be installed.")]
    Soundness {
        /// Only these tools; one that cannot be installed is then an error
        #[arg(value_enum)]
        tools: Vec<soundness::Tool>,
    },
    /// Plants errors in the sources, and reports those that no test detects; takes up to an hour
    #[command(after_help = "Examples:
  cargo xtask mutants                              300 errors in the default folders
  cargo xtask mutants --seed 2                     300 others
  cargo xtask mutants --in kernels/src/ops --list  those in one folder, without running a test
  cargo xtask mutants --in crates/exact_sum/src --own-tests --count 50

This is mutation testing: a source with a planted error is a mutant, and a mutant that no test
detects has survived. docs/notes/mutants.md explains the method, and lists survivors that cannot
be detected. Outcomes are kept in target/mutants: the next run tries only mutants whose outcome may
have changed.
The exit code is 1 if too many mutants survive without a reason.")]
    Mutants(mutants::Options),
    /// Measures how long builds and tests take in fresh clones; takes nearly an hour on two cores
    #[command(after_help = "Examples:
  cargo xtask timings       all rows
  cargo xtask timings test  only the tests: in a fresh clone, again, and after an edit

Each clone is of the last commit, so uncommitted changes do not count.")]
    Timings {
        /// Only these rows of the table
        #[arg(value_enum)]
        rows: Vec<timings::Row>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Task::Setup { ptxas } => setup::run(ptxas).map(|()| 0),
        Task::BuildPtx { compare: Some(commit), arch, .. } => compare_ptx::run(&commit, &arch),
        Task::BuildPtx { pack: true, verify, .. } => prebuilt::run(verify).map(|()| 0),
        Task::BuildPtx { arch, verify, .. } => build_ptx::run(&arch, verify).map(|()| 0),
        Task::Bench { arguments } => bench(&arguments),
        Task::Test { all, arguments } => test(all, &arguments),
        Task::Bundle { arch, python } => {
            progress::with_progress("building the bundle", || bundle::run(&arch, python.as_deref())).map(|()| 0)
        }
        Task::Api { renew } => api::run(renew).map(|()| 0),
        Task::Python(options) => python::run(&options),
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
/// For a GPU it is a release build, because the benchmark also measures host code. For the executor it is the build of
/// the tests, without PTX.
fn bench(arguments: &[OsString]) -> anyhow::Result<u8> {
    let backend = Backend::detect();
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
    // `bench occupancy` needs PTX, which the executor's build lacks, so it gets a folder with PTX for one architecture.
    if backend == Backend::Executor
        && let Some(arch) = arch_of_occupancy(arguments)
    {
        bench.arg("--ptx").arg(build_ptx::in_folder(&[build_ptx::newest_up_to(arch)])?);
    }
    progress::run(&mut bench, "measuring")
}

/// The architecture of `bench occupancy --arch sm_90`; `None` if the arguments name a folder of PTX.
fn arch_of_occupancy(arguments: &[OsString]) -> Option<Arch> {
    let at = |name: &str| arguments.iter().position(|argument| argument == name);
    if at("occupancy").is_none() || at("--ptx").is_some() {
        return None;
    }
    let joined = arguments.iter().find_map(|argument| argument.to_str()?.strip_prefix("--arch="));
    joined.or_else(|| arguments.get(at("--arch")? + 1)?.to_str())?.parse().ok()
}

/// Runs all tests, or those that `arguments` select. Without a GPU the library is built without PTX. The tests of the
/// PTX build their own. All tests are also those of the Python package.
fn test(all: bool, arguments: &[OsString]) -> anyhow::Result<u8> {
    let backend = Backend::detect();
    setup::run(false)?;
    // Without ptxas, some tests only report that they were skipped.
    if let Err(error) = setup::run(true) {
        eprintln!("warning: tests that need ptxas will be skipped: {error:#}");
    }
    let mut cargo = workspace::cargo();
    cargo.current_dir(workspace::root()).args(["test", "--workspace"]).args(arguments);
    cargo.envs(backend.archs().map(|archs| (ARCHS, archs)));
    if all {
        cargo.env("WARPFOLD_TESTS", "all").env("WARPFOLD_TEST_ARCHS", "sm_75,sm_80,sm_90");
    }
    // The tests of the PTX wait for one long compilation, so it starts now, beside cargo.
    let tested = thread::scope(|scope| {
        if arguments.is_empty() {
            // The tests report the errors of this compilation.
            scope.spawn(|| build_ptx::prepare(&[build_ptx::NEWEST]));
        }
        progress::run(&mut cargo, "building and running the tests")
    })?;
    match tested {
        0 if arguments.is_empty() => python::run_with_all_tests(),
        code => Ok(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    #[cfg(unix)]
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn arguments_of_test_go_to_cargo() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).map(|cli| cli.command);
        let Ok(Task::Test { all, arguments }) = parse("xtask test --all --test cpu reductions -- --list") else {
            panic!("not the command `test`")
        };
        assert_eq!((all, arguments.join(OsStr::new(" ")).to_str()), (true, Some("--test cpu reductions -- --list")));
        let help = parse("xtask test --help").unwrap_err();
        assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp);
    }

    #[cfg(unix)]
    #[test]
    fn arguments_of_bench_may_be_any_bytes() {
        let file = OsStr::from_bytes(b"a\xff.npy");
        let line = ["xtask", "bench", "sum", "--input"].map(OsStr::new).into_iter().chain([file]);
        let Ok(Task::Bench { arguments }) = Cli::try_parse_from(line).map(|cli| cli.command) else {
            panic!("not the command `bench`")
        };
        assert_eq!(arguments[1..], ["--input".into(), file.to_owned()]);
        assert_eq!(arch_of_occupancy(&["occupancy".into(), file.to_owned(), "--arch".into(), file.to_owned()]), None);
    }

    #[test]
    fn occupancy_needs_ptx_for_its_architecture() {
        let of = |line: &str| arch_of_occupancy(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("occupancy sequential --arch sm_86"), Some(Arch::SM_86));
        assert_eq!(of("--device simt occupancy sequential --arch=sm_90 --format json"), Some(Arch::SM_90));
        assert_eq!(of("occupancy sequential --arch sm_90 --ptx target/ptx"), None);
        assert_eq!(of("occupancy sequential --arch nonsense"), None);
        assert_eq!(of("ladder reduce"), None);
    }
}
