//! `bench sum`.

use warpfold::ladder::ReduceRung;
use warpfold::{Error, Gpu};

use crate::cli::{Dtype, Output, SumArguments, refuse_unused};
use crate::data::{self, Number};
use crate::measure::{Plan, copy_ceiling};
use crate::memory::{Need, bytes_of};
use crate::npy::{self, Array};
use crate::outcome::Outcome;
use crate::report::{Device, Measured, Place, Report, Scale, Section};

pub fn run(gpu: &Gpu, output: &Output, arguments: &SumArguments) -> anyhow::Result<Outcome> {
    let rung = match &arguments.rung {
        Some(name) => ReduceRung::from_name(name)?,
        None => ReduceRung::SingleLaunch,
    };
    let has_own_block = rung == ReduceRung::SingleLaunch;
    refuse_unused(
        &[("--block", has_own_block && arguments.numbers.block.is_some())],
        "`single_launch`, which sums where no other --rung is named, has a block of its own",
    )?;
    let (n, block) = (arguments.numbers.n(gpu), arguments.numbers.block());
    let Some(file) = &arguments.input else {
        return match arguments.numbers.dtype() {
            Dtype::F32 => sum_of_random::<f32>(gpu, output, block, rung, n, arguments.seed),
            Dtype::F64 => sum_of_random::<f64>(gpu, output, block, rung, n, arguments.seed),
            Dtype::I32 => sum_of_random::<i32>(gpu, output, block, rung, n, arguments.seed),
            Dtype::I64 => sum_of_random::<i64>(gpu, output, block, rung, n, arguments.seed),
        };
    };
    match npy::read(gpu, file)?.array {
        Array::F32(numbers) => sum(gpu, output, block, rung, &numbers, None),
        Array::I32(numbers) => sum(gpu, output, block, rung, &numbers, None),
    }
}

fn sum_of_random<T: Number>(
    gpu: &Gpu,
    output: &Output,
    block: usize,
    rung: ReduceRung,
    n: usize,
    seed: u64,
) -> anyhow::Result<Outcome> {
    need::<T>(&Plan::new(gpu, output)?, n).check(gpu, &format!("a sum of {n} {}", T::NAME), "choose a smaller --n")?;
    let numbers: Vec<T> = data::random_of_seed(n, seed)?;
    sum(gpu, output, block, rung, &numbers, Some(seed))
}

/// The numbers, their copies on the device, and the copy of a rung that works in place.
fn need<T>(plan: &Plan, n: usize) -> Need {
    let bytes = bytes_of::<T>(n);
    Need { device: (plan.copies(bytes) + 1) * bytes, host: bytes }
}

/// `seed` is that of random numbers, which have an exact sum.
fn sum<T: Number>(
    gpu: &Gpu,
    output: &Output,
    block: usize,
    rung: ReduceRung,
    numbers: &[T],
    seed: Option<u64>,
) -> anyhow::Result<Outcome> {
    let plan = Plan::new(gpu, output)?;
    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let bytes = size_of_val(numbers);
    let more = Need { host: 0, ..need::<T>(&plan, numbers.len()) };
    more.check(gpu, &format!("a sum of {} {}", numbers.len(), T::NAME), "choose a smaller input")?;
    let inputs = (0..plan.rotation(bytes)).map(|_| gpu.upload(numbers)).collect::<Result<Vec<_>, Error>>()?;
    let reference = if seed.is_some() { T::exact_reference(numbers) } else { T::reference(numbers) };
    let mut reduction = rung.prepare::<T>(gpu, numbers.len(), block)?;
    reduction.load(gpu, &inputs[0])?;
    let _range = plan.range(rung.name());
    if !numbers.is_empty() {
        reduction.start(gpu, &inputs[0])?;
    }
    let sum = reduction.finish(gpu)?;
    let wrong =
        (!sum.agrees(&reference)).then(|| format!("the sum is {}, should be {}", data::show(sum), reference.sum));
    let timing = if numbers.is_empty() {
        plan.time(gpu, &mut |_| Ok(()))?
    } else {
        plan.time(gpu, &mut |i| reduction.start(gpu, &inputs[i % inputs.len()]))?
    };
    let mut section = Section::new("Sum", format!("{} {}", numbers.len(), T::NAME));
    let of = seed.map(|seed| format!(" of the random numbers of seed {seed}")).unwrap_or_default();
    section.note = Some(format!("sum = {}{of}", data::show(sum)));
    let scale = Scale { device: &device, copy, bytes };
    let launches = reduction.launches();
    section.push(
        &scale,
        Measured {
            kernel: rung.name(),
            change: rung.summary(),
            launches,
            result: Some(sum.as_f64()),
            wrong,
            timing,
            place: Place::First,
        },
    );
    let report = Report { device, copy_gigabytes_per_second: copy.map(|copy| copy / 1e9), sections: vec![section] };
    Ok(report.print(output))
}
