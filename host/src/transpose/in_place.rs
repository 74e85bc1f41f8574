//! Transposes of square matrices in place.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::tiled::in_place::{InPlaceArgs, aligned_in_place_tiles, elements_of_tile, in_place_tiles};
use kernels::transpose::tuning::{MIN_LARGE_TILES, small_in_place_elements};

use super::strides::grids;
use super::unit::{Unit, check_element};
use super::{OPERATION, Transposition};
use crate::{Error, Gpu, Matrix, ViewMut};

impl Gpu {
    /// Transposes a square matrix in place. Allocates nothing.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let mut a = gpu.upload_matrix(&[1, 2, 3, 4], 2, 2)?;
    /// gpu.transpose_in_place(&mut a)?;
    /// assert_eq!(gpu.download_matrix(&a)?, [1, 3, 2, 4]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// An element has no bytes or more than 64, the matrix is not square, or belongs to another device. (For other
    /// shapes, elements would move along long cycles. [`Gpu::transpose`], which writes a second matrix, is faster than
    /// that.)
    pub fn transpose_in_place<T: Plain>(&self, matrix: &mut Matrix<T>) -> Result<(), Error> {
        let shape = Transposition::new(matrix.rows(), matrix.columns());
        self.transpose_views_in_place(shape, matrix.buffer_mut())
    }

    /// Transposes a batch of square matrices in place. The two pitches of `shape` must be equal.
    ///
    /// # Errors
    /// An element has no bytes or more than 64, the matrices are not square, the pitches differ, the view is shorter
    /// than the shape or belongs to another device, or no memory could hold the shape.
    pub fn transpose_views_in_place<'m, T: Plain>(
        &self,
        shape: Transposition,
        matrices: impl Into<ViewMut<'m, T>>,
    ) -> Result<(), Error> {
        let matrices = matrices.into();
        check_element::<T>(OPERATION)?;
        self.use_memory(matrices.memory(), OPERATION)?;
        let Transposition { rows, columns, input_pitch, output_pitch, .. } = shape;
        if rows != columns {
            let expected = format!(
                "but the matrix has {rows} rows, and only square matrices can be transposed in place: use `transpose`, \
                 which writes a new matrix"
            );
            return Err(Error::Shape { operation: OPERATION, what: "the number of columns", found: columns, expected });
        }
        if input_pitch != output_pitch {
            let expected = format!("but the input's is {input_pitch}, and in place the two must be equal");
            return Err(Error::Shape {
                operation: OPERATION,
                what: "the output's pitch",
                found: output_pitch,
                expected,
            });
        }
        let Some(needed) = shape.input_elements(size_of::<T>()) else {
            return Err(Error::ShapeOverflow { rows: rows.saturating_mul(shape.batch), columns, size: size_of::<T>() });
        };
        if matrices.len() < needed {
            let (found, minimum) = (matrices.len(), needed);
            return Err(Error::TooShort { operation: OPERATION, what: "the view of the matrices", found, minimum });
        }
        if rows <= 1 || needed == 0 {
            return Ok(());
        }
        self.transpose_elements_in_place(shape, size_of::<T>(), matrices.cast())
    }

    /// Transposes square matrices of elements of `size` bytes in place. The view is long enough for them.
    fn transpose_elements_in_place(
        &self,
        shape: Transposition,
        size: usize,
        matrices: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        let unit = Unit::dividing(size as u64 | matrices.address());
        if unit.bytes() != size {
            return self.transpose_strided_in_place(&shape.strides(), size, matrices);
        }
        match unit {
            Unit::One => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let (unaligned, aligned) = unsafe {
                    (
                        in_place_tiles::handle::<u8, { elements_of_tile(1) }>(),
                        [
                            aligned_in_place_tiles::handle::<u8, { elements_of_tile(1) }>(),
                            aligned_in_place_tiles::handle::<u8, { small_in_place_elements(1) }>(),
                        ],
                    )
                };
                self.launch_in_place(unaligned, aligned, shape, matrices.cast())
            }
            Unit::Two => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let (unaligned, aligned) = unsafe {
                    (
                        in_place_tiles::handle::<u16, { elements_of_tile(2) }>(),
                        [
                            aligned_in_place_tiles::handle::<u16, { elements_of_tile(2) }>(),
                            aligned_in_place_tiles::handle::<u16, { small_in_place_elements(2) }>(),
                        ],
                    )
                };
                self.launch_in_place(unaligned, aligned, shape, matrices.cast())
            }
            Unit::Four => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let (unaligned, aligned) = unsafe {
                    (
                        in_place_tiles::handle::<u32, { elements_of_tile(4) }>(),
                        [
                            aligned_in_place_tiles::handle::<u32, { elements_of_tile(4) }>(),
                            aligned_in_place_tiles::handle::<u32, { small_in_place_elements(4) }>(),
                        ],
                    )
                };
                self.launch_in_place(unaligned, aligned, shape, matrices.cast())
            }
            Unit::Eight => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let (unaligned, aligned) = unsafe {
                    (
                        in_place_tiles::handle::<u64, { elements_of_tile(8) }>(),
                        [aligned_in_place_tiles::handle::<u64, { elements_of_tile(8) }>(); 2],
                    )
                };
                self.launch_in_place(unaligned, aligned, shape, matrices.cast())
            }
            Unit::Sixteen => {
                // Elements of 16 bytes are vectors, so they are always aligned.
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let aligned = unsafe { [aligned_in_place_tiles::handle::<u128, { elements_of_tile(16) }>(); 2] };
                self.launch_in_place(aligned[0], aligned, shape, matrices.cast())
            }
        }
    }

    /// Launches `kernel`, or one of `aligned` if all rows begin and end at multiples of 16 bytes. The second of
    /// `aligned` has smaller tiles.
    fn launch_in_place<T: Plain>(
        &self,
        kernel: Kernel<InPlaceArgs<'static, T>>,
        aligned: [Kernel<InPlaceArgs<'static, T>>; 2],
        shape: Transposition,
        mut matrices: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Transposition { rows: side, batch, input_pitch: pitch, .. } = shape;
        let size = size_of::<T>();
        let pairs = |elements: usize| {
            let tiles = side.div_ceil(elements.isqrt());
            tiles * (tiles + 1) / 2
        };
        let has_small_tiles = pairs(elements_of_tile(size)).saturating_mul(batch) < MIN_LARGE_TILES;
        let (kernel, pairs) = match shape.strides().is_aligned(matrices.address(), size) {
            false => (kernel, pairs(elements_of_tile(size))),
            true if has_small_tiles => (aligned[1], pairs(small_in_place_elements(size))),
            true => (aligned[0], pairs(elements_of_tile(size))),
        };
        let batch_pitch = side * pitch;
        for range in grids(batch, pairs) {
            let matrix = matrices.reborrow().skip(range.start * batch_pitch)?;
            let arguments = InPlaceArgs { matrix, side, pitch, batch_pitch };
            self.launch(kernel, (pairs * range.len()) as u32, arguments)?;
        }
        Ok(())
    }
}
