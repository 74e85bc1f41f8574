//! The command line: the commands, their help, and the check of their options.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use warpfold::Gpu;

use crate::calls::CallArguments;
use crate::effect::{DEVICE, Given, Mode, SHOWN, TIMED};
use crate::ladder::LadderArguments;
use crate::occupancy::OccupancyArguments;
use crate::options::{DeviceChoice, Format, Numbers, Output, Sides, refuse_unused};
use crate::profile::ProfileArguments;
use crate::reduce::ReduceArguments;
use crate::sum::SumArguments;
use crate::transpose::TransposeArguments;

/// The end of the help. Lines that are laid out have at most 80 characters, so that a terminal does not break them;
/// paragraphs are one line each, which is wrapped.
const HELP: &str = "\
Examples:
  bench                                    all ladders, on a GPU or the executor
  bench ladder reduce --n 2^28 --block 128
  bench ladder reduce --rung sequential    one rung of this ladder
  bench ladder transpose --rung diagonal
  bench ladder reduce --plot ladder.png    a chart beside the table, PNG or SVG
  bench ladder reduce --check --schedule seed=7
                                           looks for races, in a random order
  bench profile strided_index              accesses by source line, with advice
  bench profile tiled_32 --rows 512 --cols 512 --format json
  bench occupancy unroll_last_warp_f32 --arch sm_86
  bench sum --n 2^20 --dtype bf16          numbers that any machine has the same
  bench sum --rung sequential --n 2^20     the sum by one rung of the ladder
  bench sum --input samples.npy            a NumPy file, of any of twelve types
  bench sum --input a.npy --axis 0,2 --output sums.npy
  bench sum --input big.npy --memory 2G    a file that is larger than memory
  bench calls                              the wall time of calls, short input
  bench exact                              exact sums, and hashes to compare
  bench reduce --op sum,max --dtype f32,i8 --shape 64x3x224x224 --axis 0,2,3
  bench reduce --op mean,norm --input m.npy --axis -1
  bench reduce --shape 2^10..2^30 --plot sum.svg
                                           bandwidth over length, on a GPU
  bench reduce --all --peers peers         beside CUB, cuBLAS, cuTENSOR, PyTorch
  bench transpose --shape 64x3x224x224 --permute 0231
                                           beside a copy, from NCHW to NHWC
  bench transpose --input a.npy --permute 201 --output t.npy
  bench --device simt --format json        in the executor, even beside a GPU

A sum, mean, sum of squares, norm or dot product of floats must equal the exact result, rounded once, which the CPU \
computes with big integers, not by the library. Other results of floats that depend on the order (products, and sums \
by rungs of the ladder) must be within an error bound.

Results are printed with enough digits that reading them back gives the same bits. A kernel's result is one number, or \
several: a list in JSON, separated by spaces in CSV. An infinite result or NaN is printed as \"inf\", \"-inf\" or \
\"nan\", in JSON as a string. A missing value (the result of a case that failed, or a time that was not measured) is \
null in JSON and an empty field in CSV.

Exit code:
    0  all results are right
    1  a result is wrong, or a kernel failed
    2  the command line or an input is invalid, if only for one of several
       cases: the others are measured and printed
    3  a file (--plot, --output) or standard output could not be written
  130  interrupted (Ctrl-C, SIGTERM): the results so far are printed, after the
       current kernel; without any, or at a second signal, the program ends at
       once
If several apply, 130 takes precedence over 1, 1 over 2, and 2 over 3.";

/// Runs warpfold's reductions and transposes, checks every result against the CPU, and times them.
///
/// On a machine with a CUDA device the times are the device's. Without one, the same kernels run in the SIMT executor,
/// on the CPU: the results are the same to the last bit, but the times are not those of a GPU.
#[derive(Debug, Parser)]
#[command(
    name = "bench",
    version,
    after_help = HELP
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
    /// Parses the command line. An error in it ends the program.
    pub fn from_command_line() -> (Self, Given) {
        let mut command = Self::command();
        command.build();
        let matches = command.clone().get_matches();
        let given = Given::of(&command, &matches);
        (Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()), given)
    }

    /// Refuses options that have no effect, and outputs that cannot be written, before any work.
    pub fn check(&self, given: &Given) -> anyhow::Result<()> {
        given.check(&self.modes())?;
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
            "it draws bandwidths, and the executor's times are those of a CPU; `bench ladder --plot` draws the \
             executor's counters",
        )
    }

    /// The options that have an effect. Some also depend on the kernels and on the device, and are checked with these.
    fn modes(&self) -> Vec<Mode> {
        const SIZES: &[&str] = &["n", "dtype", "block", "rows", "cols"];
        const LADDER: &[&str] = &["rung"];
        let mut modes = match &self.command {
            None => vec![Mode::of_command("all ladders run", vec![SIZES, DEVICE, SHOWN, TIMED])],
            Some(Command::Ladder(_)) => {
                vec![Mode::of_command("it has no ladder", vec![SIZES, LADDER, DEVICE, SHOWN, TIMED])]
            }
            Some(Command::Calls(_)) => CallArguments::modes(),
            Some(Command::Device) => {
                vec![Mode::of_command("`bench device` times no kernel, and prints a list", vec![DEVICE, &["format"]])]
            }
            Some(Command::Exact) => {
                vec![Mode::of_command("`bench exact` compares results and times nothing", vec![DEVICE, SHOWN])]
            }
            Some(Command::Profile(_)) => {
                vec![Mode::of_command("`bench profile` counts accesses and times nothing", vec![SIZES, DEVICE, SHOWN])]
            }
            Some(Command::Occupancy(arguments)) => arguments.modes(),
            Some(Command::Reduce(arguments)) => arguments.modes(),
            Some(Command::Sum(arguments)) => arguments.modes(),
            Some(Command::Transpose(arguments)) => arguments.modes(),
        };
        if self.output.format != Format::Table {
            modes.push(Mode::because("formats other than tables always have all columns", &["wide"]));
        }
        modes
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What calls cost on the host: the wall time of sums of a short input, beside PyTorch's
    #[command(after_help = "Examples:
  bench calls
  bench calls --n 2^16 --peers peers     beside PyTorch")]
    Calls(CallArguments),
    /// Properties of the device: memory, clocks, theoretical bandwidth
    Device,
    /// Shows that sums are exact: the same bits in any order and layout, on any machine
    ///
    /// Prints exact sums and the sums of plain loops, for elements in several orders, misaligned, in parts, as one of
    /// several rows and as a column; and then hashes of the exact results of fixed inputs, compared with stored hashes
    /// of other machines. If a hash differs or a result is wrong, the exit code is 1.
    #[command(after_help = "Examples:
  bench exact
  bench exact --device simt --check   in the executor, which looks for races too
  bench exact --format json           the hashes, for another machine's")]
    Exact,
    /// The ladders: the time, bandwidth and speed-up of every rung
    Ladder(LadderArguments),
    /// Occupancy: how much of a multiprocessor a kernel fills, what limits it, and its bytes in flight
    Occupancy(OccupancyArguments),
    /// Memory accesses of a kernel by source line: requests, sectors, bank conflicts; counted in the executor
    Profile(ProfileArguments),
    /// Sums numbers: random ones, or an array in a NumPy file
    #[command(after_help = "Examples:
  bench sum --n 2^20 --dtype bf16 --seed 7
  bench sum --input samples.npy          of any shape, in C or Fortran order
  bench sum --input samples.npy --axis 0,-1 --output sums.npy
  bench sum --input big.npy --memory 2G  larger than memory, in chunks
  bench sum --rung sequential --n 2^20")]
    Sum(SumArguments),
    /// Any reduction of any type and shape along any axes, compared with CUB, cuBLAS, cuTENSOR and PyTorch if
    /// installed; or of an array in a NumPy file
    #[command(after_help = "Examples:
  bench reduce --op sum,argmax --dtype f32,i8 --shape 2^20,1024x1024
                                         of whole arrays
  bench reduce --shape 1024x1024,300x50 --axis 1
                                         of each row; of each column: --axis 0
  bench reduce --op mean --shape 64x3x224x224 --axis 0,2,3
                                         of each channel of NCHW
  bench reduce --shape 2^20x256:skewed   of segments by offsets
  bench reduce --op min-max,mean --input samples.npy
  bench reduce --op argmax --input samples.npy --axis 0 --output indices.npy
  bench reduce --input x.npy --axis 0,-1 --keep-dims --output sums.npy
  bench reduce --op mean,norm --input big.npy --axis 0 --memory 2G
  bench reduce --op max --input weights.npy --dtype bf16")]
    Reduce(ReduceArguments),
    /// Transposes and permutations of any shape and element size, compared with a copy, cuBLAS, cuTENSOR and PyTorch if
    /// installed; or of an array in a NumPy file
    #[command(after_help = "Examples:
  bench transpose --shape 1000x30000
  bench transpose --shape 64x1000x300 --size 1,4,16
                                         64 matrices, with elements of any size
  bench transpose --shape 64x3x224x224 --permute 0231
                                         axes 0, 2, 3, 1: from NCHW to NHWC
  bench transpose --shape 4096x4096 --kind scaled,in-place
  bench transpose --input x.npy --output t.npy
  bench transpose --input x.npy --permute 2,0,1 --output t.npy
  bench transpose --rung diagonal --shape 4096x4096")]
    Transpose(TransposeArguments),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// A line that is laid out by blanks would lose its layout if a terminal of 80 characters broke it.
    #[test]
    fn examples_and_lists_fit_in_80_characters() {
        fn check(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    /// The table of pairs in `tests/cli/pairs.rs` takes the commands and the options from the help.
    #[test]
    fn the_help_shows_every_option() {
        fn check(command: &clap::Command) {
            assert!(!command.is_hide_set(), "{}", command.get_name());
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                assert!(arg.get_long().is_some() && !arg.is_hide_set(), "{} {}", command.get_name(), arg.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }
}
