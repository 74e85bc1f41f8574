//! The inputs of a reduction.

use cuda_std::element::Stored;

use crate::array::IntoArrayView;
use crate::{ArrayView, Layout};

/// The `N` inputs of a reduction: an array, or a pair of arrays for an operator of two inputs.
///
/// An array is what [`IntoArrayView`] is: a reference of an [`Array`](crate::Array) or of a [`Buffer`](crate::Buffer),
/// or a view.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not {N} arrays of `{T}` in a device's memory",
    label = "not in a device's memory",
    note = "upload it first: `let x = gpu.upload(&numbers)?;`, and pass `&x`; a view is passed by value",
    note = "two inputs are a pair: `(&x, &y)`"
)]
pub trait IntoInputs<'a, T, const N: usize> {
    /// The arrays.
    fn into_inputs(self) -> [ArrayView<'a, T>; N];
}

impl<'a, T: Stored, A: IntoArrayView<'a, T>> IntoInputs<'a, T, 1> for A {
    fn into_inputs(self) -> [ArrayView<'a, T>; 1] {
        [self.into_array_view()]
    }
}

impl<'a, T: Stored, A: IntoArrayView<'a, T>, B: IntoArrayView<'a, T>> IntoInputs<'a, T, 2> for (A, B) {
    fn into_inputs(self) -> [ArrayView<'a, T>; 2] {
        [self.0.into_array_view(), self.1.into_array_view()]
    }
}

/// The layout of the one input of a reduction.
impl<'a> From<&'a Layout> for [&'a Layout; 1] {
    fn from(layout: &'a Layout) -> Self {
        [layout]
    }
}
