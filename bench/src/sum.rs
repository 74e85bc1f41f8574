//! `bench sum`: sums random numbers or a file, by the library or by a rung of a ladder.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use warpfold::ladder::{self, LadderElement, ReduceRung};
use warpfold::ops::Sum;
use warpfold::{ArrayView, Gpu, Layout, Reduction};

use crate::data;
use crate::device::Device;
use crate::effect::Mode;
use crate::element::{Number, with_ladder_type, with_type};
use crate::inputs::Inputs;
use crate::measure::{Plan, Timing, copy_ceiling};
use crate::memory::{Need, bytes_of};
use crate::npy::{self, Array};
use crate::number::Results;
use crate::options::{Numbers, Opened, Output, refuse_unused};
use crate::outcome::Outcome;
use crate::reduce::{self, Extent, FileArguments, Operator, bytes_expected, expected, expected_by_rung, first_wrong};
use crate::report::{Measured, Report, Role, Scale, Section};
use crate::streamed::{self, Request};

#[derive(Debug, Args)]
pub struct SumArguments {
    /// Sums the array in this NumPy file (.npy, of any type, in C or Fortran order) instead of random numbers; `-` is
    /// standard input. NumPy's bool is read as u8. NumPy has no bf16: for a file of bf16, give --dtype bf16
    #[arg(long, value_name = "FILE.npy")]
    pub input: Option<PathBuf>,
    #[command(flatten)]
    pub file: FileArguments,
    #[command(flatten)]
    pub numbers: Numbers,
    /// The seed of the random numbers: with the same seed, --n and --dtype the sum is the same on every machine
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Sums by this rung of the ladder instead of the library's kernel; the ladders have f32, f64, i32 and i64
    #[arg(long, value_name = "NAME")]
    pub rung: Option<String>,
}

impl SumArguments {
    /// The options that have an effect.
    pub fn modes(&self) -> Vec<Mode> {
        const OF_FILE: &[&str] = &["input", "axis", "output", "keep-dims", "force", "memory", "dtype", "rung", "block"];
        let mut modes =
            vec![Mode::by("input", self.input.is_some(), OF_FILE, &["n", "dtype", "seed", "rung", "block"])];
        modes.push(match &self.rung {
            Some(_) => Mode::with("rung", &["axis"]),
            None => Mode::without("rung", &["block"]),
        });
        modes.extend(self.file.modes());
        modes
    }
}

pub fn run(gpu: &Opened, output: &Output, arguments: &SumArguments) -> anyhow::Result<Outcome> {
    if let (Some(input), Some(memory)) = (&arguments.input, arguments.file.memory) {
        let (wanted, operators) = (arguments.numbers.dtype.into(), &[Operator::Sum][..]);
        return streamed::run(gpu, output, &Request { input, wanted, operators, file: &arguments.file, memory });
    }
    let rung = arguments.rung.as_deref().map(ReduceRung::from_name).transpose()?;
    let has_fixed_block = rung.is_none_or(ReduceRung::has_fixed_block);
    refuse_unused(
        &[("--block", has_fixed_block && arguments.numbers.block.is_some())],
        "the library's sum, `single_launch` and `exact_long_rows` have a fixed block size",
    )?;
    arguments.file.check_output()?;
    let plan = Plan::new(gpu, output)?;
    let (array, extent) = array(gpu, &plan, arguments, rung)?;
    let device = Device::of(gpu)?;
    let copy = copy_ceiling(gpu, &plan)?;
    let bench = Bench { gpu, plan: &plan, extent, is_random: arguments.input.is_none() };
    let summed = match rung {
        None => with_type!(array.dtype, T => bench.by_library(array.elements::<T>())),
        Some(rung) => {
            let block = arguments.numbers.block();
            with_ladder_type!(array.dtype, T => bench.by_rung(rung, block, &array.in_c_order::<T>()?))
        }
    }?;
    let Summed { results, wrong, launches, timing } = summed;

    let input = match arguments.file.axis {
        None => format!("{} {}", extent.elements(), array.dtype),
        Some(_) => format!("{extent} of {}", array.dtype),
    };
    let mut section = Section::new("Sum", input);
    let of = if bench.is_random { format!(" of the random numbers of seed {}", arguments.seed) } else { String::new() };
    let values = Results(results.values());
    section.note = Some(format!("sum = {}{of}", values.shown()));
    let bytes = with_type!(array.dtype, T => size_of_val(array.elements::<T>()));
    let (kernel, change) = rung.map_or(("sum", "the library's sum"), |rung| (rung.name(), rung.summary()));
    let is_right = wrong.is_none();
    section.push(
        &Scale { device: &device, copy, bytes },
        Measured { kernel, change, launches, result: Some(values), wrong, timing, role: Role::First },
    );
    let report = Report {
        device,
        copy_gigabytes_per_second: copy.map(|copy| copy / 1e9),
        samples: plan.samples,
        sections: vec![section],
    };
    let mut outcome = report.print(output);
    arguments.file.write(&mut outcome, results, &extent, 1, is_right);
    Ok(outcome)
}

/// The numbers, and the extent that is summed.
fn array(
    gpu: &Gpu,
    plan: &Plan,
    arguments: &SumArguments,
    rung: Option<ReduceRung>,
) -> anyhow::Result<(Array, Extent)> {
    if let Some(file) = &arguments.input {
        let array = npy::read(gpu, file, arguments.numbers.dtype.into())?;
        let extent = reduce::extent(&array, file, &arguments.file)?;
        let need = with_type!(array.dtype, T => need::<T>(plan, &extent, rung));
        need.check(gpu, &format!("a sum of {} {}", extent.elements(), array.dtype), npy::TOO_LARGE)?;
        return Ok((array, extent));
    }
    let (n, dtype) = (arguments.numbers.n(gpu), arguments.numbers.dtype());
    if rung.is_some() {
        dtype.check_ladder()?;
    }
    let extent = Extent::along(Layout::contiguous(&[n]).context("--n")?, None)?;
    with_type!(dtype, T => {
        let Need { device, host } = need::<T>(plan, &extent, rung);
        let need = Need { device, host: host + bytes_of::<T>(n) };
        need.check(gpu, &format!("a sum of {n} {dtype}"), "choose a smaller --n")?;
        Ok((Array::of_list(data::random_of_seed::<T>(n, arguments.seed)?), extent))
    })
}

/// The memory needed in addition to the numbers: their copies on the device, one more copy for a rung that works in
/// place, and the results.
fn need<T: Number>(plan: &Plan, extent: &Extent, rung: Option<ReduceRung>) -> Need {
    let bytes = bytes_of::<T>(extent.elements());
    let copies = plan.copies(bytes) + u128::from(rung.is_some_and(ReduceRung::is_in_place));
    Need { device: copies * bytes + bytes_of::<u64>(extent.results()), host: bytes_expected::<T>(extent) }
}

/// The type of the library's sum of elements of type `T`.
type SumOf<T> = <Sum as Reduction<T>>::Output;

/// The parameters of the sums.
struct Bench<'a> {
    gpu: &'a Gpu,
    plan: &'a Plan,
    extent: Extent,
    /// Whether the numbers are random. Random numbers are small integers, which no rung rounds.
    is_random: bool,
}

/// Sums, checked and timed.
struct Summed {
    results: Array,
    wrong: Option<String>,
    launches: usize,
    timing: Timing,
}

impl Bench<'_> {
    /// Sums the extent by the kernel of `Gpu::sum`.
    fn by_library<T: Number>(&self, numbers: &[T]) -> anyhow::Result<Summed>
    where
        Sum: Reduction<T>,
        SumOf<T>: Number,
    {
        let Self { gpu, plan, extent, .. } = self;
        let inputs = Inputs::new(gpu, plan, numbers, 0)?;
        let expected = expected(Operator::Sum, extent, &[], numbers)?;
        let mut output = gpu.zeroed::<SumOf<T>>(extent.results())?;
        let (layout, axes) = extent.array();
        let mut reducer = gpu.reducer(Sum, &layout, axes)?;
        let mut start = |i| reducer.start(ArrayView::new(inputs.view(i)?, &layout)?, &mut output);
        let _range = plan.range("sum");
        let first = plan.first(gpu, &mut start)?;
        let timing = plan.time_after(gpu, first, &mut start)?;
        let sums = gpu.download(&output)?;
        Ok(Summed { wrong: first_wrong(&sums, &expected), results: Array::of_list(sums), launches: 1, timing })
    }

    /// Sums all elements by a rung of a ladder.
    fn by_rung<T: Number + LadderElement>(
        &self,
        rung: ReduceRung,
        block: usize,
        numbers: &[T],
    ) -> anyhow::Result<Summed> {
        let Self { gpu, plan, extent, is_random } = self;
        let inputs = Inputs::new(gpu, plan, numbers, 0)?;
        let expected = match (rung.is_exact(), is_random) {
            (true, _) => expected(Operator::Sum, extent, &[], numbers)?,
            (false, true) => vec![expected_by_rung(numbers)?.exact()],
            (false, false) => vec![expected_by_rung(numbers)?],
        };
        let mut reduction = rung.prepare::<T>(gpu, numbers.len(), block)?;
        reduction.load(gpu, inputs.buffer(0))?;
        let _range = plan.range(rung.name());
        let start = |reduction: &mut ladder::PreparedSum<T>, i: usize| {
            if numbers.is_empty() { Ok(()) } else { reduction.start(gpu, inputs.buffer(i)) }
        };
        // The result is read after the first start, because a rung that works in place overwrites its copy of the
        // input.
        start(&mut reduction, 0)?;
        let sum = reduction.finish(gpu)?;
        let timing = plan.time(gpu, &mut |i| start(&mut reduction, i))?;
        Ok(Summed {
            wrong: first_wrong(&[sum], &expected),
            results: Array::of_list(vec![sum]),
            launches: reduction.launches(),
            timing,
        })
    }
}
