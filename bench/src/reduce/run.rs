//! Measures one case. Its operator and type are chosen at run time.

use std::borrow::Cow;

use anyhow::bail;
use half::{bf16, f16};
use kernels::for_each_builtin;
use warpfold::{ArrayView, Error, Gpu, Reduces, Reduction, ops};

use super::cases::{Case, name_of};
use super::data::{numbers, numbers_of_kind, skewed_offsets};
use super::expected::{bytes_expected, expected, expected_dots, first_wrong};
use super::form::{Axis, Form};
use super::operators::{Data, Operator};
use super::peers::Peers;
use super::table::{PeerTimes, Row};
use crate::element::{Number, with_type};
use crate::inputs::Inputs;
use crate::measure::{Plan, Start, Timing};
use crate::memory::{Need, bytes_of};
use crate::npy::{Array, TOO_LARGE};
use crate::number::Results;
use crate::outcome::without;

/// An output of a reduction: one number or two.
trait ReductionOutput: Sized {
    type Number: Number;
    fn numbers(outputs: Vec<Self>) -> Vec<Self::Number>;
}

impl<T: Number> ReductionOutput for T {
    type Number = T;
    fn numbers(outputs: Vec<Self>) -> Vec<T> {
        outputs
    }
}

impl<T: Number> ReductionOutput for [T; 2] {
    type Number = T;
    fn numbers(outputs: Vec<Self>) -> Vec<T> {
        outputs.into_flattened()
    }
}

/// A case, and where its elements come from.
pub struct Job<'a> {
    pub case: Case,
    /// The array of a file; `None` for random elements.
    pub array: Option<&'a Array>,
}

/// A measured case, and its results.
pub type Done = (Row, Array);

/// Measures a case.
pub fn run(gpu: &Gpu, plan: &Plan, peers: &mut Peers, job: &Job<'_>) -> anyhow::Result<Done> {
    let case = &job.case;
    let _range = plan.range(&format!("{} of {}", name_of(&case.operator), case.dtype));
    macro_rules! measure_each {
        ($($operator:ident, $name:literal of $([$type:ident])*;)*) => {
            match (case.operator, case.dtype) {
                $($(
                    (Operator::$operator, <$type as Number>::TYPE) => {
                        measure::<ops::$operator, $type>(gpu, plan, peers, job)
                    }
                )*)*
                (Operator::Dot, dtype) => with_type!(dtype, T => measure_pairs::<ops::Dot, T>(gpu, plan, peers, job)),
                _ => bail!("the library has no {case}"),
            }
        };
    }
    for_each_builtin! { measure_each }
}

/// The times of `start`: back to back, and alone. In the executor there is only one time.
fn times(gpu: &Gpu, plan: &Plan, start: &mut Start<'_>) -> Result<(Timing, Option<Timing>), Error> {
    match plan.first(gpu, start)? {
        first @ Some(_) => Ok((plan.time_after(gpu, first, start)?, None)),
        None => Ok((plan.time_recorded(gpu, start)?, Some(plan.time_alone(gpu, start)?))),
    }
}

/// The form of segments by offsets, if the case has some.
fn segments(job: &Job<'_>) -> Option<Form> {
    job.case.extent.form().filter(|form| form.axis == Axis::Skewed)
}

/// Refuses a case whose `inputs` inputs do not fit in the free memory.
fn check_memory<T: Number>(gpu: &Gpu, plan: &Plan, job: &Job<'_>, inputs: u128) -> anyhow::Result<()> {
    let Case { extent, offset, .. } = job.case;
    let input = (offset as u128 + extent.elements() as u128) * size_of::<T>() as u128;
    let segment_offsets = segments(job).map_or(0, |form| bytes_of::<u64>(form.rows + 1));
    // A result has at most 16 bytes, and CUB needs two more buffers with 16 and 8 bytes for each result.
    let results = 40 * extent.results() as u128;
    // The elements of a file are already in memory. For segments, each offset comes with a weight of 8 bytes.
    let own = if job.array.is_some() { 0 } else { input + 2 * segment_offsets };
    let need = Need {
        device: inputs * plan.copies(input) * input + segment_offsets + results,
        host: inputs * (own + bytes_expected::<T>(&extent)),
    };
    need.check(gpu, "the case", if job.array.is_some() { TOO_LARGE } else { "choose a smaller --shape" })
}

fn measure<O: Reduction<T> + Default, T: Number>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    job: &Job<'_>,
) -> anyhow::Result<Done>
where
    O::Output: ReductionOutput,
{
    let case = &job.case;
    let Case { operator, extent, offset, .. } = *case;
    let segments = segments(job);
    check_memory::<T>(gpu, plan, job, 1)?;
    let segment_offsets = segments.map_or_else(|| Ok(Vec::new()), |form| skewed_offsets(&form))?;
    let all: Cow<'_, [T]> = match job.array {
        Some(array) => array.elements().into(),
        None => match case.data {
            Some(kind) => numbers_of_kind(kind, extent.elements())?.into(),
            None => numbers(operator.data(), offset, extent.elements())?.into(),
        },
    };
    let inputs = Inputs::new(gpu, plan, &all, offset)?;
    let expected = expected(operator, &extent, &segment_offsets, &all[offset..])?;
    drop(all);
    let mut output = gpu.zeroed::<O::Output>(extent.results())?;
    let segment_offsets = gpu.upload(&segment_offsets)?;
    let measured = if let Some(form) = segments {
        let mut reducer = gpu.segment_reducer(O::default(), form.rows, extent.elements())?;
        let measured = times(gpu, plan, &mut |i| reducer.start(inputs.view(i)?, &segment_offsets, &mut output))?;
        reducer.check()?;
        measured
    } else {
        let (layout, axes) = extent.array();
        let mut reducer = gpu.reducer(O::default(), &layout, axes)?;
        times(gpu, plan, &mut |i| reducer.start(ArrayView::new(inputs.view(i)?, &layout)?, &mut output))?
    };
    let found = ReductionOutput::numbers(gpu.download(&output)?);
    let wrong = first_wrong(&found, &expected);
    let results = Array::of_list(found);
    let addresses = inputs.addresses()?;
    let mut peer_times = PeerTimes::default();
    let cub = peers.cub(gpu, plan, case, &addresses, segment_offsets.view());
    peer_times.set_cub(cub.unwrap_or_else(|error| without("CUB", case, &error)));
    let reproducible = peers.reproducible_cub(gpu, plan, case, &addresses);
    let reproducible = reproducible.unwrap_or_else(|error| without("CUB's gpu_to_gpu", case, &error));
    peer_times.cub_gpu_to_gpu_us = reproducible.map(Timing::microseconds);
    let cublas = peers.cublas(gpu, plan, case, &addresses, None);
    peer_times.set_cublas(cublas.unwrap_or_else(|error| without("cuBLAS", case, &error)));
    let cutensor = peers.cutensor(gpu, plan, case, &addresses);
    peer_times.set_cutensor(cutensor.unwrap_or_else(|error| without("cuTENSOR", case, &error)));
    drop(inputs);
    peer_times.set_pytorch(peers.pytorch(case));
    let mut row = Row::new(case, extent.elements() * size_of::<T>(), wrong, measured, peer_times);
    row.result = job.array.map(|_| Results(results.values()));
    Ok((row, results))
}

/// Measures a reduction of two inputs.
fn measure_pairs<O: Reduces<T, 2> + Default, T: Number>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    job: &Job<'_>,
) -> anyhow::Result<Done>
where
    O::Output: ReductionOutput,
{
    let case = &job.case;
    let Case { extent, offset, .. } = *case;
    anyhow::ensure!(segments(job).is_none(), "a dot product takes arrays along axes, and no segments by offsets");
    let len = extent.elements();
    check_memory::<T>(gpu, plan, job, 2)?;
    let (a, b): (Vec<T>, Vec<T>) = (numbers(Data::Whole, offset, len)?, numbers(Data::Whole, offset, len)?);
    let (first, second) = (Inputs::new(gpu, plan, &a, offset)?, Inputs::new(gpu, plan, &b, offset)?);
    let expected = expected_dots(&extent, &a[offset..], &b[offset..])?;
    drop((a, b));
    let mut output = gpu.zeroed::<O::Output>(extent.results())?;
    let (layout, axes) = extent.array();
    let mut reducer = gpu.reducer(O::default(), (&layout, &layout), axes)?;
    let measured = times(gpu, plan, &mut |i| {
        let inputs = (ArrayView::new(first.view(i)?, &layout)?, ArrayView::new(second.view(i)?, &layout)?);
        reducer.start(inputs, &mut output)
    })?;
    let found = ReductionOutput::numbers(gpu.download(&output)?);
    let wrong = first_wrong(&found, &expected);
    let mut peer_times = PeerTimes::default();
    // The peers have the product of whole vectors.
    if extent.form().is_some_and(|form| form.axis == Axis::All) {
        let cublas = peers.cublas(gpu, plan, case, &first.addresses()?, Some(&second.addresses()?));
        peer_times.set_cublas(cublas.unwrap_or_else(|error| without("cuBLAS", case, &error)));
        drop((first, second));
        peer_times.set_pytorch(peers.pytorch(case));
    }
    let row = Row::new(case, 2 * len * size_of::<T>(), wrong, measured, peer_times);
    Ok((row, Array::of_list(found)))
}
