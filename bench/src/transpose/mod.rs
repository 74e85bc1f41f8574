//! `bench transpose`: transposes and permutes arrays, random or from a file, of any shape and element size.

mod case;
mod kind;
mod measure;
mod peers;
mod rung;
mod sweep;
mod table;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use warpfold::Layout;

use case::Case;
use kind::Kind;
use sweep::TableName;

use crate::axes::{self, Permutation};
use crate::effect::Mode;
use crate::npy::{self, Array};
use crate::options::{Opened, Output};
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub struct TransposeArguments {
    /// Permutes the array in this NumPy file (.npy, of any type, in C or Fortran order) instead of random elements; `-`
    /// is standard input
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    /// Writes the result for --input to this NumPy file, with the type of the input
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Replaces the output file if it exists
    #[arg(long)]
    pub force: bool,
    /// The order of the axes: those of the input that become the result's, as in NumPy's `transpose`, as digits
    /// (`0231`) or joined by commas (`0,2,3,1`) [default: the last two change places]
    #[arg(long, value_name = "AXES", allow_hyphen_values = true)]
    pub permute: Option<Permutation>,
    /// Shapes, joined by commas: `4096x4096`, `64x3x224x224` (up to 32 axes) [default: 8192x8192 on a GPU, 1024x1024 in
    /// the executor]
    #[arg(long, value_delimiter = ',', value_parser = axes::layout)]
    pub shape: Vec<Layout>,
    /// Element sizes in bytes, joined by commas: 1, 2, 4, 8, 16 [default: 4]
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = clap::builder::PossibleValuesParser::new(["1", "2", "4", "8", "16"]),
    )]
    pub size: Vec<String>,
    /// Operations on the matrices along the last two axes, joined by commas [default: transpose]
    #[arg(long, value_delimiter = ',', value_enum)]
    pub kind: Vec<Kind>,
    /// Transposes a matrix by this rung of the ladder, which takes f32, instead of the library's kernel
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
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
    pub peers: Option<PathBuf>,
}

impl TransposeArguments {
    /// The options that have an effect.
    pub fn modes(&self) -> Vec<Mode> {
        const OF_RUNG: &[&str] = &["rung", "shape", "input", "output", "force"];
        const OF_FILE: &[&str] = &["input", "output", "force", "permute", "rung"];
        const OF_CASES: &[&str] = &["shape", "size", "kind", "permute", "rung", "peers", "all", "table", "limit"];
        let mut modes = vec![Mode::by("input", self.input.is_some(), OF_FILE, OF_CASES)];
        modes.extend(self.all.then(|| Mode::by("all", true, &["all", "limit", "peers"], &[])));
        modes.extend((!self.table.is_empty()).then(|| Mode::by("table", true, &["table", "limit", "peers"], &[])));
        modes.extend(self.rung.is_some().then(|| Mode::by("rung", true, OF_RUNG, &[])));
        modes.extend(self.permute.is_some().then(|| Mode::with("permute", &["kind"])));
        let is_table = self.all || !self.table.is_empty();
        modes.extend((!is_table).then(|| Mode::because("it counts the cases of `--all` or `--table`", &["limit"])));
        modes.extend(self.output.is_none().then(|| Mode::without("output", &["force"])));
        modes
    }

    /// The case of these options for an input, which messages name.
    fn case(&self, kind: Kind, input: Layout, size: usize, name: &str) -> anyhow::Result<Case> {
        match &self.permute {
            Some(Permutation(axes)) => {
                Case::permutation(input, axes, size).with_context(|| format!("--permute, for {name}"))
            }
            None => Case::of_matrices(kind, input, size).with_context(|| name.to_owned()),
        }
    }

    /// Writes the result, if the options name a file and it is right.
    fn write(&self, outcome: &mut Outcome, result: &Array, is_right: bool) {
        if let Some(file) = &self.output {
            npy::write_if_right(outcome, file, result, self.force, is_right);
        }
    }
}

pub fn run(gpu: &Opened, output: &Output, arguments: &TransposeArguments) -> anyhow::Result<Outcome> {
    if let Some(file) = &arguments.output {
        npy::check_writable(file, arguments.force)?;
    }
    match (&arguments.rung, &arguments.input) {
        (Some(rung), _) => rung::run(gpu, output, arguments, rung),
        (None, Some(file)) => sweep::run_file(gpu, output, arguments, file),
        (None, None) => sweep::run(gpu, output, arguments),
    }
}
