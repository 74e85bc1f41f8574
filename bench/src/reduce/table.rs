//! The output of `bench reduce`.

use std::io::{self, Write};

use comfy_table::{Cell, Table};
use plotters::style::RGBColor;
use serde::Serialize;

use super::cases::{Case, name_of};
use super::extent::{Axis, Extent};
use crate::cells::{bandwidth, csv_field, or_dash, time, times, verdict};
use crate::device::Device;
use crate::exact::Kind;
use crate::measure::Timing;
use crate::number::Results;
use crate::options::{Format, Output};
use crate::outcome::chain;
use crate::plot::{self, Bar, Bars, Chart, Horizontal, Line, Lines};
use crate::table::{Columns, Layout};

/// A measured case.
#[derive(Debug, Serialize)]
pub struct Row {
    pub operator: String,
    pub dtype: String,
    pub shape: String,
    #[serde(skip)]
    extent: Extent,
    pub offset: usize,
    /// The kind of the elements, if the command line names one.
    pub data: Option<Kind>,
    /// The size of the input. `None` without a result, because then the size may be unknown.
    pub bytes: Option<usize>,
    /// `None` without a result.
    pub correct: Option<bool>,
    pub wrong: Option<String>,
    /// The results, for a file's array.
    pub result: Option<Results>,
    /// The reason why there is no result.
    pub error: Option<String>,
    /// The time of a start, as the mean of many starts in one graph.
    pub back_to_back_us: Option<f64>,
    /// The time of a single start, between two events.
    pub alone_us: Option<f64>,
    pub gigabytes_per_second: Option<f64>,
    pub cub_back_to_back_us: Option<f64>,
    pub cub_alone_us: Option<f64>,
    /// CUB's sum with the same result on every GPU, back to back.
    pub cub_gpu_to_gpu_us: Option<f64>,
    /// The norm and the dot product of cuBLAS, back to back.
    pub cublas_us: Option<f64>,
    pub pytorch_us: Option<f64>,
}

/// The median.
pub fn microseconds(timing: Timing) -> f64 {
    timing.median.as_secs_f64() * 1e6
}

impl Row {
    pub fn new(
        case: &Case,
        bytes: usize,
        wrong: Option<String>,
        (back_to_back, alone): (Timing, Option<Timing>),
        cub: Option<(Timing, Timing)>,
        pytorch_us: Option<f64>,
    ) -> Self {
        let back_to_back_us = microseconds(back_to_back);
        Self {
            operator: name_of(&case.operator),
            dtype: case.dtype.to_string(),
            shape: case.extent.to_string(),
            extent: case.extent,
            offset: case.offset,
            data: case.data,
            bytes: Some(bytes),
            correct: Some(wrong.is_none()),
            wrong,
            result: None,
            error: None,
            back_to_back_us: Some(back_to_back_us),
            alone_us: alone.map(microseconds),
            gigabytes_per_second: Some(bytes as f64 / back_to_back_us.max(1e-3) / 1e3),
            cub_back_to_back_us: cub.map(|(back_to_back, _)| microseconds(back_to_back)),
            cub_alone_us: cub.map(|(_, alone)| microseconds(alone)),
            cub_gpu_to_gpu_us: None,
            cublas_us: None,
            pytorch_us,
        }
    }

    /// A row for a case without a result, and the reason.
    pub fn without_result(case: &Case, error: &anyhow::Error) -> Self {
        Self {
            operator: name_of(&case.operator),
            dtype: case.dtype.to_string(),
            shape: case.extent.to_string(),
            extent: case.extent,
            offset: case.offset,
            data: case.data,
            bytes: None,
            correct: None,
            wrong: None,
            result: None,
            error: Some(chain(error)),
            back_to_back_us: None,
            alone_us: None,
            gigabytes_per_second: None,
            cub_back_to_back_us: None,
            cub_alone_us: None,
            cub_gpu_to_gpu_us: None,
            cublas_us: None,
            pytorch_us: None,
        }
    }

    /// A peer's time divided by warpfold's.
    fn times(&self, other: Option<f64>) -> Option<f64> {
        Some(other? / self.back_to_back_us?)
    }

    fn times_alone(&self) -> Option<f64> {
        Some(self.cub_alone_us? / self.alone_us?)
    }

    /// The fastest peer's time divided by warpfold's.
    fn times_best(&self) -> Option<f64> {
        let peers = [self.cub_back_to_back_us, self.cublas_us, self.pytorch_us];
        peers.into_iter().filter_map(|peer| self.times(peer)).reduce(f64::min)
    }
}

/// Rows under a title.
#[derive(Debug, Serialize)]
pub struct Section {
    pub title: String,
    pub rows: Vec<Row>,
}

const WARPFOLD_COLOR: RGBColor = RGBColor(40, 90, 160);
const CUB_COLOR: RGBColor = RGBColor(90, 150, 60);
const GPU_TO_GPU_COLOR: RGBColor = RGBColor(190, 150, 40);
const PYTORCH_COLOR: RGBColor = RGBColor(200, 80, 60);

impl Section {
    /// The horizontal axis of a chart of lines, if the rows differ only in their length, or only in the number of
    /// exponents of their elements.
    fn sweep(&self) -> Option<Horizontal> {
        let first = self.rows.first()?;
        let is_one =
            |row: &Row| row.extent.axis == Axis::All && (&row.operator, &row.dtype) == (&first.operator, &first.dtype);
        if self.rows.len() == 1 || !self.rows.iter().all(is_one) {
            return None;
        }
        let is_of_exponents = |row: &Row| row.extent == first.extent && matches!(row.data, Some(Kind::Exponents(_)));
        if self.rows.iter().all(is_of_exponents) {
            return Some(Horizontal::Exponents);
        }
        self.rows.iter().all(|row| row.data == first.data).then_some(Horizontal::Elements)
    }
}

/// The whole output.
#[derive(Debug, Serialize)]
pub struct Report {
    pub device: Device,
    /// The bandwidth of a sum of 4 GiB, measured in the same run.
    pub read_gigabytes_per_second: Option<f64>,
    /// The version of CUB that was measured.
    pub cub_version: Option<String>,
    /// How many times each case was timed, if one run takes at most half a second.
    pub samples: u32,
    pub sections: Vec<Section>,
}

impl Report {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// Whether no result is wrong.
    pub fn is_correct(&self) -> bool {
        self.rows().all(|row| row.correct != Some(false))
    }

    pub fn has_results(&self) -> bool {
        self.rows().any(|row| row.correct.is_some())
    }

    pub fn cases(&self) -> usize {
        self.rows().count()
    }

    pub fn write(&self, out: &mut impl Write, output: &Output) -> io::Result<()> {
        match output.format {
            Format::Table | Format::Markdown => self.write_tables(out, &Layout::of(output)),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => self.write_csv(out),
        }
    }

    /// A chart for each section: lines for one operator over several lengths or numbers of exponents, else bars.
    pub fn charts(&self) -> Vec<Chart> {
        let bounds: Vec<_> = [
            ("theoretical peak", self.device.peak_gigabytes_per_second, plot::PEAK_COLOR),
            ("reading 4 GiB", self.read_gigabytes_per_second, plot::CEILING_COLOR),
        ]
        .into_iter()
        .filter_map(|(name, value, color)| Some((name, value?, color)))
        .collect();
        let of_section = |section: &Section| {
            let title = format!("{}, {}", section.title, self.device.name);
            let Some(horizontal) = section.sweep() else {
                let bar = |row: &Row| {
                    Some(Bar {
                        name: format!("{} {} {}", row.operator, row.dtype, row.shape),
                        value: row.gigabytes_per_second?,
                        correct: row.correct?,
                    })
                };
                let bars = section.rows.iter().filter_map(bar).collect();
                return Chart::Bars(Bars { title, quantity: "GB/s", bars, bounds: bounds.clone() });
            };
            let line = |name, color, time: fn(&Row) -> Option<f64>| {
                let place = |row: &Row| match row.data {
                    Some(Kind::Exponents(count)) => usize::from(count),
                    _ => row.extent.columns,
                };
                let point = |row: &Row| Some((place(row), row.bytes? as f64 / time(row)? / 1e3));
                Line { name, color, points: section.rows.iter().filter_map(point).collect() }
            };
            let lines = [
                line("warpfold", WARPFOLD_COLOR, |row| row.back_to_back_us),
                line("CUB", CUB_COLOR, |row| row.cub_back_to_back_us),
                line("CUB, gpu_to_gpu", GPU_TO_GPU_COLOR, |row| row.cub_gpu_to_gpu_us),
                line("PyTorch", PYTORCH_COLOR, |row| row.pytorch_us),
            ];
            let lines = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
            Chart::Lines(Lines { title, horizontal, lines, bounds: bounds.clone() })
        };
        self.sections.iter().map(of_section).collect()
    }

    fn write_tables(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(out, "{}", layout.paragraph(&self.device.headline()))?;
        if let Some(read) = self.read_gigabytes_per_second {
            writeln!(out, "A sum of 4 GiB of integers reads {read:.0} GB/s.")?;
        }
        for section in &self.sections {
            writeln!(out, "\n{}\n{}", section.title, self.table(section, layout))?;
            for Row { operator, dtype, shape, wrong, error, result, .. } in &section.rows {
                if let Some(result) = result {
                    writeln!(out, "{}", layout.paragraph(&format!("{operator} = {}", result.shown())))?;
                }
                let messages = [("WRONG", wrong), ("NO RESULT", error)];
                for (what, message) in messages.iter().filter_map(|(what, message)| Some((what, message.as_ref()?))) {
                    writeln!(out, "{what}: {operator} of {dtype}, {shape}: {message}")?;
                }
            }
            let means = [
                ("CUB", mean(section, |row| row.times(row.cub_back_to_back_us))),
                ("CUB alone", mean(section, Row::times_alone)),
                ("cuBLAS", mean(section, |row| row.times(row.cublas_us))),
                ("PyTorch", mean(section, |row| row.times(row.pytorch_us))),
                ("the fastest of these", mean(section, Row::times_best)),
            ];
            for (peer, mean) in means.into_iter().filter_map(|(peer, mean)| Some((peer, mean?))) {
                writeln!(out, "Geometric mean compared with {peer}: {mean:.2} x")?;
            }
        }
        layout.write_left_out(out)
    }

    fn table(&self, section: &Section, layout: &Layout) -> Table {
        let rows = || section.rows.iter();
        let has = |value: fn(&Row) -> bool| rows().any(value);
        let share = |row: &Row, whole: Option<f64>| {
            let share = |whole: f64| Some(100.0 * row.gigabytes_per_second? / whole);
            or_dash(whole.and_then(share).map(|share| format!("{share:.1} %")))
        };
        let mut columns = Columns::default();
        columns.add(0, "operator", rows().map(|row| Cell::new(&row.operator)));
        columns.add(0, "type", rows().map(|row| Cell::new(&row.dtype)));
        columns.add(0, "shape", rows().map(|row| Cell::new(&row.shape)));
        if has(|row| row.data.is_some()) {
            columns.add(
                0,
                "data",
                rows().map(|row| Cell::new(row.data.map_or("-".to_owned(), |data| data.to_string()))),
            );
        }
        columns.add(0, "result", rows().map(|row| verdict(row.correct)));
        columns.add(0, "time", rows().map(|row| or_dash(row.back_to_back_us.map(time))));
        columns.add(0, "GB/s", rows().map(|row| or_dash(row.gigabytes_per_second.map(bandwidth))));
        if has(|row| row.alone_us.is_some()) {
            columns.add(1, "of peak", rows().map(|row| share(row, self.device.peak_gigabytes_per_second)));
            columns.add(3, "of read", rows().map(|row| share(row, self.read_gigabytes_per_second)));
            columns.add(3, "alone", rows().map(|row| or_dash(row.alone_us.map(time))));
        }
        if has(|row| row.cub_back_to_back_us.is_some()) {
            columns.add(4, "CUB", rows().map(|row| or_dash(row.cub_back_to_back_us.map(time))));
            columns.add(2, "vs CUB", rows().map(|row| times(row.times(row.cub_back_to_back_us))));
            columns.add(5, "CUB alone", rows().map(|row| or_dash(row.cub_alone_us.map(time))));
            columns.add(5, "vs CUB alone", rows().map(|row| times(row.times_alone())));
        }
        if has(|row| row.cub_gpu_to_gpu_us.is_some()) {
            columns.add(4, "gpu_to_gpu", rows().map(|row| or_dash(row.cub_gpu_to_gpu_us.map(time))));
        }
        if has(|row| row.cublas_us.is_some()) {
            columns.add(4, "cuBLAS", rows().map(|row| or_dash(row.cublas_us.map(time))));
            columns.add(2, "vs cuBLAS", rows().map(|row| times(row.times(row.cublas_us))));
        }
        if has(|row| row.pytorch_us.is_some()) {
            columns.add(4, "PyTorch", rows().map(|row| or_dash(row.pytorch_us.map(time))));
            columns.add(2, "vs PyTorch", rows().map(|row| times(row.times(row.pytorch_us))));
        }
        columns.table(layout)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "operator,type,shape,offset,data,bytes,correct,back_to_back_us,alone_us,gigabytes_per_second,\
             cub_back_to_back_us,cub_alone_us,cub_gpu_to_gpu_us,cublas_us,pytorch_us,error,result"
        )?;
        let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
        for row in self.rows() {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                row.operator,
                row.dtype,
                row.shape,
                row.offset,
                row.data.map(|data| data.to_string()).unwrap_or_default(),
                row.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                row.correct.map(|correct| correct.to_string()).unwrap_or_default(),
                number(row.back_to_back_us),
                number(row.alone_us),
                number(row.gigabytes_per_second),
                number(row.cub_back_to_back_us),
                number(row.cub_alone_us),
                number(row.cub_gpu_to_gpu_us),
                number(row.cublas_us),
                number(row.pytorch_us),
                csv_field(row.error.as_deref().unwrap_or_default()),
                row.result.as_ref().map(Results::to_string).unwrap_or_default()
            )?;
        }
        Ok(())
    }
}

/// The geometric mean of a ratio over the rows that have it.
fn mean(section: &Section, ratio: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let logs: Vec<f64> = section.rows.iter().filter_map(ratio).map(f64::ln).collect();
    (logs.len() > 1).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::super::operators::Operator;
    use super::*;
    use crate::element::ElementType;

    #[test]
    fn rows_that_differ_in_one_number_are_drawn_as_lines() {
        let case = |len, data| {
            let (operator, dtype) = (Operator::Sum, ElementType::F32);
            Row::without_result(
                &Case { operator, dtype, extent: Extent::all(len), offset: 0, data },
                &anyhow::anyhow!("-"),
            )
        };
        let sweep = |rows| Section { title: String::new(), rows }.sweep();
        let exponents = |count| Some(Kind::Exponents(count));
        assert_eq!(sweep(vec![case(8, None), case(16, None)]), Some(Horizontal::Elements));
        assert_eq!(sweep(vec![case(8, exponents(2)), case(8, exponents(4))]), Some(Horizontal::Exponents));
        assert_eq!(sweep(vec![case(8, exponents(2)), case(16, exponents(4))]), None);
        assert_eq!(sweep(vec![case(8, Some(Kind::Wide)), case(8, Some(Kind::Nans))]), None);
        assert_eq!(sweep(vec![case(8, None)]), None);
    }
}
