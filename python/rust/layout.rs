//! The layout of an array: extents and byte strides.

use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, PyResult};

/// The maximum number of axes, as in NumPy.
pub const MAX_RANK: usize = 64;

/// Extents, byte strides of either sign or 0, and where the elements are, relative to the element with all indices 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub extents: Vec<usize>,
    pub strides: Vec<isize>,
    /// The size of an element.
    pub size: usize,
    /// The number of elements.
    pub count: usize,
    /// The number of bytes from the lowest element to the one with all indices 0.
    pub start: usize,
    /// The number of bytes from the lowest element to the end of the highest.
    pub span: usize,
}

impl Layout {
    /// Checks a layout. Without strides, the order is C's.
    pub fn new(extents: Vec<usize>, strides: Option<Vec<isize>>, size: usize) -> PyResult<Self> {
        let bytes = checked_bytes(&extents, size)?;
        let is_empty = bytes == 0;
        let strides = match strides {
            Some(strides) if strides.len() != extents.len() => {
                let (strides, axes) = (strides.len(), extents.len());
                return Err(PyValueError::new_err(format!("an array of {axes} axes has {strides} strides")));
            }
            Some(strides) => strides,
            None => contiguous_strides(&extents, size),
        };
        let (mut lowest, mut highest) = (0_i128, 0_i128);
        for (&extent, &stride) in extents.iter().zip(&strides).filter(|_| !is_empty) {
            let last = (extent as i128 - 1) * stride as i128;
            lowest += last.min(0);
            highest += last.max(0);
        }
        let span = if is_empty { 0 } else { highest - lowest + size as i128 };
        let span = usize::try_from(span).ok().filter(|span| *span <= LIMIT).ok_or_else(|| too_large(&extents))?;
        let count = bytes / size;
        Ok(Self { extents, strides, size, count, start: lowest.unsigned_abs() as usize, span })
    }

    /// Elements of `size` bytes in C order, each `stride` bytes further than the one before it.
    pub fn spread(extents: &[usize], stride: usize, size: usize) -> Self {
        let count: usize = extents.iter().product();
        let span = if count == 0 { 0 } else { (count - 1) * stride + size };
        Self { extents: extents.to_vec(), strides: contiguous_strides(extents, stride), size, count, start: 0, span }
    }

    /// Whether the elements are in C order without gaps.
    pub fn is_contiguous(&self) -> bool {
        let contiguous = contiguous_strides(&self.extents, self.size);
        let mut axes = self.extents.iter().zip(self.strides.iter().zip(&contiguous));
        self.count == 0 || axes.all(|(extent, (stride, contiguous))| *extent == 1 || stride == contiguous)
    }
}

/// The maximum number of bytes of an array.
const LIMIT: usize = isize::MAX as usize;

fn too_large(extents: &[usize]) -> PyErr {
    PyValueError::new_err(format!("an array of shape {extents:?} exceeds the address space"))
}

/// The number of bytes of the elements of an array, which there may be.
pub fn checked_bytes(extents: &[usize], size: usize) -> PyResult<usize> {
    if extents.len() > MAX_RANK {
        return Err(PyValueError::new_err(format!("an array of {} axes: at most {MAX_RANK}", extents.len())));
    }
    // An axis with extent 0 does not excuse the others, as in NumPy.
    let others = extents.iter().filter(|extent| **extent != 0);
    let bytes = others.copied().try_fold(size, |bytes, extent| bytes.checked_mul(extent).filter(|it| *it <= LIMIT));
    let bytes = bytes.ok_or_else(|| too_large(extents))?;
    Ok(if extents.contains(&0) { 0 } else { bytes })
}

/// The strides of C order.
fn contiguous_strides(extents: &[usize], size: usize) -> Vec<isize> {
    let mut stride = size as isize;
    let mut strides: Vec<isize> = extents
        .iter()
        .rev()
        .map(|&extent| {
            let this = stride;
            stride = stride.wrapping_mul(extent.max(1) as isize);
            this
        })
        .collect();
    strides.reverse();
    strides
}
