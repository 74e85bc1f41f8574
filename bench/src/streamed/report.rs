//! The report of `--memory`.

use std::io::{self, StdoutLock, Write};
use std::sync::atomic::Ordering;

use comfy_table::Cell;
use serde::Serialize;

use super::source::Source;
use super::{Job, SummedBy};
use crate::cells::{bandwidth, csv_field, right, time};
use crate::device::Device;
use crate::memory;
use crate::npy::Array;
use crate::number::{Results, counted};
use crate::options::{Format, Opened, Output};
use crate::outcome::{Outcome, finish};
use crate::reduce::{Extent, Operator, name_of};
use crate::table::{Columns, Layout};

/// The results of one operator.
#[derive(Serialize)]
pub struct Row {
    operator: Operator,
    result: Results,
}

impl Row {
    pub fn new(operator: Operator, array: &Array) -> Self {
        Self { operator, result: Results(array.values()) }
    }
}

/// The output of the command.
#[derive(Serialize)]
pub struct Report {
    /// What has summed the elements.
    summed_by: SummedBy,
    /// The GPU, if it has.
    device: Option<Device>,
    /// The threads that have read chunks.
    threads: usize,
    /// The bytes of memory that buffers, running sums and results may have.
    memory: usize,
    /// The input: `1000 x 3 columns of f32`.
    input: String,
    bytes: usize,
    /// The time to read and to sum.
    total_ms: f64,
    gigabytes_per_second: f64,
    rows: Vec<Row>,
    #[serde(skip)]
    file: String,
}

impl Report {
    pub fn new(
        gpu: &Opened,
        source: &Source,
        extent: &Extent,
        job: &Job<'_>,
        summed_by: SummedBy,
        seconds: f64,
        rows: Vec<Row>,
    ) -> anyhow::Result<Self> {
        let (dtype, is_whole) = (source.described.stored.dtype, extent.kept().is_empty());
        let device = (summed_by == SummedBy::Gpu).then(|| Device::of(gpu)).transpose()?;
        let bytes = source.described.bytes;
        Ok(Self {
            summed_by,
            device,
            threads: job.threads.load(Ordering::Relaxed),
            memory: job.memory,
            input: match is_whole {
                true => format!("{} {dtype}", extent.elements()),
                false => format!("{extent} of {dtype}"),
            },
            bytes,
            total_ms: seconds * 1e3,
            gigabytes_per_second: if seconds > 0.0 { bytes as f64 / seconds / 1e9 } else { 0.0 },
            rows,
            file: source.shown.clone(),
        })
    }

    /// Prints the report to standard output.
    pub fn print(&self, output: &Output) -> Outcome {
        let write = |out: &mut StdoutLock<'_>| match output.format {
            Format::Table | Format::Markdown => self.write_table(out, &Layout::of(output)),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self).map_err(io::Error::from).and_then(|()| writeln!(out))
            }
            Format::Csv => self.write_csv(out),
        };
        finish(write, true, output, Vec::new)
    }

    fn write_table(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        let by = match &self.device {
            Some(device) => device.headline(),
            None => format!("On the host, by {}.", counted(self.threads, "thread", "threads")),
        };
        let by = format!("{by} Buffers and sums take at most {}.", memory::shown(self.memory as u128));
        writeln!(out, "{}\n\n{} in {}", layout.paragraph(&by), self.input, self.file)?;
        let rows = || self.rows.iter();
        let mut columns = Columns::default();
        columns.add(0, "operator", rows().map(|row| Cell::new(name_of(&row.operator))));
        columns.add(0, "time", rows().map(|_| right(time(self.total_ms * 1e3))));
        columns.add(0, "GB/s", rows().map(|_| right(bandwidth(self.gigabytes_per_second))));
        writeln!(out, "{}\n", columns.table(layout))?;
        for row in rows() {
            let line = format!("{} = {}", name_of(&row.operator), row.result.shown());
            writeln!(out, "{}", layout.paragraph(&line))?;
        }
        layout.write_left_out(out)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "operator,input,result,summed_by,threads,memory,bytes,total_ms,gigabytes_per_second")?;
        let summed_by = if self.summed_by == SummedBy::Gpu { "gpu" } else { "host" };
        for Row { operator, result } in &self.rows {
            writeln!(
                out,
                "{},{},{result},{summed_by},{},{},{},{:.3},{:.3}",
                name_of(operator),
                csv_field(&self.input),
                self.threads,
                self.memory,
                self.bytes,
                self.total_ms,
                self.gigabytes_per_second
            )?;
        }
        Ok(())
    }
}
