//! The output of `bench reduce`.

use std::io::{self, Write};

use comfy_table::{Cell, Table};
use plotters::style::RGBColor;
use serde::Serialize;

use super::cases::{Case, name_of};
use super::extent::Extent;
use crate::cells::{bandwidth, csv_field, or_dash, time, times, verdict};
use crate::device::Device;
use crate::exact::Kind;
use crate::measure::Timing;
use crate::number::Results;
use crate::options::{Format, Output};
use crate::outcome::chain;
use crate::peers::{Called, calls_of};
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
    #[serde(flatten)]
    pub peers: PeerTimes,
}

/// The times of the peers that have a case, back to back unless the name says otherwise, and their calls.
#[derive(Debug, Default, Serialize)]
pub struct PeerTimes {
    pub cub_call: Option<String>,
    pub cub_back_to_back_us: Option<f64>,
    pub cub_alone_us: Option<f64>,
    /// CUB's sum with the same result on every GPU.
    pub cub_gpu_to_gpu_us: Option<f64>,
    pub cublas_call: Option<String>,
    pub cublas_us: Option<f64>,
    pub cutensor_call: Option<String>,
    pub cutensor_us: Option<f64>,
    pub pytorch_call: Option<String>,
    pub pytorch_us: Option<f64>,
}

impl PeerTimes {
    pub fn set_cub(&mut self, measured: Option<Called<(Timing, Timing)>>) {
        let (call, times) = Called::split(measured);
        self.cub_call = call;
        self.cub_back_to_back_us = times.map(|(back_to_back, _)| back_to_back.microseconds());
        self.cub_alone_us = times.map(|(_, alone)| alone.microseconds());
    }

    pub fn set_cublas(&mut self, measured: Option<Called<Timing>>) {
        (self.cublas_call, self.cublas_us) = Called::split(measured.map(|called| called.map(Timing::microseconds)));
    }

    pub fn set_cutensor(&mut self, measured: Option<Called<Timing>>) {
        (self.cutensor_call, self.cutensor_us) = Called::split(measured.map(|called| called.map(Timing::microseconds)));
    }

    pub fn set_pytorch(&mut self, measured: Option<Called<f64>>) {
        (self.pytorch_call, self.pytorch_us) = Called::split(measured);
    }
}

impl Row {
    pub fn new(
        case: &Case,
        bytes: usize,
        wrong: Option<String>,
        (back_to_back, alone): (Timing, Option<Timing>),
        peers: PeerTimes,
    ) -> Self {
        let back_to_back_us = back_to_back.microseconds();
        Self {
            bytes: Some(bytes),
            correct: Some(wrong.is_none()),
            wrong,
            back_to_back_us: Some(back_to_back_us),
            alone_us: alone.map(Timing::microseconds),
            gigabytes_per_second: Some(bytes as f64 / back_to_back_us.max(1e-3) / 1e3),
            peers,
            ..Self::of(case)
        }
    }

    /// A row for a case without a result, and the reason.
    pub fn without_result(case: &Case, error: &anyhow::Error) -> Self {
        Self { error: Some(chain(error)), ..Self::of(case) }
    }

    /// A row that has only the case.
    fn of(case: &Case) -> Self {
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
            error: None,
            back_to_back_us: None,
            alone_us: None,
            gigabytes_per_second: None,
            peers: PeerTimes::default(),
        }
    }

    /// A peer's time divided by warpfold's.
    fn times(&self, other: Option<f64>) -> Option<f64> {
        Some(other? / self.back_to_back_us?)
    }

    fn times_alone(&self) -> Option<f64> {
        Some(self.peers.cub_alone_us? / self.alone_us?)
    }

    /// The fastest peer's time divided by warpfold's.
    fn times_best(&self) -> Option<f64> {
        let PeerTimes { cub_back_to_back_us, cublas_us, cutensor_us, pytorch_us, .. } = self.peers;
        let peers = [cub_back_to_back_us, cublas_us, cutensor_us, pytorch_us];
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
const CUTENSOR_COLOR: RGBColor = RGBColor(130, 90, 170);
const PYTORCH_COLOR: RGBColor = RGBColor(200, 80, 60);

impl Section {
    /// The horizontal axis of a chart of lines, if the rows differ only in their length, or only in the number of
    /// exponents of their elements.
    fn sweep(&self) -> Option<Horizontal> {
        let first = self.rows.first()?;
        let is_one =
            |row: &Row| row.extent.results() == 1 && (&row.operator, &row.dtype) == (&first.operator, &first.dtype);
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
    /// The version of cuTENSOR that was measured.
    pub cutensor_version: Option<String>,
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
                    _ => row.extent.elements(),
                };
                let point = |row: &Row| Some((place(row), row.bytes? as f64 / time(row)? / 1e3));
                Line { name, color, points: section.rows.iter().filter_map(point).collect() }
            };
            let lines = [
                line("warpfold", WARPFOLD_COLOR, |row| row.back_to_back_us),
                line("CUB", CUB_COLOR, |row| row.peers.cub_back_to_back_us),
                line("CUB, gpu_to_gpu", GPU_TO_GPU_COLOR, |row| row.peers.cub_gpu_to_gpu_us),
                line("cuTENSOR", CUTENSOR_COLOR, |row| row.peers.cutensor_us),
                line("PyTorch", PYTORCH_COLOR, |row| row.peers.pytorch_us),
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
            writeln!(out, "\n{}", section.title)?;
            if let Some(calls) = self.calls(section) {
                writeln!(out, "{}", layout.paragraph(&calls))?;
            }
            writeln!(out, "{}", self.table(section, layout))?;
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
                ("CUB", mean(section, |row| row.times(row.peers.cub_back_to_back_us))),
                ("CUB alone", mean(section, Row::times_alone)),
                ("cuBLAS", mean(section, |row| row.times(row.peers.cublas_us))),
                ("cuTENSOR", mean(section, |row| row.times(row.peers.cutensor_us))),
                ("PyTorch", mean(section, |row| row.times(row.peers.pytorch_us))),
                ("the fastest of these", mean(section, Row::times_best)),
            ];
            for (peer, mean) in means.into_iter().filter_map(|(peer, mean)| Some((peer, mean?))) {
                writeln!(out, "Geometric mean compared with {peer}: {mean:.2} x")?;
            }
        }
        layout.write_left_out(out)
    }

    /// The line that names each peer's calls.
    fn calls(&self, section: &Section) -> Option<String> {
        let of = |call: fn(&PeerTimes) -> &Option<String>| -> Vec<&str> {
            section.rows.iter().filter_map(|row| call(&row.peers).as_deref()).collect()
        };
        calls_of(&[
            ("CUB", self.cub_version.as_deref(), of(|peers| &peers.cub_call)),
            ("cuBLAS", None, of(|peers| &peers.cublas_call)),
            ("cuTENSOR", self.cutensor_version.as_deref(), of(|peers| &peers.cutensor_call)),
            ("PyTorch", None, of(|peers| &peers.pytorch_call)),
        ])
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
        let is_gpu = has(|row| row.alone_us.is_some());
        if is_gpu {
            columns.add(1, "of peak", rows().map(|row| share(row, self.device.peak_gigabytes_per_second)));
        }
        if has(|row| row.times_best().is_some()) {
            columns.add(2, "vs best", rows().map(|row| times(row.times_best())));
        }
        if is_gpu {
            columns.add(4, "of read", rows().map(|row| share(row, self.read_gigabytes_per_second)));
            columns.add(4, "alone", rows().map(|row| or_dash(row.alone_us.map(time))));
        }
        if has(|row| row.peers.cub_back_to_back_us.is_some()) {
            columns.add(5, "CUB", rows().map(|row| or_dash(row.peers.cub_back_to_back_us.map(time))));
            columns.add(3, "vs CUB", rows().map(|row| times(row.times(row.peers.cub_back_to_back_us))));
            columns.add(6, "CUB alone", rows().map(|row| or_dash(row.peers.cub_alone_us.map(time))));
            columns.add(6, "vs CUB alone", rows().map(|row| times(row.times_alone())));
        }
        if has(|row| row.peers.cub_gpu_to_gpu_us.is_some()) {
            columns.add(5, "gpu_to_gpu", rows().map(|row| or_dash(row.peers.cub_gpu_to_gpu_us.map(time))));
        }
        let mut add = |name, versus, peer: fn(&Row) -> Option<f64>| {
            if rows().any(|row| peer(row).is_some()) {
                columns.add(5, name, rows().map(|row| or_dash(peer(row).map(time))));
                columns.add(3, versus, rows().map(|row| times(row.times(peer(row)))));
            }
        };
        add("cuBLAS", "vs cuBLAS", |row| row.peers.cublas_us);
        add("cuTENSOR", "vs cuTENSOR", |row| row.peers.cutensor_us);
        add("PyTorch", "vs PyTorch", |row| row.peers.pytorch_us);
        columns.table(layout)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "operator,type,shape,offset,data,bytes,correct,back_to_back_us,alone_us,gigabytes_per_second,\
             cub_back_to_back_us,cub_alone_us,cub_gpu_to_gpu_us,cublas_us,cutensor_us,pytorch_us,cub_call,\
             cublas_call,cutensor_call,pytorch_call,error,result"
        )?;
        let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
        let call = |call: &Option<String>| csv_field(call.as_deref().unwrap_or_default()).into_owned();
        for row in self.rows() {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
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
                number(row.peers.cub_back_to_back_us),
                number(row.peers.cub_alone_us),
                number(row.peers.cub_gpu_to_gpu_us),
                number(row.peers.cublas_us),
                number(row.peers.cutensor_us),
                number(row.peers.pytorch_us),
                call(&row.peers.cub_call),
                call(&row.peers.cublas_call),
                call(&row.peers.cutensor_call),
                call(&row.peers.pytorch_call),
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
    use std::time::Duration;

    use super::super::operators::Operator;
    use super::*;
    use crate::device::h200;
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

    /// Rows like those measured on a GPU, for a test that has none.
    fn rows_beside_peers() -> Report {
        let timing = |us: u64| Timing { median: Duration::from_micros(us), fastest: Duration::from_micros(us) };
        let extent = Extent::rows(1_000_003, 127);
        let row = |operator| {
            let mut peers = PeerTimes::default();
            peers.set_cub(Some(Called::new(
                "DeviceSegmentedReduce::Reduce by segment size",
                (timing(220), timing(230)),
            )));
            peers.set_cublas(Some(Called::new("cublasSgemv with a vector of ones", timing(170))));
            peers.set_cutensor(Some(Called::new("cutensorReduce", timing(300))));
            peers.set_pytorch(Some(Called::new("torch.sum", 400.0)));
            let case = Case { operator, dtype: ElementType::F32, extent, offset: 0, data: None };
            Row::new(&case, 1 << 29, None, (timing(100), Some(timing(110))), peers)
        };
        let rows = vec![row(Operator::Sum), row(Operator::SumOfSquares)];
        Report {
            device: h200(),
            read_gigabytes_per_second: Some(4700.0),
            cub_version: Some("3.6.0".to_owned()),
            cutensor_version: Some("2.8.0".to_owned()),
            samples: 25,
            sections: vec![Section { title: "A result for each row".to_owned(), rows }],
        }
    }

    #[test]
    fn the_table_names_the_calls_and_fits() {
        let shown = |width: Option<usize>| {
            let mut text = Vec::new();
            let layout = Layout::new(comfy_table::presets::UTF8_BORDERS_ONLY, width);
            rows_beside_peers().write_tables(&mut text, &layout).unwrap();
            String::from_utf8(text).unwrap()
        };
        for width in [90, 100, 120] {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.contains("Left out to fit"), "{text}");
        }
        let calls = "Peers. CUB 3.6.0: DeviceSegmentedReduce::Reduce by segment size; cuBLAS: cublasSgemv with a \
                     vector of ones; cuTENSOR 2.8.0: cutensorReduce; PyTorch: torch.sum.\n┌";
        let text = shown(None);
        for part in [calls, "vs best", "1.70 x", "vs CUB", "2.20 x", "vs cuTENSOR", "3.00 x", "compared with cuTENSOR"]
        {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        assert!(shown(Some(100)).contains("vs best"), "{}", shown(Some(100)));
    }

    #[test]
    fn csv_and_json_have_the_calls() {
        let report = rows_beside_peers();
        let mut text = Vec::new();
        report.write_csv(&mut text).unwrap();
        let mut reader = csv::Reader::from_reader(&text[..]);
        let header = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let json = serde_json::to_value(&report).unwrap();
        let row = &json["sections"][0]["rows"][0];
        for (name, value) in [
            ("cutensor_us", "300.000"),
            ("cublas_call", "cublasSgemv with a vector of ones"),
            ("cub_call", "DeviceSegmentedReduce::Reduce by segment size"),
            ("pytorch_call", "torch.sum"),
        ] {
            let place = header.iter().position(|field| field == name).unwrap();
            assert_eq!(&record[place], value);
            assert!(row[name] == value || row[name].as_f64() == value.parse().ok(), "{row}");
        }
    }
}
