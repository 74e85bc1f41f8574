//! Broken kernels, each with a common mistake, and the check that must report it.
//!
//! | module | mistakes |
//! |---|---|
//! | `reductions` | the ladder's sums, with a barrier removed from each rung in turn, and similar mistakes |
//! | `transposes` | the ladder's transposes without their barriers, tiles with wrong edges |
//! | `shared` | other races in shared memory |
//! | `global` | races in global memory within a block and across blocks |
//! | `order` | missing order between blocks: tickets, fences, tile states |
//! | `unwritten` | reads of uninitialized shared memory |
//! | `convergence` | barriers and warp operations that some threads do not reach |
//! | `bounds` | wrong indices and addresses |
//!
//! `clean.rs` is the counterpart: warpfold's own kernels, in which the checks find nothing.

mod bounds;
mod clean;
mod convergence;
mod global;
mod order;
mod reductions;
mod shared;
mod transposes;
mod unwritten;

use warpfold::{Check, Error, Findings, Gpu, Schedule, SimtOptions};

/// A kernel with a mistake.
pub struct Case {
    /// The kernel.
    pub name: &'static str,
    /// The expected report.
    pub expected: Expected,
    /// Runs the kernel.
    pub run: fn(&Gpu) -> Result<(), Error>,
}

/// The expected report of a launch with a mistake.
pub enum Expected {
    /// A finding of this check.
    Finding(Check),
    /// A fault whose message contains this text.
    Fault(&'static str),
    /// A fault whose message contains this text, after a finding of this check.
    FindingAndFault(Check, &'static str),
}

/// A case: the kernel's name, the expected report, and the launch.
macro_rules! case {
    ($name:ident, $expected:expr, |$gpu:ident| $run:expr) => {
        $crate::corpus::Case { name: stringify!($name), expected: $expected, run: |$gpu: &warpfold::Gpu| $run }
    };
}
pub(crate) use case;

/// Launches a kernel of one input and one output of `n` numbers, with 1, 2, ... as the input.
macro_rules! map {
    ($gpu:ident, $name:ident, $grid:expr, $block:expr, $n:expr) => {{
        let input = $gpu.upload(&(1..=$n).map(|i| i as f32).collect::<Vec<_>>())?;
        let mut output = $gpu.zeroed::<f32>($n)?;
        let arguments = $name::Args { input: input.view(), output: output.view_mut() };
        $gpu.launch($name::handle().with_block($block), $grid, arguments)
    }};
}
pub(crate) use map;

fn cases() -> impl Iterator<Item = Case> {
    let all = [
        reductions::cases(),
        transposes::cases(),
        shared::cases(),
        global::cases(),
        order::cases(),
        unwritten::cases(),
        convergence::cases(),
        bounds::cases(),
    ];
    all.into_iter().flatten()
}

fn findings(error: &Error) -> Option<&Findings> {
    match error {
        Error::Fault(fault) => fault.findings(),
        _ => None,
    }
}

/// Checks the report of a case. The error says what is wrong with it.
fn check(case: &Case, gpu: &Gpu) -> Result<(), String> {
    let error = (case.run)(gpu).err().ok_or_else(|| format!("{}: nothing was found", case.name))?;
    let check = match case.expected {
        Expected::Fault(part) | Expected::FindingAndFault(_, part) if !error.to_string().contains(part) => {
            return Err(format!("{}: `{part}` is not in: {error}", case.name));
        }
        Expected::Fault(_) => return Ok(()),
        Expected::Finding(check) | Expected::FindingAndFault(check, _) => check,
    };
    let found = findings(&error).ok_or_else(|| format!("{}: no finding, but {error}", case.name))?;
    let finding = found.all.iter().find(|finding| finding.check == check);
    let finding = finding.ok_or_else(|| format!("{}: {check:?} is not in: {error}", case.name))?;
    let is_race = matches!(check, Check::SharedRace | Check::GlobalRace | Check::Scope);
    let lines = [Some(&finding.second), finding.first.as_ref()];
    let are_in_corpus = lines.iter().flatten().all(|access| access.location.starts_with("tests/cpu/corpus/"));
    if !are_in_corpus || finding.kernel != case.name {
        return Err(format!("{}: another kernel, or lines outside the corpus: {finding}", case.name));
    }
    if is_race && (finding.first.is_none() || finding.array.is_none() || finding.index.is_none()) {
        return Err(format!("{}: the report is incomplete: {finding}", case.name));
    }
    if !error.to_string().contains(check.name()) {
        return Err(format!("{}: `{}` is not in: {error}", case.name, check.name()));
    }
    Ok(())
}

fn wrong(gpu: &Gpu) -> Vec<String> {
    cases().filter_map(|case| check(&case, gpu).err()).collect()
}

#[test]
fn every_broken_kernel_is_reported_by_its_check() {
    let wrong = wrong(&Gpu::simt());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().count() >= 40, "only {} cases", cases().count());
}

#[test]
fn every_broken_kernel_is_reported_in_any_order_of_lanes() {
    for seed in 0..5 {
        let wrong = wrong(&Gpu::simt_with(SimtOptions { checks: true, schedule: Schedule::Seed(seed) }));
        assert!(wrong.is_empty(), "seed {seed}:\n{}", wrong.join("\n"));
    }
}

#[test]
fn names_are_different() {
    let mut names: Vec<_> = cases().map(|case| case.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
