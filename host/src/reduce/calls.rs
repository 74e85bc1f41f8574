//! Calls that reduce and wait for the result, one for each operator.

use cuda_std::element::Element;
use kernels::ops::{
    All, Any, ArgMax, ArgMin, CountFinite, CountNan, CountNonzero, Max, Mean, Min, MinMax, Norm, Product, Sum,
    SumOfSquares,
};

use super::along_axes::AlongAxes;
use super::planned::OPERATION;
use super::reducer::Reducer;
use super::{Axes, Reduction};
use crate::array::{IntoArrayView, IntoArrayViewMut, check_apart, same_extents};
use crate::{Array, Buffer, Error, Gpu, Layout};

impl Gpu {
    /// A reduction of arrays of one layout along some axes, with its memory, which can be started any number of times.
    ///
    /// ```
    /// use warpfold::{Gpu, Layout, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, mut sums) = (gpu.upload(&[1_i32, 2, 3, 4, 5, 6])?, gpu.zeroed(2)?);
    /// let mut reducer = gpu.reducer(ops::Sum, &Layout::contiguous(&[2, 3])?, 1)?;
    /// reducer.start(&x, &mut sums)?;
    /// assert_eq!(gpu.download(&sums)?, [6, 15]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Gpu::reduce`], without an input; or memory runs out.
    pub fn reducer<O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        layout: &Layout,
        axes: impl Into<Axes>,
    ) -> Result<Reducer<T, O::Output>, Error> {
        Reducer::new(self, layout, AlongAxes::plan(self, operator, layout, axes.into())?)
    }

    /// Reduces an array along some axes, to a new array of the others.
    ///
    /// Any layout and any axes are possible. What lies in memory as rows or columns is read as it lies, with any
    /// distance between rows; other layouts are copied first, in parts of at most 256 MiB, unless a single output has
    /// more elements.
    ///
    /// ```
    /// use warpfold::{Gpu, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// // Two images with two channels of 1 x 3 pixels: the mean of each channel.
    /// let images = gpu.upload(&[1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60])?.reshape(&[2, 2, 1, 3])?;
    /// let means = gpu.reduce(ops::Mean, &images, [0, 2, 3])?;
    /// assert_eq!(gpu.download(&means)?, [3.5, 35.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis does not exist or is named twice, an output has no elements and the operator has no result for that, an
    /// operator that uses an index is given several axes but not all, the array belongs to another device, memory runs
    /// out, or earlier work has failed.
    pub fn reduce<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl IntoArrayView<'a, T>,
        axes: impl Into<Axes>,
    ) -> Result<Array<O::Output>, Error> {
        let input = input.into_array_view();
        let along = AlongAxes::plan(self, operator, input.layout(), axes.into())?;
        along.check_input(self, &input)?;
        // A kernel writes every output.
        let buffer = Buffer::new(&self.backend(), along.output().len(), "allocate an array")?;
        let mut output = Array::new(buffer, *along.output());
        let mut scratch = along.scratch(self, true)?;
        let mut workspace = self.workspaces().take(self, along.workspace_size())?;
        along.launch(self, &mut workspace, &mut scratch, input, output.view_mut())?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }

    /// [`Gpu::reduce`] to an existing array, of any layout.
    ///
    /// # Errors
    /// As for [`Gpu::reduce`]; or the output's extents are not those of the result, or it overlaps the input in memory.
    pub fn reduce_into<'i, 'o, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl IntoArrayView<'i, T>,
        axes: impl Into<Axes>,
        output: impl IntoArrayViewMut<'o, O::Output>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into_array_view(), output.into_array_view_mut());
        let along = AlongAxes::plan(self, operator, input.layout(), axes.into())?;
        along.check_input(self, &input)?;
        self.use_memory(output.memory(), OPERATION)?;
        same_extents(OPERATION, along.output(), output.layout())?;
        check_apart(OPERATION, &input, &output)?;
        let mut scratch = along.scratch(self, output.layout().is_contiguous())?;
        let mut workspace = self.workspaces().take(self, along.workspace_size())?;
        along.launch(self, &mut workspace, &mut scratch, input, output)?;
        self.workspaces().put_back(workspace);
        Ok(())
    }

    /// Reduces a whole array to one value.
    ///
    /// # Errors
    /// The array is empty and the operator has no result for no elements, it belongs to another device, memory for the
    /// workspace (about 80 KiB for most reductions, once for each handle) runs out, or earlier work has failed.
    pub fn reduce_all<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl IntoArrayView<'a, T>,
    ) -> Result<O::Output, Error> {
        let input = input.into_array_view();
        let along = AlongAxes::plan(self, operator, input.layout(), Axes::ALL)?;
        along.check_input(self, &input)?;
        self.one_result(along.workspace_size(), |workspace, output| along.launch_one(self, workspace, input, output))
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
            /// As for [`Gpu::reduce_all`].
            pub fn $name<'a, T: Element>(
                &self,
                input: impl IntoArrayView<'a, T>,
            ) -> Result<OutputOf<$operator, T>, Error>
            where
                $operator: Reduction<T>,
            {
                self.reduce_all($operator, input)
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
            /// As for [`Gpu::reduce_all`].
            pub fn $name<'a, T: Element>(&self, input: impl IntoArrayView<'a, T>) -> Result<$output, Error>
            where
                $operator: Reduction<T, Output = $raw>,
            {
                self.reduce_all($operator, input).map($convert)
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
    /// ([`Gpu::exact_sum`]), or [`ExactSums`](crate::ExactSums) on the device.
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
