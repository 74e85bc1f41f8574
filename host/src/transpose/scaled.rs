//! Copies with an epilogue: a factor, the conjugate, or both.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use half::{bf16, f16};
use kernels::transpose::copy::strided::{ScaledCopyArgs, copy_strided_scaled};
use kernels::transpose::registers::{ScaledRegisterTileArgs, scaled_register_tiles};
use kernels::transpose::tiled::epilogue::{CONJUGATED, MULTIPLIED, Scale};
use kernels::transpose::tiled::kernels::{
    ScaledTileArgs, aligned_scaled_tiles, scaled_tiles, sector_aligned_scaled_tiles,
};
use kernels::transpose::tiled::narrow::scaled_narrow_tiles;
use kernels::transpose::tuning::{REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, narrow_tile_words, tile_elements};
use num_complex::{Complex32, Complex64};

use super::canonical::Canonical;
use super::each_index;
use super::method::Method;
use super::strides::Strides;
use super::tiling::{Tiling, narrow_tiling, sector_aligned_if_enough};
use super::unit::Unit;
use crate::array::{IntoArrayView, IntoArrayViewMut};
use crate::{Error, Gpu, View, ViewMut};

/// The operations on each element of a copy: multiplication by a factor, conjugation, or both (`factor *
/// conj(x)`).
///
/// ```
/// use warpfold::{Gpu, Scaling, num_complex::Complex32};
///
/// let gpu = Gpu::first_or_simt()?;
/// let input = gpu.upload(&[Complex32::new(1.0, 2.0), Complex32::new(3.0, -4.0)])?;
/// let mut output = gpu.zeroed(2)?;
/// let half_of_conjugate = Scaling::by(Complex32::new(0.5, 0.0)).and_conjugate();
/// gpu.copy_scaled(half_of_conjugate, &input, &mut output)?;
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

impl<T: ScaledElement> Scaling<T> {
    fn for_kernels(self) -> KernelScaling {
        KernelScaling {
            operations: if self.factor.is_some() { MULTIPLIED } else { 0 }
                | if self.conjugate { CONJUGATED } else { 0 },
            factor: self.factor.map_or([0.0; 2], private::Sealed::parts),
        }
    }
}

/// A [`Scaling`] as kernels take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelScaling {
    /// A sum of [`CONJUGATED`] and [`MULTIPLIED`].
    pub operations: u32,
    /// The factor's real and imaginary part; zeros if there is none.
    pub factor: [f64; 2],
}

/// The kernels for a type of number.
#[derive(Clone, Copy, Debug)]
pub struct ScaledKernels<B: Plain> {
    /// For small matrices whose rows begin and end at multiples of 16 bytes: in small blocks, and in large ones.
    in_registers: [Kernel<ScaledRegisterTileArgs<'static, B>>; 2],
    /// For other matrices whose rows begin and end at multiples of 16 bytes.
    aligned: Kernel<ScaledTileArgs<'static, B>>,
    unaligned: Unaligned<B>,
    /// For copies that are no transposes of matrices.
    strided: Kernel<ScaledCopyArgs<'static, B>>,
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

/// A type whose elements a copy can scale: f16, bf16, f32, f64, and complex numbers of f32 and f64.
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
                // SAFETY: only the calls below launch the kernels, with arguments made for views that have the shape.
                unsafe {
                    ScaledKernels {
                        in_registers: [
                            scaled_register_tiles::handle::<$type, SMALL_REGISTER_TILES_BLOCK>(),
                            scaled_register_tiles::handle::<$type, REGISTER_TILES_BLOCK>(),
                        ],
                        aligned: aligned_scaled_tiles::handle::<$type, { tile_elements(size_of::<$type>()) }>(),
                        unaligned: $unaligned,
                        strided: copy_strided_scaled::handle::<$type>(),
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
    /// [`Gpu::copy_array`] with each element [scaled](Scaling): for a transposed view BLAS' `omatcopy`, cuBLAS' `geam`.
    /// Allocates nothing.
    ///
    /// ```
    /// use warpfold::{Gpu, Scaling};
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.reshape(&[2, 3])?;
    /// let mut doubled = gpu.zeroed(6)?.reshape(&[3, 2])?;
    /// gpu.copy_scaled(Scaling::by(2.0), a.view().permute_axes(&[1, 0])?, &mut doubled)?;
    /// assert_eq!(gpu.download(&doubled)?, [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Gpu::copy_array`].
    pub fn copy_scaled<'f, 't, T: ScaledElement>(
        &self,
        scaling: Scaling<T>,
        from: impl IntoArrayView<'f, T>,
        to: impl IntoArrayViewMut<'t, T>,
    ) -> Result<(), Error> {
        let (from, to) = (from.into_array_view(), to.into_array_view_mut());
        self.check_copy(&from, &to)?;
        if from.is_empty() {
            return Ok(());
        }
        let size = size_of::<T>();
        let (from_layout, to_layout) = (*from.layout(), *to.layout());
        let copy = Canonical::of_elements(Unit::dividing(size as u64), &from_layout, &to_layout);
        let (input, output) = (from.elements().cast::<u8>(), to.into_elements().cast::<u8>());
        let scaling = scaling.for_kernels();
        match Method::of_scaled(&copy) {
            Method::Transposes(strides, outer) => {
                let (input, output) = (input.skip(copy.input * size)?, output.skip(copy.output * size)?);
                each_index(&outer, size, input, output, |input, output| {
                    self.transpose_scaled::<T>(strides, scaling, input.cast(), output.cast())
                })
            }
            Method::Contiguous(_) | Method::Segments(_) | Method::Interleaved(_) | Method::Strided => {
                self.copy_strided_scaled(T::kernels().strided, &copy, scaling, input.cast(), output.cast())
            }
        }
    }

    /// Launches the kernel for matrices of scaled elements. The views begin with the first of them.
    fn transpose_scaled<T: ScaledElement>(
        &self,
        strides: Strides,
        scaling: KernelScaling,
        input: View<'_, T::Bits>,
        output: ViewMut<'_, T::Bits>,
    ) -> Result<(), Error> {
        let KernelScaling { operations, factor: [real, imaginary] } = scaling;
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
