//! `bench transpose` for several shapes and element sizes, compared with a copy, cuBLAS, cuTENSOR and PyTorch.

use std::path::Path;

use clap::{Args, ValueEnum};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use warpfold::num_complex::Complex64;
use warpfold::{Buffer, Error, Gpu, Plain, ScaledElement, Scaling};

use super::case::Case;
use super::kind::{FACTOR, Kind};
use super::peers::Peers;
use super::shape::Shape;
use super::table::{PeerTimes, Report, Row};
use crate::device::Device;
use crate::effect::Mode;
use crate::measure::{Plan, progress};
use crate::memory::{self, Need, bytes_of};
use crate::options::{Opened, Output, refuse_unused};
use crate::outcome::{Missing, Outcome, finish, without};

/// The options of a run over shapes, element sizes and operations.
#[derive(Debug, Args)]
pub struct SweepArguments {
    /// Shapes, joined by commas: `4096x4096`, or `64x1024x2048` for 64 matrices
    #[arg(long, value_delimiter = ',')]
    pub shape: Vec<Shape>,
    /// Element sizes in bytes, joined by commas: 1, 2, 4, 8, 16 [default: 4]
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(["1", "2", "4", "8", "16"]),
    )]
    pub size: Vec<String>,
    /// Operations on the matrices, joined by commas [default: transpose]
    #[arg(long, value_delimiter = ',', value_enum)]
    pub kind: Vec<Kind>,
    /// All cases of the tables in `docs/benchmarks`
    #[arg(long)]
    pub all: bool,
    /// The cases of these tables of `docs/benchmarks`, joined by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub table: Vec<TableName>,
    /// Only the first N cases of `--all` or `--table`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Also times cuBLAS, cuTENSOR and PyTorch, each by its fastest call, if they are installed. FOLDER is the folder
    /// `peers` of the sources, whose build.sh builds the libraries with the first two
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<std::path::PathBuf>,
}

impl SweepArguments {
    /// Whether any of the options was given.
    pub fn is_given(&self) -> bool {
        self.mode().is_some()
    }

    /// The options that have an effect with the first of these options that was given.
    pub fn mode(&self) -> Option<Mode> {
        const OF_CASES: &[&str] = &["shape", "size", "kind", "peers"];
        [
            ("all", self.all, &["all", "limit", "peers"][..]),
            ("table", !self.table.is_empty(), &["table", "limit", "peers"]),
            ("shape", !self.shape.is_empty(), OF_CASES),
            ("size", !self.size.is_empty(), OF_CASES),
            ("kind", !self.kind.is_empty(), OF_CASES),
            ("peers", self.peers.is_some(), OF_CASES),
            ("limit", self.limit.is_some(), OF_CASES),
        ]
        .into_iter()
        .find_map(|(option, is_given, taken)| is_given.then(|| Mode::by(option, true, taken, &[])))
    }
}

/// A table of `docs/benchmarks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// Transposes, including scaled ones and ones in place
    Transposes,
    /// Permutations of three axes
    Permutations,
}

impl TableName {
    /// The table's cases. On an H100, `./run.sh tables` measures them in a minute, with peers.
    fn cases(self) -> Vec<Case> {
        let of =
            |kind, size, shapes: &[Shape]| shapes.iter().map(|&shape| Case { kind, shape, size }).collect::<Vec<_>>();
        let squares = [256, 1024, 8192].map(|side| Shape::of(side, side));
        let unaligned = Shape::of(8191, 8193);
        let others = [
            Shape::of(5000, 30000),
            Shape { batch: 64, rows: 1024, columns: 2048 },
            Shape::of(1_000_003, 127),
            Shape::of(1 << 24, 16),
            Shape::of(3, 1_000_033),
        ];
        match self {
            Self::Transposes => {
                let mut cases = Vec::new();
                for size in [1, 2, 4, 8, 16] {
                    cases.extend(of(Kind::Transpose, size, &squares));
                    cases.extend(of(Kind::Transpose, size, &[unaligned]));
                    // With elements of 16 bytes, most of these would have 2 to 4 GiB.
                    if size < 16 {
                        cases.extend(of(Kind::Transpose, size, &others));
                    }
                }
                [4, 8, 16].iter().for_each(|&size| cases.extend(of(Kind::Scaled, size, &[unaligned])));
                let in_place = [Shape::of(4096, 4096), Shape::of(8191, 8191)];
                [1, 4, 16].iter().for_each(|&size| cases.extend(of(Kind::InPlace, size, &in_place)));
                cases
            }
            Self::Permutations => {
                let shapes =
                    [Shape { batch: 256, rows: 512, columns: 384 }, Shape { batch: 8192, rows: 512, columns: 3 }];
                let of_kind = |kind| [1, 2, 4, 8].map(|size| of(kind, size, &shapes)).concat();
                [Kind::Permute102, Kind::Permute210].map(of_kind).concat()
            }
        }
    }
}

pub fn run(gpu: &Opened, output: &Output, arguments: &SweepArguments) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let tables = if arguments.all { TableName::value_variants() } else { &arguments.table };
    let mut cases = match tables {
        [] => requested_cases(gpu, arguments)?,
        tables => tables.iter().flat_map(|table| table.cases()).collect(),
    };
    cases.truncate(arguments.limit.map_or(usize::MAX, |limit| limit as usize));
    let folder: Option<&Path> = arguments.peers.as_deref();
    let peers_unused = [("--peers", folder.is_some() && !gpu.is_cuda())];
    refuse_unused(&peers_unused, "cuBLAS, cuTENSOR and PyTorch need a CUDA device, and this run uses the executor")?;
    let mut peers = folder.map_or_else(Peers::default, Peers::find);
    let bar = progress(cases.len());
    let (device, cutensor_version) = (Device::of(gpu)?, peers.cutensor_version());
    let mut report = Report { device, cutensor_version, samples: plan.samples, rows: Vec::new() };
    let mut missing = Missing::default();
    for case in cases {
        if !missing.can_continue() {
            break;
        }
        report.rows.push(measure_case(gpu, &plan, &mut peers, &case).unwrap_or_else(|error| {
            let row = Row::without_result(&case, &error);
            missing.push(case.to_string(), error);
            row
        }));
        bar.inc(1);
    }
    bar.finish_and_clear();
    if !report.has_results() && !missing.is_empty() {
        return Ok(missing.outcome());
    }
    let mut outcome = finish(|out| report.write(out, output), report.is_correct(), output, || vec![report.chart()]);
    outcome.join(missing.counted(report.rows.len()));
    Ok(outcome)
}

fn measure_case(gpu: &Gpu, plan: &Plan, peers: &mut Peers, case: &Case) -> anyhow::Result<Row> {
    match (case.kind, case.size) {
        (Kind::Scaled, 4) => measure_scaled(gpu, plan, peers, case, FACTOR as f32),
        (Kind::Scaled, 8) => measure_scaled(gpu, plan, peers, case, FACTOR),
        (Kind::Scaled, 16) => measure_scaled(gpu, plan, peers, case, Complex64::new(FACTOR, 0.0)),
        (Kind::Scaled, size) => anyhow::bail!("no number of {size} bytes is scaled: choose 4, 8 or 16"),
        (_, 1) => measure_plain::<u8>(gpu, plan, peers, case),
        (_, 2) => measure_plain::<u16>(gpu, plan, peers, case),
        (_, 4) => measure_plain::<u32>(gpu, plan, peers, case),
        (_, 8) => measure_plain::<u64>(gpu, plan, peers, case),
        (_, 16) => measure_plain::<[u64; 2]>(gpu, plan, peers, case),
        (_, size) => anyhow::bail!("there is no case of elements of {size} bytes"),
    }
}

fn requested_cases(gpu: &Gpu, arguments: &SweepArguments) -> anyhow::Result<Vec<Case>> {
    let usual = if gpu.is_cuda() { Shape::of(8192, 8192) } else { Shape::of(1024, 1024) };
    let shapes = if arguments.shape.is_empty() { vec![usual] } else { arguments.shape.clone() };
    let sizes: Vec<usize> = arguments.size.iter().filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![4] } else { sizes };
    let kinds = if arguments.kind.is_empty() { vec![Kind::Transpose] } else { arguments.kind.clone() };
    let mut cases = Vec::new();
    for &kind in &kinds {
        for &size in &sizes {
            for &shape in &shapes {
                kind.fits(&shape, size).map_err(anyhow::Error::msg)?;
                cases.push(Case { kind, shape, size });
            }
        }
    }
    Ok(cases)
}

/// Random elements.
fn random<T: Plain>(kind: Kind, len: usize) -> anyhow::Result<Vec<T>> {
    // The elements repeat after a period that is long enough, and odd, so that no row or column repeats its neighbour.
    const PERIOD: usize = (1 << 20) + 7;
    let mut source = SmallRng::from_os_rng();
    let mut elements = memory::list(len)?;
    elements.extend((0..len.min(PERIOD)).map(|_| kind.random_element::<T>([source.random(), source.random()])));
    while elements.len() < len {
        let more = elements.len().min(len - elements.len());
        elements.extend_from_within(..more);
    }
    Ok(elements)
}

/// A message about the first element that is wrong or in the wrong place, if there is one.
fn first_wrong<T: Plain>(case: &Case, input: &[T], output: &[T]) -> Option<String> {
    const TILE: usize = 64;
    let Shape { batch, rows, columns } = case.shape;
    let sides = [batch, rows, columns];
    let axes = case.kind.axes().map(isize::unsigned_abs);
    // For each of the input's axes, its stride in the output.
    let mut strides = [0; 3];
    let mut stride = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = stride;
        stride *= sides[axis];
    }
    // The comparison goes by panels of tiles, because a row of one matrix is a column of the other. Each core compares
    // one panel at a time.
    let panels = rows.div_ceil(TILE);
    (0..batch * panels).into_par_iter().find_map_first(|panel| {
        let (matrix, top) = (panel / panels, panel % panels * TILE);
        let from = &input[matrix * rows * columns..][..rows * columns];
        for left in (0..columns).step_by(TILE) {
            for row in top..rows.min(top + TILE) {
                for column in left..columns.min(left + TILE) {
                    let to = matrix * strides[0] + row * strides[1] + column * strides[2];
                    let expected = case.kind.expected_element(from[row * columns + column]);
                    if expected.to_pair() != output[to].to_pair() {
                        return Some(format!("the element at row {row}, column {column} is missing or wrong"));
                    }
                }
            }
        }
        None
    })
}

fn measure_plain<T: Plain>(gpu: &Gpu, plan: &Plan, peers: &mut Peers, case: &Case) -> anyhow::Result<Row> {
    let Case { kind, shape, .. } = *case;
    measure::<T>(gpu, plan, peers, case, |input, output| kind.start(gpu, &shape, input, output))
}

fn measure_scaled<T: ScaledElement + Plain>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
    factor: T,
) -> anyhow::Result<Row> {
    measure::<T>(gpu, plan, peers, case, |input, output| {
        let (from, to) = case.kind.arrays(&case.shape, input, output)?;
        gpu.copy_scaled(Scaling::by(factor), from, to)
    })
}

fn measure<T: Plain>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
    work: impl Fn(&mut Buffer<T>, &mut Buffer<T>) -> Result<(), Error>,
) -> anyhow::Result<Row> {
    let len = case.shape.elements();
    let each = bytes_of::<T>(len);
    // Host memory: the input and the result.
    let need = Need { device: (plan.copies(2 * each) + 1) * each, host: 2 * each };
    need.check(gpu, "the case", "choose a smaller --shape")?;
    let elements = random::<T>(case.kind, len)?;
    let mut inputs: Vec<Buffer<T>> = vec![gpu.upload(&elements)?];
    for _ in 1..plan.rotation(2 * len * size_of::<T>()) {
        let mut copy = gpu.zeroed(len)?;
        gpu.copy_array(&inputs[0], &mut copy)?;
        inputs.push(copy);
    }
    let mut result = gpu.zeroed::<T>(len)?;
    let _range = plan.range("transpose");
    let count = inputs.len();
    // An operation in place is checked after its first run, the others after the last.
    let mut wrong = None;
    let is_in_place = case.kind == Kind::InPlace;
    if is_in_place {
        work(&mut inputs[0], &mut result)?;
        wrong = first_wrong(case, &elements, &gpu.download(&inputs[0])?);
    }
    let mut start = |i: usize| work(&mut inputs[i % count], &mut result);
    let timing = match plan.first(gpu, &mut start)? {
        first @ Some(_) => plan.time_after(gpu, first, &mut start)?,
        None => plan.time_recorded(gpu, &mut start)?,
    };
    if !is_in_place {
        wrong = first_wrong(case, &elements, &gpu.download(&result)?);
    }
    drop(elements);
    let copy = if gpu.is_cuda() {
        // A long copy is faster in a stream, a short one in a graph. The faster of the two is the bound.
        let mut copy = |i: usize| gpu.copy_array(&inputs[i % inputs.len()], &mut result);
        let (recorded, streamed) = (plan.time_recorded(gpu, &mut copy)?, plan.time(gpu, &mut copy)?);
        Some(if recorded.median < streamed.median { recorded } else { streamed })
    } else {
        None
    };
    let addresses: Vec<u64> = inputs.iter().map(|input| input.view().device_address()).collect();
    let output = result.view().device_address();
    let mut peer_times = PeerTimes::default();
    let geam = peers.geam(gpu, plan, case, &addresses, output);
    peer_times.set_geam(geam.unwrap_or_else(|error| without("cuBLAS", case, &error)));
    let cutensor = peers.cutensor(gpu, plan, case, &addresses, output);
    peer_times.set_cutensor(cutensor.unwrap_or_else(|error| without("cuTENSOR", case, &error)));
    drop((inputs, result));
    peer_times.set_pytorch(peers.pytorch(case));
    Ok(Row::new(case, wrong, timing, copy, peer_times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cases_of_the_tables_are_possible() {
        for table in TableName::value_variants() {
            assert!(table.cases().iter().all(|case| case.kind.fits(&case.shape, case.size).is_ok()), "{table:?}");
        }
    }

    #[test]
    fn a_wrong_element_is_found() {
        let shape = Shape { batch: 2, rows: 2, columns: 3 };
        let case = |kind| Case { kind, shape, size: 1 };
        let input: Vec<u8> = (0..12).collect();
        let mut output = vec![0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11];
        assert_eq!(first_wrong(&case(Kind::Transpose), &input, &output), None);
        output.swap(10, 11);
        assert!(first_wrong(&case(Kind::Transpose), &input, &output).unwrap().contains("row 0, column 2"));
        let output = vec![0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11];
        assert_eq!(first_wrong(&case(Kind::Permute102), &input, &output), None);
        let output = vec![0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11];
        assert_eq!(first_wrong(&case(Kind::Permute210), &input, &output), None);
        assert!(first_wrong(&case(Kind::Permute102), &input, &output).is_some());
    }

    #[test]
    fn scaled_elements_are_exact() {
        let element: f64 = Kind::Scaled.random_element([7, 0]);
        assert_eq!(Kind::Scaled.expected_element(element), FACTOR * element);
        let element: f32 = Kind::Scaled.random_element([8, 0]);
        assert_eq!(Kind::Scaled.expected_element(element), FACTOR as f32 * element);
        assert!(Kind::Scaled.fits(&Shape::of(2, 3), 2).is_err() && Kind::InPlace.fits(&Shape::of(2, 3), 4).is_err());
    }
}
