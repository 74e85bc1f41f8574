//! `bench transpose` for several shapes, element sizes and operations, or for the array of a file.

use std::path::Path;

use clap::ValueEnum;
use warpfold::{Gpu, Layout};

use super::TransposeArguments;
use super::case::Case;
use super::kind::Kind;
use super::measure;
use super::peers::Peers;
use super::table::{Report, Row};
use crate::device::Device;
use crate::element::with_type;
use crate::measure::{Plan, progress};
use crate::npy::{self, Wanted};
use crate::options::{Opened, Output, refuse_unused};
use crate::outcome::{Missing, Outcome, finish};

/// A table of `docs/benchmarks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// Transposes, including scaled ones and ones in place
    Transposes,
    /// Permutations of three axes
    Permutations,
}

impl TableName {
    /// The table's cases. On an H200, `./run.sh tables` measures them in a minute, with peers.
    fn cases(self) -> Vec<Case> {
        let of = |kind, size, shapes: &[&[usize]]| -> Vec<Case> {
            shapes.iter().map(|shape| Case::of_matrices(kind, in_c_order(shape), size).expect("two axes")).collect()
        };
        let squares: [&[usize]; 3] = [&[256, 256], &[1024, 1024], &[8192, 8192]];
        let unaligned: &[usize] = &[8191, 8193];
        let others: [&[usize]; 5] =
            [&[5000, 30000], &[64, 1024, 2048], &[1_000_003, 127], &[1 << 24, 16], &[3, 1_000_033]];
        match self {
            Self::Transposes => {
                let mut cases = Vec::new();
                for size in [1, 2, 4, 8, 16] {
                    cases.extend(of(Kind::Transpose, size, &squares));
                    cases.extend(of(Kind::Transpose, size, &[unaligned]));
                    // With elements of 16 bytes, most of these would have 2 to 4 GiB.
                    if size < 16 {
                        cases.extend(of(Kind::Transpose, size, &others));
                    }
                }
                [4, 8, 16].iter().for_each(|&size| cases.extend(of(Kind::Scaled, size, &[unaligned])));
                let in_place: [&[usize]; 2] = [&[4096, 4096], &[8191, 8191]];
                [1, 4, 16].iter().for_each(|&size| cases.extend(of(Kind::InPlace, size, &in_place)));
                cases
            }
            Self::Permutations => {
                let mut cases = Vec::new();
                for axes in [[1, 0, 2], [2, 1, 0]] {
                    for size in [1, 2, 4, 8] {
                        let of = |shape| Case::permutation(in_c_order(shape), &axes, size).expect("three axes");
                        cases.extend([&[256, 512, 384], &[8192, 512, 3]].map(|shape| of(shape)));
                    }
                }
                cases
            }
        }
    }
}

/// The layout of an array of a table.
fn in_c_order(extents: &[usize]) -> Layout {
    Layout::contiguous(extents).expect("the tables have no other extents")
}

pub fn run(gpu: &Opened, output: &Output, arguments: &TransposeArguments) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let tables = if arguments.all { TableName::value_variants() } else { &arguments.table };
    let mut cases = match tables {
        [] => requested_cases(gpu, arguments)?,
        tables => tables.iter().flat_map(|table| table.cases()).collect(),
    };
    cases.truncate(arguments.limit.map_or(usize::MAX, |limit| limit as usize));
    let folder: Option<&Path> = arguments.peers.as_deref();
    let peers_unused = [("--peers", folder.is_some() && !gpu.is_cuda())];
    refuse_unused(&peers_unused, "cuBLAS, cuTENSOR and PyTorch need a CUDA device, and this run uses the executor")?;
    let mut peers = folder.map_or_else(Peers::default, Peers::find);
    let bar = progress(cases.len());
    let (device, cutensor_version) = (Device::of(gpu)?, peers.cutensor_version());
    let mut report = Report { device, cutensor_version, samples: plan.samples, rows: Vec::new() };
    let mut missing = Missing::default();
    for case in cases {
        if !missing.can_continue() {
            break;
        }
        report.rows.push(measure::random(gpu, &plan, &mut peers, &case).unwrap_or_else(|error| {
            let row = Row::without_result(&case, &error);
            missing.push(case.to_string(), error);
            row
        }));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !report.has_results() && !missing.is_empty() {
        return Ok(missing.outcome());
    }
    let mut outcome = finish(|out| report.write(out, output), report.is_correct(), output, || vec![report.chart()]);
    outcome.join(missing.counted(report.rows.len()));
    Ok(outcome)
}

/// Permutes the array of a file.
pub fn run_file(gpu: &Opened, output: &Output, arguments: &TransposeArguments, file: &Path) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let array = npy::read(gpu, file, Wanted::Any)?;
    let size = with_type!(array.dtype, T => size_of::<T>());
    let case = arguments.case(Kind::Transpose, array.layout, size, &npy::name(file))?;
    let (row, result) = measure::of_array(gpu, &plan, &case, &array)?;
    let (device, rows) = (Device::of(gpu)?, vec![row]);
    let report = Report { device, cutensor_version: None, samples: plan.samples, rows };
    let mut outcome = finish(|out| report.write(out, output), report.is_correct(), output, || vec![report.chart()]);
    arguments.write(&mut outcome, &result, report.is_correct());
    Ok(outcome)
}

/// A case for each combination that the command line names.
fn requested_cases(gpu: &Gpu, arguments: &TransposeArguments) -> anyhow::Result<Vec<Case>> {
    let usual = if gpu.is_cuda() { in_c_order(&[8192, 8192]) } else { in_c_order(&[1024, 1024]) };
    let shapes = if arguments.shape.is_empty() { vec![usual] } else { arguments.shape.clone() };
    let sizes: Vec<usize> = arguments.size.iter().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![4] } else { sizes };
    let kinds = if arguments.kind.is_empty() { vec![Kind::Transpose] } else { arguments.kind.clone() };
    let mut cases = Vec::new();
    for &kind in &kinds {
        for &size in &sizes {
            for &shape in &shapes {
                kind.fits(&shape, size).map_err(anyhow::Error::msg)?;
                cases.push(arguments.case(kind, shape, size, &format!("--shape {shape}"))?);
            }
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_of_the_tables_are_possible() {
        for table in TableName::value_variants() {
            assert!(table.cases().iter().all(|case| case.kind.fits(&case.input, case.size).is_ok()), "{table:?}");
        }
    }
}
