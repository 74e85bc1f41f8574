//! Views of arrays.

use std::fmt;
use std::ops::RangeBounds;

use cuda_std::element::Stored;

use super::{IntoArrayView, IntoArrayViewMut, Layout};
use crate::backend::Memory;
use crate::{Error, View, ViewMut};

/// An array that a call reads: a view, and the [`Layout`] of the elements in it.
///
/// Its methods are NumPy's, and copy nothing. Axes are counted from 0, or from the end: -1 is the last.
///
/// ```
/// use warpfold::Gpu;
///
/// let gpu = Gpu::first_or_simt()?;
/// let x = gpu.upload(&[1, 2, 3, 4, 5, 6])?.reshape(&[2, 3])?;
/// let columns = x.view().permute_axes(&[1, 0])?;
/// assert_eq!(columns.extents(), [3, 2]);
/// assert_eq!(gpu.download(columns)?, [1, 4, 2, 5, 3, 6]);
/// assert_eq!(gpu.download(x.view().slice(1, ..2, 1)?.reverse(0)?)?, [4, 5, 1, 2]);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct ArrayView<'a, T> {
    elements: View<'a, T>,
    layout: Layout,
}

impl<T> Clone for ArrayView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ArrayView<'_, T> {}

/// An array that a call writes: a view, and the [`Layout`] of the elements in it, no two of which share memory.
///
/// It may have gaps, which are not written, and negative strides.
///
/// ```
/// use warpfold::Gpu;
///
/// let gpu = Gpu::first_or_simt()?;
/// let mut y = gpu.zeroed::<i32>(8)?.reshape(&[2, 4])?;
/// let x = gpu.upload(&[1, 2, 3, 4])?.reshape(&[2, 2])?;
/// gpu.copy_array(&x, y.view_mut().slice(1, .., 2)?)?;
/// assert_eq!(gpu.download(&y)?, [1, 0, 2, 0, 3, 0, 4, 0]);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub struct ArrayViewMut<'a, T> {
    elements: ViewMut<'a, T>,
    layout: Layout,
}

impl<'a, T: Stored> ArrayView<'a, T> {
    /// The elements of a view in this layout.
    ///
    /// # Errors
    /// The view does not have all elements of the layout.
    pub fn new(elements: View<'a, T>, layout: &Layout) -> Result<Self, Error> {
        check_length(elements.len(), layout)?;
        Ok(Self { elements, layout: *layout })
    }

    /// [`ArrayView::new`] of a layout that the view has.
    pub(crate) fn unchecked(elements: View<'a, T>, layout: Layout) -> Self {
        Self { elements, layout }
    }

    /// The memory that has the elements, and others.
    pub(crate) fn elements(&self) -> View<'a, T> {
        self.elements
    }

    /// The elements in C order, if they are neighbours.
    ///
    /// # Errors
    /// They are not, so that only [a copy](crate::Gpu::contiguous) is such a view.
    pub fn as_view(&self) -> Result<View<'a, T>, Error> {
        self.elements.slice(contiguous_offset(&self.layout)?, self.layout.len())
    }
}

impl<'a, T: Stored> ArrayViewMut<'a, T> {
    /// The elements of a view in this layout.
    ///
    /// # Errors
    /// The view does not have all elements of the layout, or two of its elements could share memory: in the order of
    /// their strides' magnitudes, each axis must have a larger stride than all before it reach.
    pub fn new(elements: ViewMut<'a, T>, layout: &Layout) -> Result<Self, Error> {
        check_length(elements.len(), layout)?;
        layout.check_apart()?;
        Ok(Self { elements, layout: *layout })
    }

    /// [`ArrayViewMut::new`] of a layout that the view has, and whose elements do not share memory.
    pub(crate) fn unchecked(elements: ViewMut<'a, T>, layout: Layout) -> Self {
        Self { elements, layout }
    }

    /// A view of the same elements, to use this view for several calls in turn. While the new view exists, this one
    /// cannot be used.
    pub fn reborrow(&mut self) -> ArrayViewMut<'_, T> {
        ArrayViewMut { elements: self.elements.reborrow(), layout: self.layout }
    }

    /// A view of the same elements, to be read.
    pub fn as_array_view(&self) -> ArrayView<'_, T> {
        ArrayView { elements: self.elements.as_view(), layout: self.layout }
    }

    /// The memory of the elements.
    pub(crate) fn memory(&self) -> &Memory {
        self.elements.memory()
    }

    /// The address of the view that has the elements.
    pub(crate) fn address(&self) -> u64 {
        self.elements.address()
    }

    /// The memory that has the elements, and others.
    pub(crate) fn into_elements(self) -> ViewMut<'a, T> {
        self.elements
    }

    /// The elements in C order, if they are neighbours.
    ///
    /// # Errors
    /// They are not.
    pub fn into_view(self) -> Result<ViewMut<'a, T>, Error> {
        self.elements.slice(contiguous_offset(&self.layout)?, self.layout.len())
    }
}

/// The methods of both kinds of views, which change the layout alone.
macro_rules! layouts {
    ($($view:ident)*) => {$(
        impl<'a, T: Stored> $view<'a, T> {
            /// The layout of the elements in the view that has them.
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
                self.layout.len()
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.layout.is_empty()
            }

            /// The axes in another order: axis `i` of the result is axis `axes[i]` of this view, as in NumPy's
            /// `transpose`.
            ///
            /// # Errors
            /// As for [`Layout::permute_axes`].
            pub fn permute_axes(self, axes: &[isize]) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.permute_axes(axes)?, ..self })
            }

            /// The elements of a range along one axis, every `step`-th of them.
            ///
            /// # Errors
            /// As for [`Layout::slice`].
            pub fn slice(self, axis: isize, range: impl RangeBounds<usize>, step: usize) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.slice(axis, range, step)?, ..self })
            }

            /// The elements along one axis in the opposite order.
            ///
            /// # Errors
            /// As for [`Layout::reverse`].
            pub fn reverse(self, axis: isize) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.reverse(axis)?, ..self })
            }

            /// A new axis of one element, which becomes axis `at`.
            ///
            /// # Errors
            /// As for [`Layout::insert_axis`].
            pub fn insert_axis(self, at: isize) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.insert_axis(at)?, ..self })
            }

            /// The array without an axis of one element.
            ///
            /// # Errors
            /// As for [`Layout::remove_axis`].
            pub fn remove_axis(self, axis: isize) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.remove_axis(axis)?, ..self })
            }

            /// The same elements in C order, as an array of these extents.
            ///
            /// # Errors
            /// As for [`Layout::reshape`].
            pub fn reshape(self, extents: &[usize]) -> Result<Self, Error> {
                Ok(Self { layout: self.layout.reshape(extents)?, ..self })
            }
        }

        impl<T> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view)).field("layout", &self.layout).finish_non_exhaustive()
            }
        }
    )*};
}

layouts!(ArrayView ArrayViewMut);

impl<'a, T: Stored> ArrayView<'a, T> {
    /// The array repeated along axes of extent 1, and along new axes before the first, to these extents.
    ///
    /// # Errors
    /// As for [`Layout::broadcast_to`].
    pub fn broadcast_to(self, extents: &[usize]) -> Result<Self, Error> {
        Ok(Self { layout: self.layout.broadcast_to(extents)?, ..self })
    }

    /// The elements before an index along the first axis, and the others.
    ///
    /// # Errors
    /// The array has no axis, or fewer elements along the first.
    pub fn split_at(self, index: usize) -> Result<(Self, Self), Error> {
        Ok((self.slice(0, ..index, 1)?, self.slice(0, index.., 1)?))
    }
}

impl<'a, T: Stored> ArrayViewMut<'a, T> {
    /// The elements before an index along the first axis, and the others: two parts that do not share elements.
    ///
    /// # Errors
    /// The array has no axis, or fewer elements along the first.
    pub fn split_at(self, index: usize) -> Result<(Self, Self), Error> {
        let (before, after) = (self.layout.slice(0, ..index, 1)?, self.layout.slice(0, index.., 1)?);
        let [first, second] = self.elements.twice();
        Ok((Self { elements: first, layout: before }, Self { elements: second, layout: after }))
    }
}

impl<'a, T: Stored> View<'a, T> {
    /// The elements as an array of these extents, in C order.
    ///
    /// # Errors
    /// The extents are of another number of elements.
    pub fn reshape(self, extents: &[usize]) -> Result<ArrayView<'a, T>, Error> {
        self.into_array_view().reshape(extents)
    }
}

impl<'a, T: Stored> ViewMut<'a, T> {
    /// The elements as an array of these extents, in C order.
    ///
    /// # Errors
    /// The extents are of another number of elements.
    pub fn reshape(self, extents: &[usize]) -> Result<ArrayViewMut<'a, T>, Error> {
        self.into_array_view_mut().reshape(extents)
    }
}

/// Checks that a view has the elements of a layout.
fn check_length(found: usize, layout: &Layout) -> Result<(), Error> {
    let minimum = layout.required_len();
    if found < minimum {
        return Err(Error::TooShort { operation: "lay out an array", what: "the view", found, minimum });
    }
    Ok(())
}

/// The position of the first element, if the elements are neighbours in C order.
fn contiguous_offset(layout: &Layout) -> Result<usize, Error> {
    if layout.is_empty() {
        return Ok(0);
    }
    // The one axis that all are, or the two that are not one.
    let flat = layout.reshape(&[layout.len()])?;
    if flat.is_contiguous() { Ok(layout.offset()) } else { Err(Error::NotNeighbours { layout: layout.to_string() }) }
}
