//! `bench transpose`: transposes one matrix of f32, random or from a file; or matrices of many shapes and element
//! sizes.

mod case;
mod kind;
mod peers;
mod shape;
mod sweep;
mod table;

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;
use warpfold::ladder::TransposeRung;
use warpfold::{Error, Gpu};

pub use sweep::SweepArguments;

use crate::data;
use crate::device::Device;
use crate::element::ElementType;
use crate::ladder::check_matrix;
use crate::measure::{Plan, copy_ceiling};
use crate::npy::{self, Array};
use crate::number::counted;
use crate::options::{Output, Sides};
use crate::outcome::Outcome;
use crate::report::{Measured, Report, Role, Scale, Section};

#[derive(Debug, Args)]
pub struct TransposeArguments {
    /// Transposes the array in this NumPy file (.npy, f32, C order), which has two axes, or one with --rows and --cols
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    /// Writes the transpose to this NumPy file
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Replaces the output file if it exists
    #[arg(long, requires = "output")]
    pub force: bool,
    #[command(flatten)]
    pub sides: Sides,
    /// Transposes by this rung of the ladder instead of the library's kernel
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
    #[command(flatten)]
    pub sweep: SweepArguments,
}

pub fn run(gpu: &Gpu, output: &Output, arguments: &TransposeArguments) -> anyhow::Result<Outcome> {
    if arguments.sweep.is_given() {
        return sweep::run(gpu, output, &arguments.sweep);
    }
    if let Some(file) = &arguments.output {
        npy::check_writable(file, arguments.force)?;
    }
    let rung = arguments.rung.as_deref().map(TransposeRung::from_name).transpose()?;
    let plan = Plan::new(gpu, output)?;
    let (elements, rows, columns) = matrix(gpu, &plan, arguments)?;

    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let bytes = 2 * size_of_val(&elements[..]);
    let inputs = (0..plan.rotation(bytes))
        .map(|_| gpu.upload_matrix(&elements, rows, columns))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut result = gpu.zeroed_matrix(columns, rows)?;
    let mut start = |i: usize| match rung {
        Some(rung) => rung.start(gpu, &inputs[i % inputs.len()], &mut result),
        None => gpu.transpose_into(&inputs[i % inputs.len()], &mut result),
    };
    let range = plan.range(rung.map_or("transpose", TransposeRung::name));
    start(0)?;
    let timing = plan.time(gpu, &mut start)?;
    drop(range);
    let transposed = gpu.download_matrix(&result)?;
    let expected =
        if rung.is_some_and(TransposeRung::is_copy) { elements } else { data::transposed(&elements, rows, columns)? };
    let wrong =
        (!data::same_bits(&transposed, &expected)).then(|| "some elements are not those of the transpose".to_owned());

    let mut section = Section::new("Transpose", format!("{rows} x {columns} f32"));
    let scale = Scale { device: &device, copy, bytes };
    let name = rung.map_or("transpose", TransposeRung::name);
    let is_right = wrong.is_none();
    let change = rung.map_or("the library's choice", TransposeRung::summary);
    section
        .push(&scale, Measured { kernel: name, change, launches: 1, result: None, wrong, timing, role: Role::First });
    let report = Report { device, copy_gigabytes_per_second: copy.map(|copy| copy / 1e9), sections: vec![section] };
    let mut outcome = report.print(output);
    if let Some(file) = &arguments.output {
        let transposed = Array::new(transposed, vec![columns, rows]);
        npy::write_if_right(&mut outcome, file, &transposed, arguments.force, is_right);
    }
    Ok(outcome)
}

/// The input's elements, rows and columns.
fn matrix(gpu: &Gpu, plan: &Plan, arguments: &TransposeArguments) -> anyhow::Result<(Vec<f32>, usize, usize)> {
    let Some(file) = &arguments.input else {
        let (rows, columns) = arguments.sides.get(gpu);
        return Ok((data::random_floats(check_matrix(gpu, plan, rows, columns)?)?, rows, columns));
    };
    let array = npy::read(gpu, file, Some(ElementType::F32))?;
    let (rows, columns) = match (&array.shape[..], arguments.sides.rows, arguments.sides.cols) {
        (&[rows, columns], None, None) => (rows, columns),
        (_, Some(rows), Some(columns)) => (rows, columns),
        (axes, ..) => bail!(
            "`{}` has {}, and a matrix has two: give both --rows and --cols, or neither for a file with two axes",
            file.display(),
            counted(axes.len(), "axis", "axes")
        ),
    };
    let expected = check_matrix(gpu, plan, rows, columns)?;
    let elements = array.into_elements();
    ensure!(
        elements.len() == expected,
        "`{}` has {}, and a matrix of {rows} x {columns} has {expected}",
        file.display(),
        counted(elements.len(), "element", "elements")
    );
    Ok((elements, rows, columns))
}
