//! `bench transpose` over shapes and element sizes, beside a copy, cuBLAS and PyTorch.

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;

use clap::Args;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use serde::Serialize;
use warpfold::{Buffer, Gpu, Plain, Transposition};

use super::peers::Peers;
use super::table::{Report, Row};
use crate::cli::{Output, count};
use crate::interrupt;
use crate::measure::{Plan, progress};
use crate::plot;
use crate::report::{Device, finish};

/// What is measured, where it is more than one matrix of f32.
#[derive(Debug, Args)]
pub struct SweepArguments {
    /// Shapes, joined by commas: `4096x4096`, or `64x1024x2048` for 64 matrices
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["input", "output", "rung", "rows", "cols"])]
    pub shape: Vec<Shape>,
    /// Bytes of an element, joined by commas: 1, 2, 4, 8, 16 [default: 4]
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["input", "output", "rung", "rows", "cols"], value_parser = clap::builder::PossibleValuesParser::new(["1", "2", "4", "8", "16"]))]
    pub size: Vec<String>,
    /// Everything that `docs/benchmarks` has a table of
    #[arg(long, conflicts_with_all = ["shape", "size", "input", "output", "rung", "rows", "cols"])]
    pub all: bool,
    /// Also times cuBLAS and PyTorch, as far as this folder (`peers` of the source, after its build.sh) and this machine
    /// have them
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["input", "output", "rung"])]
    pub peers: Option<std::path::PathBuf>,
}

impl SweepArguments {
    /// Whether anything of it was asked for.
    pub fn is_given(&self) -> bool {
        self.all || self.peers.is_some() || !self.shape.is_empty() || !self.size.is_empty()
    }
}

/// Matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    pub batch: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Shape {
    const fn of(rows: usize, columns: usize) -> Self {
        Self { batch: 1, rows, columns }
    }

    pub fn elements(&self) -> usize {
        self.batch * self.rows * self.columns
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, rows, columns } = self;
        if *batch == 1 { write!(f, "{rows} x {columns}") } else { write!(f, "{batch} x {rows} x {columns}") }
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split('x').map(count).collect::<Result<Vec<_>, _>>()?;
        let (batch, rows, columns) = match sides[..] {
            [rows, columns] => (1, rows, columns),
            [batch, rows, columns] => (batch, rows, columns),
            _ => return Err("a shape is ROWSxCOLUMNS, or COUNTxROWSxCOLUMNS".to_owned()),
        };
        // The largest element has 16 bytes.
        let bytes = sides.iter().try_fold(32_usize, |bytes, &side| bytes.checked_mul(side));
        match bytes {
            None => Err("too large for this machine".to_owned()),
            Some(0) => Err("no side is 0".to_owned()),
            Some(_) => Ok(Self { batch, rows, columns }),
        }
    }
}

/// A shape and an element's size.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub shape: Shape,
    pub size: usize,
}

fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [1, 2, 4, 8, 16] {
        let squares = [256, 1024, 4096, 8192, 16384].map(|side| Shape::of(side, side));
        let others = [
            Shape::of(8191, 8193),
            Shape::of(5000, 30000),
            Shape::of(30000, 5000),
            Shape { batch: 64, rows: 1024, columns: 2048 },
            Shape::of(1_000_003, 127),
            Shape::of(1 << 24, 16),
            Shape::of(16, 1 << 24),
            Shape::of(3, 1_000_033),
        ];
        cases.extend(squares.into_iter().chain(others).map(|shape| Case { shape, size }));
        if size <= 4 {
            cases.push(Case { shape: Shape::of(32768, 32768), size });
        }
    }
    cases
}

pub fn run(gpu: &Gpu, output: &Output, arguments: &SweepArguments) -> anyhow::Result<bool> {
    let plan = Plan::new(gpu, output)?;
    let cases = if arguments.all { all() } else { asked_for(gpu, arguments) };
    let folder: Option<&Path> = arguments.peers.as_deref();
    let mut peers = folder.map_or_else(Peers::default, |folder| Peers::find(gpu, folder));
    let bar = progress(cases.len());
    let mut rows = Vec::new();
    for case in cases {
        if interrupt::is_pending() {
            break;
        }
        let measured = match case.size {
            1 => measure::<u8>(gpu, &plan, &mut peers, &case)?,
            2 => measure::<u16>(gpu, &plan, &mut peers, &case)?,
            4 => measure::<u32>(gpu, &plan, &mut peers, &case)?,
            8 => measure::<u64>(gpu, &plan, &mut peers, &case)?,
            _ => measure::<[u64; 2]>(gpu, &plan, &mut peers, &case)?,
        };
        rows.push(measured);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = Report { device: Device::of(gpu)?, rows };
    if let Some(file) = &output.plot {
        plot::draw(&[report.chart()], file)?;
    }
    finish(report.write(&mut io::stdout().lock(), output.format))?;
    if interrupt::is_pending() {
        anyhow::bail!("interrupted: what was measured before is above");
    }
    Ok(report.is_correct())
}

fn asked_for(gpu: &Gpu, arguments: &SweepArguments) -> Vec<Case> {
    let usual = if gpu.is_cuda() { Shape::of(8192, 8192) } else { Shape::of(1024, 1024) };
    let shapes = if arguments.shape.is_empty() { vec![usual] } else { arguments.shape.clone() };
    let sizes: Vec<usize> = arguments.size.iter().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![4] } else { sizes };
    sizes.iter().flat_map(|&size| shapes.iter().map(move |&shape| Case { shape, size })).collect()
}

/// Random bits.
fn random<T: Plain + Default>(len: usize) -> Vec<T> {
    // Enough that no row or column is like its neighbour; the rest is copies of it, each begun at another place.
    const PERIOD: usize = (1 << 20) + 7;
    let mut bytes = vec![0_u8; len.min(PERIOD) * size_of::<T>()];
    SmallRng::from_os_rng().fill_bytes(&mut bytes);
    let mut elements: Vec<T> = bytes
        .chunks_exact(size_of::<T>())
        .map(|chunk| {
            let mut pair = [0_u8; 16];
            pair[..chunk.len()].copy_from_slice(chunk);
            let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
            T::from_pair([word(&pair[..8]), word(&pair[8..])])
        })
        .collect();
    while elements.len() < len {
        let more = elements.len().min(len - elements.len());
        elements.extend_from_within(..more);
    }
    elements
}

/// The first element that is not where it should be.
fn first_wrong<T: PartialEq>(shape: &Shape, input: &[T], output: &[T]) -> Option<String> {
    const TILE: usize = 64;
    let Shape { batch, rows, columns } = *shape;
    let each = rows * columns;
    for matrix in 0..batch {
        let (from, to) = (&input[matrix * each..][..each], &output[matrix * each..][..each]);
        // Tile by tile, since a row of the one is a column of the other.
        for top in (0..rows).step_by(TILE) {
            for left in (0..columns).step_by(TILE) {
                for row in top..rows.min(top + TILE) {
                    for column in left..columns.min(left + TILE) {
                        if from[row * columns + column] != to[column * rows + row] {
                            return Some(format!(
                                "the element of row {row}, column {column} is not where it should be"
                            ));
                        }
                    }
                }
            }
        }
    }
    None
}

fn measure<T: Plain + Default + PartialEq>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
) -> anyhow::Result<Row> {
    let Shape { batch, rows, columns } = case.shape;
    let len = case.shape.elements();
    let elements = random::<T>(len);
    let mut inputs: Vec<Buffer<T>> = vec![gpu.upload(&elements)?];
    for _ in 1..plan.rotation(2 * len * size_of::<T>()) {
        let mut copy = gpu.zeroed(len)?;
        gpu.copy(&inputs[0], &mut copy)?;
        inputs.push(copy);
    }
    let mut result = gpu.zeroed::<T>(len)?;
    let shape = Transposition::new(rows, columns).batch(batch);
    let _range = plan.range("transpose");
    let mut start = |i: usize| gpu.transpose_views(shape, &inputs[i % inputs.len()], &mut result);
    let timing = match plan.first(gpu, || start(0))? {
        first @ Some(_) => plan.time_after(gpu, first, start)?,
        None => plan.time_recorded(gpu, start)?,
    };
    let wrong = first_wrong(&case.shape, &elements, &gpu.download(&result)?);
    drop(elements);
    let copy = if gpu.is_cuda() {
        // In a graph a long copy takes longer than in a stream, and a short one less: the better of the two is the bound.
        let mut copy = |i: usize| gpu.copy(&inputs[i % inputs.len()], &mut result);
        let (recorded, streamed) = (plan.time_recorded(gpu, &mut copy)?, plan.time(gpu, &mut copy)?);
        Some(if recorded.median < streamed.median { recorded } else { streamed })
    } else {
        None
    };
    let geam = peers.geam(gpu, plan, case, &inputs, &mut result)?;
    drop((inputs, result));
    let pytorch = peers.pytorch(case)?;
    Ok(Row::new(case, wrong, timing, copy, geam, pytorch))
}

impl Case {
    pub fn question(&self) -> serde_json::Value {
        let Shape { batch, rows, columns } = self.shape;
        serde_json::json!({ "op": "transpose", "size": self.size, "batch": batch, "rows": rows, "columns": columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written() {
        let shape = |text: &str| text.parse::<Shape>().unwrap();
        assert_eq!(shape("3x5"), Shape::of(3, 5));
        assert_eq!(shape("2^3x4x5").to_string(), "8 x 4 x 5");
        for wrong in ["", "3", "3x", "3x0", "1x2x3x4", "2^40x2^40", "axb"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_element_is_found() {
        let shape = Shape { batch: 2, rows: 2, columns: 3 };
        let input: Vec<u8> = (0..12).collect();
        let mut output = vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
        assert_eq!(first_wrong(&shape, &input, &output), None);
        output.swap(10, 11);
        assert!(first_wrong(&shape, &input, &output).unwrap().contains("row 0, column 2"));
    }
}
