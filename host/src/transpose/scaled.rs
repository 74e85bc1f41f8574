//! Transposes with an epilogue: a factor, the conjugate, or both.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use half::{bf16, f16};
use kernels::transpose::registers::{ScaledRegisterTileArgs, scaled_register_tiles};
use kernels::transpose::tiled::epilogue::{CONJUGATED, MULTIPLIED, Scale};
use kernels::transpose::tiled::kernels::{
    ScaledTileArgs, aligned_scaled_tiles, scaled_tiles, sector_aligned_scaled_tiles,
};
use kernels::transpose::tiled::narrow::scaled_narrow_tiles;
use kernels::transpose::tuning::{REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, narrow_tile_words, tile_elements};
use num_complex::{Complex32, Complex64};

use super::Transposition;
use super::strides::Strides;
use super::tiling::{Tiling, narrow_tiling, sector_aligned_if_enough};
use crate::{Error, Gpu, Matrix, View, ViewMut};

/// The operations on each element of a transpose: multiplication by a factor, conjugation, or both (`factor *
/// conj(x)`).
///
/// ```
/// use warpfold::{Gpu, Scaling, Transposition, num_complex::Complex32};
///
/// let gpu = Gpu::first_or_simt()?;
/// let input = gpu.upload(&[Complex32::new(1.0, 2.0), Complex32::new(3.0, -4.0)])?;
/// let mut output = gpu.zeroed(2)?;
/// let half_of_conjugate = Scaling::by(Complex32::new(0.5, 0.0)).and_conjugate();
/// gpu.transpose_views_scaled(Transposition::new(1, 2), half_of_conjugate, &input, &mut output)?;
/// assert_eq!(gpu.download(&output)?, [Complex32::new(0.5, -1.0), Complex32::new(1.5, 2.0)]);
/// # Ok::<(), warpfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling<T> {
    factor: Option<T>,
    conjugate: bool,
}

impl<T> Scaling<T> {
    /// Multiplication by `factor`, rounded as a product of the type is. f16 and bf16 are multiplied in f32. A complex
    /// product rounds each of its four products and two sums. Every NaN has the same bits. A factor of 0 makes NaN of
    /// NaN and infinities.
    pub const fn by(factor: T) -> Self {
        Self { factor: Some(factor), conjugate: false }
    }

    /// Complex conjugation: only the sign of the imaginary part changes. A real number is its own conjugate.
    pub const fn conjugate() -> Self {
        Self { factor: None, conjugate: true }
    }

    /// The same factor, applied to the conjugate.
    pub fn and_conjugate(self) -> Self {
        Self { factor: self.factor, conjugate: true }
    }
}

/// The kernels for a type of number.
#[derive(Clone, Copy, Debug)]
pub struct ScaledKernels<B: Plain> {
    /// For small matrices whose rows begin and end at multiples of 16 bytes: in small blocks, and in large ones.
    in_registers: [Kernel<ScaledRegisterTileArgs<'static, B>>; 2],
    /// For other matrices whose rows begin and end at multiples of 16 bytes.
    aligned: Kernel<ScaledTileArgs<'static, B>>,
    unaligned: Unaligned<B>,
}

/// The kernels for matrices whose rows do not begin and end at multiples of 16 bytes.
#[derive(Clone, Copy, Debug)]
enum Unaligned<B: Plain> {
    /// For types of less than 4 bytes: sector-aligned tiles if there are enough, else tiles of unaligned vectors.
    Tiles { sector_aligned: Kernel<ScaledTileArgs<'static, B>>, tiles: Kernel<ScaledTileArgs<'static, B>> },
    /// For types of 4 and 8 bytes: sector-aligned tiles if there are enough, else narrow tiles. The second of the
    /// narrow kernels has small tiles.
    Narrow { sector_aligned: Kernel<ScaledTileArgs<'static, B>>, narrow: [Kernel<ScaledTileArgs<'static, B>>; 2] },
    /// For types of 16 bytes: each element is a vector, so rows are always aligned.
    Never,
}

/// A type that a transpose can scale: f16, bf16, f32, f64, and complex numbers of f32 and f64.
pub trait ScaledElement: private::Sealed {}

mod private {
    use super::{Scale, ScaledKernels};

    pub trait Sealed: Scale {
        /// The type's kernels.
        fn kernels() -> ScaledKernels<Self::Bits>;
        /// The real and the imaginary part.
        fn parts(self) -> [f64; 2];
    }
}

macro_rules! scaled {
    ($($type:ident, $unaligned:expr, |$x:ident| $parts:expr;)*) => {$(
        impl ScaledElement for $type {}
        impl private::Sealed for $type {
            fn kernels() -> ScaledKernels<Self::Bits> {
                // SAFETY: only the plan below launches the kernels, with arguments made for views that have the shape.
                unsafe {
                    ScaledKernels {
                        in_registers: [
                            scaled_register_tiles::handle::<$type, SMALL_REGISTER_TILES_BLOCK>(),
                            scaled_register_tiles::handle::<$type, REGISTER_TILES_BLOCK>(),
                        ],
                        aligned: aligned_scaled_tiles::handle::<$type, { tile_elements(size_of::<$type>()) }>(),
                        unaligned: $unaligned,
                    }
                }
            }
            fn parts(self) -> [f64; 2] {
                let $x = self;
                $parts
            }
        }
    )*};
}

macro_rules! tiles {
    ($type:ident) => {
        Unaligned::Tiles {
            sector_aligned: sector_aligned_scaled_tiles::handle::<$type, { tile_elements(size_of::<$type>()) }>(),
            tiles: scaled_tiles::handle::<$type, { tile_elements(size_of::<$type>()) }>(),
        }
    };
}

macro_rules! narrow {
    ($type:ident) => {
        Unaligned::Narrow {
            sector_aligned: sector_aligned_scaled_tiles::handle::<$type, { tile_elements(size_of::<$type>()) }>(),
            narrow: [
                scaled_narrow_tiles::handle::<$type, { narrow_tile_words(size_of::<$type>(), false) }>(),
                scaled_narrow_tiles::handle::<$type, { narrow_tile_words(size_of::<$type>(), true) }>(),
            ],
        }
    };
}

scaled! {
    f16, tiles!(f16), |x| [x.to_f64(), 0.0];
    bf16, tiles!(bf16), |x| [x.to_f64(), 0.0];
    f32, narrow!(f32), |x| [x.into(), 0.0];
    f64, narrow!(f64), |x| [x, 0.0];
    Complex32, narrow!(Complex32), |x| [x.re.into(), x.im.into()];
    Complex64, Unaligned::Never, |x| [x.re, x.im];
}

impl<B: Plain> ScaledKernels<B> {
    /// The best kernel for these matrices, and its tiling. `address` is the OR of both sides' addresses.
    fn for_matrices(&self, strides: &Strides, address: u64) -> (Kernel<ScaledTileArgs<'static, B>>, Tiling) {
        let size = size_of::<B>();
        let by_vectors = Tiling::of_vectors(tile_elements(size), size);
        if strides.is_aligned(address, size) {
            return (self.aligned, by_vectors);
        }
        match self.unaligned {
            Unaligned::Never => (self.aligned, by_vectors),
            Unaligned::Tiles { sector_aligned, tiles } => {
                sector_aligned_if_enough(strides, size).map_or((tiles, by_vectors), |tiling| (sector_aligned, tiling))
            }
            Unaligned::Narrow { sector_aligned, narrow } => match sector_aligned_if_enough(strides, size) {
                Some(tiling) => (sector_aligned, tiling),
                None => {
                    let (tiling, is_small) = narrow_tiling(strides, size);
                    (narrow[usize::from(is_small)], tiling)
                }
            },
        }
    }
}

impl Gpu {
    /// The transpose with each element multiplied by `factor`, as a new matrix: BLAS' `omatcopy`, cuBLAS' `geam`.
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let a = gpu.upload_matrix(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
    /// let doubled = gpu.transpose_scaled(2.0, &a)?;
    /// assert_eq!(gpu.download_matrix(&doubled)?, [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// The matrix belongs to another device, or there is no memory for the result.
    pub fn transpose_scaled<T: ScaledElement>(&self, factor: T, matrix: &Matrix<T>) -> Result<Matrix<T>, Error> {
        let mut result = self.zeroed_matrix(matrix.columns(), matrix.rows())?;
        let shape = Transposition::between(matrix, &result)?;
        self.transpose_views_scaled(shape, Scaling::by(factor), matrix, result.buffer_mut())?;
        Ok(result)
    }

    /// The conjugate transpose, as a new matrix.
    ///
    /// # Errors
    /// As for [`Gpu::transpose_scaled`].
    pub fn conjugate_transpose<T: ScaledElement>(&self, matrix: &Matrix<T>) -> Result<Matrix<T>, Error> {
        let mut result = self.zeroed_matrix(matrix.columns(), matrix.rows())?;
        let shape = Transposition::between(matrix, &result)?;
        self.transpose_views_scaled(shape, Scaling::conjugate(), matrix, result.buffer_mut())?;
        Ok(result)
    }

    /// [`Gpu::transpose_views`] with each element [scaled](Scaling). Allocates nothing.
    ///
    /// # Errors
    /// As for [`Gpu::transpose_views`].
    pub fn transpose_views_scaled<'i, 'o, T: ScaledElement>(
        &self,
        shape: Transposition,
        scaling: Scaling<T>,
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, T>>,
    ) -> Result<(), Error> {
        let (input, output) = (input.into(), output.into());
        if shape.check(self, &input, &output)? == 0 {
            return Ok(());
        }
        let strides = shape.strides();
        let [real, imaginary] = scaling.factor.map_or([0.0; 2], private::Sealed::parts);
        let operations =
            if scaling.factor.is_some() { MULTIPLIED } else { 0 } | if scaling.conjugate { CONJUGATED } else { 0 };
        let (input, output) = (input.cast::<T::Bits>(), output.cast::<T::Bits>());
        let (kernels, size) = (T::kernels(), size_of::<T>());
        let address = input.address() | output.address();
        let Strides { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch, .. } = strides;
        if strides.is_small(size) && strides.is_aligned(address, size) {
            let (rows, columns) = (rows as u32, columns as u32);
            let arguments = ScaledRegisterTileArgs {
                input,
                output,
                rows,
                columns,
                input_pitch,
                output_pitch,
                input_batch_pitch,
                output_batch_pitch,
                operations,
                real,
                imaginary,
            };
            let (kernel, grid) = strides.register_kernel(size, kernels.in_registers);
            return self.launch(kernel, grid, arguments);
        }
        let (kernel, tiling) = kernels.for_matrices(&strides, address);
        strides.in_panels(tiling, input, output, |strides, input, output| {
            let Strides { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch, .. } =
                strides;
            let (log2_across, [tiles_down, tiles_across]) = tiling.parameters(rows, columns);
            let log2_partitions = strides.partitions(size);
            strides.in_grids(tiling.tiles(rows, columns), input, output, |grid, input, output| {
                let arguments = ScaledTileArgs {
                    input,
                    output,
                    rows,
                    columns,
                    input_pitch,
                    output_pitch,
                    input_batch_pitch,
                    output_batch_pitch,
                    log2_across,
                    tiles_down,
                    tiles_across,
                    log2_partitions,
                    operations,
                    real,
                    imaginary,
                };
                self.launch(kernel, grid, arguments)
            })
        })
    }
}
