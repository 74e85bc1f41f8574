//! Calls that reduce and wait for the result, one for each operator.

use cuda_std::element::Element;
use kernels::ops::{All, Any, ArgMax, ArgMin, CountNonzero, Dot, Max, Mean, Min, MinMax, Norm, Product, Sum};

use super::inputs::IntoInputs;
use super::plan::check_inputs;
use super::private::Token;
use super::reducer::Reducer;
use super::{Axes, OPERATION, Reduces, Reduction};
use crate::array::{IntoArrayView, IntoArrayViewMut, SECOND_INPUT, TARGET, check_apart, same_extents};
use crate::{Array, Buffer, Error, Gpu, Layout};

impl Gpu {
    /// A reduction of arrays of certain layouts along some axes, with its memory, which can be started any number of
    /// times. `layouts` is the layout of the input, or a pair of layouts for an operator of two inputs.
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
    pub fn reducer<'l, O: Reduces<T, N>, T: Element, const N: usize>(
        &self,
        operator: O,
        layouts: impl Into<[&'l Layout; N]>,
        axes: impl Into<Axes>,
    ) -> Result<Reducer<T, O::Output, N>, Error> {
        let layouts = layouts.into();
        Reducer::new(self, layouts, operator.plan(self, layouts, axes.into(), Token)?)
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
    /// An operator of two inputs takes a pair, whose extents are broadcast as in NumPy: axes are counted from the last,
    /// and an axis of one element is repeated. Nothing is copied for that.
    ///
    /// ```
    /// use warpfold::{Gpu, ops};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// // The dot product of each row with one vector.
    /// let rows = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[3, 2])?;
    /// let vector = gpu.upload(&[10.0, 1.0])?;
    /// let products = gpu.reduce(ops::Dot, (&rows, &vector), 1)?;
    /// assert_eq!(gpu.download(&products)?, [12.0, 34.0, 56.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An axis does not exist or is named twice, an output has no elements and the operator has no result for that, an
    /// operator that uses an index is given several axes but not all, two inputs cannot be broadcast, an array belongs
    /// to another device, memory runs out, or earlier work has failed.
    pub fn reduce<'i, O: Reduces<T, N>, T: Element, const N: usize>(
        &self,
        operator: O,
        inputs: impl IntoInputs<'i, T, N>,
        axes: impl Into<Axes>,
    ) -> Result<Array<O::Output>, Error> {
        let inputs = inputs.into_inputs();
        let plan = operator.plan(self, inputs.each_ref().map(|input| input.layout()), axes.into(), Token)?;
        check_inputs(self, &inputs)?;
        // A kernel writes every output.
        let buffer = Buffer::new(&self.backend(), plan.output().len(), "allocate an array")?;
        let mut output = Array::new(buffer, *plan.output());
        let mut scratch = plan.scratch(self, true)?;
        let mut workspace = self.workspaces().take(self, plan.workspace_size())?;
        plan.launch(self, &mut workspace, &mut scratch, inputs, output.view_mut())?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }

    /// [`Gpu::reduce`] to an existing array, of any layout.
    ///
    /// # Errors
    /// As for [`Gpu::reduce`]; or the output's extents are not those of the result, or it overlaps an input in memory.
    pub fn reduce_into<'i, 'o, O: Reduces<T, N>, T: Element, const N: usize>(
        &self,
        operator: O,
        inputs: impl IntoInputs<'i, T, N>,
        axes: impl Into<Axes>,
        output: impl IntoArrayViewMut<'o, O::Output>,
    ) -> Result<(), Error> {
        let (inputs, output) = (inputs.into_inputs(), output.into_array_view_mut());
        let plan = operator.plan(self, inputs.each_ref().map(|input| input.layout()), axes.into(), Token)?;
        check_inputs(self, &inputs)?;
        self.use_memory(output.memory(), OPERATION)?;
        same_extents(OPERATION, plan.output(), output.layout(), TARGET)?;
        inputs.iter().try_for_each(|input| check_apart(OPERATION, input, &output))?;
        let mut scratch = plan.scratch(self, output.layout().is_contiguous())?;
        let mut workspace = self.workspaces().take(self, plan.workspace_size())?;
        plan.launch(self, &mut workspace, &mut scratch, inputs, output)?;
        self.workspaces().put_back(workspace);
        Ok(())
    }

    /// Reduces a whole array, or a pair of arrays, to one value.
    ///
    /// # Errors
    /// The array is empty and the operator has no result for no elements, two inputs cannot be broadcast, an array
    /// belongs to another device, memory for the workspace (about 80 KiB for most reductions, once for each handle)
    /// runs out, or earlier work has failed.
    pub fn reduce_all<'i, O: Reduces<T, N>, T: Element, const N: usize>(
        &self,
        operator: O,
        inputs: impl IntoInputs<'i, T, N>,
    ) -> Result<O::Output, Error> {
        let inputs = inputs.into_inputs();
        let plan = operator.plan(self, inputs.each_ref().map(|input| input.layout()), Axes::ALL, Token)?;
        check_inputs(self, &inputs)?;
        self.one_result(plan.workspace_size(), |workspace, output| plan.launch_one(self, workspace, inputs, output))
    }

    /// The dot product of two arrays of the same extents; 0 for no elements. For floats it is exact, rounded once (of
    /// `f16` and `bf16` to `f32`); for integers it is computed in 64 bits. See [`Dot`]. [`Gpu::reduce`] takes it along
    /// any axes.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, y) = (gpu.upload(&[1.0_f32, 2.0, 3.0])?, gpu.upload(&[4.0_f32, 5.0, 6.0])?);
    /// assert_eq!(gpu.dot(&x, &y)?, 32.0);
    /// let (x, y) = (gpu.upload(&[1e300_f64, 3.0, -1e300])?, gpu.upload(&[1e300_f64, 4.0, 1e300])?);
    /// assert_eq!(gpu.dot(&x, &y)?, 12.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The extents of `x` and `y` differ; or as for [`Gpu::reduce_all`].
    pub fn dot<'i, T: Element>(
        &self,
        x: impl IntoArrayView<'i, T>,
        y: impl IntoArrayView<'i, T>,
    ) -> Result<<Dot as Reduces<T, 2>>::Output, Error>
    where
        Dot: Reduces<T, 2>,
    {
        let (x, y) = (x.into_array_view(), y.into_array_view());
        same_extents("dot", x.layout(), y.layout(), SECOND_INPUT)?;
        self.reduce_all(Dot, (x, y))
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
}
