//! What came of a run: its exit code, and what standard error says of it.

use std::fmt::{self, Write as _};
use std::process::ExitCode;

use warpfold::Error;

use crate::interrupt;
use crate::number::counted;

/// Why a run did not do all that was asked; each is an exit code, documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Failure {
    /// The results are printed, but a file, or standard output itself, could not be written.
    Output = 3,
    /// The input cannot be used. (clap exits with the same for a command line that cannot.)
    Input = 2,
    /// A result was wrong, or a kernel failed.
    Wrong = 1,
}

/// What came of a run whose results are printed.
#[derive(Debug, Default)]
pub struct Outcome {
    worst: Option<Failure>,
    errors: Vec<String>,
}

impl Outcome {
    /// Results that are right, or wrong.
    pub fn of_results(are_right: bool) -> Self {
        Self { worst: (!are_right).then_some(Failure::Wrong), errors: Vec::new() }
    }

    /// An error that ended the run, or a part of it.
    pub fn of_error(error: &anyhow::Error) -> Self {
        let mut outcome = Self::default();
        outcome.fail(failure_of(error), error);
        outcome
    }

    /// Notes a failure. Of several, the exit code is that of the worst.
    pub fn fail(&mut self, failure: Failure, error: &anyhow::Error) {
        self.note(failure);
        self.errors.push(chain(error));
    }

    /// Notes a failure that is in the results already.
    pub fn note(&mut self, failure: Failure) {
        self.worst = match self.worst {
            Some(worst) if worst.order() >= failure.order() => Some(worst),
            _ => Some(failure),
        };
    }

    /// Takes over what another part of the run had to say.
    pub fn join(&mut self, other: Self) {
        other.worst.into_iter().for_each(|worst| self.note(worst));
        self.errors.extend(other.errors);
    }

    /// Says on standard error what went wrong, and gives the exit code.
    pub fn report(self) -> ExitCode {
        for error in &self.errors {
            eprintln!("error: {error}");
        }
        if interrupt::is_pending() {
            eprintln!("error: interrupted: what was measured before is above");
            return ExitCode::from(interrupt::EXIT_CODE);
        }
        self.worst.map_or(ExitCode::SUCCESS, |worst| ExitCode::from(worst as u8))
    }
}

/// Cases that have no result. The others are measured all the same, and printed.
#[derive(Debug, Default)]
pub struct Missing {
    errors: Vec<anyhow::Error>,
}

impl Missing {
    /// Notes why a case has no result.
    pub fn push(&mut self, case: impl Into<String>, error: anyhow::Error) {
        self.errors.push(error.context(case.into()));
    }

    /// Whether another case can be measured.
    pub fn goes_on(&self) -> bool {
        !interrupt::is_pending() && !self.errors.last().is_some_and(is_final)
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Each error, for standard error.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::default();
        self.errors.iter().for_each(|error| outcome.fail(failure_of(error), error));
        outcome
    }

    /// How many of `cases` there are, for standard error: the results have the errors.
    pub fn counted(&self, cases: usize) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(last) = self.errors.last() {
            self.errors.iter().for_each(|error| outcome.note(failure_of(error)));
            let have = if self.errors.len() == 1 { "has" } else { "have" };
            let (missing, cases) = (self.errors.len(), counted(cases, "case", "cases"));
            outcome.errors.push(format!("{missing} of {cases} {have} no result; the last: {}", chain(last)));
        }
        outcome
    }
}

impl Failure {
    /// The worst has the most.
    fn order(self) -> u8 {
        match self {
            Self::Output => 0,
            Self::Input => 1,
            Self::Wrong => 2,
        }
    }
}

/// A peer that failed takes nothing from a case but its own time.
pub fn without<T>(peer: &str, case: &impl fmt::Display, error: &anyhow::Error) -> Option<T> {
    eprintln!("without {peer} for {case}: {}", chain(error));
    None
}

/// Whether an error is the kernel's fault or the input's.
pub fn failure_of(error: &anyhow::Error) -> Failure {
    match error.downcast_ref::<Error>() {
        Some(Error::Trap { .. } | Error::Fault(_)) => Failure::Wrong,
        _ => Failure::Input,
    }
}

/// Whether nothing else can be run after an error: the device's context is lost, or the driver does not work.
fn is_final(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<Error>(), Some(Error::Trap { .. } | Error::Cuda { .. }))
}

/// An error and its causes in one line. A cause that the message before it has in it already is not repeated.
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
    use anyhow::anyhow;

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
    fn a_cause_is_not_said_twice() {
        assert_eq!(chain(&anyhow!("no driver").context("cannot start")), "cannot start: no driver");
        assert_eq!(chain(&anyhow!("no driver").context("cannot start: no driver")), "cannot start: no driver");
    }
}
