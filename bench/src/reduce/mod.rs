//! `bench reduce`: checks and times the library's reductions, and compares them with those of other libraries.

mod bins;
mod cases;
mod data;
mod exact;
mod expected;
mod extent;
mod file;
mod form;
mod operators;
mod parallel;
mod peers;
mod rounding;
mod run;
mod shapes;
mod table;
mod tally;

use std::path::Path;
use std::slice;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use warpfold::ops::WrappingSum;
use warpfold::{Gpu, Layout};

use cases::{Case, Table, TableName};
pub use cases::{ReduceArguments, name_of};
pub use expected::{bytes_expected, expected, expected_by_rung, first_wrong};
pub use extent::Extent;
pub use file::FileArguments;
pub use operators::Operator;
use peers::Peers;
use run::Job;
use shapes::Shapes;
use table::{Report, Row, Section};

use crate::device::Device;
use crate::element::ElementType;
use crate::measure::{Plan, if_memory_suffices, progress};
use crate::npy::{self, Array};
use crate::options::{Opened, Output, refuse_unused};
use crate::outcome::{Missing, Outcome, finish};
use crate::streamed::{self, Request};

pub fn run(gpu: &Opened, output: &Output, arguments: &ReduceArguments) -> anyhow::Result<Outcome> {
    if let (Some(input), Some(memory)) = (&arguments.input, arguments.file.memory) {
        let (operators, wanted) = (&operators(arguments)[..], dtype_of_file(arguments)?.into());
        return streamed::run(gpu, output, &Request { input, wanted, operators, file: &arguments.file, memory });
    }
    let plan = Plan::new(gpu, output)?;
    let device = Device::of(gpu)?;
    let folder = arguments.peers.as_deref();
    let peers_unused = [("--peers", folder.is_some() && !gpu.is_cuda())];
    refuse_unused(
        &peers_unused,
        "CUB, cuBLAS, cuTENSOR and PyTorch need a CUDA device, and this run uses the executor",
    )?;
    let mut peers = folder.map_or_else(Peers::default, Peers::find);
    arguments.file.check_output()?;
    let array =
        arguments.input.as_deref().map(|file| npy::read(gpu, file, dtype_of_file(arguments)?.into())).transpose()?;
    let mut tables = match (&arguments.input, &array) {
        (Some(file), Some(array)) => vec![of_file(file, array, arguments)?],
        _ if arguments.all => TableName::value_variants().iter().map(|name| name.table()).collect(),
        _ if !arguments.table.is_empty() => arguments.table.iter().map(|name| name.table()).collect(),
        _ => vec![requested_cases(gpu, arguments)?],
    };
    limit(&mut tables, arguments.limit);
    let bar = progress(tables.iter().map(|table| table.cases.len()).sum());
    let mut report = Report {
        device,
        read_gigabytes_per_second: read_ceiling(gpu, &plan)?,
        cub_version: peers.cub_version(),
        cutensor_version: peers.cutensor_version(),
        samples: plan.samples,
        sections: Vec::new(),
    };
    let (mut missing, mut results) = (Missing::default(), None);
    for Table { title, cases } in tables {
        let mut rows = Vec::new();
        for case in cases {
            if !missing.can_continue() {
                break;
            }
            let done = run::run(gpu, &plan, &mut peers, &Job { case, array: array.as_ref() });
            rows.push(done.map_or_else(
                |error| {
                    let row = Row::without_result(&case, &error);
                    missing.push(case.to_string(), error);
                    row
                },
                |(row, of_case)| {
                    results = Some((case, of_case));
                    row
                },
            ));
            bar.inc(1);
        }
        report.sections.push(Section { title: title.to_owned(), rows });
    }
    bar.finish_and_clear();
    if !report.has_results() && !missing.is_empty() {
        return Ok(missing.outcome());
    }
    let mut outcome = finish(|out| report.write(out, output), report.is_correct(), output, || report.charts());
    if let Some((case, results)) = results {
        let each = case.operator.results_each();
        arguments.file.write(&mut outcome, results, &case.extent, each, report.is_correct());
    }
    outcome.join(missing.counted(report.cases()));
    Ok(outcome)
}

/// Leaves out all cases after the first `limit`.
fn limit(tables: &mut Vec<Table>, limit: Option<u32>) {
    let mut left = limit.map_or(usize::MAX, |limit| limit as usize);
    for table in &mut *tables {
        table.cases.truncate(left);
        left -= table.cases.len();
    }
    tables.retain(|table| !table.cases.is_empty());
}

/// The element type of the file, if the command line names one.
fn dtype_of_file(arguments: &ReduceArguments) -> anyhow::Result<Option<ElementType>> {
    ensure!(arguments.dtype.len() <= 1, "the elements of --input have one type: give one --dtype, or none");
    Ok(arguments.dtype.first().copied())
}

/// A case for each operator that the command line names, over a file's array.
fn of_file(file: &Path, array: &Array, arguments: &ReduceArguments) -> anyhow::Result<Table> {
    let operators = operators(arguments);
    let is_one = operators.len() == 1 || arguments.file.output.is_none();
    ensure!(is_one, "--output takes the results of one operator: name one --op, or leave out --output");
    ensure!(
        !operators.contains(&Operator::Dot),
        "--op dot takes two inputs, and --input is only one: choose another --op"
    );
    let extent = extent(array, file, &arguments.file)?;
    let case = |operator| {
        check_takes(operator, array.dtype)?;
        Ok(Case { operator, dtype: array.dtype, extent, offset: 0, data: None })
    };
    Ok(Table { title: "Reductions", cases: operators.into_iter().map(case).collect::<anyhow::Result<_>>()? })
}

/// What is reduced of a file's array.
pub fn extent(array: &Array, file: &Path, arguments: &FileArguments) -> anyhow::Result<Extent> {
    Extent::along(array.layout, arguments.axis.as_ref()).with_context(|| npy::name(file))
}

fn operators(arguments: &ReduceArguments) -> Vec<Operator> {
    if arguments.op.is_empty() { vec![Operator::Sum] } else { arguments.op.clone() }
}

fn check_takes(operator: Operator, dtype: ElementType) -> anyhow::Result<()> {
    if !operator.takes(dtype) {
        let types: Vec<_> = operator.types().map(|dtype| dtype.to_string()).collect();
        let operator = name_of(&operator);
        bail!("--op {operator} takes --dtype {}, and not {dtype}: choose another operator or type", types.join(","));
    }
    Ok(())
}

/// A case for each combination of operator, type and shape that the command line names.
fn requested_cases(gpu: &Gpu, arguments: &ReduceArguments) -> anyhow::Result<Table> {
    let usual = Shapes::Arrays(vec![Layout::contiguous(&[if gpu.is_cuda() { 1 << 28 } else { 1 << 20 }])?]);
    let shapes = if arguments.shape.is_empty() { slice::from_ref(&usual) } else { &arguments.shape };
    let axes = arguments.file.axis.as_ref();
    let extents = shapes.iter().map(|shapes| shapes.extents(axes)).collect::<anyhow::Result<Vec<_>>>()?.concat();
    let kinds: Vec<_> =
        if arguments.data.is_empty() { vec![None] } else { arguments.data.iter().copied().map(Some).collect() };
    let mut cases = Vec::new();
    for operator in operators(arguments) {
        let usual = [ElementType::F32, ElementType::I32].into_iter().find(|&dtype| operator.takes(dtype));
        let dtypes = if arguments.dtype.is_empty() { usual.as_slice() } else { &arguments.dtype };
        for &dtype in dtypes {
            check_takes(operator, dtype)?;
            ensure!(
                kinds.iter().all(|&data| operator.takes_data(dtype, data)),
                "--data is for sums, means, sums of squares and norms of floats, not for {} of {dtype}",
                name_of(&operator)
            );
            for &extent in &extents {
                let offset = arguments.offset;
                cases.extend(kinds.iter().map(|&data| Case { operator, dtype, extent, offset, data }));
            }
        }
    }
    Ok(Table { title: "Reductions", cases })
}

/// The bandwidth in GB/s of a sum of 4 GiB of integers, which hardly does more than read; `None` in the executor.
fn read_ceiling(gpu: &Gpu, plan: &Plan) -> Result<Option<f64>, warpfold::Error> {
    const ELEMENTS: usize = 1 << 30;
    if !gpu.is_cuda() {
        return Ok(None);
    }
    let input = if_memory_suffices("the bandwidth of a read", gpu.zeroed::<u32>(ELEMENTS))?;
    let Some(input) = input else { return Ok(None) };
    let mut output = gpu.zeroed::<u32>(1)?;
    let mut reducer = gpu.reducer(WrappingSum, &Layout::contiguous(&[ELEMENTS])?, 0)?;
    let timing = plan.of_bound().time(gpu, &mut |_| reducer.start(&input, &mut output))?;
    Ok(Some((ELEMENTS * size_of::<u32>()) as f64 / timing.median.as_secs_f64() / 1e9))
}
