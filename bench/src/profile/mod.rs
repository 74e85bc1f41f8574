//! `bench profile`: a kernel's memory accesses by source line, counted in the executor.

mod source;
mod subject;

use std::io::{self, StdoutLock, Write};

use clap::Args;
use comfy_table::{Cell, Table};
use serde::Serialize;
use warpfold::{Advice, Counters, Dim3, KernelProfile, Profile};

use crate::cells::right;
use crate::counters::{self, CountersRow};
use crate::device::Device;
use crate::interrupt;
use crate::measure::Plan;
use crate::number::counted;
use crate::options::{Format, Numbers, Opened, Output, Sides};
use crate::outcome::{Missing, Outcome, finish};
use crate::table::{Columns, Layout};
use source::Sources;
use subject::Subject;

#[derive(Debug, Args)]
pub struct ProfileArguments {
    /// The kernel's name in the ladders (`strided_index`, `tiled_32`), or `sum` or `transpose` for those of the library
    pub kernel: String,
    #[command(flatten)]
    pub numbers: Numbers,
    #[command(flatten)]
    pub sides: Sides,
}

/// The launches of a kernel with one grid.
#[derive(Debug, Serialize)]
struct KernelReport {
    kernel: String,
    /// Whether the kernel is one of the library's, for which there is no advice.
    is_of_library: bool,
    grid: [u32; 3],
    block: [u32; 3],
    launches: u64,
    barriers_per_block: f64,
    total: CountersRow,
    lines: Vec<LineReport>,
}

/// A source line of a kernel.
#[derive(Debug, Serialize)]
struct LineReport {
    file: &'static str,
    line: u32,
    source: Option<String>,
    counters: CountersRow,
    /// The findings, worst first; none for kernels of the library.
    findings: Vec<String>,
    /// The approximate cost of all findings: avoidable passes through memory.
    cost: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    device: Device,
    kernels: Vec<KernelReport>,
    /// The advice on all kernels that are not the library's, and the source of each line.
    #[serde(skip)]
    advice: Vec<(Advice, Option<String>)>,
}

/// What stands in place of advice for the library's kernels.
const OF_LIBRARY: &str = "\
These are the library's own kernels, for which there is no advice on what to change. For the kernels of the ladders, \
such as `bench profile strided_index`, there is; your own kernels are counted by `Gpu::profile`.";

/// Counts a kernel in the executor.
pub fn run(gpu: &Opened, output: &Output, arguments: &ProfileArguments) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let mut sources = Sources::default();
    let (mut kernels, mut of_ladders) = (Vec::new(), Profile::default());
    let subjects = Subject::named(&arguments.kernel)?;
    Subject::uses(&subjects).check(&arguments.numbers, &arguments.sides)?;
    let mut missing = Missing::default();
    for subject in subjects {
        if !missing.can_continue() {
            break;
        }
        match subject.profile(gpu, &plan, &arguments.numbers, &arguments.sides) {
            Ok(profile) => {
                interrupt::keep_results();
                let is_of_library = subject.is_of_library();
                let report = |kernel| KernelReport::of(kernel, is_of_library, &mut sources);
                kernels.extend(profile.kernels.iter().map(report));
                if !is_of_library {
                    of_ladders.merge(profile);
                }
            }
            Err(error) => missing.push(arguments.kernel.clone(), error),
        }
    }
    let mut outcome = missing.outcome();
    if kernels.is_empty() && !missing.is_empty() {
        return Ok(outcome);
    }
    let with_source = |advice: Advice| {
        let source = sources.line(advice.file, advice.line);
        (advice, source)
    };
    let advice = of_ladders.advice().into_iter().map(with_source).collect();
    let report = Report { device: Device::of(gpu)?, kernels, advice };
    let write = |out: &mut StdoutLock<'_>| match output.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(io::Error::from).and_then(|()| writeln!(out))
        }
        Format::Csv => report.write_csv(out),
        Format::Table | Format::Markdown => report.write_tables(out, &Layout::of(output)),
    };
    outcome.join(finish(write, true, output, Vec::new));
    Ok(outcome)
}

impl KernelReport {
    fn of(kernel: &KernelProfile, is_of_library: bool, sources: &mut Sources) -> Self {
        let total: Counters = kernel.total();
        let all = kernel.advice();
        let mut lines: Vec<LineReport> = kernel
            .lines
            .iter()
            .map(|line| {
                let of_line = || all.iter().filter(|advice| (advice.file, advice.line) == (line.file, line.line));
                LineReport {
                    file: line.file,
                    line: line.line,
                    source: sources.line(line.file, line.line),
                    counters: CountersRow::of(&line.counters),
                    cost: of_line().map(|advice| advice.cost).sum(),
                    findings: of_line().filter(|_| !is_of_library).map(|advice| advice.text.clone()).collect(),
                }
            })
            .collect();
        lines.sort_by(|one, other| other.cost.total_cmp(&one.cost));
        let sides = |dim: Dim3| [dim.x, dim.y, dim.z];
        Self {
            kernel: kernel.kernel.clone(),
            is_of_library,
            grid: sides(kernel.grid),
            block: sides(kernel.block),
            launches: kernel.launches,
            barriers_per_block: kernel.barriers_per_block(),
            total: CountersRow::of(&total),
            lines,
        }
    }

    fn table(&self, layout: &Layout) -> Table {
        let lines = || self.lines.iter();
        let mut columns = Columns::default();
        let place = |line: &LineReport| {
            Cell::new(format!("{}:{}", line.file.rsplit('/').next().unwrap_or(line.file), line.line))
        };
        let source = |line: &LineReport| Cell::new(line.source.as_deref().unwrap_or("(source not found)"));
        let percent = |share: Option<f64>| right(counters::percent(share));
        columns.add(0, "where", lines().map(place));
        columns.add(4, "source", lines().map(source));
        columns.add(1, "requests", lines().map(|line| right(line.counters.requests())));
        columns.add(2, "lanes", lines().map(|line| right(counters::number(line.counters.lanes_active))));
        columns.add(1, "load", lines().map(|line| percent(line.counters.load_efficiency)));
        columns.add(1, "store", lines().map(|line| percent(line.counters.store_efficiency)));
        columns.add(1, "conflicts", lines().map(|line| right(line.counters.bank_conflicts)));
        columns.add(3, "sync", lines().map(|line| Cell::new(line.counters.synchronization())));
        columns.table(layout)
    }
}

impl Report {
    fn write_tables(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(out, "Counted in the executor, by source line, the worst first.")?;
        for kernel in &self.kernels {
            let dim = |[x, y, z]: [u32; 3]| Dim3::new(x, y, z);
            let launches = match kernel.launches {
                1 => String::new(),
                launches => format!(", {}", counted(launches, "launch", "launches")),
            };
            let barriers = match kernel.barriers_per_block {
                whole if whole.fract() == 0.0 => whole.to_string(),
                mean => format!("{mean:.1}"),
            };
            writeln!(
                out,
                "\n{}: {} of {}{launches}, {} in each block\n{}",
                kernel.kernel,
                counted(dim(kernel.grid), "block", "blocks"),
                counted(dim(kernel.block), "thread", "threads"),
                counted(barriers, "barrier", "barriers"),
                kernel.table(layout)
            )?;
        }
        if self.kernels.iter().any(|kernel| kernel.is_of_library) {
            writeln!(out, "\n{}", layout.paragraph(OF_LIBRARY))?;
        }
        if !self.advice.is_empty() {
            writeln!(out, "\nWhat to change, the worst first:")?;
        }
        for (i, (advice, source)) in self.advice.iter().enumerate() {
            writeln!(out, "{advice}")?;
            // The source is printed once for each line, after its last finding: the table rarely has space for it.
            let next = self.advice.get(i + 1);
            let is_last = next.is_none_or(|(next, _)| (next.file, next.line) != (advice.file, advice.line));
            if let Some(source) = source.as_ref().filter(|_| is_last) {
                writeln!(out, "    {source}")?;
            }
        }
        layout.write_left_out(out)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "kernel,blocks,threads,file,line,cost,{}", CountersRow::CSV_HEADER)?;
        for kernel in &self.kernels {
            for line in &kernel.lines {
                let (blocks, threads) = (kernel.grid.iter().product::<u32>(), kernel.block.iter().product::<u32>());
                let LineReport { file, line, cost, counters, .. } = line;
                writeln!(out, "{},{blocks},{threads},{file},{line},{cost:.1},{}", kernel.kernel, counters.csv())?;
            }
        }
        Ok(())
    }
}
