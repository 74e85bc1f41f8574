//! The cases of `bench reduce`: each is an operator, a type and a shape.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::extent::Extent;
use super::file::FileArguments;
use super::operators::Operator;
use super::shapes::Shapes;
use crate::effect::Mode;
use crate::element::ElementType;
use crate::exact::Kind;

/// The arguments of `bench reduce`.
#[derive(Debug, Args)]
pub struct ReduceArguments {
    /// Reduces the array in this NumPy file (.npy, of any type, in C or Fortran order) instead of random numbers, and
    /// prints the results; `-` is standard input. NumPy's bool is read as u8, so its sum counts, and its minimum is 0
    /// or 1. NumPy has no bf16: for a file of bf16, give --dtype bf16
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileArguments,
    /// Operators, joined by commas [default: sum]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub op: Vec<Operator>,
    /// Element types, joined by commas [default: f32, or i32 for operators on integers]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub dtype: Vec<ElementType>,
    /// Shapes, joined by commas: `2^28`, `64x3x224x224` (up to 32 axes), `2^10..2^30` (lengths in steps of 4), or
    /// `2^20x256:skewed` (2^20 segments by offsets, of 256 elements on average, with lengths by a power law) [default:
    /// 2^28 on a GPU, 2^20 in the executor]
    #[arg(long, value_delimiter = ',')]
    pub shape: Vec<Shapes>,
    /// The number of elements before the first that is reduced: 1 gives the worst alignment
    #[arg(long, default_value_t = 0)]
    pub offset: usize,
    /// Kinds of data, joined by commas, for exact operators on floats; --peers then times CUB alone. The kinds:
    /// `ordinary` (magnitudes from 1/16 to 16), `wide` (the middle three eighths of all exponents, so that sums of
    /// squares are finite), `250-exponents` (250 exponents around that of 1), `subnormal`, `cancelling` (wide numbers
    /// followed by their negations in reverse order, except for one ordinary number in eight), `ascending` and
    /// `descending` (by magnitude), `scales` (another scale after each 4,096 elements), `largest` (the two largest
    /// exponents), `extremes` (alternately the largest power of two and the smallest number), `nans` (one element in
    /// ten), `one-large`, `one-infinity`, `one-nan` (one such element among ordinary numbers) [default: random whole
    /// numbers from 1 to 16]
    #[arg(long, value_delimiter = ',')]
    pub data: Vec<Kind>,
    /// All cases of the tables in `docs/benchmarks`
    #[arg(long)]
    pub all: bool,
    /// The cases of these tables of `docs/benchmarks`, joined by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub table: Vec<TableName>,
    /// Only the first N cases of `--all` or `--table`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Also times CUB, cuBLAS, cuTENSOR and PyTorch, each by its fastest call, if they are installed. FOLDER is the
    /// folder `peers` of the sources, whose build.sh builds the libraries with the first three
    #[arg(long, value_name = "FOLDER")]
    pub peers: Option<PathBuf>,
}

impl ReduceArguments {
    /// The options that have an effect.
    pub fn modes(&self) -> Vec<Mode> {
        const OF_FILE: &[&str] = &["input", "axis", "output", "keep-dims", "force", "memory", "op", "dtype"];
        const OF_CASES: &[&str] = &["op", "dtype", "shape", "axis", "offset", "data", "peers", "all", "table", "limit"];
        let mut modes = vec![Mode::by("input", self.input.is_some(), OF_FILE, OF_CASES)];
        modes.extend(self.all.then(|| Mode::by("all", true, &["all", "limit", "peers"], &[])));
        modes.extend((!self.table.is_empty()).then(|| Mode::by("table", true, &["table", "limit", "peers"], &[])));
        let is_table = self.all || !self.table.is_empty();
        modes.extend((!is_table).then(|| Mode::because("it counts the cases of `--all` or `--table`", &["limit"])));
        modes.extend((!self.data.is_empty()).then(|| Mode::with("data", &["offset"])));
        modes.extend(self.file.modes());
        modes
    }
}

/// The name of a value on the command line.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub operator: Operator,
    pub dtype: ElementType,
    pub extent: Extent,
    pub offset: usize,
    /// The kind of the elements, if it is not the operator's own ([`Operator::data`]).
    pub data: Option<Kind>,
}

impl Case {
    /// A case with the operator's own kind of elements, and no offset.
    fn new(operator: Operator, dtype: ElementType, extent: Extent) -> Self {
        Self { operator, dtype, extent, offset: 0, data: None }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, dtype, extent, data, .. } = self;
        write!(f, "{} of {dtype}, {extent}", name_of(operator))?;
        data.map_or(Ok(()), |data| write!(f, ", {data} data"))
    }
}

/// The cases of one table.
pub struct Table {
    pub title: &'static str,
    pub cases: Vec<Case>,
}

/// A table of `docs/benchmarks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// Sums of whole inputs: f32 of 2^10 to 2^30 elements, the other types of 2^20, 2^24 and 2^28
    Sums,
    /// Pairwise sums of whole inputs and of rows
    Pairwise,
    /// Other operators over whole inputs
    Operators,
    /// A result for each row
    Rows,
    /// A result for each column
    Columns,
    /// Sums of segments by offsets, their lengths by a power law
    Segments,
    /// Exact sums of data other than whole numbers
    Data,
}

/// Matrices: rows and columns.
const MATRICES: [(usize, usize); 8] = [
    (1024, 1024),
    (4096, 4096),
    (16384, 16384),
    (1 << 20, 256),
    (256, 1 << 20),
    (1 << 24, 16),
    (16, 1 << 24),
    (1_000_003, 127),
];

/// Those of [`MATRICES`] that are also measured for other operators and types than sums of f32.
const FEW_MATRICES: [(usize, usize); 4] = [(1024, 1024), (4096, 4096), (1 << 20, 256), (1 << 24, 16)];

/// The number of segments, and their mean length.
const SEGMENTS: [(usize, usize); 7] = [
    (1024, 1024),
    (1 << 14, 1 << 14),
    (1 << 20, 256),
    (256, 1 << 20),
    (1 << 24, 16),
    (10_000_000, 4),
    (1_000_003, 127),
];

/// What is reduced of a matrix with these rows and columns.
type OfMatrix = fn(usize, usize) -> Extent;

impl TableName {
    /// The table's cases. On an H100, `./run.sh tables` measures them in a minute, with peers.
    pub fn table(self) -> Table {
        use ElementType::{Bf16, F16, F32, F64, I8};
        use Operator::{ArgMax, Dot, Mean, Min, Norm, PairwiseSum, Product, Sum, SumOfSquares};
        let title = match self {
            Self::Sums => "Sums of whole inputs",
            Self::Pairwise => "Pairwise sums of whole inputs and of rows",
            Self::Operators => "Other operators over whole inputs",
            Self::Rows => "A result for each row",
            Self::Columns => "A result for each column",
            Self::Segments => "Sums of segments by offsets, their lengths by a power law",
            Self::Data => "Exact sums of other data",
        };
        let all = |operator, dtype, log: u32| Case::new(operator, dtype, Extent::all(1 << log));
        let over = |operator, dtype, each: OfMatrix, sides: &[(usize, usize)]| {
            let case = |&(rows, columns): &_| Case::new(operator, dtype, each(rows, columns));
            sides.iter().map(case).collect::<Vec<_>>()
        };
        let matrices = |each| {
            let sums = [over(Sum, F32, each, &MATRICES), over(Sum, F64, each, &FEW_MATRICES)];
            let others = [over(Norm, F32, each, &FEW_MATRICES), over(ArgMax, F32, each, &FEW_MATRICES)];
            sums.into_iter().chain(others).flatten().collect()
        };
        let cases = match self {
            Self::Sums => {
                let others = || ElementType::value_variants().iter().filter(|&&dtype| dtype != F32);
                let f32s = (10..=30).step_by(2).map(|log| all(Sum, F32, log));
                let of_others = others().flat_map(|&dtype| [20, 24, 28].map(|log| all(Sum, dtype, log)));
                let unaligned = [F32, F16, I8].map(|dtype| Case { offset: 1, ..all(Sum, dtype, 28) });
                f32s.chain(of_others).chain(unaligned).collect()
            }
            Self::Pairwise => {
                let f32s = (10..=30).step_by(2).map(|log| all(PairwiseSum, F32, log));
                let others =
                    [10, 20, 28].into_iter().flat_map(|log| [F64, F16, Bf16].map(|dtype| all(PairwiseSum, dtype, log)));
                let rows = over(PairwiseSum, F32, Extent::rows, &MATRICES);
                let few = [F64, F16, Bf16].map(|dtype| over(PairwiseSum, dtype, Extent::rows, &FEW_MATRICES));
                f32s.chain(others).chain(rows).chain(few.into_iter().flatten()).collect()
            }
            Self::Operators => {
                let operators = [Mean, Norm, SumOfSquares, Dot, Min, ArgMax, Product];
                let f32s = operators.into_iter().flat_map(|operator| [10, 20, 28].map(|log| all(operator, F32, log)));
                let others =
                    operators.into_iter().flat_map(|operator| [F64, F16].map(|dtype| all(operator, dtype, 24)));
                f32s.chain(others).collect()
            }
            Self::Rows => matrices(Extent::rows),
            Self::Columns => matrices(Extent::columns),
            Self::Segments => over(Sum, F32, Extent::segments, &SEGMENTS),
            Self::Data => {
                let sum = |dtype, extent, kind| Case { data: Some(kind), ..Case::new(Sum, dtype, extent) };
                let exponents = [20, 60, 250, 600, 2000].map(Kind::Exponents).into_iter();
                let kinds = Kind::NAMED.into_iter().map(|(kind, _)| kind).chain(exponents);
                let all = kinds.flat_map(|kind| {
                    let has = move |dtype: &ElementType| match (kind, dtype) {
                        (Kind::Exponents(count), F64) => count <= 2000,
                        (Kind::Exponents(count), F32 | Bf16) => count <= 250,
                        // All of f16 is within one window.
                        (kind, F16) => Kind::HASHED.contains(&kind),
                        _ => true,
                    };
                    let dtypes = [F32, F64, F16, Bf16].into_iter().filter(has);
                    dtypes.map(move |dtype| sum(dtype, Extent::all(1 << 26), kind))
                });
                let rows = [(1 << 22, 16), (1 << 18, 256), (1 << 13, 1 << 13)].map(|(n, len)| Extent::rows(n, len));
                let others = [Extent::segments(1 << 22, 16), Extent::columns(1 << 13, 1 << 13)];
                let of_shapes = rows.into_iter().chain(others).flat_map(|extent| {
                    let kinds = [Kind::Ordinary, Kind::Wide].into_iter();
                    kinds.flat_map(move |kind| [F32, F64, Bf16].map(move |dtype| sum(dtype, extent, kind)))
                });
                all.chain(of_shapes).collect()
            }
        };
        Table { title, cases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_all_cases_of_the_tables() {
        for name in TableName::value_variants() {
            let Table { title, cases } = name.table();
            assert!(!cases.is_empty(), "{title}");
            for case in &cases {
                assert!(case.operator.takes(case.dtype) && case.operator.takes_data(case.dtype, case.data), "{case}");
            }
            let mut names: Vec<_> = cases.iter().map(|case| format!("{case} {}", case.offset)).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), cases.len(), "{title}");
        }
    }
}
