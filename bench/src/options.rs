//! The options that several commands share.

use std::ops::Deref;
use std::str::FromStr;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use warpfold::ladder::BLOCKS;
use warpfold::{Error, Gpu, Schedule, SimtOptions};

use crate::element::ElementType;
use crate::plot::PlotFile;

#[derive(Debug, Args)]
pub struct DeviceChoice {
    /// The device: `cuda:N`, or `simt` for the executor [default: the first CUDA device, else the executor]
    #[arg(long, global = true, value_name = "cuda:N|simt")]
    pub device: Option<DeviceName>,
    /// Checks every launch for races and other errors, in the executor
    #[arg(long, global = true)]
    pub check: bool,
    /// Runs lanes in a random order, in the executor; the seed determines the order
    #[arg(long, global = true, value_name = "seed=N", value_parser = schedule)]
    pub schedule: Option<Schedule>,
}

/// The value of `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    Cuda(u32),
    Simt,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "simt" => Ok(Self::Simt),
            "cuda" => Ok(Self::Cuda(0)),
            _ => name
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| "expected `simt`, or `cuda:N` with the number N of a device, from 0 on".to_owned()),
        }
    }
}

/// An open device. It dereferences to the library's.
pub struct Opened {
    gpu: Gpu,
    /// How the executor runs kernels; `None` on a CUDA device.
    pub executor: Option<SimtOptions>,
}

impl Deref for Opened {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl DeviceChoice {
    /// Opens the device.
    pub fn open(&self) -> anyhow::Result<Opened> {
        let cuda = |gpu| Opened { gpu, executor: None };
        if self.check || self.schedule.is_some() {
            return self.executor();
        }
        match self.device {
            Some(DeviceName::Simt) => self.executor(),
            Some(DeviceName::Cuda(ordinal)) => Ok(cuda(Gpu::new(ordinal)?)),
            None => match Gpu::new(0) {
                Err(Error::NoDriver(_) | Error::NoDevice { .. }) => self.executor(),
                other => Ok(cuda(other?)),
            },
        }
    }

    /// Opens the executor, for commands that only it supports.
    pub fn executor(&self) -> anyhow::Result<Opened> {
        if let Some(DeviceName::Cuda(ordinal)) = self.device {
            anyhow::bail!(
                "only the executor checks kernels, counts accesses and orders lanes: leave out \
                 `--device cuda:{ordinal}`"
            );
        }
        let options = SimtOptions { checks: self.check, schedule: self.schedule.unwrap_or_default() };
        Ok(Opened { gpu: Gpu::simt_with(options), executor: Some(options) })
    }
}

#[derive(Debug, Args)]
pub struct Output {
    /// The format of the results
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Shows all columns of a table, not only those that fit in the terminal's width (without a terminal, 100
    /// characters)
    #[arg(long, global = true)]
    pub wide: bool,
    /// How many times each kernel is timed; the median is shown. A kernel that takes more than half a second is timed
    /// once [default: 25 on a GPU, 1 in the executor]
    #[arg(long, global = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub samples: Option<u32>,
    /// Also draws the bandwidths (of ladders in the executor, the counters) to this file, as SVG or PNG; an existing
    /// file is replaced
    #[arg(
        long,
        global = true,
        value_name = "FILE.svg|FILE.png",
        value_parser = OsStringValueParser::new().try_map(PlotFile::try_from),
    )]
    pub plot: Option<PlotFile>,
    /// Opens an NVTX range for each measured kernel, for a profiler (nsys, or ncu with its own --nvtx)
    #[arg(long, global = true)]
    pub nvtx: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An aligned table
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header
    Csv,
    /// A table for a Markdown document
    Markdown,
}

/// The input of a reduction.
#[derive(Debug, Args)]
pub struct Numbers {
    /// The number of elements: `1000000` or `2^24` [default: 2^24 on a GPU, 2^19 in the executor]
    #[arg(long, value_parser = count)]
    pub n: Option<usize>,
    /// The element type; the ladders have f32, f64, i32 and i64 [default: f32]
    #[arg(long, value_enum)]
    pub dtype: Option<ElementType>,
    /// The block size in threads, for kernels without a fixed one: 64, 128, 256, 512 or 1024 [default: 256]
    #[arg(long, value_parser = block)]
    pub block: Option<usize>,
}

impl Numbers {
    /// The number of elements: the requested one, or a default for which the device takes little time.
    pub fn n(&self, gpu: &Gpu) -> usize {
        self.n.unwrap_or(if gpu.is_cuda() { 1 << 24 } else { 1 << 19 })
    }

    pub fn dtype(&self) -> ElementType {
        self.dtype.unwrap_or(ElementType::F32)
    }

    pub fn block(&self) -> usize {
        self.block.unwrap_or(256)
    }
}

/// What to do if a matrix of [`Sides`] is too large.
pub const FEWER_SIDES: &str = "choose fewer --rows or --cols";

/// The matrix of a ladder of transposes.
#[derive(Debug, Default, Args)]
pub struct Sides {
    /// Rows of the matrix [default: 4096 on a GPU, 1024 in the executor]
    #[arg(long, value_parser = count)]
    pub rows: Option<usize>,
    /// Columns of the matrix [default: 4096 on a GPU, 1024 in the executor]
    #[arg(long, value_parser = count)]
    pub cols: Option<usize>,
}

impl Sides {
    /// Rows and columns: the requested ones, or a default for which the device takes little time.
    pub fn get(&self, gpu: &Gpu) -> (usize, usize) {
        let side = if gpu.is_cuda() { 4096 } else { 1024 };
        (self.rows.unwrap_or(side), self.cols.unwrap_or(side))
    }
}

/// Refuses options that would have no effect: the error names the first of `options` that was given.
pub fn refuse_unused(options: &[(&str, bool)], why: &str) -> anyhow::Result<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => anyhow::bail!("{option} has no effect here: {why}; leave it out"),
        None => Ok(()),
    }
}

/// The sizes that a command uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uses {
    pub numbers: bool,
    pub dtype: bool,
    pub block: bool,
    pub sides: bool,
}

impl Uses {
    /// Refuses sizes that no kernel uses.
    pub fn check(self, numbers: &Numbers, sides: &Sides) -> anyhow::Result<()> {
        let Numbers { n, dtype, block } = numbers;
        let Sides { rows, cols } = sides;
        refuse_unused(&[("--n", n.is_some() && !self.numbers)], "none of the kernels takes a vector of numbers")?;
        refuse_unused(&[("--dtype", dtype.is_some() && !self.dtype)], "none of the kernels has a choice of type")?;
        refuse_unused(
            &[("--block", block.is_some() && !self.block)],
            "none of the kernels has a choice of block size",
        )?;
        let sides = [("--rows", rows.is_some() && !self.sides), ("--cols", cols.is_some() && !self.sides)];
        refuse_unused(&sides, "none of the kernels takes a matrix")
    }
}

/// A block size for which there are instances of kernels.
fn block(text: &str) -> Result<usize, String> {
    let found = text.parse().ok().filter(|block| BLOCKS.contains(block));
    found.ok_or_else(|| {
        format!(
            "no kernel has blocks of `{text}` threads: choose from {}",
            BLOCKS.map(|block| block.to_string()).join(", ")
        )
    })
}

/// A schedule of lanes: `seed=7`.
fn schedule(text: &str) -> Result<Schedule, String> {
    let seed = text.strip_prefix("seed=").and_then(|seed| seed.parse().ok());
    seed.map(Schedule::Seed).ok_or_else(|| "expected `seed=N`, with a whole number N from 0 on".to_owned())
}

/// A count: `4096`, `4_096` or `2^12`.
pub fn count(text: &str) -> Result<usize, String> {
    let digits = text.replace('_', "");
    let value = match digits.split_once('^') {
        Some((base, exponent)) => match (base.parse::<usize>(), exponent.parse::<u32>()) {
            (Ok(base), Ok(exponent)) => Some(base.checked_pow(exponent).ok_or("too large for this machine")?),
            _ => None,
        },
        None if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| "too large for this machine")?)
        }
        None => None,
    };
    value.ok_or_else(|| "expected a whole number from 0 on, such as 1000000 or 2^24".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count("4096"), Ok(4096));
        assert_eq!(count("1_000"), Ok(1000));
        assert_eq!(count("2^24"), Ok(1 << 24));
        for wrong in ["", "-1", "1.5", "2^", "^3", "2^64", "99999999999999999999", "x"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schedules() {
        assert_eq!(schedule("seed=7"), Ok(Schedule::Seed(7)));
        for wrong in ["7", "seed=", "seed=x", "seed=-1"] {
            assert!(schedule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn devices() {
        assert_eq!("simt".parse(), Ok(DeviceName::Simt));
        assert_eq!("cuda:3".parse(), Ok(DeviceName::Cuda(3)));
        for wrong in ["cuda:", "cuda:x", "cuda:-1", "gpu"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
