//! Arrays that own their elements.

use std::fmt;

use cuda_std::element::Stored;

use super::{ArrayView, ArrayViewMut, Layout};
use crate::{Buffer, Error};

/// An array in a device's memory, in C order without gaps.
///
/// ```
/// use warpfold::{Gpu, ops};
///
/// let gpu = Gpu::first_or_simt()?;
/// let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[2, 3])?;
/// let t = gpu.transpose(&a)?;
/// assert_eq!(t.extents(), [3, 2]);
/// assert_eq!(gpu.download(&t)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct Array<T> {
    buffer: Buffer<T>,
    layout: Layout,
}

impl<T: Stored> Array<T> {
    /// The array of a buffer's elements. The layout is contiguous, and the buffer has its elements.
    pub(crate) fn new(buffer: Buffer<T>, layout: Layout) -> Self {
        Self { buffer, layout }
    }

    /// The whole array, to be read.
    pub fn view(&self) -> ArrayView<'_, T> {
        ArrayView::unchecked(self.buffer.view(), self.layout)
    }

    /// The whole array, to be written.
    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T> {
        ArrayViewMut::unchecked(self.buffer.view_mut(), self.layout)
    }

    /// The elements in C order, for a kernel.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements in C order, for a kernel.
    pub fn buffer_mut(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }

    /// The elements in C order.
    pub fn into_buffer(self) -> Buffer<T> {
        self.buffer
    }

    /// The layout: extents, and the strides of C order.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of elements along each axis.
    pub fn extents(&self) -> &[usize] {
        self.layout.extents()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The same elements in C order, as an array of these extents. Copies nothing.
    ///
    /// # Errors
    /// The extents are of another number of elements.
    pub fn reshape(self, extents: &[usize]) -> Result<Self, Error> {
        let layout = self.layout.reshape(extents)?;
        Ok(Self { layout, ..self })
    }
}

impl<T: Stored> Buffer<T> {
    /// The elements as an array of these extents, in C order. Copies nothing.
    ///
    /// # Errors
    /// The extents are of another number of elements.
    pub fn reshape(self, extents: &[usize]) -> Result<Array<T>, Error> {
        Array::from(self).reshape(extents)
    }
}

/// An array of one axis.
impl<T: Stored> From<Buffer<T>> for Array<T> {
    fn from(buffer: Buffer<T>) -> Self {
        let layout = Layout::of_len(buffer.len());
        Self { buffer, layout }
    }
}

impl<T> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("extents", &self.layout.extents()).field("buffer", &self.buffer).finish()
    }
}
