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

use super::strides::Strides;
use super::thin::{Thin, ThinKernels};
use super::tiling::{Tiling, Waves, narrow_tiling, sector_aligned_if_many, vector_tiling};
use crate::{Error, Gpu, View, ViewMut};

impl Gpu {
    /// Transposes the matrices, moving elements as unsigned integers of their size. The shape is not empty, and the
    /// views are long enough for it.
    pub(super) fn transpose_by_tiles<T: Plain>(
        &self,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        match size_of::<T>() {
            1 => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u8, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u8, REGISTER_TILES_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_many_waves(1, true) }>(),
                            one: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_one_wave(1) }>(),
                            few: tiles::handle::<u8, { small_tile_elements(1) }, { blocks_of_small_tiles(1) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u8, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u8, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u8, { tile_elements(1) }>(),
                        thin: ThinKernels {
                            tall_skinny: tall_skinny::handle::<u8, { allocation(1) }>(),
                            short_wide: short_wide::handle::<u8, { capacity(1) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            2 => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u16, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u16, REGISTER_TILES_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: if strides.are_line_aligned(2) {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, true) }>()
                            } else {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, false) }>()
                            },
                            one: tiles::handle::<u16, { tile_elements(2) }, { blocks_in_one_wave(2) }>(),
                            few: tiles::handle::<u16, { small_tile_elements(2) }, { blocks_of_small_tiles(2) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u16, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u16, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u16, { tile_elements(2) }>(),
                        thin: ThinKernels {
                            tall_skinny: tall_skinny::handle::<u16, { allocation(2) }>(),
                            short_wide: short_wide::handle::<u16, { capacity(2) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            4 => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u32, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u32, REGISTER_TILES_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_many_waves(4, true) }>(),
                            one: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_one_wave(4) }>(),
                            few: tiles::handle::<u32, { small_tile_elements(4) }, { blocks_of_small_tiles(4) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u32, { narrow_tile_words(4, false) }>(),
                            narrow_tiles::handle::<u32, { narrow_tile_words(4, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u32, { tile_elements(4) }>(),
                        thin: ThinKernels {
                            tall_skinny: tall_skinny::handle::<u32, { allocation(4) }>(),
                            short_wide: short_wide::handle::<u32, { capacity(4) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            8 => {
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        in_registers: [
                            register_tiles::handle::<u64, SMALL_REGISTER_TILES_BLOCK>(),
                            register_tiles::handle::<u64, REGISTER_TILES_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_many_waves(8, true) }>(),
                            one: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_one_wave(8) }>(),
                            few: tiles::handle::<u64, { small_tile_elements(8) }, { blocks_of_small_tiles(8) }>(),
                        },
                        narrow: [
                            narrow_tiles::handle::<u64, { narrow_tile_words(8, false) }>(),
                            narrow_tiles::handle::<u64, { narrow_tile_words(8, true) }>(),
                        ],
                        sector_aligned: sector_aligned_tiles::handle::<u64, { tile_elements(8) }>(),
                        thin: ThinKernels {
                            tall_skinny: tall_skinny::handle::<u64, { allocation(8) }>(),
                            short_wide: short_wide::handle::<u64, { capacity(8) }>(),
                        },
                    }
                };
                self.launch_best(kernels, strides, input.cast(), output.cast())
            }
            _ => {
                // Elements of 16 bytes are vectors, so they are always aligned.
                // SAFETY: only this plan launches the kernels, with arguments made for views that have the shape.
                let by_vectors = unsafe {
                    ByVectors {
                        many: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_many_waves(16, true) }>(),
                        one: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_one_wave(16) }>(),
                        few: tiles::handle::<u128, { small_tile_elements(16) }, { blocks_of_small_tiles(16) }>(),
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
                self.launch_tiles(by_vectors.of(waves), tiling, strides, input.cast(), output.cast())
            }
        }
    }

    /// Launches the best kernel for the shape, of elements of up to 8 bytes: for rows of whole 16-byte vectors small
    /// matrices in registers, tall-skinny and short-wide ones, tiles by vectors; for others tall-skinny and short-wide
    /// ones, sector-aligned tiles if there are many, and narrow tiles.
    fn launch_best<T: Plain>(
        &self,
        kernels: Kernels<T>,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        if strides.is_aligned(input.device_address() | output.device_address(), size) {
            if strides.is_small(size) {
                return self.transpose_in_registers(kernels.in_registers, strides, input, output);
            }
            if let Some(thin) = Thin::of_vectors(&strides, size) {
                return self.transpose_thin(&kernels.thin, thin, strides, input, output);
            }
            let (tiling, waves) = vector_tiling(&strides, size);
            return self.launch_tiles(kernels.by_vectors.of(waves), tiling, strides, input, output);
        }
        if let Some(thin) = Thin::of(&strides) {
            return self.transpose_thin(&kernels.thin, thin, strides, input, output);
        }
        if let Some(tiling) = sector_aligned_if_many(&strides, size) {
            return self.launch_tiles(kernels.sector_aligned, tiling, strides, input, output);
        }
        let (tiling, are_few) = narrow_tiling(&strides, size);
        self.launch_tiles(kernels.narrow[usize::from(are_few)], tiling, strides, input, output)
    }

    /// Transposes small matrices in registers. Rows begin and end at multiples of 16 bytes.
    fn transpose_in_registers<T: Plain>(
        &self,
        kernels: [Kernel<register_tiles::Args<'static, T>>; 2],
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
        let (kernel, grid) = strides.register_kernel(size_of::<T>(), kernels);
        let (rows, columns) = (rows as u32, columns as u32);
        let arguments =
            register_tiles::Args { input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch };
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
            let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
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
                    input_batch,
                    output_batch,
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

/// The kernels for an element's size. The first of `in_registers` is for few blocks; the second of `narrow` is for few
/// tiles.
struct Kernels<T: Plain> {
    in_registers: [Kernel<register_tiles::Args<'static, T>>; 2],
    by_vectors: ByVectors<T>,
    narrow: [Kernel<TileArgs<'static, T>>; 2],
    sector_aligned: Kernel<TileArgs<'static, T>>,
    thin: ThinKernels<T>,
}

/// The kernels of tiles of vectors, by the waves that the tiles take.
struct ByVectors<T: Plain> {
    many: Kernel<TileArgs<'static, T>>,
    one: Kernel<TileArgs<'static, T>>,
    few: Kernel<TileArgs<'static, T>>,
}

impl<T: Plain> ByVectors<T> {
    fn of(self, waves: Waves) -> Kernel<TileArgs<'static, T>> {
        match waves {
            Waves::Many => self.many,
            Waves::One => self.one,
            Waves::Partial => self.few,
        }
    }
}
