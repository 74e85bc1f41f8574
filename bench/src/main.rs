//! `bench`: runs warpfold's kernels, checks them against the CPU, and times them.

mod axes;
mod calls;
mod cells;
mod cli;
mod counters;
mod data;
mod device;
mod effect;
mod element;
mod exact;
mod files;
mod inputs;
mod interrupt;
mod ladder;
mod loads;
mod measure;
mod memory;
mod npy;
mod number;
mod occupancy;
mod options;
mod outcome;
mod peers;
mod plot;
mod profile;
mod pytorch;
mod ranges;
mod reduce;
mod report;
mod streamed;
mod strided;
mod sum;
mod table;
mod transpose;

use std::process::ExitCode;

use cli::{Cli, Command};
use effect::Given;
use outcome::Outcome;

fn main() -> ExitCode {
    let (cli, given) = Cli::from_command_line();
    run(&cli, &given).unwrap_or_else(|error| Outcome::of_error(&error)).report()
}

/// Runs the command. Returns an error only if it occurred before anything was measured.
fn run(cli: &Cli, given: &Given) -> anyhow::Result<Outcome> {
    cli.check(given)?;
    interrupt::catch();
    if let Some(Command::Profile(arguments)) = &cli.command {
        return profile::run(&cli.device.executor()?, &cli.output, arguments);
    }
    let gpu = cli.device.open()?;
    cli.check_plot(&gpu)?;
    match &cli.command {
        None => ladder::run(&gpu, &cli.output, &ladder::Choice::default(), &cli.numbers, &cli.sides),
        Some(Command::Calls(arguments)) => calls::run(&gpu, &cli.output, arguments),
        Some(Command::Device) => device::run(&gpu, &cli.output),
        Some(Command::Exact) => exact::run(&gpu, &cli.output),
        Some(Command::Ladder(arguments)) => {
            let choice = ladder::Choice { family: arguments.family, rung: arguments.rung.as_deref() };
            ladder::run(&gpu, &cli.output, &choice, &arguments.numbers, &arguments.sides)
        }
        Some(Command::Occupancy(arguments)) => occupancy::run(&gpu, &cli.output, arguments),
        Some(Command::Profile(_)) => unreachable!("returned above, because it needs no GPU"),
        Some(Command::Reduce(arguments)) => reduce::run(&gpu, &cli.output, arguments),
        Some(Command::Sum(arguments)) => sum::run(&gpu, &cli.output, arguments),
        Some(Command::Transpose(arguments)) => transpose::run(&gpu, &cli.output, arguments),
    }
}
