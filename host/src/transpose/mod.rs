//! Copies of arrays from any layout to any other: transposes, permutations, slices, and arrays that are repeated.
//!
//! A copy is brought to its [canonical form](canonical), which chooses the [method].

mod canonical;
mod in_place;
mod interleaved;
mod kernel_table;
mod launch;
mod method;
mod packed;
mod scaled;
mod segments;
mod strided;
mod strides;
mod tiling;
mod unit;

use cuda_std::element::Stored;

use crate::array::{IntoArrayView, IntoArrayViewMut, TARGET, check_apart, same_extents};
use crate::{Array, ArrayView, ArrayViewMut, Buffer, Error, Gpu, Layout, View, ViewMut};

use canonical::{Axis, Canonical};
use method::Method;
pub use scaled::{ScaledElement, Scaling};

const OPERATION: &str = "copy an array";

impl Gpu {
    /// An array with the same elements in C order, without gaps.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let x = gpu.upload(&[1, 2, 3, 4, 5, 6])?.reshape(&[2, 3])?;
    /// let odd = gpu.contiguous(x.view().slice(1, .., 2)?.reverse(0)?)?;
    /// assert_eq!(odd.extents(), [2, 2]);
    /// assert_eq!(gpu.download(&odd)?, [4, 6, 1, 3]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The array belongs to another device, or there is no memory for the result.
    pub fn contiguous<'a, T: Stored>(&self, array: impl IntoArrayView<'a, T>) -> Result<Array<T>, Error> {
        let from = array.into_array_view();
        let layout = Layout::contiguous(from.extents())?;
        let mut result = Array::new(Buffer::new(&self.backend(), layout.len(), "allocate an array")?, layout);
        self.copy_array(from, &mut result)?;
        Ok(result)
    }

    /// An array with its axes in another order: axis `i` of the result is axis `axes[i]` of the array, as in NumPy's
    /// `transpose`. The result is contiguous.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// // Two images of 3 pixels with 2 channels each. In the result, each channel's pixels are contiguous.
    /// let pixels = gpu.upload(&[1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60])?.reshape(&[2, 3, 2])?;
    /// let planes = gpu.permute(&pixels, &[0, 2, 1])?;
    /// assert_eq!(gpu.download(&planes)?, [1, 2, 3, 10, 20, 30, 4, 5, 6, 40, 50, 60]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// `axes` does not name each axis once; or as for [`Gpu::contiguous`].
    pub fn permute<'a, T: Stored>(&self, array: impl IntoArrayView<'a, T>, axes: &[isize]) -> Result<Array<T>, Error> {
        self.contiguous(array.into_array_view().permute_axes(axes)?)
    }

    /// The transpose of a matrix, or of each matrix of a batch: the last two axes change places.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[2, 3])?;
    /// assert_eq!(gpu.download(&gpu.transpose(&a)?)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The array has fewer than two axes; or as for [`Gpu::contiguous`].
    pub fn transpose<'a, T: Stored>(&self, array: impl IntoArrayView<'a, T>) -> Result<Array<T>, Error> {
        let array = array.into_array_view();
        self.contiguous(array.permute_axes(&last_two_exchanged("transpose", array.layout())?)?)
    }

    /// Copies an array to another one of the same extents, whatever the layouts of the two. Gaps of the target are not
    /// written. Allocates nothing.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let x = gpu.upload(&[1, 2, 3, 4, 5, 6])?.reshape(&[2, 3])?;
    /// let mut y = gpu.zeroed(6)?.reshape(&[3, 2])?;
    /// gpu.copy_array(x.view().permute_axes(&[1, 0])?, &mut y)?;
    /// assert_eq!(gpu.download(&y)?, [1, 4, 2, 5, 3, 6]);
    /// // To the last row, from the right.
    /// gpu.copy_array(&gpu.upload(&[[8, 9]].concat())?, y.view_mut().slice(0, 2.., 1)?.remove_axis(0)?.reverse(0)?)?;
    /// assert_eq!(gpu.download(&y)?, [1, 4, 2, 5, 9, 8]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The extents differ, the two overlap in memory, or one of them belongs to another device.
    pub fn copy_array<'f, 't, T: Stored>(
        &self,
        from: impl IntoArrayView<'f, T>,
        to: impl IntoArrayViewMut<'t, T>,
    ) -> Result<(), Error> {
        let (from, to) = (from.into_array_view(), to.into_array_view_mut());
        self.check_copy(&from, &to)?;
        let (from_layout, to_layout) = (*from.layout(), *to.layout());
        let (from, to) = (from.elements().cast(), to.into_elements().cast());
        self.copy_bytes_of(size_of::<T>(), from, &from_layout, to, &to_layout)
    }

    /// Checks that the two are of the same extents, of this device, and apart in memory.
    fn check_copy<T: Stored>(&self, from: &ArrayView<'_, T>, to: &ArrayViewMut<'_, T>) -> Result<(), Error> {
        self.use_memory(from.elements().memory(), OPERATION)?;
        self.use_memory(to.memory(), OPERATION)?;
        same_extents(OPERATION, from.layout(), to.layout(), TARGET)?;
        check_apart(OPERATION, from, to)
    }

    /// Copies elements of `size` bytes between two layouts of the same extents, of views that have their elements.
    pub(crate) fn copy_bytes_of(
        &self,
        size: usize,
        input: View<'_, u8>,
        from: &Layout,
        output: ViewMut<'_, u8>,
        to: &Layout,
    ) -> Result<(), Error> {
        if from.is_empty() || size == 0 {
            return Ok(());
        }
        let copy = Canonical::new(size, [input.address(), output.address()], from, to);
        let bytes = copy.unit.bytes();
        let method = Method::of(&copy);
        if method == Method::Strided {
            return self.copy_strided(&copy, input, output);
        }
        // Only the general method takes an input whose strides are negative, so these are the lowest addresses.
        let (input, output) = (input.skip(copy.input * bytes)?, output.skip(copy.output * bytes)?);
        match method {
            Method::Contiguous(units) => self.copy(input.slice(0, units * bytes)?, output.slice(0, units * bytes)?),
            Method::Transposes(strides, outer) => each_index(&outer, bytes, input, output, |input, output| {
                self.transpose_units(copy.unit, strides, input, output)
            }),
            Method::Segments(matrix) => self.permute_segments(matrix, copy.unit, input, output),
            Method::Interleaved(matrix) => self.transpose_interleaved(copy.unit, matrix, input, output),
            Method::Strided => Ok(()),
        }
    }
}

/// The axes of an array, of which the last two have changed places.
fn last_two_exchanged(operation: &'static str, layout: &Layout) -> Result<Vec<isize>, Error> {
    let rank = layout.rank();
    if rank < 2 {
        return Err(Error::TooFewAxes { operation, found: rank, minimum: 2 });
    }
    let mut axes: Vec<isize> = (0..rank as isize).collect();
    axes.swap(rank - 1, rank - 2);
    Ok(axes)
}

/// Calls `launch` with the views that begin at each index of these axes. `bytes` are those of a unit.
fn each_index(
    axes: &[Axis],
    bytes: usize,
    input: View<'_, u8>,
    mut output: ViewMut<'_, u8>,
    mut launch: impl FnMut(View<'_, u8>, ViewMut<'_, u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let launches: usize = axes.iter().map(|axis| axis.extent).product();
    for number in 0..launches {
        let (mut left, mut from, mut to) = (number, 0, 0);
        for axis in axes {
            let index = left % axis.extent;
            left /= axis.extent;
            // The strides are not negative.
            from += index * axis.input.unsigned_abs() * bytes;
            to += index * axis.output.unsigned_abs() * bytes;
        }
        launch(input.skip(from)?, output.reborrow().skip(to)?)?;
    }
    Ok(())
}
