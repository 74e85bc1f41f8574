//! The table of `bench transpose` for many shapes.

use std::io::{self, Write};

use comfy_table::Cell;
use serde::Serialize;

use super::case::Case;
use super::kind::Kind;
use crate::cells::{bandwidth, csv_field, or_dash, right, time, times, verdict};
use crate::device::Device;
use crate::measure::Timing;
use crate::number::counted;
use crate::options::{Format, Output};
use crate::outcome::chain;
use crate::plot::{self, Bar, Bars, Chart};
use crate::table::{Columns, Layout};

/// A measured case.
#[derive(Debug, Serialize)]
pub struct Row {
    pub shape: String,
    pub kind: Kind,
    /// Bytes of an element.
    pub size: usize,
    /// `None` without a result.
    pub correct: Option<bool>,
    pub wrong: Option<String>,
    /// The reason why there is no result.
    pub error: Option<String>,
    pub median_us: Option<f64>,
    /// The bandwidth, of the bytes read and written.
    pub gigabytes_per_second: Option<f64>,
    /// The time of a copy of the same bytes on the device.
    pub copy_us: Option<f64>,
    pub geam_us: Option<f64>,
    pub pytorch_us: Option<f64>,
}

impl Row {
    pub fn new(
        case: &Case,
        wrong: Option<String>,
        timing: Timing,
        copy: Option<Timing>,
        geam: Option<Timing>,
        pytorch_us: Option<f64>,
    ) -> Self {
        let us = |timing: Timing| timing.median.as_secs_f64() * 1e6;
        let median_us = us(timing);
        let bytes = 2 * case.shape.elements() * case.size;
        Self {
            shape: case.shape.to_string(),
            kind: case.kind,
            size: case.size,
            correct: Some(wrong.is_none()),
            wrong,
            error: None,
            median_us: Some(median_us),
            gigabytes_per_second: Some(bytes as f64 / median_us.max(1e-3) / 1e3),
            copy_us: copy.map(us),
            geam_us: geam.map(us),
            pytorch_us,
        }
    }

    /// A case without a result, and the reason.
    pub fn without_result(case: &Case, error: &anyhow::Error) -> Self {
        Self {
            shape: case.shape.to_string(),
            kind: case.kind,
            size: case.size,
            correct: None,
            wrong: None,
            error: Some(chain(error)),
            median_us: None,
            gigabytes_per_second: None,
            copy_us: None,
            geam_us: None,
            pytorch_us: None,
        }
    }

    /// The shape, and the operation if it is not a plain transpose.
    fn name(&self) -> String {
        format!("{}{}", self.shape, self.kind.suffix())
    }

    /// A peer's time divided by warpfold's.
    fn times(&self, other: Option<f64>) -> Option<f64> {
        Some(other? / self.median_us?)
    }
}

/// All cases.
#[derive(Debug, Serialize)]
pub struct Report {
    pub device: Device,
    /// How many times each case was timed, if one run takes at most half a second.
    pub samples: u32,
    pub rows: Vec<Row>,
}

impl Report {
    /// Whether no result is wrong.
    pub fn is_correct(&self) -> bool {
        self.rows.iter().all(|row| row.correct != Some(false))
    }

    pub fn has_results(&self) -> bool {
        self.rows.iter().any(|row| row.correct.is_some())
    }

    pub fn chart(&self) -> Chart {
        let peak = self.device.peak_gigabytes_per_second;
        let bar = |row: &Row| {
            Some(Bar {
                name: format!("{} of {} B", row.name(), row.size),
                value: row.gigabytes_per_second?,
                correct: row.correct?,
            })
        };
        Chart::Bars(Bars {
            title: format!("Transposes, {}", self.device.name),
            quantity: "GB/s",
            bars: self.rows.iter().filter_map(bar).collect(),
            bounds: peak.map(|peak| ("theoretical peak", peak, plot::PEAK_COLOR)).into_iter().collect(),
        })
    }

    pub fn write(&self, out: &mut impl Write, output: &Output) -> io::Result<()> {
        match output.format {
            Format::Table | Format::Markdown => self.write_table(out, &Layout::of(output)),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => self.write_csv(out),
        }
    }

    fn write_table(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(out, "{}", layout.paragraph(&self.device.headline()))?;
        let rows = || self.rows.iter();
        let has = |value: fn(&Row) -> bool| rows().any(value);
        let of_copy = |row: &Row| or_dash(row.times(row.copy_us).map(|ratio| format!("{:.1} %", 100.0 * ratio)));
        let mut columns = Columns::default();
        columns.add(0, "shape", rows().map(|row| Cell::new(row.name())));
        columns.add(0, "bytes", rows().map(|row| right(row.size)));
        columns.add(0, "result", rows().map(|row| verdict(row.correct)));
        columns.add(0, "time", rows().map(|row| or_dash(row.median_us.map(time))));
        columns.add(0, "GB/s", rows().map(|row| or_dash(row.gigabytes_per_second.map(bandwidth))));
        if has(|row| row.copy_us.is_some()) {
            columns.add(3, "copy", rows().map(|row| or_dash(row.copy_us.map(time))));
            columns.add(1, "of copy", rows().map(of_copy));
        }
        if has(|row| row.geam_us.is_some()) {
            columns.add(3, "geam", rows().map(|row| or_dash(row.geam_us.map(time))));
            columns.add(2, "vs geam", rows().map(|row| times(row.times(row.geam_us))));
        }
        if has(|row| row.pytorch_us.is_some()) {
            columns.add(3, "PyTorch", rows().map(|row| or_dash(row.pytorch_us.map(time))));
            columns.add(2, "vs PyTorch", rows().map(|row| times(row.times(row.pytorch_us))));
        }
        let table = columns.table(layout);
        writeln!(out, "{table}")?;
        for row in &self.rows {
            let messages = [("WRONG", &row.wrong), ("NO RESULT", &row.error)];
            for (what, message) in messages.iter().filter_map(|(what, message)| Some((what, message.as_ref()?))) {
                writeln!(out, "{what}: {} of {}: {message}", row.name(), counted(row.size, "byte", "bytes"))?;
            }
        }
        layout.write_left_out(out)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "shape,kind,size,correct,median_us,gigabytes_per_second,copy_us,geam_us,pytorch_us,error")?;
        let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
        for row in &self.rows {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{}",
                row.shape,
                row.kind.name(),
                row.size,
                row.correct.map(|correct| correct.to_string()).unwrap_or_default(),
                number(row.median_us),
                number(row.gigabytes_per_second),
                number(row.copy_us),
                number(row.geam_us),
                number(row.pytorch_us),
                csv_field(row.error.as_deref().unwrap_or_default())
            )?;
        }
        Ok(())
    }
}
