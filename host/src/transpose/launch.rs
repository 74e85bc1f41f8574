//! Chooses and launches the kernel for a transpose.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::registers::register_tiles;
use kernels::transpose::tiled::kernels::TileArgs;

use super::kernel_table::{HasKernels, Kernels, for_unit};
use super::packed::Packed;
use super::strides::Strides;
use super::tiling::{Tiling, narrow_tiling, sector_aligned_if_enough, vector_tiling};
use super::unit::Unit;
use crate::{Error, Gpu, View, ViewMut};

impl Gpu {
    /// Transposes matrices of elements that one access moves. The views begin at multiples of the unit.
    pub(super) fn transpose_units(
        &self,
        unit: Unit,
        strides: Strides,
        input: View<'_, u8>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        for_unit!(unit, |U| self.launch_best(U::kernels(), strides, input.cast::<U>(), output.cast()))
    }

    /// Launches the best kernel for the shape: the first in the table's column that takes it.
    ///
    /// | rows begin and end at multiples of 16 bytes | rows begin anywhere |
    /// |---|---|
    /// | small matrices: in registers | tall-skinny and short-wide matrices: packed |
    /// | rows of one or two vectors: packed | tall enough, and enough tiles: sector-aligned tiles |
    /// | tiles of vectors | narrow tiles |
    ///
    /// [`sector_aligned_if_enough`] decides what is enough.
    fn launch_best<T: Plain>(
        &self,
        kernels: Kernels<T>,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        let is_aligned = strides.is_aligned(input.address() | output.address(), size);
        if is_aligned && strides.is_small(size) {
            return self.transpose_in_registers(kernels.in_registers, strides, input, output);
        }
        if let Some(unaligned) = &kernels.unaligned {
            let packed = if is_aligned { Packed::of_vectors(&strides, size) } else { Packed::of(&strides) };
            if let Some(packed) = packed {
                return self.transpose_packed(unaligned, packed, strides, input, output);
            }
            if !is_aligned {
                if let Some(tiling) = sector_aligned_if_enough(&strides, size) {
                    return self.launch_tiles(unaligned.sector_aligned, tiling, strides, input, output);
                }
                let (tiling, is_small) = narrow_tiling(&strides, size);
                return self.launch_tiles(unaligned.narrow[usize::from(is_small)], tiling, strides, input, output);
            }
        }
        let (tiling, waves) = vector_tiling(&strides, size);
        let kernel = kernels.tiles.of(waves, strides.are_line_pair_aligned(size));
        self.launch_tiles(kernel, tiling, strides, input, output)
    }

    /// Transposes small matrices in registers. Rows begin and end at multiples of 16 bytes.
    fn transpose_in_registers<T: Plain>(
        &self,
        kernels: [Kernel<register_tiles::Args<'static, T>>; 2],
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch, .. } = strides;
        let (kernel, grid) = strides.register_kernel(size_of::<T>(), kernels);
        let (rows, columns) = (rows as u32, columns as u32);
        let arguments = register_tiles::Args {
            input,
            output,
            rows,
            columns,
            input_pitch,
            output_pitch,
            input_batch_pitch,
            output_batch_pitch,
        };
        self.launch(kernel, grid, arguments)
    }

    fn launch_tiles<T: Plain>(
        &self,
        kernel: Kernel<TileArgs<'static, T>>,
        tiling: Tiling,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        strides.in_panels(tiling, input, output, |strides, input, output| {
            let Strides { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch, .. } =
                strides;
            let (log2_across, [tiles_down, tiles_across]) = tiling.parameters(rows, columns);
            let log2_partitions = strides.partitions(size_of::<T>());
            strides.in_grids(tiling.tiles(rows, columns), input, output, |grid, input, output| {
                let arguments = TileArgs {
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
                };
                self.launch(kernel, grid, arguments)
            })
        })
    }
}
