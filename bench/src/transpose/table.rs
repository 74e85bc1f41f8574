//! The table of `bench transpose` for many shapes.

use std::io::{self, Write};

use comfy_table::Cell;
use serde::Serialize;

use super::case::Case;
use crate::cells::{bandwidth, csv_field, or_dash, right, time, times, verdict};
use crate::device::Device;
use crate::measure::Timing;
use crate::number::counted;
use crate::options::{Format, Output};
use crate::outcome::chain;
use crate::peers::{Called, calls_of};
use crate::plot::{self, Bar, Bars, Chart};
use crate::table::{Columns, Layout};

/// A measured case.
#[derive(Debug, Serialize)]
pub struct Row {
    pub shape: String,
    /// The shape and the operation, for tables.
    #[serde(skip)]
    name: String,
    pub kind: String,
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
    #[serde(flatten)]
    pub peers: PeerTimes,
}

/// The times of the peers that have a case, and their calls.
#[derive(Debug, Default, Serialize)]
pub struct PeerTimes {
    pub geam_call: Option<String>,
    pub geam_us: Option<f64>,
    pub cutensor_call: Option<String>,
    pub cutensor_us: Option<f64>,
    pub pytorch_call: Option<String>,
    pub pytorch_us: Option<f64>,
}

impl PeerTimes {
    pub fn set_geam(&mut self, measured: Option<Called<Timing>>) {
        (self.geam_call, self.geam_us) = Called::split(measured.map(|called| called.map(Timing::microseconds)));
    }

    pub fn set_cutensor(&mut self, measured: Option<Called<Timing>>) {
        (self.cutensor_call, self.cutensor_us) = Called::split(measured.map(|called| called.map(Timing::microseconds)));
    }

    pub fn set_pytorch(&mut self, measured: Option<Called<f64>>) {
        (self.pytorch_call, self.pytorch_us) = Called::split(measured);
    }
}

impl Row {
    pub fn new(case: &Case, wrong: Option<String>, timing: Timing, copy: Option<Timing>, peers: PeerTimes) -> Self {
        let median_us = timing.microseconds();
        let bytes = 2 * case.input.len() * case.size;
        Self {
            correct: Some(wrong.is_none()),
            wrong,
            median_us: Some(median_us),
            gigabytes_per_second: Some(bytes as f64 / median_us.max(1e-3) / 1e3),
            copy_us: copy.map(Timing::microseconds),
            peers,
            ..Self::of(case)
        }
    }

    /// A case without a result, and the reason.
    pub fn without_result(case: &Case, error: &anyhow::Error) -> Self {
        Self { error: Some(chain(error)), ..Self::of(case) }
    }

    /// A row that has only the case.
    fn of(case: &Case) -> Self {
        Self {
            shape: case.shape(),
            name: case.shape_and_operation(),
            kind: case.name(),
            size: case.size,
            correct: None,
            wrong: None,
            error: None,
            median_us: None,
            gigabytes_per_second: None,
            copy_us: None,
            peers: PeerTimes::default(),
        }
    }

    /// A peer's time divided by warpfold's.
    fn times(&self, other: Option<f64>) -> Option<f64> {
        Some(other? / self.median_us?)
    }

    /// The fastest peer's time divided by warpfold's.
    fn times_best(&self) -> Option<f64> {
        let PeerTimes { geam_us, cutensor_us, pytorch_us, .. } = self.peers;
        [geam_us, cutensor_us, pytorch_us].into_iter().filter_map(|peer| self.times(peer)).reduce(f64::min)
    }
}

/// All cases.
#[derive(Debug, Serialize)]
pub struct Report {
    pub device: Device,
    /// The version of cuTENSOR that was measured.
    pub cutensor_version: Option<String>,
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
                name: format!("{} of {} B", row.name, row.size),
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
        if let Some(calls) = self.calls() {
            writeln!(out, "{}", layout.paragraph(&calls))?;
        }
        let rows = || self.rows.iter();
        let has = |value: fn(&Row) -> bool| rows().any(value);
        let of_copy = |row: &Row| or_dash(row.times(row.copy_us).map(|ratio| format!("{:.1} %", 100.0 * ratio)));
        let mut columns = Columns::default();
        columns.add(0, "shape", rows().map(|row| Cell::new(&row.name)));
        columns.add(0, "bytes", rows().map(|row| right(row.size)));
        columns.add(0, "result", rows().map(|row| verdict(row.correct)));
        columns.add(0, "time", rows().map(|row| or_dash(row.median_us.map(time))));
        columns.add(0, "GB/s", rows().map(|row| or_dash(row.gigabytes_per_second.map(bandwidth))));
        if has(|row| row.copy_us.is_some()) {
            columns.add(4, "copy", rows().map(|row| or_dash(row.copy_us.map(time))));
            columns.add(1, "of copy", rows().map(of_copy));
        }
        if has(|row| row.times_best().is_some()) {
            columns.add(2, "vs best", rows().map(|row| times(row.times_best())));
        }
        let mut add = |name, versus, peer: fn(&Row) -> Option<f64>| {
            if rows().any(|row| peer(row).is_some()) {
                columns.add(4, name, rows().map(|row| or_dash(peer(row).map(time))));
                columns.add(3, versus, rows().map(|row| times(row.times(peer(row)))));
            }
        };
        add("cuBLAS", "vs cuBLAS", |row| row.peers.geam_us);
        add("cuTENSOR", "vs cuTENSOR", |row| row.peers.cutensor_us);
        add("PyTorch", "vs PyTorch", |row| row.peers.pytorch_us);
        let table = columns.table(layout);
        writeln!(out, "{table}")?;
        for row in &self.rows {
            let messages = [("WRONG", &row.wrong), ("NO RESULT", &row.error)];
            for (what, message) in messages.iter().filter_map(|(what, message)| Some((what, message.as_ref()?))) {
                writeln!(out, "{what}: {} of {}: {message}", row.name, counted(row.size, "byte", "bytes"))?;
            }
        }
        layout.write_left_out(out)
    }

    /// The line that names each peer's calls.
    fn calls(&self) -> Option<String> {
        let of = |call: fn(&PeerTimes) -> &Option<String>| -> Vec<&str> {
            self.rows.iter().filter_map(|row| call(&row.peers).as_deref()).collect()
        };
        calls_of(&[
            ("cuBLAS", None, of(|peers| &peers.geam_call)),
            ("cuTENSOR", self.cutensor_version.as_deref(), of(|peers| &peers.cutensor_call)),
            ("PyTorch", None, of(|peers| &peers.pytorch_call)),
        ])
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "shape,kind,size,correct,median_us,gigabytes_per_second,copy_us,geam_us,cutensor_us,pytorch_us,geam_call,\
             cutensor_call,pytorch_call,error"
        )?;
        let number = |number: Option<f64>| number.map(|number| format!("{number:.3}")).unwrap_or_default();
        let call = |call: &Option<String>| csv_field(call.as_deref().unwrap_or_default()).into_owned();
        for row in &self.rows {
            writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                row.shape,
                csv_field(&row.kind),
                row.size,
                row.correct.map(|correct| correct.to_string()).unwrap_or_default(),
                number(row.median_us),
                number(row.gigabytes_per_second),
                number(row.copy_us),
                number(row.peers.geam_us),
                number(row.peers.cutensor_us),
                number(row.peers.pytorch_us),
                call(&row.peers.geam_call),
                call(&row.peers.cutensor_call),
                call(&row.peers.pytorch_call),
                csv_field(row.error.as_deref().unwrap_or_default())
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::kind::Kind;
    use super::*;
    use crate::device::h200;

    /// A row like one measured on a GPU, for a test that has none.
    fn report() -> Report {
        let timing = |us: u64| Timing { median: Duration::from_micros(us), fastest: Duration::from_micros(us) };
        let mut peers = PeerTimes::default();
        peers.set_geam(Some(Called::new("cublasSgeam", timing(200))));
        peers.set_cutensor(Some(Called::new("cutensorPermute", timing(150))));
        peers.set_pytorch(Some(Called::new("Tensor.copy_ of a permuted view", 400.0)));
        let input = warpfold::Layout::contiguous(&[8192, 8192]).unwrap();
        let case = Case::of_matrices(Kind::Transpose, input, 4).unwrap();
        let row = Row::new(&case, None, timing(120), Some(timing(110)), peers);
        Report { device: h200(), cutensor_version: Some("2.8.0".to_owned()), samples: 25, rows: vec![row] }
    }

    #[test]
    fn the_table_names_the_calls_and_fits() {
        let shown = |width: Option<usize>| {
            let mut text = Vec::new();
            report().write_table(&mut text, &Layout::new(comfy_table::presets::UTF8_BORDERS_ONLY, width)).unwrap();
            String::from_utf8(text).unwrap()
        };
        for width in [80, 100] {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            assert!(text.contains("vs best") && text.contains("1.25 x"), "{text}");
        }
        let calls = "Peers. cuBLAS: cublasSgeam; cuTENSOR 2.8.0: cutensorPermute; PyTorch: Tensor.copy_ of a \
                     permuted view.\n┌";
        for part in [calls, "vs cuTENSOR", "vs cuBLAS", "1.67 x"] {
            assert!(shown(None).contains(part), "`{part}` is not in: {}", shown(None));
        }
    }

    #[test]
    fn csv_and_json_have_the_calls() {
        let mut text = Vec::new();
        report().write_csv(&mut text).unwrap();
        let mut reader = csv::Reader::from_reader(&text[..]);
        let header = reader.headers().unwrap().clone();
        let record = reader.records().next().unwrap().unwrap();
        let row = &serde_json::to_value(report()).unwrap()["rows"][0];
        for (name, value) in [("cutensor_call", "cutensorPermute"), ("geam_call", "cublasSgeam")] {
            let place = header.iter().position(|field| field == name).unwrap();
            assert_eq!((&record[place], row[name].as_str()), (value, Some(value)));
        }
    }
}
