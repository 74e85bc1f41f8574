//! Reductions of arrays on a GPU.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::array::GpuArray;
use super::elements::Elements;
use super::library;
use super::permute::copy;
use super::target::{Out, Target};
use super::work::Work;
use crate::arguments::{AxesArgument, exception};
use crate::dtype::DType;
use crate::operators::{self, Function};
use crate::output::shape;

type Object<'py> = Bound<'py, PyAny>;

/// Reduces an array to results of type `to`.
pub fn reduce<'py>(
    py: Python<'py>,
    function: Function,
    array: &GpuArray,
    axes: &AxesArgument,
    to: DType,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    let extents = axes.output_extents(&array.elements.extents).map_err(|error| exception(&error))?;
    // The operator's results may have more bits than these.
    let of_operator = operators::results(function, array.dtype);
    let of_operator = if of_operator.contains(&to) { to } else { of_operator[0] };
    let out = out.map(Out::new).transpose()?;
    let work = match &out {
        Some(out) => Work::new(py, &[array, &out.array])?,
        None => Work::new(py, &[array])?,
    };
    let launch = |result: DType, output: &mut Elements| {
        work.run(|gpu| operators::reduce_on_gpu(function, array.dtype, gpu, &array.elements, axes.axes, result, output))
    };
    let result = if let Some(from) = operators::rounded_from(function, array.dtype, of_operator) {
        let target = out.as_ref().map(|out| Target::of_out(out, &[array], to, &extents)).transpose()?;
        let mut results = Target::new(py, &work, array, from, &extents)?;
        launch(from, &mut results.elements)?;
        match target {
            Some(target) => {
                library::copy(&target.object, &results.object, array.class)?;
                target.object
            }
            None => library::converted(&results.object, array.class, to)?,
        }
    } else if of_operator == to {
        let mut target = Target::out_or_new(py, &work, out.as_ref(), &[array], to, &extents)?;
        launch(to, &mut target.elements)?;
        target.object
    } else {
        let mut target = Target::out_or_new(py, &work, out.as_ref(), &[array], to, &extents)?;
        let mut results = Target::new(py, &work, array, of_operator, &extents)?;
        launch(of_operator, &mut results.elements)?;
        let low = results.elements.part(of_operator.size() / to.size(), 0, to.size());
        work.run(|gpu| copy(gpu, to.size(), &low, &mut target.elements))?;
        target.object
    };
    work.finish(py)?;
    Ok(result)
}

/// The smallest and the largest elements.
pub fn min_max<'py>(py: Python<'py>, array: &GpuArray, axes: &AxesArgument) -> PyResult<(Object<'py>, Object<'py>)> {
    let (function, dtype) = (Function::MinMax, array.dtype);
    let extents = axes.output_extents(&array.elements.extents).map_err(|error| exception(&error))?;
    let work = Work::new(py, &[array])?;
    let of_pairs: Vec<usize> = extents.iter().copied().chain([2]).collect();
    let pairs = Target::new(py, &work, array, dtype, &of_pairs)?;
    let mut output = Elements::contiguous(pairs.elements.address, &extents);
    work.run(|gpu| operators::reduce_on_gpu(function, dtype, gpu, &array.elements, axes.axes, dtype, &mut output))?;
    let part = |index| {
        let mut target = Target::new(py, &work, array, dtype, &extents)?;
        let part = output.part(2, index, dtype.size());
        work.run(|gpu| copy(gpu, dtype.size(), &part, &mut target.elements))?;
        Ok::<_, PyErr>(target.object)
    };
    let results = (part(0)?, part(1)?);
    work.finish(py)?;
    Ok(results)
}

/// The dot products of two arrays of the same type along an axis, counted from the end; the others are broadcast.
pub fn vecdot<'py>(
    py: Python<'py>,
    [x, y]: [&GpuArray; 2],
    axis: isize,
    out: Option<&Object<'py>>,
) -> PyResult<Object<'py>> {
    let extents = &extents_of_dot([&x.elements.extents, &y.elements.extents], axis)?;
    let (to, of_operator) = (x.dtype, operators::of_dot(x.dtype));
    let out = out.map(Out::new).transpose()?;
    let mut arrays = vec![x, y];
    arrays.extend(out.as_ref().map(|out| &out.array));
    let work = Work::new(py, &arrays)?;
    let mut target = Target::out_or_new(py, &work, out.as_ref(), &[x, y], to, extents)?;
    let operands = [&x.elements, &y.elements];
    if of_operator == to {
        work.run(|gpu| operators::vecdot_on_gpu(to, gpu, operands, axis, &mut target.elements))?;
    } else {
        let mut results = Target::new(py, &work, x, of_operator, extents)?;
        work.run(|gpu| operators::vecdot_on_gpu(to, gpu, operands, axis, &mut results.elements))?;
        let low = results.elements.part(of_operator.size() / to.size(), 0, to.size());
        work.run(|gpu| copy(gpu, to.size(), &low, &mut target.elements))?;
    }
    work.finish(py)?;
    Ok(target.object)
}

/// The extents of dot products along an axis that both arrays have.
fn extents_of_dot([x, y]: [&[usize]; 2], axis: isize) -> PyResult<Vec<usize>> {
    let rank = x.len().max(y.len());
    let extent = |extents: &[usize], from_end: usize| extents.len().checked_sub(from_end).map_or(1, |at| extents[at]);
    let kept = (1..=rank).rev().filter(|from_end| axis.unsigned_abs() != *from_end);
    let both = kept.map(|from_end| match (extent(x, from_end), extent(y, from_end)) {
        (a, b) if a == b => Ok(a),
        (1, extent) | (extent, 1) => Ok(extent),
        _ => Err(PyValueError::new_err(format!(
            "vecdot: arrays of shapes {} and {} cannot be broadcast",
            shape(x),
            shape(y)
        ))),
    });
    both.collect()
}
