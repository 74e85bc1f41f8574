//! `bench transpose`: transposes one matrix, random or from a file; or matrices of many shapes and element sizes.

mod case;
mod kind;
mod peers;
mod shape;
mod sweep;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::Args;
use warpfold::ladder::TransposeRung;
use warpfold::{Error, Gpu};

pub use sweep::SweepArguments;

use crate::data;
use crate::device::Device;
use crate::effect::{DEVICE, Mode, SHOWN, TIMED};
use crate::element::{ElementType, Number, with_type};
use crate::ladder::check_matrix;
use crate::measure::{Plan, Timing, copy_ceiling};
use crate::npy::{self, Array, Wanted};
use crate::number::counted;
use crate::options::{Opened, Output, Sides};
use crate::outcome::Outcome;
use crate::report::{Measured, Report, Role, Scale, Section};

#[derive(Debug, Args)]
pub struct TransposeArguments {
    /// Transposes the array in this NumPy file (.npy, of any type), which has two axes, or one with --rows and --cols;
    /// `-` is standard input
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    /// Writes the transpose to this NumPy file, with the type of the input
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Replaces the output file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub sides: Sides,
    /// Transposes by this rung of the ladder, which takes f32, instead of the library's kernel
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
    #[command(flatten)]
    pub sweep: SweepArguments,
}

impl TransposeArguments {
    /// The options that have an effect.
    pub fn modes(&self) -> Vec<Mode> {
        const OF_MATRIX: &[&str] = &["input", "output", "force", "rows", "cols", "rung"];
        let one = Mode::of_command("one matrix is transposed", vec![OF_MATRIX, DEVICE, SHOWN, TIMED]);
        let mut modes = vec![self.sweep.mode().unwrap_or(one)];
        modes.extend(self.output.is_none().then(|| Mode::without("output", &["force"])));
        modes
    }
}

pub fn run(gpu: &Opened, output: &Output, arguments: &TransposeArguments) -> anyhow::Result<Outcome> {
    if arguments.sweep.is_given() {
        return sweep::run(gpu, output, &arguments.sweep);
    }
    if let Some(file) = &arguments.output {
        npy::check_writable(file, arguments.force)?;
    }
    let rung = arguments.rung.as_deref().map(TransposeRung::from_name).transpose()?;
    let plan = Plan::new(gpu, output)?;
    let (array, rows, columns) = matrix(gpu, &plan, arguments)?;
    let dtype = array.dtype;
    ensure!(
        rung.is_none() || dtype == ElementType::F32,
        "the rungs of the ladder transpose f32, and the file holds {dtype}: leave out --rung"
    );

    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let bench = Bench { gpu, plan: &plan, rows, columns };
    let Transposed { array: transposed, wrong, timing } = match rung {
        Some(rung) => bench.by_rung(rung, &array),
        None => with_type!(dtype, T => bench.by_library::<T>(&array)),
    }?;
    let bytes = 2 * rows * columns * with_type!(dtype, T => size_of::<T>());
    let mut section = Section::new("Transpose", format!("{rows} x {columns} {dtype}"));
    let scale = Scale { device: &device, copy, bytes };
    let name = rung.map_or("transpose", TransposeRung::name);
    let is_right = wrong.is_none();
    let change = rung.map_or("the library's choice", TransposeRung::summary);
    section
        .push(&scale, Measured { kernel: name, change, launches: 1, result: None, wrong, timing, role: Role::First });
    let report = Report {
        device,
        copy_gigabytes_per_second: copy.map(|copy| copy / 1e9),
        samples: plan.samples,
        sections: vec![section],
    };
    let mut outcome = report.print(output);
    if let Some(file) = &arguments.output {
        npy::write_if_right(&mut outcome, file, &transposed, arguments.force, is_right);
    }
    Ok(outcome)
}

/// The input, its rows and its columns.
fn matrix(gpu: &Gpu, plan: &Plan, arguments: &TransposeArguments) -> anyhow::Result<(Array, usize, usize)> {
    let Some(file) = &arguments.input else {
        let (rows, columns) = arguments.sides.get(gpu);
        let elements = data::random_floats(check_matrix::<f32>(gpu, plan, rows, columns)?)?;
        return Ok((Array::of_list(elements), rows, columns));
    };
    let array = npy::read(gpu, file, Wanted::Any)?;
    let (rows, columns) = sides(&array, file, &arguments.sides)?;
    let expected = with_type!(array.dtype, T => check_matrix::<T>(gpu, plan, rows, columns))?;
    let elements: usize = array.shape.iter().product();
    ensure!(
        elements == expected,
        "{} has {}, and a matrix of --rows {rows} and --cols {columns} has {expected}",
        npy::name(file),
        counted(elements, "element", "elements")
    );
    Ok((array, rows, columns))
}

/// The rows and columns of a file's array: those of the command line, or its own.
fn sides(array: &Array, file: &Path, sides: &Sides) -> anyhow::Result<(usize, usize)> {
    match (&array.shape[..], sides.rows, sides.cols) {
        (&[rows, columns], None, None) => Ok((rows, columns)),
        (_, Some(rows), Some(columns)) => Ok((rows, columns)),
        (axes, ..) => bail!(
            "{} has {}, and a matrix has two: give both --rows and --cols, or neither for a file with two axes",
            npy::name(file),
            counted(axes.len(), "axis", "axes")
        ),
    }
}

/// The parameters of a transpose.
struct Bench<'a> {
    gpu: &'a Gpu,
    plan: &'a Plan,
    rows: usize,
    columns: usize,
}

/// A matrix on the device.
type Matrix<T> = warpfold::Array<T>;

/// A transpose, checked and timed.
struct Transposed {
    array: Array,
    wrong: Option<String>,
    timing: Timing,
}

impl Bench<'_> {
    /// Transposes by the kernel of `Gpu::transpose`.
    fn by_library<T: Number>(&self, array: &Array) -> anyhow::Result<Transposed> {
        let start = |from: &Matrix<T>, to: &mut Matrix<T>| self.gpu.copy_array(from.view().permute_axes(&[1, 0])?, to);
        let expected = data::transposed(array.elements::<T>(), self.rows, self.columns)?;
        self.measure("transpose", array, start, &expected)
    }

    /// Transposes by a rung of the ladder.
    fn by_rung(&self, rung: TransposeRung, array: &Array) -> anyhow::Result<Transposed> {
        let start = |from: &Matrix<f32>, to: &mut Matrix<f32>| rung.start(self.gpu, from, to);
        let elements = array.elements::<f32>();
        if rung.is_copy() {
            return self.measure(rung.name(), array, start, elements);
        }
        self.measure(rung.name(), array, start, &data::transposed(elements, self.rows, self.columns)?)
    }

    fn measure<T: Number>(
        &self,
        name: &str,
        array: &Array,
        transpose: impl Fn(&Matrix<T>, &mut Matrix<T>) -> Result<(), Error>,
        expected: &[T],
    ) -> anyhow::Result<Transposed> {
        let Self { gpu, plan, rows, columns } = *self;
        let elements = array.elements::<T>();
        let inputs = (0..plan.rotation(2 * size_of_val(elements)))
            .map(|_| gpu.upload(elements).and_then(|x| x.reshape(&[rows, columns])))
            .collect::<Result<Vec<_>, Error>>()?;
        let mut result = gpu.zeroed(columns * rows)?.reshape(&[columns, rows])?;
        let mut start = |i: usize| transpose(&inputs[i % inputs.len()], &mut result);
        let range = plan.range(name);
        start(0)?;
        let timing = plan.time(gpu, &mut start)?;
        drop(range);
        let transposed = gpu.download(&result)?;
        let wrong = (!data::same_bits(&transposed, expected))
            .then(|| "some elements are not those of the transpose".to_owned());
        Ok(Transposed { array: array.reordered(transposed, vec![columns, rows]), wrong, timing })
    }
}
