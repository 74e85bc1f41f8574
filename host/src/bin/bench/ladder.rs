//! `bench ladder`: every rung, checked and timed.

use warpfold::ladder::{ReduceRung, TransposeRung};
use warpfold::{Error, Gpu};

use crate::cli::{Dtype, Family, LadderArguments, Output, Shape};
use crate::data::{self, Number};
use crate::measure::{Plan, copy_ceiling, progress};
use crate::report::{Device, Report, Scale, Section};

/// Both ladders.
pub fn both(gpu: &Gpu, output: &Output, shape: &Shape) -> anyhow::Result<bool> {
    run(gpu, output, shape, &LadderArguments { family: None })
}

pub fn run(gpu: &Gpu, output: &Output, shape: &Shape, arguments: &LadderArguments) -> anyhow::Result<bool> {
    let plan = Plan::new(gpu, output)?;
    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let mut sections = Vec::new();
    if arguments.family != Some(Family::Transpose) {
        sections.push(match shape.dtype {
            Dtype::F32 => reduce::<f32>(gpu, &plan, &device, copy, shape)?,
            Dtype::I32 => reduce::<i32>(gpu, &plan, &device, copy, shape)?,
        });
    }
    if arguments.family != Some(Family::Reduce) {
        sections.push(transpose(gpu, &plan, &device, copy, shape)?);
    }
    let report = Report { device, copy_gigabytes_per_second: copy.map(|copy| copy / 1e9), sections };
    report.print(output.format)?;
    Ok(report.is_correct())
}

fn reduce<T: Number>(
    gpu: &Gpu,
    plan: &Plan,
    device: &Device,
    copy: Option<f64>,
    shape: &Shape,
) -> anyhow::Result<Section> {
    let n = shape.n.unwrap_or(if gpu.is_cuda() { 1 << 24 } else { 1 << 20 });
    let numbers: Vec<T> = data::random(gpu, n)?;
    let reference = T::reference(&numbers);
    let bytes = size_of_val(&numbers[..]);
    let inputs = (0..plan.rotation(bytes)).map(|_| gpu.upload(&numbers)).collect::<Result<Vec<_>, Error>>()?;
    let mut section = Section { family: "Sum", input: format!("{n} {}", T::NAME), rows: Vec::new() };
    let bar = progress(ReduceRung::ALL.len());
    for rung in ReduceRung::ALL {
        bar.set_message(rung.name());
        let mut reduction = rung.prepare::<T>(gpu, n, shape.block)?;
        reduction.start(gpu, &inputs[0])?;
        let sum = reduction.finish(gpu)?;
        let wrong =
            (!sum.agrees(&reference)).then(|| format!("the sum is {}, should be {}", data::show(sum), reference.sum));
        let timing = plan.time(gpu, |i| reduction.start(gpu, &inputs[i % inputs.len()]))?;
        let scale = Scale { device, copy, bytes };
        section.push(&scale, rung.name(), rung.summary(), reduction.launches(), wrong, timing);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(section)
}

fn transpose(gpu: &Gpu, plan: &Plan, device: &Device, copy: Option<f64>, shape: &Shape) -> anyhow::Result<Section> {
    let side = if gpu.is_cuda() { 4096 } else { 1024 };
    let (rows, columns) = (shape.rows.unwrap_or(side), shape.cols.unwrap_or(side));
    // The product is checked before anything is made of it.
    let len = gpu_len(gpu, rows, columns)?;
    let elements = data::random_bits(gpu, len)?;
    let expected = data::transposed(&elements, rows, columns);
    let bytes = 2 * size_of_val(&elements[..]);
    let inputs = (0..plan.rotation(bytes))
        .map(|_| gpu.upload_matrix(&elements, rows, columns))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut section = Section { family: "Transpose", input: format!("{rows} x {columns} f32"), rows: Vec::new() };
    let bar = progress(TransposeRung::ALL.len());
    for rung in TransposeRung::ALL {
        bar.set_message(rung.name());
        let mut result = gpu.zeroed_matrix(columns, rows)?;
        rung.start(gpu, &inputs[0], &mut result)?;
        let wrong = (!data::same_bits(&gpu.download_matrix(&result)?, &expected))
            .then(|| "the elements are not those of the transpose".to_owned());
        let timing = plan.time(gpu, |i| rung.start(gpu, &inputs[i % inputs.len()], &mut result))?;
        let scale = Scale { device, copy, bytes };
        section.push(&scale, rung.name(), rung.summary(), 1, wrong, timing);
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(section)
}

/// Rows times columns, if a device could hold them.
pub fn gpu_len(gpu: &Gpu, rows: usize, columns: usize) -> anyhow::Result<usize> {
    let memory = gpu.info()?.memory_bytes;
    let bytes = rows.checked_mul(columns).and_then(|elements| elements.checked_mul(size_of::<f32>()));
    match bytes {
        Some(bytes) if bytes <= memory => Ok(rows * columns),
        Some(bytes) => anyhow::bail!("a matrix of {rows} x {columns} f32 is {bytes} bytes, the device has {memory}"),
        None => anyhow::bail!("a matrix of {rows} x {columns} f32 is larger than any memory"),
    }
}
