//! The command line: the commands.

use clap::{Parser, Subcommand};
use warpfold::Gpu;

use crate::ladder::LadderArguments;
use crate::occupancy::OccupancyArguments;
use crate::options::{DeviceChoice, Format, Numbers, Output, Sides, refuse_unused};
use crate::profile::ProfileArguments;
use crate::reduce::ReduceArguments;
use crate::sum::SumArguments;
use crate::transpose::TransposeArguments;

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
  bench profile strided_index               a kernel's memory accesses, line by line, with advice
  bench profile tiled_32 --rows 512 --cols 512 --format json
  bench ladder reduce --check --schedule seed=7    look for races, with the lanes in a random order
  bench occupancy unroll_last_warp_f32 --arch sm_86
  bench sum --n 2^20 --dtype bf16           a sum of random numbers, the same on every machine
  bench sum --rung sequential --n 2^20      the sum by one rung of the ladder
  bench sum --input samples.npy             the sum of a NumPy file, of any of the twelve types
  bench sum --input a.npy --axis -1 --output sums.npy    along the last axis, to another file
  bench exact                               exact sums beside plain loops, and hashes to compare with other machines
  bench reduce --op sum,argmax --dtype f32,i8 --shape 2^20,1024x1024:rows
  bench reduce --shape 2^10..2^30 --plot sum.svg  bandwidth over length, as a table and as a chart, on a GPU
  bench reduce --all --peers peers                everything, beside CUB and PyTorch
  bench transpose --rows 1000 --cols 30000  one transpose, timed
  bench transpose --input a.npy --output t.npy
  bench --device simt --format json         the executor, even on a machine with a GPU; as JSON

Results are printed with all digits: reading them gives the same bits. A kernel's result is one
number, or several: a list in JSON, separated by spaces in CSV. A result that is infinite or NaN is
\"inf\", \"-inf\" or \"nan\", in JSON as a string. A missing value is null in JSON and an empty field in
CSV: the result of a case that failed, or a time that was not measured.

Exit code:
    0  all results are right
    1  a result is wrong, or a kernel failed
    2  the command line or an input cannot be used, even for one of several cases: the others are measured and printed
    3  results are printed, but could not all be written: --plot, --output, or standard output
  130  interrupted (Ctrl-C, SIGTERM): what was measured before is printed; a second one ends it at once
If several apply, 130 takes precedence over 1, 1 over 2, and 2 over 3."
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
