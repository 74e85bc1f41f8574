//! `bench profile`: a kernel's memory accesses by source line, counted in the executor.

mod advice;
mod source;
mod subject;

use std::io::{self, StdoutLock, Write};

use clap::Args;
use comfy_table::{Cell, Table};
use serde::Serialize;
use warpfold::{Counters, Dim3, KernelProfile};

use crate::cells::right;
use crate::counters::{self, CountersRow};
use crate::device::Device;
use crate::interrupt;
use crate::measure::Plan;
use crate::number::counted;
use crate::options::{Format, Numbers, Opened, Output, Sides};
use crate::outcome::{Missing, Outcome, finish};
use crate::table::{Columns, Layout};
use advice::Advice;
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
    #[serde(skip)]
    advice: Vec<Advice>,
    /// The approximate cost of all findings: avoidable passes through memory.
    cost: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    device: Device,
    kernels: Vec<KernelReport>,
}

/// The minimum cost of a reported finding, as a share of all requests.
const MIN_REPORTED_SHARE: f64 = 0.02;

/// What stands in place of advice for the library's kernels.
const OF_LIBRARY: &str = "\
These are the library's own kernels, for which there is no advice on what to change. For the kernels of the ladders, \
such as `bench profile strided_index`, there is; your own kernels are counted by `Gpu::profile`.";

/// Counts a kernel in the executor.
pub fn run(gpu: &Opened, output: &Output, arguments: &ProfileArguments) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let mut sources = Sources::default();
    let mut kernels = Vec::new();
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
            }
            Err(error) => missing.push(arguments.kernel.clone(), error),
        }
    }
    let mut outcome = missing.outcome();
    if kernels.is_empty() && !missing.is_empty() {
        return Ok(outcome);
    }
    let report = Report { device: Device::of(gpu)?, kernels };
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
        // Findings that cost less are not reported.
        let least = MIN_REPORTED_SHARE * total.requests() as f64;
        let mut lines: Vec<LineReport> = kernel
            .lines
            .iter()
            .map(|line| {
                let mut advice = advice::of(&line.counters);
                advice.retain(|advice| advice.cost >= least);
                let cost = advice.iter().map(|advice| advice.cost).sum();
                if is_of_library {
                    advice.clear();
                }
                LineReport {
                    file: line.file,
                    line: line.line,
                    source: sources.line(line.file, line.line),
                    counters: CountersRow::of(&line.counters),
                    cost,
                    findings: advice.iter().map(|advice| advice.text.clone()).collect(),
                    advice,
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

/// A finding at a line. If several launches have the finding, the numbers are those of the launch with the highest
/// cost.
struct LineFinding<'a> {
    line: &'a LineReport,
    advice: &'a Advice,
    /// The number of launches with the finding.
    kernels: usize,
}

impl Report {
    /// The findings of all launches, each once. The findings of a line are together, and the worst lines come first.
    fn findings(&self) -> Vec<LineFinding<'_>> {
        let mut findings: Vec<LineFinding<'_>> = Vec::new();
        let lines = self.kernels.iter().flat_map(|kernel| &kernel.lines);
        for (line, advice) in lines.flat_map(|line| line.advice.iter().map(move |advice| (line, advice))) {
            let is_same = |known: &&mut LineFinding<'_>| {
                (known.line.file, known.line.line, known.advice.kind) == (line.file, line.line, advice.kind)
            };
            match findings.iter_mut().find(is_same) {
                None => findings.push(LineFinding { line, advice, kernels: 1 }),
                Some(known) => {
                    known.kernels += 1;
                    if advice.cost > known.advice.cost {
                        (known.line, known.advice) = (line, advice);
                    }
                }
            }
        }
        let place = |finding: &LineFinding<'_>| (finding.line.file, finding.line.line);
        let costs: Vec<_> = findings.iter().map(|finding| (place(finding), finding.advice.cost)).collect();
        let of_line = |finding: &LineFinding<'_>| -> f64 {
            costs.iter().filter(|(own, _)| *own == place(finding)).map(|(_, cost)| cost).sum()
        };
        findings.sort_by(|one, other| {
            let by_line = of_line(other).total_cmp(&of_line(one)).then(place(one).cmp(&place(other)));
            by_line.then(other.advice.cost.total_cmp(&one.advice.cost))
        });
        findings
    }

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
        let findings = self.findings();
        if !findings.is_empty() {
            writeln!(out, "\nWhat to change, the worst first:")?;
        }
        for (i, LineFinding { line, advice, kernels }) in findings.iter().enumerate() {
            let worst = if *kernels > 1 { format!(" (the worst of {kernels} launches)") } else { String::new() };
            writeln!(out, "{}:{}: {}{worst}", line.file, line.line, advice.text)?;
            // The source is printed once for each line, after its last finding: the table rarely has space for it.
            let is_last =
                findings.get(i + 1).is_none_or(|next| (next.line.file, next.line.line) != (line.file, line.line));
            if let Some(source) = line.source.as_ref().filter(|_| is_last) {
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
