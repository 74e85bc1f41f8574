//! Reports of ladders and single kernels: tables for people, JSON and CSV for programs.

use std::io::{self, StdoutLock, Write};

use comfy_table::{Cell, Table};
use serde::Serialize;
use warpfold::Profile;

use crate::cells::{bandwidth, or_dash, right, time, verdict};
use crate::counters::{self, CountersRow};
use crate::device::Device;
use crate::measure::Timing;
use crate::number::Results;
use crate::options::{Format, Output};
use crate::outcome::{Outcome, finish};
use crate::plot::{self, Bar, Bars, Chart};
use crate::table::{Columns, Layout};

/// A measured kernel.
#[derive(Debug, Serialize)]
pub struct Row {
    pub kernel: String,
    /// What the rung changes, compared with the rung before it.
    pub change: String,
    pub launches: usize,
    /// The numbers that the kernel computed, if any.
    pub result: Option<Results>,
    /// Whether the kernel's result was right.
    pub correct: bool,
    pub wrong: Option<String>,
    pub median_us: f64,
    pub fastest_us: f64,
    pub gigabytes_per_second: f64,
    pub share_of_peak: Option<f64>,
    /// A rating of the share of the peak.
    pub rating: Option<Rating>,
    pub share_of_copy: Option<f64>,
    pub speedup_over_first: Option<f64>,
    pub speedup_over_previous: Option<f64>,
    /// The kernel's memory counters, summed over all launches; only in the executor.
    pub counters: Option<CountersRow>,
    pub barriers_per_block: Option<f64>,
    #[serde(skip)]
    is_first: bool,
}

/// A rating of the share of the theoretical peak.
///
/// Source: seed 004 (`docs/ladder/sources.md`), "DRAM utilization": 40 to 60 % is okay, 60 to 75 % is good, and more is
/// excellent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    Poor,
    Okay,
    Good,
    Excellent,
}

impl Rating {
    fn of(share_of_peak: f64) -> Self {
        match share_of_peak {
            share if share < 0.4 => Self::Poor,
            share if share < 0.6 => Self::Okay,
            share if share < 0.75 => Self::Good,
            _ => Self::Excellent,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Poor => "poor",
            Self::Okay => "okay",
            Self::Good => "good",
            Self::Excellent => "excellent",
        }
    }
}

/// Several kernels over one input.
#[derive(Debug, Serialize)]
pub struct Section {
    pub family: &'static str,
    /// The input of the kernels: `16777216 f32`.
    pub input: String,
    pub rows: Vec<Row>,
    /// A note below the table. JSON and CSV have the same information in the rows.
    #[serde(skip)]
    pub note: Option<String>,
}

/// The output of a command.
#[derive(Debug, Serialize)]
pub struct Report {
    pub device: Device,
    pub copy_gigabytes_per_second: Option<f64>,
    /// How many times each kernel was timed, if one run takes at most half a second.
    pub samples: u32,
    pub sections: Vec<Section>,
}

/// What the times of the kernels of a section are compared with.
pub struct Scale<'a> {
    pub device: &'a Device,
    /// The bandwidth of a copy on the device, in bytes per second.
    pub copy: Option<f64>,
    /// The bytes that each kernel has to move.
    pub bytes: usize,
}

/// The measurement of one kernel, without speed-ups.
pub struct Measured<'a> {
    pub kernel: &'a str,
    pub change: &'a str,
    pub launches: usize,
    /// The numbers that it computed, if any.
    pub result: Option<Results>,
    /// What is wrong with the result, if anything.
    pub wrong: Option<String>,
    pub timing: Timing,
    pub role: Role,
}

/// A kernel's role in its ladder: whether it has speed-ups, and whether the speed-ups of others refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A copy, which is a bound for the times of the rungs. It has no speed-up.
    Bound,
    /// The baseline of the kernels after it. It has no speed-up.
    First,
    /// Compared with the latest baseline, and with the previous kernel.
    Next,
}

impl Section {
    /// A section without kernels.
    pub fn new(family: &'static str, input: String) -> Self {
        Self { family, input, rows: Vec::new(), note: None }
    }

    /// Appends a kernel, with its speed-ups as its role says.
    pub fn push(&mut self, scale: &Scale<'_>, measured: Measured<'_>) {
        let Measured { kernel, change, launches, result, wrong, timing, role } = measured;
        let median_us = timing.median.as_secs_f64() * 1e6;
        let gigabytes_per_second = if median_us > 0.0 { scale.bytes as f64 / median_us / 1e3 } else { 0.0 };
        let share_of_peak = scale.device.peak_gigabytes_per_second.map(|peak| gigabytes_per_second / peak);
        let speedup_over = |other: Option<&Row>| Some(other?.median_us / median_us).filter(|_| median_us > 0.0);
        let (first, previous) = match role {
            Role::Bound | Role::First => (None, None),
            // In the executor a kernel that is faster on a GPU may take longer, so a ratio of times would mislead.
            Role::Next if scale.device.backend != "cuda" => (None, None),
            Role::Next => (self.rows.iter().rfind(|row| row.is_first), self.rows.last()),
        };
        self.rows.push(Row {
            kernel: kernel.to_owned(),
            change: change.to_owned(),
            launches,
            result,
            correct: wrong.is_none(),
            wrong,
            median_us,
            fastest_us: timing.fastest.as_secs_f64() * 1e6,
            gigabytes_per_second,
            share_of_peak,
            rating: share_of_peak.map(Rating::of),
            share_of_copy: scale.copy.map(|copy| gigabytes_per_second * 1e9 / copy),
            speedup_over_first: speedup_over(first),
            speedup_over_previous: speedup_over(previous),
            counters: None,
            barriers_per_block: None,
            is_first: role == Role::First,
        });
    }

    /// Adds counters to the last kernel.
    pub fn add_counters(&mut self, profile: Option<&Profile>) {
        if let (Some(row), Some(profile)) = (self.rows.last_mut(), profile) {
            row.counters = Some(CountersRow::of(&profile.total()));
            row.barriers_per_block = Some(profile.barriers_per_block());
        }
    }
}

impl Report {
    pub fn is_correct(&self) -> bool {
        self.sections.iter().flat_map(|section| &section.rows).all(|row| row.correct)
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|section| section.rows.is_empty())
    }

    /// Prints the report to standard output, and draws charts if requested.
    pub fn print(&self, output: &Output) -> Outcome {
        let write = |out: &mut StdoutLock<'_>| match output.format {
            Format::Table | Format::Markdown => self.write_tables(out, &Layout::of(output)),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self).map_err(io::Error::from).and_then(|()| writeln!(out))
            }
            Format::Csv => self.write_csv(out),
        };
        finish(write, self.is_correct(), output, || self.charts())
    }

    /// A chart of bandwidths for each section. In the executor, whose times are those of a CPU, charts of the counters.
    fn charts(&self) -> Vec<Chart> {
        if self.device.backend != "cuda" {
            return self.sections.iter().flat_map(|section| self.counter_charts(section)).collect();
        }
        let of_section = |section: &Section| {
            let bounds = [
                ("theoretical peak", self.device.peak_gigabytes_per_second, plot::PEAK_COLOR),
                ("copy on the device", self.copy_gigabytes_per_second, plot::CEILING_COLOR),
            ];
            let bounds = bounds.into_iter().filter_map(|(name, value, color)| Some((name, value?, color))).collect();
            self.chart(section, "", "GB/s", bounds, |row| Some(row.gigabytes_per_second))
        };
        self.sections.iter().filter_map(of_section).collect()
    }

    fn counter_charts(&self, section: &Section) -> Vec<Chart> {
        type Value = fn(&CountersRow) -> Option<f64>;
        const EFFICIENCY: &str = "requested bytes, % of the bytes of their sectors";
        const CONFLICTS: &str = "bank conflicts: extra passes";
        let charts: [(&str, &'static str, Value); 5] = [
            (": loads from global memory", EFFICIENCY, |counters| counters.load_efficiency),
            (": stores to global memory", EFFICIENCY, |counters| counters.store_efficiency),
            (": loads from shared memory", CONFLICTS, |counters| Some(counters.shared_load_conflicts as f64)),
            (": stores to shared memory", CONFLICTS, |counters| Some(counters.shared_store_conflicts as f64)),
            (": divergence", "active lanes of 32 in a memory request, mean", |counters| counters.lanes_active),
        ];
        let charts = charts.map(|(about, quantity, value)| {
            self.chart(section, about, quantity, Vec::new(), |row| value(row.counters.as_ref()?))
        });
        charts.into_iter().flatten().collect()
    }

    /// A chart of one quantity; `None` if no row has a value other than 0.
    fn chart(
        &self,
        section: &Section,
        about: &str,
        quantity: &'static str,
        bounds: Vec<plot::Bound>,
        value: impl Fn(&Row) -> Option<f64>,
    ) -> Option<Chart> {
        let bar = |row: &Row| Some(Bar { name: row.kernel.clone(), value: value(row)?, correct: row.correct });
        let bars: Vec<Bar> = section.rows.iter().filter_map(bar).collect();
        let title = format!("{} of {}, {}{about}", section.family, section.input, self.device.name);
        bars.iter().any(|bar| bar.value > 0.0).then_some(Chart::Bars(Bars { title, quantity, bars, bounds }))
    }

    fn write_tables(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(out, "{}", layout.paragraph(&self.device.headline()))?;
        if let Some(copy) = self.copy_gigabytes_per_second {
            writeln!(out, "A copy on the device moves {copy:.0} GB/s.")?;
        }
        for section in &self.sections {
            writeln!(out, "\n{} of {}\n{}", section.family, section.input, section.table(layout))?;
            for row in section.rows.iter().filter(|row| !row.correct) {
                writeln!(out, "WRONG: {}: {}", row.kernel, row.wrong.as_deref().unwrap_or("the result"))?;
            }
            if let Some(note) = &section.note {
                writeln!(out, "\n{}", layout.paragraph(note))?;
            }
        }
        if self.sections.iter().flat_map(|section| &section.rows).any(|row| row.counters.is_some()) {
            writeln!(out, "\n{}", layout.paragraph(COUNTED))?;
        }
        layout.write_left_out(out)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "family,input,kernel,launches,result,correct,median_us,fastest_us,gigabytes_per_second,share_of_peak,\
             rating,share_of_copy,speedup_over_first,speedup_over_previous,barriers_per_block,{}",
            CountersRow::CSV_HEADER
        )?;
        for section in &self.sections {
            for row in &section.rows {
                let number = |number: Option<f64>| number.map(|number| format!("{number:.4}")).unwrap_or_default();
                writeln!(
                    out,
                    "{},{},{},{},{},{},{:.3},{:.3},{:.3},{},{},{},{},{},{},{}",
                    section.family,
                    section.input,
                    row.kernel,
                    row.launches,
                    row.result.as_ref().map(Results::to_string).unwrap_or_default(),
                    row.correct,
                    row.median_us,
                    row.fastest_us,
                    row.gigabytes_per_second,
                    number(row.share_of_peak),
                    row.rating.map_or("", Rating::name),
                    number(row.share_of_copy),
                    number(row.speedup_over_first),
                    number(row.speedup_over_previous),
                    number(row.barriers_per_block),
                    row.counters.as_ref().map_or_else(CountersRow::no_csv, CountersRow::csv)
                )?;
            }
        }
        Ok(())
    }
}

impl Section {
    /// The table of the section. On a GPU the important columns are times. In the executor, whose times are those of a
    /// CPU, they are counters.
    fn table(&self, layout: &Layout) -> Table {
        let is_gpu = self.rows.iter().any(|row| row.share_of_peak.is_some());
        let is_counted = self.rows.iter().any(|row| row.counters.is_some());
        let rows = || self.rows.iter();
        let percent = |share: Option<f64>| or_dash(share.map(|share| format!("{:.1} %", 100.0 * share)));
        let times = |speedup: Option<f64>| or_dash(speedup.map(|speedup| format!("{speedup:.2} x")));
        let (time_rank, bandwidth_rank, change_rank) = if is_counted { (3, 5, 4) } else { (0, 0, 4) };
        let mut columns = Columns::default();
        columns.add(0, "kernel", rows().map(|row| Cell::new(&row.kernel)));
        columns.add(0, "result", rows().map(|row| verdict(Some(row.correct))));
        columns.add(time_rank, "time", rows().map(|row| right(time(row.median_us))));
        columns.add(bandwidth_rank, "GB/s", rows().map(|row| right(bandwidth(row.gigabytes_per_second))));
        if is_gpu {
            columns.add(1, "of peak", rows().map(|row| percent(row.share_of_peak)));
            columns.add(5, "rating", rows().map(|row| Cell::new(row.rating.map_or("", Rating::name))));
            columns.add(3, "of copy", rows().map(|row| percent(row.share_of_copy)));
            columns.add(1, "vs first", rows().map(|row| times(row.speedup_over_first)));
            columns.add(2, "vs previous", rows().map(|row| times(row.speedup_over_previous)));
        }
        if is_counted {
            let of = |shown: fn(&CountersRow) -> String| {
                rows().map(move |row| right(row.counters.as_ref().map(shown).unwrap_or_default()))
            };
            columns.add(1, "load", of(|counters| counters::percent(counters.load_efficiency)));
            columns.add(1, "store", of(|counters| counters::percent(counters.store_efficiency)));
            columns.add(1, "conflicts", of(|counters| counters.bank_conflicts.to_string()));
            columns.add(2, "lanes", of(|counters| counters::number(counters.lanes_active)));
            columns.add(2, "barriers", rows().map(|row| right(counters::number(row.barriers_per_block))));
        }
        columns.add(change_rank, "change", rows().map(|row| Cell::new(&row.change)));
        columns.table(layout)
    }
}

/// The meaning of the columns with counters.
const COUNTED: &str = "\
Counted by warp, over all launches. Load and store: the requested bytes, in percent of the bytes of their 32-byte \
sectors. Conflicts: bank conflicts in shared memory. Lanes: the lanes that take part in a memory request, on average. \
Barriers: in each block. `bench profile KERNEL` shows the counters by source line.";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::device::h200;
    use crate::number::Value;

    /// A ladder like one measured on a GPU, for a test that has none.
    fn ladder() -> Report {
        let device = h200();
        let mut section = Section::new("Sum in global memory", "16777216 f32".to_owned());
        for (i, kernel) in ["divergent_modulo", "unroll8_complete_const"].into_iter().enumerate() {
            let time = Duration::from_nanos(83_500 / (i as u64 + 1));
            let measured = Measured {
                kernel,
                change: "neighbours read neighbours: no bank conflicts",
                launches: 1,
                result: Some(Results(vec![Value::F64(f64::INFINITY)])),
                wrong: None,
                timing: Timing { median: time, fastest: time },
                role: if i == 0 { Role::First } else { Role::Next },
            };
            section.push(&Scale { device: &device, copy: Some(4.2e12), bytes: 1 << 26 }, measured);
        }
        Report { device, copy_gigabytes_per_second: Some(4200.0), samples: 25, sections: vec![section] }
    }

    #[test]
    fn the_table_of_a_gpu_fits() {
        let shown = |width: Option<usize>| {
            let mut text = Vec::new();
            ladder().write_tables(&mut text, &Layout::new(comfy_table::presets::UTF8_BORDERS_ONLY, width)).unwrap();
            String::from_utf8(text).unwrap()
        };
        for width in [80, 100, 160] {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            for part in ["unroll8_complete_const", "right", "83.50 us", "GB/s", "of peak", "vs first", "2.00 x"] {
                assert!(text.contains(part), "{part} is not in: {text}");
            }
            assert_eq!(text.contains("Left out to fit"), width < 160, "{text}");
        }
        for part in ["of copy", "vs previous", "rating", "no bank conflicts"] {
            assert!(shown(None).contains(part), "{part}");
        }
    }
}
