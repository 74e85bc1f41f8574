//! `bench transpose --rung`: transposes a matrix of f32 by a rung of the ladder.

use anyhow::{bail, ensure};
use warpfold::ladder::TransposeRung;
use warpfold::{Error, Gpu, Layout};

use super::TransposeArguments;
use crate::data;
use crate::device::Device;
use crate::element::ElementType;
use crate::ladder::check_matrix;
use crate::measure::{Plan, copy_ceiling};
use crate::npy::{self, Array, Wanted};
use crate::options::{Opened, Output, Sides};
use crate::outcome::Outcome;
use crate::report::{Measured, Report, Role, Scale, Section};

/// A matrix on the device.
type Matrix = warpfold::Array<f32>;

pub fn run(gpu: &Opened, output: &Output, arguments: &TransposeArguments, rung: &str) -> anyhow::Result<Outcome> {
    let rung = TransposeRung::from_name(rung)?;
    let plan = Plan::new(gpu, output)?;
    let (array, [rows, columns]) = matrix(gpu, &plan, arguments)?;
    let elements = array.in_c_order::<f32>()?;
    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let inputs = (0..plan.rotation(2 * size_of_val(&elements[..])))
        .map(|_| gpu.upload(&elements).and_then(|x| x.reshape(&[rows, columns])))
        .collect::<Result<Vec<Matrix>, Error>>()?;
    let mut result: Matrix = gpu.zeroed(columns * rows)?.reshape(&[columns, rows])?;
    let mut start = |i: usize| rung.start(gpu, &inputs[i % inputs.len()], &mut result);
    let range = plan.range(rung.name());
    start(0)?;
    let timing = plan.time(gpu, &mut start)?;
    drop(range);
    let found = gpu.download(&result)?;
    let is_right = if rung.is_copy() {
        data::same_bits(&found, &elements)
    } else {
        data::same_bits(&found, &data::transposed(&elements, rows, columns)?)
    };
    let wrong = (!is_right).then(|| "some elements are not those of the transpose".to_owned());
    let mut section = Section::new("Transpose", format!("{rows} x {columns} f32"));
    section.push(
        &Scale { device: &device, copy, bytes: 2 * size_of_val(&elements[..]) },
        Measured {
            kernel: rung.name(),
            change: rung.summary(),
            launches: 1,
            result: None,
            wrong,
            timing,
            role: Role::First,
        },
    );
    let copy_gigabytes_per_second = copy.map(|copy| copy / 1e9);
    let report = Report { device, copy_gigabytes_per_second, samples: plan.samples, sections: vec![section] };
    let mut outcome = report.print(output);
    let transposed = array.reordered(found, Layout::contiguous(&[columns, rows])?);
    arguments.write(&mut outcome, &transposed, is_right);
    Ok(outcome)
}

/// The input, and its rows and columns.
fn matrix(gpu: &Gpu, plan: &Plan, arguments: &TransposeArguments) -> anyhow::Result<(Array, [usize; 2])> {
    let sides = |layout: &Layout| match *layout.extents() {
        [rows, columns] => Ok([rows, columns]),
        _ => bail!("the rungs of the ladder transpose one matrix, and this is {layout}: leave out --rung"),
    };
    if let Some(file) = &arguments.input {
        let array = npy::read(gpu, file, Wanted::Any)?;
        let dtype = array.dtype;
        ensure!(
            dtype == ElementType::F32,
            "the rungs of the ladder transpose f32, and {} holds {dtype}: leave out --rung",
            npy::name(file)
        );
        let [rows, columns] = sides(&array.layout)?;
        check_matrix(gpu, plan, rows, columns, "choose a smaller --input")?;
        return Ok((array, [rows, columns]));
    }
    let [rows, columns] = match &arguments.shape[..] {
        [] => Sides::default().get(gpu).into(),
        [layout] => sides(layout)?,
        _ => bail!("--rung takes one --shape: leave out the others"),
    };
    let len = check_matrix(gpu, plan, rows, columns, "choose a smaller --shape")?;
    Ok((Array::new(data::random_floats(len)?, Layout::contiguous(&[rows, columns])?), [rows, columns]))
}
