//! What a call takes as an array.

use cuda_std::element::Stored;

use super::{Array, ArrayView, ArrayViewMut, Layout};
use crate::{Buffer, View, ViewMut};

/// What a call reads: an [`Array`] or an [`ArrayView`] of one; or a [`Buffer`] or a [`View`], which are arrays of one
/// axis.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` in a device's memory",
    label = "not in a device's memory",
    note = "upload it first: `let x = gpu.upload(&numbers)?;`, and pass `&x`; a view is passed by value"
)]
pub trait IntoArrayView<'a, T> {
    /// The array.
    fn into_array_view(self) -> ArrayView<'a, T>;
}

/// What a call writes: a mutable reference of an [`Array`], or an [`ArrayViewMut`] of one; or of a [`Buffer`], or a
/// [`ViewMut`], which are arrays of one axis.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` in a device's memory that can be written",
    label = "cannot be written by a device",
    note = "make one with `let mut y = gpu.zeroed(len)?;`, and pass `&mut y`; a view is passed by value"
)]
pub trait IntoArrayViewMut<'a, T> {
    /// The array.
    fn into_array_view_mut(self) -> ArrayViewMut<'a, T>;
}

impl<'a, T: Stored> IntoArrayView<'a, T> for ArrayView<'a, T> {
    fn into_array_view(self) -> ArrayView<'a, T> {
        self
    }
}

impl<'a, T: Stored> IntoArrayView<'a, T> for &ArrayView<'a, T> {
    fn into_array_view(self) -> ArrayView<'a, T> {
        *self
    }
}

impl<'a, T: Stored> IntoArrayView<'a, T> for &'a Array<T> {
    fn into_array_view(self) -> ArrayView<'a, T> {
        self.view()
    }
}

impl<'a, T: Stored> IntoArrayView<'a, T> for View<'a, T> {
    fn into_array_view(self) -> ArrayView<'a, T> {
        ArrayView::unchecked(self, Layout::of_len(self.len()))
    }
}

impl<'a, T: Stored> IntoArrayView<'a, T> for &'a Buffer<T> {
    fn into_array_view(self) -> ArrayView<'a, T> {
        self.view().into_array_view()
    }
}

impl<'a, T: Stored> IntoArrayViewMut<'a, T> for ArrayViewMut<'a, T> {
    fn into_array_view_mut(self) -> ArrayViewMut<'a, T> {
        self
    }
}

impl<'a, T: Stored> IntoArrayViewMut<'a, T> for &'a mut Array<T> {
    fn into_array_view_mut(self) -> ArrayViewMut<'a, T> {
        self.view_mut()
    }
}

impl<'a, T: Stored> IntoArrayViewMut<'a, T> for ViewMut<'a, T> {
    fn into_array_view_mut(self) -> ArrayViewMut<'a, T> {
        let layout = Layout::of_len(self.len());
        ArrayViewMut::unchecked(self, layout)
    }
}

impl<'a, T: Stored> IntoArrayViewMut<'a, T> for &'a mut Buffer<T> {
    fn into_array_view_mut(self) -> ArrayViewMut<'a, T> {
        self.view_mut().into_array_view_mut()
    }
}

/// The elements in C order, for a kernel.
impl<'a, T: Stored> From<&'a Array<T>> for View<'a, T> {
    fn from(array: &'a Array<T>) -> Self {
        array.buffer().view()
    }
}

/// The elements in C order, for a kernel.
impl<'a, T: Stored> From<&'a mut Array<T>> for ViewMut<'a, T> {
    fn from(array: &'a mut Array<T>) -> Self {
        array.buffer_mut().view_mut()
    }
}
