//! The outcome of a run: its exit code, and the errors that are printed to standard error.

use std::fmt::{self, Write as _};
use std::io::{self, StdoutLock, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use warpfold::Error;

use crate::interrupt;
use crate::number::counted;
use crate::options::Output;
use crate::plot::{self, Chart};

/// A kind of failure. Its value is the exit code, which `--help` documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// A file, or standard output itself, could not be written.
    Output = 3,
    /// The input is invalid. (clap exits with the same code if the command line is invalid.)
    Input = 2,
    /// A result was wrong, or a kernel failed.
    Wrong = 1,
}

/// The outcome of a run. Results are already printed.
#[derive(Debug, Default)]
pub struct Outcome {
    worst: Option<Failure>,
    errors: Vec<String>,
}

impl Outcome {
    /// The outcome of a run whose results are all right, or not.
    pub fn of_results(are_right: bool) -> Self {
        Self { worst: (!are_right).then_some(Failure::Wrong), errors: Vec::new() }
    }

    /// The outcome of an error that ended the run.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let mut outcome = Self::default();
        outcome.fail(failure_of(error), error);
        outcome
    }

    /// Records a failure. The exit code is that of the worst failure.
    pub fn fail(&mut self, failure: Failure, error: &anyhow::Error) {
        self.note(failure);
        self.errors.push(chain(error));
    }

    /// Records a failure that the printed results already describe.
    pub fn note(&mut self, failure: Failure) {
        self.worst = match self.worst {
            Some(worst) if worst.order() >= failure.order() => Some(worst),
            _ => Some(failure),
        };
    }

    /// Adds the outcome of another part of the run.
    pub fn join(&mut self, other: Self) {
        other.worst.into_iter().for_each(|worst| self.note(worst));
        self.errors.extend(other.errors);
    }

    /// Prints the errors to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        for error in &self.errors {
            eprintln!("error: {error}");
        }
        if interrupt::is_pending() {
            eprintln!("error: interrupted: the results so far are printed above");
            return ExitCode::from(interrupt::EXIT_CODE);
        }
        self.worst.map_or(ExitCode::SUCCESS, |worst| ExitCode::from(worst as u8))
    }
}

/// Cases without a result. The other cases are still measured and printed.
#[derive(Debug, Default)]
pub struct Missing {
    errors: Vec<anyhow::Error>,
}

impl Missing {
    /// Records why a case has no result.
    pub fn push(&mut self, case: impl Into<String>, error: anyhow::Error) {
        self.errors.push(error.context(case.into()));
    }

    /// Whether to continue with another case.
    pub fn can_continue(&self) -> bool {
        !interrupt::is_pending() && !self.errors.last().is_some_and(is_final)
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The outcome with an error message for each case.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.errors.iter().for_each(|error| outcome.fail(failure_of(error), error));
        outcome
    }

    /// The outcome with one message for all cases, because the printed results have the error of each case.
    pub fn counted(&self, cases: usize) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(last) = self.errors.last() {
            self.errors.iter().for_each(|error| outcome.note(failure_of(error)));
            let have = if self.errors.len() == 1 { "has" } else { "have" };
            let (missing, cases) = (self.errors.len(), counted(cases, "case", "cases"));
            outcome.errors.push(format!("{missing} of {cases} {have} no result; the last error: {}", chain(last)));
        }
        outcome
    }
}

impl Failure {
    /// A worse failure has a higher number.
    fn order(self) -> u8 {
        match self {
            Self::Output => 0,
            Self::Input => 1,
            Self::Wrong => 2,
        }
    }
}

/// Prints results by `write` to standard output, and draws them if requested. They are drawn last, so that no results
/// are lost if drawing fails. The outcome says whether they are right, printed and drawn.
pub fn finish(
    write: impl FnOnce(&mut StdoutLock<'_>) -> io::Result<()>,
    are_right: bool,
    output: &Output,
    charts: impl FnOnce() -> Vec<Chart>,
) -> Outcome {
    let mut outcome = Outcome::of_results(are_right);
    let printing = interrupt::printing();
    let mut out = io::stdout().lock();
    let written = write(&mut out).and_then(|()| out.flush());
    drop(printing);
    match written {
        // It is no error if the reader has closed the pipe (`bench | head`).
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            outcome.fail(Failure::Output, &anyhow::Error::new(error).context("cannot write the results"));
        }
        _ => {}
    }
    if let Some(file) = &output.plot {
        let charts = charts();
        let drawn = if charts.is_empty() {
            Err(anyhow!("--plot: there is nothing to draw"))
        } else {
            plot::draw(&charts, file)
        };
        match drawn {
            Ok(()) => wrote(file.path()),
            Err(error) => outcome.fail(Failure::Output, &error),
        }
    }
    outcome
}

/// Says on standard error that a file was written.
pub fn wrote(file: &Path) {
    eprintln!("wrote {}", file.display());
}

/// Prints the error of a peer that failed. The case is then reported without this peer.
pub fn without<T>(peer: &str, case: &impl fmt::Display, error: &anyhow::Error) -> Option<T> {
    eprintln!("without {peer} for {case}: {}", chain(error));
    None
}

/// The kind of failure of an error: of a kernel, or of the input.
pub fn failure_of(error: &anyhow::Error) -> Failure {
    match error.downcast_ref::<Error>() {
        Some(Error::Trap { .. } | Error::Fault(_)) => Failure::Wrong,
        _ => Failure::Input,
    }
}

/// Whether no other work can run after an error: the device's context is lost, or the driver does not work.
fn is_final(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<Error>(), Some(Error::Trap { .. } | Error::Cuda { .. }))
}

/// An error and its causes in one line. A cause that an earlier message already contains is not repeated.
pub fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_failure_is_the_exit_code() {
        let mut outcome = Outcome::of_results(true);
        assert_eq!(outcome.worst, None);
        for (failure, worst) in [
            (Failure::Output, Failure::Output),
            (Failure::Input, Failure::Input),
            (Failure::Output, Failure::Input),
            (Failure::Wrong, Failure::Wrong),
            (Failure::Input, Failure::Wrong),
        ] {
            outcome.fail(failure, &anyhow!("because"));
            assert_eq!(outcome.worst, Some(worst));
        }
    }

    #[test]
    fn a_cause_is_not_repeated() {
        assert_eq!(chain(&anyhow!("no driver").context("cannot start")), "cannot start: no driver");
        assert_eq!(chain(&anyhow!("no driver").context("cannot start: no driver")), "cannot start: no driver");
    }
}
