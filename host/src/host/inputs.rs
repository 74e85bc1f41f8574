//! What a reduction on the host takes as an array.

use cuda_std::element::Element;

use super::View;
use crate::{Error, Layout};

/// An array in host memory: a [`View`], or a slice, an array or a vector by reference, which has one axis. With the
/// feature `ndarray`, a view or a reference of an array of that crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` in host memory",
    note = "pass a slice, a `host::View`, or a view of `ndarray`; `gpu.reduce` takes arrays in a device's memory"
)]
pub trait IntoView<'a, T> {
    /// The array.
    ///
    /// # Errors
    /// It has more than 32 axes.
    fn into_view(self) -> Result<View<'a, T>, Error>;
}

impl<'a, T> IntoView<'a, T> for View<'a, T> {
    fn into_view(self) -> Result<View<'a, T>, Error> {
        Ok(self)
    }
}

impl<'a, T> IntoView<'a, T> for &View<'a, T> {
    fn into_view(self) -> Result<View<'a, T>, Error> {
        Ok(*self)
    }
}

impl<'a, T: Element> IntoView<'a, T> for &'a [T] {
    fn into_view(self) -> Result<View<'a, T>, Error> {
        View::new(self, &Layout::of_len(self.len()))
    }
}

impl<'a, T: Element, const LEN: usize> IntoView<'a, T> for &'a [T; LEN] {
    fn into_view(self) -> Result<View<'a, T>, Error> {
        self[..].into_view()
    }
}

impl<'a, T: Element> IntoView<'a, T> for &'a Vec<T> {
    fn into_view(self) -> Result<View<'a, T>, Error> {
        self[..].into_view()
    }
}

/// The `N` inputs of a reduction on the host: an [array](IntoView), or a pair of arrays for an operator of two inputs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not {N} arrays of `{T}` in host memory",
    note = "pass a slice, a `host::View`, or a view of `ndarray`; two inputs are a pair: `(&x, &y)`"
)]
pub trait IntoViews<'a, T, const N: usize> {
    /// The arrays.
    ///
    /// # Errors
    /// One has more than 32 axes.
    fn into_views(self) -> Result<[View<'a, T>; N], Error>;
}

impl<'a, T, A: IntoView<'a, T>> IntoViews<'a, T, 1> for A {
    fn into_views(self) -> Result<[View<'a, T>; 1], Error> {
        Ok([self.into_view()?])
    }
}

impl<'a, T, A: IntoView<'a, T>, B: IntoView<'a, T>> IntoViews<'a, T, 2> for (A, B) {
    fn into_views(self) -> Result<[View<'a, T>; 2], Error> {
        Ok([self.0.into_view()?, self.1.into_view()?])
    }
}

#[cfg(feature = "ndarray")]
mod of_ndarray {
    use std::ptr::NonNull;

    use ndarray::{ArrayBase, ArrayView, Data, Dimension};

    use super::*;

    impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> IntoView<'a, T> for &'a ArrayBase<S, D> {
        fn into_view(self) -> Result<View<'a, T>, Error> {
            self.view().into_view()
        }
    }

    impl<'a, T: Element, D: Dimension> IntoView<'a, T> for ArrayView<'a, T, D> {
        fn into_view(self) -> Result<View<'a, T>, Error> {
            let first = NonNull::new(self.as_ptr().cast_mut()).expect("an array has an address");
            // SAFETY: the view borrows the elements for `'a`, and these are its extents and strides.
            unsafe { View::of_elements(first, self.shape(), self.strides()) }
        }
    }
}
