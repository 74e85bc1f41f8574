//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cuda_builder::Arch;
use warpfold::ladder::BLOCKS;
use warpfold::{Error, Gpu, Schedule, SimtOptions};

use crate::element::ElementType;
use crate::plot::PlotFile;
use crate::profile::ProfileArguments;
use crate::reduce::ReduceArguments;
use crate::sum::SumArguments;
use crate::transpose::SweepArguments;

/// Runs warpfold's reductions and transposes, checks every result against the CPU, and times them.
///
/// On a machine with a CUDA device the times are the device's. Without one, the same kernels run in the SIMT executor,
/// on the CPU: the results are the same to the last bit, but the times are not those of a GPU.
#[derive(Debug, Parser)]
#[command(
    name = "bench",
    version,
    after_help = "Examples:
  bench                                     all ladders, on the first GPU or in the executor
  bench ladder reduce --n 2^28 --block 128  the reduction ladder over 2^28 numbers, blocks of 128 threads
  bench ladder reduce --rung sequential     one rung of it
  bench ladder transpose --rung diagonal
  bench ladder reduce --plot target/ladder.png    a chart beside the table, as PNG or SVG
  bench profile strided_index               what a kernel does with memory, line by line, and what to change
  bench profile tiled_32 --rows 512 --cols 512 --format json
  bench ladder reduce --check --schedule seed=7    look for races, with the lanes in a random order
  bench occupancy unroll_last_warp_f32 --arch sm_86
  bench sum --n 2^20 --dtype bf16           a sum of random numbers, the same on every machine
  bench sum --rung sequential --n 2^20      the sum by one rung of the ladder
  bench sum --input samples.npy             the sum of a NumPy file, of any of the twelve types
  bench sum --input a.npy --axis -1 --output sums.npy    along the last axis, to another file
  bench exact                               what an exact sum is, and whether this machine's are those of others
  bench reduce --op sum,argmax --dtype f32,i8 --shape 2^20,1024x1024:rows
  bench reduce --shape 2^10..2^30 --plot sum.svg  bandwidth over length, as a table and as a chart, on a GPU
  bench reduce --all --peers peers                everything, beside CUB and PyTorch
  bench transpose --rows 1000 --cols 30000  one transpose, timed
  bench transpose --input a.npy --output t.npy
  bench --device simt --format json         the executor even where there is a GPU, for a machine to read

Results are printed with all digits: reading them gives the same bits. A kernel's results are one
number, or in JSON a list of several, which spaces separate in CSV. A result that is no finite
number is \"inf\", \"-inf\" or \"nan\", in JSON as a string; null (in CSV an empty field) is what does not
exist: the result of a case that failed, or a time that was not taken.

Exit code:
    0  all results are right
    1  a result is wrong, or a kernel failed
    2  the command line or an input cannot be used, for one case of several too: the others are measured and printed
    3  results are printed, but could not all be written: --plot, --output, or standard output
  130  interrupted (Ctrl-C, SIGTERM): what was measured before is printed; a second interrupt ends at once, without
Of several of these 130 is given before 1, 1 before 2, 2 before 3."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub device: DeviceChoice,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub numbers: Numbers,
    #[command(flatten)]
    pub sides: Sides,
}

impl Cli {
    /// Refuses meaningless arguments, and outputs that cannot be written, before any work.
    pub fn check(&self) -> anyhow::Result<()> {
        self.check_sizes()?;
        self.check_effect()?;
        if let Some(file) = &self.output.plot {
            file.check()?;
        }
        Ok(())
    }

    /// Refuses a chart of the executor's times, which would look like a GPU's.
    pub fn check_plot(&self, gpu: &Gpu) -> anyhow::Result<()> {
        let draws_times = matches!(self.command, Some(Command::Sum(_) | Command::Reduce(_) | Command::Transpose(_)));
        let is_unused = self.output.plot.is_some() && draws_times && !gpu.is_cuda();
        refuse_unused(
            &[("--plot", is_unused)],
            "it draws bandwidths, and the executor's times are a CPU's; `bench ladder --plot` draws its counters",
        )
    }

    /// Refuses options that every command accepts but this one ignores.
    fn check_effect(&self) -> anyhow::Result<()> {
        let timing = [
            ("--plot", self.output.plot.is_some()),
            ("--samples", self.output.samples.is_some()),
            ("--nvtx", self.output.nvtx),
        ];
        let lanes = [("--check", self.device.check), ("--schedule", self.device.schedule.is_some())];
        let is_table = self.output.format == Format::Table;
        refuse_unused(&[("--wide", self.output.wide && !is_table)], "other formats than tables have all columns")?;
        match &self.command {
            Some(Command::Device) => {
                refuse_unused(&timing, "`bench device` times no kernel of a ladder")?;
                refuse_unused(&[("--wide", self.output.wide)], "`bench device` prints a list")
            }
            Some(Command::Exact) => refuse_unused(&timing, "`bench exact` compares results, and times nothing"),
            Some(Command::Profile(_)) => refuse_unused(&timing, "`bench profile` counts, and times nothing"),
            Some(Command::Occupancy(arguments)) => {
                refuse_unused(&timing, "`bench occupancy` runs no kernel")?;
                refuse_unused(&lanes, "`bench occupancy` runs no kernel")?;
                let latency = [("--latency-ns", arguments.latency_ns.is_some() && arguments.arch.is_some())];
                refuse_unused(&latency, "an architecture has no bandwidth to fill: only a device has, without --arch")
            }
            _ => Ok(()),
        }
    }

    /// Refuses a size before a command, where it has no effect.
    fn check_sizes(&self) -> anyhow::Result<()> {
        let Numbers { n, dtype, block } = &self.numbers;
        let stray = [
            ("--n", n.is_some()),
            ("--dtype", dtype.is_some()),
            ("--block", block.is_some()),
            ("--rows", self.sides.rows.is_some()),
            ("--cols", self.sides.cols.is_some()),
        ];
        match stray.iter().find(|(_, is_given)| *is_given && self.command.is_some()) {
            Some((option, _)) => {
                anyhow::bail!("{option} stands before the command: give it after, if the command takes it")
            }
            None => Ok(()),
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Properties of the device: memory, clocks, theoretical bandwidth
    Device,
    /// Shows that sums are exact: the same bits in any order and layout, on any machine
    ///
    /// Prints exact sums and those of plain loops, for elements in several orders, at another alignment, in parts,
    /// among other rows and as a column. Below are hashes of the exact results of fixed inputs, with the hashes of
    /// another machine. If one differs, or a result is wrong, the exit code is 1.
    #[command(after_help = "Examples:
  bench exact
  bench exact --device simt --check      in the executor, which looks for races too
  bench exact --format json              the hashes, to be compared with another machine's")]
    Exact,
    /// The ladders: every rung's time, bandwidth and speed-up
    Ladder(LadderArguments),
    /// Occupancy: how much of a multiprocessor a kernel fills, what limits it, and its bytes in flight
    Occupancy(OccupancyArguments),
    /// Memory accesses of a kernel by source line: requests, sectors, bank conflicts; counted in the executor
    Profile(ProfileArguments),
    /// Sums numbers: random ones, or an array in a NumPy file
    #[command(after_help = "Examples:
  bench sum --n 2^20 --dtype bf16 --seed 7
  bench sum --input samples.npy
  bench sum --input samples.npy --axis -1 --output sums.npy
  bench sum --rung sequential --n 2^20")]
    Sum(SumArguments),
    /// Any reduction of any type and shape, compared with CUB and PyTorch if installed, or of an array in a NumPy file
    #[command(after_help = "Examples:
  bench reduce --op sum,argmax --dtype f32,i8 --shape 2^20,1024x1024:rows
  bench reduce --op min-max,mean --input samples.npy
  bench reduce --op argmax --input samples.npy --axis 0 --output places.npy
  bench reduce --op max --input weights.npy --dtype bf16")]
    Reduce(ReduceArguments),
    /// Transposes a matrix of f32; or matrices of any shape and element size, compared with a copy, cuBLAS and PyTorch
    Transpose(TransposeArguments),
}

#[derive(Debug, Args)]
pub struct DeviceChoice {
    /// The device: `cuda:N`, or `simt` for the executor [default: the first CUDA device, else the executor]
    #[arg(long, global = true, value_name = "cuda:N|simt")]
    pub device: Option<DeviceName>,
    /// Checks every launch for races and other mistakes, in the executor
    #[arg(long, global = true)]
    pub check: bool,
    /// Runs lanes in a random order, in the executor; a seed gives the same order in every run
    #[arg(long, global = true, value_name = "seed=N", value_parser = schedule)]
    pub schedule: Option<Schedule>,
}

/// The value of `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    Cuda(u32),
    Simt,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "simt" => Ok(Self::Simt),
            "cuda" => Ok(Self::Cuda(0)),
            _ => name
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| "a device is `simt`, or `cuda:N` with N from 0 on".to_owned()),
        }
    }
}

impl DeviceChoice {
    /// Opens the device.
    pub fn open(&self) -> anyhow::Result<Gpu> {
        if self.check || self.schedule.is_some() {
            return self.executor();
        }
        match self.device {
            Some(DeviceName::Simt) => self.executor(),
            Some(DeviceName::Cuda(ordinal)) => Ok(Gpu::new(ordinal)?),
            None => match Gpu::new(0) {
                Err(Error::NoDriver(_) | Error::NoDevice { .. }) => self.executor(),
                other => Ok(other?),
            },
        }
    }

    /// Opens the executor, for commands that only it supports.
    pub fn executor(&self) -> anyhow::Result<Gpu> {
        if let Some(DeviceName::Cuda(ordinal)) = self.device {
            anyhow::bail!("only the executor checks, counts and orders lanes: leave out `--device cuda:{ordinal}`");
        }
        Ok(Gpu::simt_with(SimtOptions { checks: self.check, schedule: self.schedule.unwrap_or_default() }))
    }
}

#[derive(Debug, Args)]
pub struct Output {
    /// The format of the results
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows all columns of a table, not only those that fit the terminal (100 characters if there is none)
    #[arg(long, global = true)]
    pub wide: bool,
    /// The number of times each kernel is timed, if it takes less than half a second; the median counts [default: 25 on
    /// a GPU, 1 in the executor]
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: Option<u32>,
    /// Also draws the bandwidths (for ladders in the executor, the counters) to this file, as SVG or PNG; an existing
    /// file is replaced
    #[arg(long, global = true, value_name = "FILE.svg|FILE.png")]
    pub plot: Option<PlotFile>,
    /// Opens an NVTX range for each measured kernel, for a profiler (nsys, or ncu with its own --nvtx)
    #[arg(long, global = true)]
    pub nvtx: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An aligned table
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header
    Csv,
    /// A table for a Markdown document
    Markdown,
}

/// The input of a reduction.
#[derive(Debug, Args)]
pub struct Numbers {
    /// The number of elements: `1000000` or `2^24` [default: 2^24 on a GPU, 2^19 in the executor]
    #[arg(long, value_parser = count)]
    pub n: Option<usize>,
    /// The element type; the ladders have f32, f64, i32 and i64 [default: f32]
    #[arg(long, value_enum)]
    pub dtype: Option<ElementType>,
    /// The block size in threads, for kernels with a choice: 64, 128, 256, 512 or 1024 [default: 256]
    #[arg(long, value_parser = block)]
    pub block: Option<usize>,
}

impl Numbers {
    /// The number of elements: as requested, or a default that the device handles quickly.
    pub fn n(&self, gpu: &Gpu) -> usize {
        self.n.unwrap_or(if gpu.is_cuda() { 1 << 24 } else { 1 << 19 })
    }

    pub fn dtype(&self) -> ElementType {
        self.dtype.unwrap_or(ElementType::F32)
    }

    pub fn block(&self) -> usize {
        self.block.unwrap_or(256)
    }
}

/// The input of a transpose.
#[derive(Debug, Args)]
pub struct Sides {
    /// Rows of the matrix [default: 4096 on a GPU, 1024 in the executor]
    #[arg(long, value_parser = count)]
    pub rows: Option<usize>,
    /// Columns of the matrix [default: 4096 on a GPU, 1024 in the executor]
    #[arg(long, value_parser = count)]
    pub cols: Option<usize>,
}

impl Sides {
    /// Rows and columns: as requested, or a default that the device handles quickly.
    pub fn get(&self, gpu: &Gpu) -> (usize, usize) {
        let side = if gpu.is_cuda() { 4096 } else { 1024 };
        (self.rows.unwrap_or(side), self.cols.unwrap_or(side))
    }
}

#[derive(Debug, Args)]
pub struct LadderArguments {
    /// The ladder [default: all]
    #[arg(value_enum)]
    pub family: Option<Family>,
    /// Only this rung, by its name in the tables
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
    #[command(flatten)]
    pub numbers: Numbers,
    #[command(flatten)]
    pub sides: Sides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// Sums, in global and in shared memory
    Reduce,
    /// Transposes of a matrix of f32
    Transpose,
    /// Branches, loops and barriers
    ControlFlow,
}

#[derive(Debug, Args)]
pub struct OccupancyArguments {
    /// The kernel, by its name in the ladders: `unroll_last_warp`, or with a type `unroll_last_warp_f32`
    pub kernel: String,
    /// For this architecture, without a device: sm_75, sm_80, sm_86, sm_89, sm_90, sm_100 or sm_120
    #[arg(long)]
    pub arch: Option<Arch>,
    /// The folder of the kernels' PTX, as `cargo xtask build-ptx` writes it, instead of the PTX built into this program
    #[arg(long, value_name = "FOLDER", requires = "arch")]
    pub ptx: Option<PathBuf>,
    /// The latency of a load from memory in nanoseconds: some 500 to 800 on current GPUs [default: 600]
    #[arg(long, value_parser = latency)]
    pub latency_ns: Option<f64>,
}

#[derive(Debug, Args)]
pub struct TransposeArguments {
    /// Transposes the array in this NumPy file (.npy: f32, C order, two axes, or one with --rows and --cols)
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    /// Writes the transpose to this NumPy file
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Replaces the output file if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub sides: Sides,
    /// Transposes with this rung of the ladder instead of the library's own kernel
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
    #[command(flatten)]
    pub sweep: SweepArguments,
}

/// Refuses the first given option of `options`, which would have no effect.
pub fn refuse_unused(options: &[(&str, bool)], why: &str) -> anyhow::Result<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => anyhow::bail!("{option} has no effect here: {why}; leave it out"),
        None => Ok(()),
    }
}

/// The sizes that a command uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uses {
    pub numbers: bool,
    pub dtype: bool,
    pub block: bool,
    pub sides: bool,
}

impl Uses {
    /// Refuses sizes that nothing uses.
    pub fn check(self, numbers: &Numbers, sides: &Sides) -> anyhow::Result<()> {
        let Numbers { n, dtype, block } = numbers;
        let Sides { rows, cols } = sides;
        refuse_unused(&[("--n", n.is_some() && !self.numbers)], "none of the kernels takes numbers in a row")?;
        refuse_unused(&[("--dtype", dtype.is_some() && !self.dtype)], "none of the kernels has a choice of type")?;
        refuse_unused(&[("--block", block.is_some() && !self.block)], "none of the kernels has a choice of block")?;
        let sides = [("--rows", rows.is_some() && !self.sides), ("--cols", cols.is_some() && !self.sides)];
        refuse_unused(&sides, "none of the kernels takes a matrix")
    }
}

/// A block size for which kernels with a choice have an instance.
fn block(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|block| BLOCKS.contains(block));
    found.ok_or_else(|| {
        format!(
            "there is no block of `{text}` threads: choose from {}",
            BLOCKS.map(|block| block.to_string()).join(", ")
        )
    })
}

/// A schedule of lanes: `seed=7`.
fn schedule(text: &str) -> Result<Schedule, String> {
    let seed = text.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
    seed.map(Schedule::Seed).ok_or_else(|| "a schedule is `seed=N`, with a whole number N from 0 on".to_owned())
}

/// A latency in nanoseconds.
fn latency(text: &str) -> Result<f64, String> {
    let latency: f64 = text.parse().map_err(|_| "a latency is a number of nanoseconds")?;
    if latency > 0.0 && latency <= 1e9 {
        Ok(latency)
    } else {
        Err("a latency is more than 0 nanoseconds, and at most 1e9, a second".to_owned())
    }
}

/// A count: `4096`, `4_096` or `2^12`.
pub fn count(text: &str) -> Result<usize, String> {
    let digits = text.replace('_', "");
    let value = match digits.split_once('^') {
        Some((base, exponent)) => match (base.parse::<usize>(), exponent.parse::<u32>()) {
            (Ok(base), Ok(exponent)) => Some(base.checked_pow(exponent).ok_or("too large for this machine")?),
            _ => None,
        },
        None if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| "too large for this machine")?)
        }
        None => None,
    };
    value.ok_or_else(|| "a count is a whole number from 0 on, such as 1000000 or 2^24".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn counts() {
        assert_eq!(count("4096"), Ok(4096));
        assert_eq!(count("1_000"), Ok(1000));
        assert_eq!(count("2^24"), Ok(1 << 24));
        for wrong in ["", "-1", "1.5", "2^", "^3", "2^64", "99999999999999999999", "x"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schedules() {
        assert_eq!(schedule("seed=7"), Ok(Schedule::Seed(7)));
        for wrong in ["7", "seed=", "seed=x", "seed=-1"] {
            assert!(schedule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn devices() {
        assert_eq!("simt".parse(), Ok(DeviceName::Simt));
        assert_eq!("cuda:3".parse(), Ok(DeviceName::Cuda(3)));
        for wrong in ["cuda:", "cuda:x", "cuda:-1", "gpu"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
