//! Chooses and launches the kernel for a transpose.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::packed::capacity;
use kernels::transpose::packed::short_wide::short_wide;
use kernels::transpose::packed::tall_skinny::{allocation, tall_skinny};
use kernels::transpose::registers::register_tiles;
use kernels::transpose::tiled::kernels::{TileArgs, sector_aligned_tiles, tiles};
use kernels::transpose::tiled::narrow::narrow_tiles;
use kernels::transpose::tuning::{
    REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, blocks_in_many_waves, blocks_in_one_wave, blocks_of_small_tiles,
    narrow_tile_words, small_tile_elements, tile_elements,
};

use super::packed::{Packed, PackedKernels};
use super::strides::Strides;
use super::tiling::{Tiling, Waves, narrow_tiling, sector_aligned_if_enough, vector_tiling};
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
        match unit {
            Unit::One => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u8, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u8, REGISTER_TILES_BLOCK>(),
                        ],
                        tiles_of_vectors: TileKernels {
                            many_waves: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_many_waves(1, true) }>(),
                            one_wave: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_one_wave(1) }>(),
                            small: tiles::handle::<u8, { small_tile_elements(1) }, { blocks_of_small_tiles(1) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u8, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u8, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u8, { tile_elements(1) }>(),
                        packed: PackedKernels {
                            tall_skinny: tall_skinny::handle::<u8, { allocation(1) }>(),
                            short_wide: short_wide::handle::<u8, { capacity(1) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            Unit::Two => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u16, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u16, REGISTER_TILES_BLOCK>(),
                        ],
                        tiles_of_vectors: TileKernels {
                            many_waves: if strides.are_line_pair_aligned(2) {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, true) }>()
                            } else {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, false) }>()
                            },
                            one_wave: tiles::handle::<u16, { tile_elements(2) }, { blocks_in_one_wave(2) }>(),
                            small: tiles::handle::<u16, { small_tile_elements(2) }, { blocks_of_small_tiles(2) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u16, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u16, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u16, { tile_elements(2) }>(),
                        packed: PackedKernels {
                            tall_skinny: tall_skinny::handle::<u16, { allocation(2) }>(),
                            short_wide: short_wide::handle::<u16, { capacity(2) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            Unit::Four => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u32, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u32, REGISTER_TILES_BLOCK>(),
                        ],
                        tiles_of_vectors: TileKernels {
                            many_waves: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_many_waves(4, true) }>(),
                            one_wave: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_one_wave(4) }>(),
                            small: tiles::handle::<u32, { small_tile_elements(4) }, { blocks_of_small_tiles(4) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u32, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u32, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u32, { tile_elements(4) }>(),
                        packed: PackedKernels {
                            tall_skinny: tall_skinny::handle::<u32, { allocation(4) }>(),
                            short_wide: short_wide::handle::<u32, { capacity(4) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            Unit::Eight => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u64, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u64, REGISTER_TILES_BLOCK>(),
                        ],
                        tiles_of_vectors: TileKernels {
                            many_waves: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_many_waves(8, true) }>(),
                            one_wave: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_one_wave(8) }>(),
                            small: tiles::handle::<u64, { small_tile_elements(8) }, { blocks_of_small_tiles(8) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u64, { narrow_tile_words(8, false) }>(),
                            narrow_tiles::handle::<u64, { narrow_tile_words(8, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u64, { tile_elements(8) }>(),
                        packed: PackedKernels {
                            tall_skinny: tall_skinny::handle::<u64, { allocation(8) }>(),
                            short_wide: short_wide::handle::<u64, { capacity(8) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            Unit::Sixteen => {
                // Elements of 16 bytes are vectors, so they are always aligned.
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let tiles_of_vectors = unsafe {
                    TileKernels {
                        many_waves: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_many_waves(16, true) }>(),
                        one_wave: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_one_wave(16) }>(),
                        small: tiles::handle::<u128, { small_tile_elements(16) }, { blocks_of_small_tiles(16) }>(),
                    }
                };
                if strides.is_small(16) {
                    // SAFETY: as above.
                    let kernels = unsafe {
                        [
                            register_tiles::handle::<u128, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u128, REGISTER_TILES_BLOCK>(),
                        ]
                    };
                    return self.transpose_in_registers(kernels, strides, input.cast(), output.cast());
                }
                let (tiling, waves) = vector_tiling(&strides, 16);
                self.launch_tiles(tiles_of_vectors.of(waves), tiling, strides, input.cast(), output.cast())
            }
        }
    }

    /// Launches the best kernel for the shape, of elements of up to 8 bytes: the first in the table's column that takes
    /// the shape.
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
        if strides.is_aligned(input.address() | output.address(), size) {
            if strides.is_small(size) {
                return self.transpose_in_registers(kernels.in_registers, strides, input, output);
            }
            if let Some(packed) = Packed::of_vectors(&strides, size) {
                return self.transpose_packed(&kernels.packed, packed, strides, input, output);
            }
            let (tiling, waves) = vector_tiling(&strides, size);
            return self.launch_tiles(kernels.tiles_of_vectors.of(waves), tiling, strides, input, output);
        }
        if let Some(packed) = Packed::of(&strides) {
            return self.transpose_packed(&kernels.packed, packed, strides, input, output);
        }
        if let Some(tiling) = sector_aligned_if_enough(&strides, size) {
            return self.launch_tiles(kernels.sector_aligned, tiling, strides, input, output);
        }
        let (tiling, is_small) = narrow_tiling(&strides, size);
        self.launch_tiles(kernels.narrow[usize::from(is_small)], tiling, strides, input, output)
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

/// The kernels for an element's size. The first of `in_registers` has small blocks; the second of `narrow` has small
/// tiles.
struct Kernels<T: Plain> {
    in_registers: [Kernel<register_tiles::Args<'static, T>>; 2],
    tiles_of_vectors: TileKernels<T>,
    narrow: [Kernel<TileArgs<'static, T>>; 2],
    sector_aligned: Kernel<TileArgs<'static, T>>,
    packed: PackedKernels<T>,
}

/// The kernels of tiles of vectors: for many waves, for one wave, and for less than a wave, with small tiles.
struct TileKernels<T: Plain> {
    many_waves: Kernel<TileArgs<'static, T>>,
    one_wave: Kernel<TileArgs<'static, T>>,
    small: Kernel<TileArgs<'static, T>>,
}

impl<T: Plain> TileKernels<T> {
    fn of(self, waves: Waves) -> Kernel<TileArgs<'static, T>> {
        match waves {
            Waves::Many => self.many_waves,
            Waves::One => self.one_wave,
            Waves::Partial => self.small,
        }
    }
}
