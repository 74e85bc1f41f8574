//! `bench`: runs warpfold's kernels, checks them against the CPU, and times them.

mod cli;
mod counters;
mod data;
mod device;
mod files;
mod interrupt;
mod ladder;
mod loads;
mod measure;
mod npy;
mod occupancy;
mod plot;
mod profile;
mod pytorch;
mod ranges;
mod reduce;
mod report;
mod sum;
mod transpose;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

/// All results were right.
const RIGHT: u8 = 0;
/// A result was wrong, or a kernel failed.
const WRONG: u8 = 1;
/// The input cannot be used. (clap exits with the same for a command line that cannot.)
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(true) => ExitCode::from(RIGHT),
        Ok(false) => ExitCode::from(WRONG),
        Err(error) => {
            eprintln!("error: {error:#}");
            let of_kernel = error.downcast_ref::<warpfold::Error>();
            let failed = matches!(of_kernel, Some(warpfold::Error::Trap { .. } | warpfold::Error::Fault(_)));
            ExitCode::from(if failed { WRONG } else { BAD_INPUT })
        }
    }
}

/// Whether all results were right.
fn run(cli: &Cli) -> anyhow::Result<bool> {
    cli.check()?;
    interrupt::catch();
    if let Some(Command::Profile(arguments)) = &cli.command {
        return profile::run(&cli.device.executor()?, &cli.output, arguments);
    }
    let gpu = cli.device.open()?;
    match &cli.command {
        None => ladder::run(&gpu, &cli.output, &ladder::Choice::default(), &cli.numbers, &cli.sides),
        Some(Command::Device) => device::run(&gpu, &cli.output),
        Some(Command::Ladder(arguments)) => {
            let choice = ladder::Choice { family: arguments.family, rung: arguments.rung.as_deref() };
            ladder::run(&gpu, &cli.output, &choice, &arguments.numbers, &arguments.sides)
        }
        Some(Command::Occupancy(arguments)) => occupancy::run(&gpu, &cli.output, arguments),
        Some(Command::Profile(_)) => unreachable!("done above: it asks for no GPU"),
        Some(Command::Reduce(arguments)) => reduce::run(&gpu, &cli.output, arguments),
        Some(Command::Sum(arguments)) => sum::run(&gpu, &cli.output, arguments),
        Some(Command::Transpose(arguments)) => transpose::run(&gpu, &cli.output, arguments),
    }
}
