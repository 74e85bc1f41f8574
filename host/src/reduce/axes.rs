//! The axes of a reduction.

use super::OPERATION;
use crate::array::{MAX_RANK, distinct};
use crate::{Error, Layout};

/// The axes along which an array is reduced, and whether the result keeps them with one element each.
///
/// An axis is counted from 0, or from the end: -1 is the last. A single number, an array or a slice of numbers are
/// axes, too:
///
/// ```
/// use warpfold::{Axes, Gpu, ops};
///
/// let gpu = Gpu::first_or_simt()?;
/// let x = gpu.upload(&[1_i32, 2, 3, 4, 5, 6, 7, 8])?.reshape(&[2, 2, 2])?;
/// assert_eq!(gpu.download(&gpu.reduce(ops::Sum, &x, 0)?)?, [6, 8, 10, 12]);
/// assert_eq!(gpu.download(&gpu.reduce(ops::Sum, &x, [0, -1])?)?, [14, 22]);
/// let kept = gpu.reduce(ops::Sum, &x, Axes::from([0, -1]).keep_dims())?;
/// assert_eq!(kept.extents(), [1, 2, 1]);
/// assert_eq!(gpu.reduce(ops::Sum, &x, Axes::ALL)?.rank(), 0);
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    names: [isize; MAX_RANK],
    /// The number of names that were given, which may be more than there is room for.
    len: usize,
    is_all: bool,
    keep_dims: bool,
}

impl Axes {
    /// All axes: the result is one element.
    pub const ALL: Self = Self { names: [0; MAX_RANK], len: 0, is_all: true, keep_dims: false };

    /// The same axes, which the result keeps, with an extent of 1: NumPy's `keepdims`.
    #[must_use]
    pub const fn keep_dims(self) -> Self {
        Self { keep_dims: true, ..self }
    }

    /// Whether each axis of a layout is reduced.
    pub(crate) fn of(&self, layout: &Layout) -> Result<Reduced, Error> {
        if self.len > MAX_RANK {
            return Err(Error::TooManyAxes { operation: OPERATION, found: self.len, max: MAX_RANK });
        }
        let named = distinct(OPERATION, &self.names[..self.len], layout.rank())?;
        Ok(Reduced { is_reduced: named.map(|name| self.is_all || name.is_some()), keep_dims: self.keep_dims })
    }
}

impl From<&[isize]> for Axes {
    fn from(axes: &[isize]) -> Self {
        let mut names = [0; MAX_RANK];
        names.iter_mut().zip(axes).for_each(|(name, &axis)| *name = axis);
        Self { names, len: axes.len(), is_all: false, keep_dims: false }
    }
}

impl<const N: usize> From<[isize; N]> for Axes {
    fn from(axes: [isize; N]) -> Self {
        Self::from(&axes[..])
    }
}

impl From<isize> for Axes {
    fn from(axis: isize) -> Self {
        Self::from([axis])
    }
}

/// The axes of a layout that are reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    is_reduced: [bool; MAX_RANK],
    keep_dims: bool,
}

impl Reduced {
    /// Whether this axis is reduced.
    pub fn has(&self, axis: usize) -> bool {
        self.is_reduced[axis]
    }

    /// The number of axes of `rank` that are reduced.
    pub fn count(&self, rank: usize) -> usize {
        self.is_reduced[..rank].iter().filter(|is_reduced| **is_reduced).count()
    }

    /// The extents of the outputs.
    pub fn output_extents(&self, layout: &Layout) -> Vec<usize> {
        let all = layout.extents().iter().enumerate();
        all.filter_map(|(axis, &extent)| match (self.has(axis), self.keep_dims) {
            (false, _) => Some(extent),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect()
    }
}
