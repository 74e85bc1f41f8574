//! Calls that reduce and wait for the result, one for each operator.

use cuda_std::element::Element;
use kernels::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Product, Sum,
    SumOfSquares,
};

use super::planned::check_input;
use super::reducer::{Reducer, plan};
use super::{Reduction, Shape};
use crate::{Buffer, Error, Gpu, View};

impl Gpu {
    /// A reduction of one shape with its workspace, which can be started any number of times.
    ///
    /// # Errors
    /// The operator has no result for this shape, or memory for the workspace runs out.
    pub fn reducer<O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        shape: Shape,
    ) -> Result<Reducer<T, O::Output>, Error> {
        Reducer::new(self, shape, plan(self, operator, shape)?)
    }

    /// Reduces a whole view, a buffer or a matrix to one value.
    ///
    /// # Errors
    /// The view is empty and the operator has no result for no elements, the view belongs to another device, memory for
    /// the workspace (about 80 KiB for most reductions, once for each handle) runs out, or earlier work has failed.
    pub fn reduce<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl Into<View<'a, T>>,
    ) -> Result<O::Output, Error> {
        let input = input.into();
        let shape = Shape::all(input.len());
        let planned = plan(self, operator, shape)?;
        check_input(self, shape, input)?;
        self.one_result(planned.workspace_size(), |workspace, output| planned.launch(self, workspace, input, output))
    }

    /// Reduces a view to a buffer with one output for each row, column or segment of the shape.
    ///
    /// The sum of squares and the norm of columns of `f64` first transpose the view, to temporary memory of the view's
    /// size.
    ///
    /// # Errors
    /// As for [`Gpu::reduce`]; or the view is shorter than the shape. Elements past the shape are ignored.
    pub fn reduce_to_buffer<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        let (planned, input) = (plan(self, operator, shape)?, input.into());
        check_input(self, shape, input)?;
        // A kernel writes every output.
        let mut output = Buffer::new(&self.backend(), shape.outputs(), "allocate a buffer")?;
        let mut workspace = self.workspaces().take(self, planned.workspace_size())?;
        planned.launch(self, &mut workspace, input, output.view_mut())?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }
}

/// An operator's output type.
type OutputOf<O, T> = <O as Reduction<T>>::Output;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident by $operator:ident;)*) => {
        impl Gpu {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// As for [`Gpu::reduce`].
            pub fn $name<'a, T: Element>(&self, input: impl Into<View<'a, T>>) -> Result<OutputOf<$operator, T>, Error>
            where
                $operator: Reduction<T>,
            {
                self.reduce($operator, input)
            }
        )*}
    };
}

/// Calls whose output type does not depend on the element type.
macro_rules! calls_of_one_type {
    ($($(#[$doc:meta])* $name:ident by $operator:ident, $raw:ident as $output:ident $convert:expr;)*) => {
        impl Gpu {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// As for [`Gpu::reduce`].
            pub fn $name<'a, T: Element>(&self, input: impl Into<View<'a, T>>) -> Result<$output, Error>
            where
                $operator: Reduction<T, Output = $raw>,
            {
                self.reduce($operator, input).map($convert)
            }
        )*}
    };
}

calls! {
    /// The sum; 0 for no elements. Floats give the exact sum, rounded once (of `f16` and `bf16` to `f32`); integers are
    /// summed in 64 bits. See [`Sum`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// assert_eq!(gpu.sum(&gpu.upload(&[1e20_f32, 1.0, -1e20])?)?, 1.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// For a sum that is continued or stored, use [`warpfold::exact::ExactSum`](crate::exact::ExactSum) on the host
    /// ([`Gpu::partial_sum`]), or [`ExactSums`](crate::ExactSums) on the device.
    sum by Sum;
    /// The product; 1 for no elements. Integers are multiplied in 64 bits, `f16` and `bf16` in `f32`. If partial
    /// products overflow and others underflow, that of finite floats may be NaN: see [`Product`].
    product by Product;
    /// The mean; NaN for no elements. It is the exact sum divided by the number of elements, rounded once. See
    /// [`Mean`].
    mean by Mean;
    /// The sum of squares; 0 for no elements. For floats it is exact, rounded once. See [`SumOfSquares`].
    sum_of_squares by SumOfSquares;
    /// The Euclidean norm; 0 for no elements. Exact, rounded once. See [`Norm`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// assert_eq!(gpu.norm(&gpu.upload(&[3e-200_f64, 4e-200])?)?, 5e-200);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    norm by Norm;
    /// The smallest element; NaN if any is NaN. See [`Min`].
    min by Min;
    /// The largest element; NaN if any is NaN. See [`Max`].
    max by Max;
    /// The smallest and the largest element, in one pass. See [`MinMax`].
    min_max by MinMax;
}

calls_of_one_type! {
    /// The index of the first smallest element, or of the first NaN. See [`ArgMin`].
    argmin by ArgMin, u64 as u64 |index| index;
    /// The index of the first largest element, or of the first NaN. See [`ArgMax`].
    argmax by ArgMax, u64 as u64 |index| index;
    /// Whether any element is not 0; false for no elements. See [`Any`].
    any by Any, u8 as bool |answer| answer != 0;
    /// Whether no element is 0; true for no elements. See [`All`].
    all by All, u8 as bool |answer| answer != 0;
    /// The number of elements that are not 0. See [`CountNonzero`].
    count_nonzero by CountNonzero, u64 as u64 |count| count;
    /// The number of elements that are NaN. See [`CountNan`].
    count_nan by CountNan, u64 as u64 |count| count;
    /// The number of elements that are neither NaN nor infinite. See [`CountFinite`].
    count_finite by CountFinite, u64 as u64 |count| count;
}
