//! `bench calls`: what a call costs on the host, for a short input, beside PyTorch's calls.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use warpfold::ops::Sum;
use warpfold::{Error, Gpu};

use crate::cells::{csv_field, or_dash, times};
use crate::device::Device;
use crate::effect::{DEVICE, Mode, SHOWN};
use crate::options::{Format, Opened, Output, count, refuse_unused};
use crate::outcome::{Outcome, finish};
use crate::pytorch::PyTorch;
use crate::table::{Columns, Layout};

#[derive(Debug, Args)]
pub struct CallArguments {
    /// The number of elements of the input: `1000` or `2^10`
    #[arg(long, value_parser = count, default_value = "2^10")]
    pub n: usize,
    /// Also times PyTorch, if it is installed. FOLDER is the folder `peers` of the sources
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl CallArguments {
    pub fn modes() -> Vec<Mode> {
        vec![Mode::of_command(
            "`bench calls` times calls on the host",
            vec![&["n", "peers"], DEVICE, SHOWN, &["samples"]],
        )]
    }
}

/// A call, and the one of PyTorch that does the same.
#[derive(Clone, Copy, Debug)]
enum Call {
    Sum,
    SumBesideWork,
    Reduce,
    Start,
    Zeroed,
    Upload,
    Download,
}

impl Call {
    const ALL: [Self; 7] =
        [Self::Sum, Self::SumBesideWork, Self::Reduce, Self::Start, Self::Zeroed, Self::Upload, Self::Download];

    /// The call, its name for `peers/pytorch.py`, and PyTorch's call.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Sum => ["gpu.sum(&x)", "sum-item", "x.sum().item()"],
            Self::SumBesideWork => ["gpu.sum(&x), another stream is busy", "sum-item-busy", "x.sum().item()"],
            Self::Reduce => ["gpu.reduce(Sum, &x, 0)", "sum", "x.sum()"],
            Self::Start => ["reducer.start(&x, &mut y)", "sum-out", "torch.sum(x, 0, out=y)"],
            Self::Zeroed => ["gpu.zeroed(n)", "zeros", "torch.zeros(n)"],
            Self::Upload => ["gpu.upload(&numbers)", "upload", "numbers.cuda()"],
            Self::Download => ["gpu.download(&one)", "item", "y.item()"],
        }
    }

    /// The wall time of a call, in microseconds.
    fn time(self, gpu: &Gpu, n: usize, repeats: u32) -> Result<f64, Error> {
        let numbers = vec![1.0_f32; n];
        let (x, layout) = (gpu.upload(&numbers)?, warpfold::Layout::contiguous(&[n])?);
        match self {
            Self::Sum => mean_of(gpu, repeats, || gpu.sum(&x).map(drop)),
            Self::SumBesideWork => {
                // Sums of 512 MiB, for longer than all repeats take.
                let other = gpu.fork()?;
                let len = if gpu.is_cuda() { 1 << 27 } else { 1 << 12 };
                let long = other.zeroed::<f32>(len)?;
                let mut reducer = other.reducer(Sum, &warpfold::Layout::contiguous(&[len])?, 0)?;
                let mut y = other.zeroed::<f32>(1)?;
                other.synchronize()?;
                let repeats = repeats.min(100);
                for _ in 0..repeats {
                    reducer.start(&long, &mut y)?;
                }
                let time = mean_of(gpu, repeats, || gpu.sum(&x).map(drop));
                other.synchronize()?;
                time
            }
            Self::Reduce => mean_of(gpu, repeats, || gpu.reduce(Sum, &x, 0).map(drop)),
            Self::Start => {
                let (mut reducer, mut y) = (gpu.reducer(Sum, &layout, 0)?, gpu.zeroed::<f32>(1)?);
                mean_of(gpu, repeats, || reducer.start(&x, &mut y))
            }
            Self::Zeroed => mean_of(gpu, repeats, || gpu.zeroed::<f32>(n).map(drop)),
            Self::Upload => mean_of(gpu, repeats, || gpu.upload(&numbers).map(drop)),
            Self::Download => {
                let one = gpu.zeroed::<f32>(1)?;
                mean_of(gpu, repeats, || gpu.download(&one).map(drop))
            }
        }
    }
}

/// The mean wall time of `repeats` calls in microseconds, after a few that warm up. The work that they have started and
/// not waited for is done before and after, and does not count.
fn mean_of(gpu: &Gpu, repeats: u32, mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    for _ in 0..repeats.min(3) {
        call()?;
    }
    gpu.synchronize()?;
    let start = Instant::now();
    for _ in 0..repeats {
        call()?;
    }
    let elapsed: Duration = start.elapsed();
    gpu.synchronize()?;
    Ok(elapsed.as_secs_f64() * 1e6 / f64::from(repeats))
}

/// A row of the report.
#[derive(Debug, Serialize)]
struct Row {
    call: &'static str,
    wall_us: f64,
    pytorch_call: &'static str,
    pytorch_us: Option<f64>,
}

#[derive(Serialize)]
struct Report {
    device: Device,
    elements: usize,
    samples: u32,
    rows: Vec<Row>,
}

pub fn run(gpu: &Opened, output: &Output, arguments: &CallArguments) -> anyhow::Result<Outcome> {
    let folder = arguments.peers.as_deref();
    let peers_unused = [("--peers", folder.is_some() && !gpu.is_cuda())];
    refuse_unused(&peers_unused, "PyTorch needs a CUDA device, and this run uses the executor")?;
    let mut pytorch = folder.and_then(PyTorch::find);
    let (samples, repeats) = (output.samples.unwrap_or(if gpu.is_cuda() { 15 } else { 1 }), repeats_of(gpu));
    let mut rows = Vec::new();
    for call in Call::ALL {
        let [name, question, pytorch_call] = call.names();
        let mut of_samples =
            (0..samples).map(|_| call.time(gpu, arguments.n, repeats)).collect::<Result<Vec<_>, _>>()?;
        of_samples.sort_by(f64::total_cmp);
        let question = json!({ "op": "call", "call": question, "n": arguments.n });
        let pytorch_us = pytorch.as_mut().and_then(|pytorch| pytorch.time(&question)).map(|called| called.time);
        rows.push(Row { call: name, wall_us: of_samples[of_samples.len() / 2], pytorch_call, pytorch_us });
    }
    let report = Report { device: Device::of(gpu)?, elements: arguments.n, samples, rows };
    Ok(finish(|out| report.write(out, output), true, output, Vec::new))
}

/// Calls of a sample: fewer than the driver queues, so that none waits for another's work.
fn repeats_of(gpu: &Gpu) -> u32 {
    if gpu.is_cuda() { 500 } else { 3 }
}

impl Report {
    fn write(&self, out: &mut impl Write, output: &Output) -> io::Result<()> {
        match output.format {
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => {
                writeln!(out, "call,elements,wall_us,pytorch_call,pytorch_us")?;
                self.rows.iter().try_for_each(|Row { call, wall_us, pytorch_call, pytorch_us }| {
                    let pytorch_us = pytorch_us.map_or_else(String::new, |us| format!("{us:.3}"));
                    let (call, pytorch_call) = (csv_field(call), csv_field(pytorch_call));
                    writeln!(out, "{call},{},{wall_us:.3},{pytorch_call},{pytorch_us}", self.elements)
                })
            }
            Format::Table | Format::Markdown => {
                writeln!(out, "{}", self.device.headline())?;
                writeln!(out, "\nThe wall time of calls with {} f32, in microseconds", self.elements)?;
                let layout = Layout::of(output);
                let (rows, mut columns) = (|| self.rows.iter(), Columns::default());
                let microseconds = |us: Option<f64>| or_dash(us.map(|us| format!("{us:.2}")));
                columns
                    .add(0, "call", rows().map(|row| row.call.into()))
                    .add(0, "warpfold", rows().map(|row| microseconds(Some(row.wall_us))))
                    .add(1, "PyTorch's call", rows().map(|row| row.pytorch_call.into()))
                    .add(0, "PyTorch", rows().map(|row| microseconds(row.pytorch_us)))
                    .add(0, "ratio", rows().map(|row| times(row.pytorch_us.map(|us| us / row.wall_us))));
                writeln!(out, "{}", columns.table(&layout))?;
                layout.write_left_out(out)
            }
        }
    }
}
