//! Sums of segments of vectors on a GPU.

use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::ops::{self, InElementType};
use warpfold::{Element, Error, Gpu, Reduction};

use super::array::GpuArray;
use super::elements::Elements;
use super::permute::copy;
use super::target::{Out, Target};
use super::work::Work;
use crate::dtype::DType;
use crate::output::shape;

/// The sums of segments, in `to`. The host waits, to check the offsets.
pub fn segment_sum<'py>(
    py: Python<'py>,
    x: &GpuArray,
    offsets: &GpuArray,
    to: DType,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let &[count] = &offsets.elements.extents[..] else {
        let found = shape(&offsets.elements.extents);
        return Err(PyValueError::new_err(format!("the offsets are a vector, not an array of shape {found}")));
    };
    if !matches!(offsets.dtype, DType::Int64 | DType::UInt64) {
        let found = offsets.dtype.name();
        return Err(PyTypeError::new_err(format!(
            "offsets on a GPU are int64 or uint64, not {found}: convert them with their library"
        )));
    }
    let segments =
        count.checked_sub(1).ok_or_else(|| PyValueError::new_err("there are no offsets: n segments have n + 1"))?;
    let out = out.map(Out::new).transpose()?;
    let mut arrays = vec![x, offsets];
    arrays.extend(out.as_ref().map(|out| &out.array));
    let work = Work::new(py, &arrays)?;
    let mut target = Target::out_or_new(py, &work, out.as_ref(), &[x, offsets], to, &[segments])?;
    let vector = contiguous(py, &work, x)?;
    let offsets = contiguous(py, &work, offsets)?;
    let is_contiguous = target.elements.is_contiguous();
    let mut results = if is_contiguous { None } else { Some(Target::new(py, &work, x, to, &[segments])?) };
    let output = results.as_mut().map_or(&mut target.elements, |results| &mut results.elements);
    let dtype = x.dtype;
    work.run_and_wait(py, |gpu| sums(gpu, dtype, &vector.elements, &offsets.elements, segments, output))?;
    if let Some(results) = &results {
        work.run(|gpu| copy(gpu, to.size(), &results.elements, &mut target.elements))?;
    }
    work.finish(py)?;
    Ok(target.object)
}

/// A vector without gaps, with the object that keeps a copy.
struct Contiguous<'py> {
    elements: Elements,
    _copy: Option<Bound<'py, PyAny>>,
}

/// The array, or a copy of it without gaps.
fn contiguous<'py>(py: Python<'py>, work: &Work, array: &GpuArray) -> PyResult<Contiguous<'py>> {
    if array.elements.is_contiguous() {
        let elements = Elements::contiguous(array.elements.address, &array.elements.extents);
        return Ok(Contiguous { elements, _copy: None });
    }
    let mut target = Target::new(py, work, array, array.dtype, &array.elements.extents)?;
    work.run(|gpu| copy(gpu, array.dtype.size(), &array.elements, &mut target.elements))?;
    Ok(Contiguous { elements: target.elements, _copy: Some(target.object) })
}

fn sums(
    gpu: &Gpu,
    dtype: DType,
    x: &Elements,
    offsets: &Elements,
    segments: usize,
    output: &mut Elements,
) -> Result<(), Error> {
    macro_rules! sums {
        ($type:ty, $operator:expr) => {
            start_and_check::<$type, _>($operator, gpu, x, offsets, segments, output)
        };
    }
    match dtype {
        DType::Float16 => sums!(f16, InElementType(ops::Sum)),
        DType::BFloat16 => sums!(bf16, InElementType(ops::Sum)),
        DType::Float32 => sums!(f32, ops::Sum),
        DType::Float64 => sums!(f64, ops::Sum),
        DType::Int8 => sums!(i8, ops::Sum),
        DType::Int16 => sums!(i16, ops::Sum),
        DType::Int32 => sums!(i32, ops::Sum),
        DType::Int64 => sums!(i64, ops::Sum),
        DType::UInt8 => sums!(u8, ops::Sum),
        DType::UInt16 => sums!(u16, ops::Sum),
        DType::UInt32 => sums!(u32, ops::Sum),
        DType::UInt64 => sums!(u64, ops::Sum),
        DType::Bool => sums!(u8, ops::CountNonzero),
        other => unreachable!("segments of {}", other.name()),
    }
}

fn start_and_check<T: Element, O: Reduction<T>>(
    operator: O,
    gpu: &Gpu,
    x: &Elements,
    offsets: &Elements,
    segments: usize,
    output: &mut Elements,
) -> Result<(), Error> {
    let mut reducer = gpu.segment_reducer(operator, segments, x.len())?;
    let (x, offsets, mut output) = (x.borrow::<T>(gpu)?, offsets.borrow::<u64>(gpu)?, output.borrow_mut(gpu)?);
    reducer.start(x.view().as_view()?, offsets.view().as_view()?, output.view_mut().into_view()?)?;
    reducer.check()
}
