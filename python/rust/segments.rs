//! `wf.segment_sum`: the sums of consecutive parts of a vector.

use bytemuck::{AnyBitPattern, Pod};
use half::{bf16, f16};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use warpfold::exact::{Elements, Rounded, Summand};

use crate::arguments::{result, two_places};
use crate::array::{AnyArray, HostArray};
use crate::dtype::DType;
use crate::gpu;
use crate::layout::Layout;
use crate::operators::Function;
use crate::output::{Output, shape};

/// The sums of segments of a vector: that at `i` is of `x[offsets[i]:offsets[i + 1]]`.
///
/// The offsets are integers that do not decrease. Floats: exact sums, rounded once, to the type of the elements.
/// Integers and bool: in 64 bits, and wraps. The sum of an empty segment is 0.
///
/// >>> import numpy as np, warpfold as wf
/// >>> wf.segment_sum(np.array([1, 2, 3, 4, 5]), np.array([0, 2, 2, 5]))
/// array([ 3,  0, 12])
#[pyfunction]
#[pyo3(signature = (x, offsets, /, *, out=None))]
pub fn segment_sum<'py>(
    x: &Bound<'py, PyAny>,
    offsets: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    let (x, offsets) = (AnyArray::new(x, "segment_sum")?, AnyArray::new(offsets, "segment_sum")?);
    let &[len] = x.extents() else {
        let found = shape(x.extents());
        return Err(PyValueError::new_err(format!("segment_sum takes a vector, not an array of shape {found}")));
    };
    let dtype = result(Function::Sum, x.dtype(), None)?;
    let (x, offsets) = match (&x, &offsets) {
        (AnyArray::Host(x), AnyArray::Host(offsets)) => (x, offsets),
        (AnyArray::Gpu(x), AnyArray::Gpu(offsets)) => {
            return gpu::segments::segment_sum(py, x, offsets, dtype, out);
        }
        _ => return Err(two_places()),
    };
    let ends = checked_offsets(offsets, len)?;
    let (start, stride, bytes) = (x.layout.start, x.layout.strides[0], x.bytes());
    let vector = Vector { bytes, start, stride };
    let sums = match x.dtype {
        DType::Float16 => py.detach(|| vector.exact::<f16, f16>(&ends)),
        DType::BFloat16 => py.detach(|| vector.exact::<bf16, bf16>(&ends)),
        DType::Float32 => py.detach(|| vector.exact::<f32, f32>(&ends)),
        DType::Float64 => py.detach(|| vector.exact::<f64, f64>(&ends)),
        DType::Int8 => py.detach(|| vector.wrapping::<i8>(&ends, i64::from)),
        DType::Int16 => py.detach(|| vector.wrapping::<i16>(&ends, i64::from)),
        DType::Int32 => py.detach(|| vector.wrapping::<i32>(&ends, i64::from)),
        DType::Int64 => py.detach(|| vector.wrapping::<i64>(&ends, |element| element)),
        DType::UInt8 => py.detach(|| vector.wrapping::<u8>(&ends, i64::from)),
        DType::UInt16 => py.detach(|| vector.wrapping::<u16>(&ends, i64::from)),
        DType::UInt32 => py.detach(|| vector.wrapping::<u32>(&ends, i64::from)),
        DType::UInt64 => py.detach(|| vector.wrapping::<u64>(&ends, u64::cast_signed)),
        DType::Bool => py.detach(|| vector.wrapping::<u8>(&ends, |element| i64::from(element != 0))),
        DType::Complex64 | DType::Complex128 => unreachable!("there are no sums of {}", x.dtype.name()),
    };
    let extents = vec![ends.len() - 1];
    let mut output = Output::new(py, out, dtype, &extents, &[x, offsets])?;
    output.write(&sums, &Layout::new(extents, None, dtype.size())?);
    Ok(output.into_array())
}

/// The offsets, if they do not decrease and are at most `len`.
fn checked_offsets(offsets: &HostArray, len: usize) -> PyResult<Vec<usize>> {
    let &[count] = &offsets.layout.extents[..] else {
        let found = shape(&offsets.layout.extents);
        return Err(PyValueError::new_err(format!("the offsets are a vector, not an array of shape {found}")));
    };
    if !offsets.dtype.is_integer() {
        return Err(PyTypeError::new_err(format!("offsets are integers, not {}", offsets.dtype.name())));
    }
    if count == 0 {
        return Err(PyValueError::new_err("there are no offsets: n segments have n + 1"));
    }
    let (size, is_signed) = (offsets.dtype.size(), offsets.dtype.is_signed());
    let mut last = 0;
    let mut read = Vec::with_capacity(count);
    for index in 0..count {
        let at = offsets.layout.start.wrapping_add_signed(offsets.layout.strides[0].wrapping_mul(index as isize));
        let element = &offsets.bytes()[at..at + size];
        let is_negative = is_signed && element[size - 1] >= 0x80;
        let mut word = [0; 8];
        word[..size].copy_from_slice(element);
        let offset = usize::from_le_bytes(word);
        if is_negative || offset < last || offset > len {
            return Err(PyValueError::new_err(format!(
                "offsets must rise from 0 to the length of the vector, {len}: the one at {index} does not"
            )));
        }
        last = offset;
        read.push(offset);
    }
    Ok(read)
}

/// A vector at a stride in bytes.
#[derive(Clone, Copy)]
struct Vector<'a> {
    bytes: &'a [u8],
    start: usize,
    stride: isize,
}

impl Vector<'_> {
    fn position(&self, index: usize) -> usize {
        self.start.wrapping_add_signed(self.stride.wrapping_mul(index as isize))
    }

    /// The exact sums of segments, rounded, as bytes.
    fn exact<T: Summand, R: Rounded + Pod>(self, ends: &[usize]) -> Vec<u8> {
        let sums = ends.windows(2).map(|pair| {
            let (start, len) = (if pair[0] < pair[1] { self.position(pair[0]) } else { 0 }, pair[1] - pair[0]);
            let elements = Elements::<T>::strided_bytes(self.bytes, start, self.stride, len);
            elements.expect("a segment is within the vector").sum::<R>()
        });
        bytemuck::cast_slice(&sums.collect::<Vec<R>>()).to_vec()
    }

    /// The sums of segments of integers, as bytes.
    fn wrapping<T: AnyBitPattern>(self, ends: &[usize], widen: impl Fn(T) -> i64) -> Vec<u8> {
        let element = |index| {
            let at = self.position(index);
            widen(bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<T>()]))
        };
        let sums = ends.windows(2).map(|pair| (pair[0]..pair[1]).map(element).fold(0_i64, i64::wrapping_add));
        bytemuck::cast_slice(&sums.collect::<Vec<i64>>()).to_vec()
    }
}
