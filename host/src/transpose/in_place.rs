//! Transposes of square matrices in place.

use cuda_std::element::{Plain, Stored};
use kernels::transpose::tiled::in_place::{InPlaceArgs, elements_of_tile};
use kernels::transpose::tuning::{MIN_LARGE_TILES, small_in_place_elements};

use super::canonical::{Axis, Canonical, merged};
use super::kernel_table::{HasKernels, InPlaceKernels, for_unit};
use super::last_two_exchanged;
use super::strides::grids;
use super::unit::Unit;
use crate::array::IntoArrayViewMut;
use crate::{Error, Gpu, Layout, ViewMut};

const OPERATION: &str = "transpose in place";

/// Square matrices in place: a batch of `side` x `side` units, whose rows are contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Squares {
    batch: usize,
    side: usize,
    pitch: usize,
    batch_pitch: usize,
}

impl Squares {
    /// The matrices of a layout whose last two axes are square, if their rows are contiguous and begin in ascending
    /// order, and the other axes are one.
    fn of(layout: &Layout) -> Option<Self> {
        let at = layout.rank() - 2;
        let (side, pitch) = (layout.extents()[at], layout.strides()[at]);
        let outer = layout.without(layout.rank() - 1).without(at);
        let axes = outer.extents().iter().zip(outer.strides());
        let axes = axes.map(|(&extent, &stride)| Axis { extent, input: stride, output: stride }).collect();
        let (batch, batch_pitch) = match merged(axes)[..] {
            [] => (1, side as isize * pitch),
            [Axis { extent, input, .. }] => (extent, input),
            _ => return None,
        };
        if layout.strides()[at + 1] != 1 || pitch < side as isize || batch_pitch < 0 {
            return None;
        }
        Some(Self { batch, side, pitch: pitch as usize, batch_pitch: batch_pitch as usize })
    }

    /// Whether all rows begin and end at multiples of 16 bytes.
    fn are_aligned(&self, address: u64, size: usize) -> bool {
        let Self { side, pitch, batch_pitch, .. } = *self;
        address.is_multiple_of(16) && [side, pitch, batch_pitch].iter().all(|&units| (units * size).is_multiple_of(16))
    }
}

impl Gpu {
    /// Transposes a square matrix, or each matrix of a batch, in place: the last two axes change places. Allocates
    /// nothing.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let mut a = gpu.upload(&[1, 2, 3, 4])?.reshape(&[2, 2])?;
    /// gpu.transpose_in_place(&mut a)?;
    /// assert_eq!(gpu.download(&a)?, [1, 3, 2, 4]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The array has fewer than two axes, the last two are not of the same extent, or it belongs to another device.
    /// (For other shapes, elements would move along long cycles. [`Gpu::transpose`], which writes a second array, is
    /// faster than that.)
    pub fn transpose_in_place<'m, T: Stored>(&self, array: impl IntoArrayViewMut<'m, T>) -> Result<(), Error> {
        let array = array.into_array_view_mut();
        self.use_memory(array.memory(), OPERATION)?;
        let layout = *array.layout();
        // Two axes at least.
        let exchanged = layout.permute_axes(&last_two_exchanged(OPERATION, &layout)?)?;
        let at = layout.rank() - 1;
        let (side, found) = (layout.extents()[at - 1], layout.extents()[at]);
        if found != side {
            let expected = format!(
                "{side}, as that before: only square matrices are transposed in place; `transpose` writes a new array"
            );
            return Err(Error::Extent { operation: OPERATION, axis: at, what: "the extent", found, expected });
        }
        let size = size_of::<T>();
        if side <= 1 || layout.is_empty() || size == 0 {
            return Ok(());
        }
        let elements = array.into_elements().cast::<u8>();
        let unit = Unit::dividing(size as u64 | elements.address());
        match Squares::of(&layout).filter(|_| unit.bytes() == size) {
            Some(squares) => self.transpose_squares(unit, squares, elements.skip(layout.offset() * size)?),
            None => self.swap_strided(&Canonical::pairs(unit, size / unit.bytes(), &layout, &exchanged), elements),
        }
    }

    /// Transposes square matrices of elements that one access moves. The view begins with the first.
    fn transpose_squares(&self, unit: Unit, squares: Squares, matrices: ViewMut<'_, u8>) -> Result<(), Error> {
        for_unit!(unit, |U| self.launch_in_place(U::kernels().in_place, squares, matrices.cast::<U>()))
    }

    fn launch_in_place<T: Plain>(
        &self,
        InPlaceKernels { unaligned, aligned }: InPlaceKernels<T>,
        squares: Squares,
        mut matrices: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Squares { batch, side, pitch, batch_pitch } = squares;
        let size = size_of::<T>();
        let pairs = |elements: usize| {
            let tiles = side.div_ceil(elements.isqrt());
            tiles * (tiles + 1) / 2
        };
        let has_small_tiles = pairs(elements_of_tile(size)).saturating_mul(batch) < MIN_LARGE_TILES;
        let (kernel, pairs) = match squares.are_aligned(matrices.address(), size) {
            false => (unaligned, pairs(elements_of_tile(size))),
            true if has_small_tiles => (aligned[1], pairs(small_in_place_elements(size))),
            true => (aligned[0], pairs(elements_of_tile(size))),
        };
        for range in grids(batch, pairs) {
            let matrix = matrices.reborrow().skip(range.start * batch_pitch)?;
            let arguments = InPlaceArgs { matrix, side, pitch, batch_pitch };
            self.launch(kernel, (pairs * range.len()) as u32, arguments)?;
        }
        Ok(())
    }
}
