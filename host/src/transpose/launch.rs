//! The launch of the kernels that turn tiles.

use std::ops::Range;

use cuda_std::element::Plain;
use cuda_std::launch::{Dim3, Kernel};
use kernels::transpose::direct::{self, direct_squares};
use kernels::transpose::few_columns::{few_columns, taken};
use kernels::transpose::few_rows::few_rows;
use kernels::transpose::strips::room;
use kernels::transpose::tiles::{TileArgs, slanted_tiles, tiles};
use kernels::transpose::tuning::{
    LINE_PAIR, PARTITION, PARTITIONED_PITCH, REGISTERS_ACROSS, REGISTERS_BLOCK, SMALL_BLOCKS_OF_BUSIEST,
    SMALL_REGISTERS_BLOCK, blocks_in_many_waves, blocks_in_one_wave, blocks_of_small_tiles, in_registers_bytes,
    narrow_tile_words, small_tile_elements, tile_elements,
};
use kernels::transpose::words::word_tiles;

use super::strips::{Strip, StripKernels};
use super::tiling::{Amount, Tiling, by_vectors_or_few, by_words_or_few, slanted_if_many};
use crate::{Error, Gpu, MULTIPROCESSORS, View, ViewMut};

/// Matrices to transpose, and how far apart their rows and they themselves begin, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    pub rows: usize,
    pub columns: usize,
    pub batch: usize,
    pub input_pitch: usize,
    pub output_pitch: usize,
    pub input_batch: usize,
    pub output_batch: usize,
}

/// The most blocks of a grid.
pub(super) const MOST_BLOCKS: usize = i32::MAX as usize;

/// Which of `batch` matrices each grid is for, if each matrix needs so many blocks: as many as a grid has blocks for.
pub(super) fn grids(batch: usize, blocks_of_matrix: usize) -> impl Iterator<Item = Range<usize>> {
    let at_once = (MOST_BLOCKS / blocks_of_matrix).max(1);
    (0..batch).step_by(at_once).map(move |first| first..batch.min(first + at_once))
}

/// Whether `few` blocks of [`SMALL_REGISTERS_BLOCK`] threads are better than `many` of [`REGISTERS_BLOCK`]: if no
/// multiprocessor has two of them, or by [`SMALL_BLOCKS_OF_BUSIEST`].
fn are_better_small(few: usize, many: usize, size: usize) -> bool {
    let of_busiest = |blocks: usize, threads: usize| blocks.div_ceil(MULTIPROCESSORS) * threads;
    let is_more_even = of_busiest(few, SMALL_REGISTERS_BLOCK) < of_busiest(many, REGISTERS_BLOCK);
    few <= MULTIPROCESSORS
        || (few <= SMALL_BLOCKS_OF_BUSIEST * MULTIPROCESSORS && is_more_even && matches!(size, 2..=8))
}

impl Gpu {
    /// Turns tile by tile. The views have room for the shape, which has elements.
    pub(super) fn transpose_by_tiles<T: Plain>(
        &self,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        match size_of::<T>() {
            1 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        direct: [
                            direct_squares::handle::<u8, SMALL_REGISTERS_BLOCK>(),
                            direct_squares::handle::<u8, REGISTERS_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_many_waves(1, true) }>(),
                            at_once: tiles::handle::<u8, { tile_elements(1) }, { blocks_in_one_wave(1) }>(),
                            few: tiles::handle::<u8, { small_tile_elements(1) }, { blocks_of_small_tiles(1) }>(),
                        },
                        by_words: [
                            word_tiles::handle::<u8, { narrow_tile_words(4, false) }>(),
                            word_tiles::handle::<u8, { narrow_tile_words(4, true) }>(),
                        ],
                        slanted: slanted_tiles::handle::<u8, { tile_elements(1) }>(),
                        strips: StripKernels {
                            few_columns: few_columns::handle::<u8, { taken(1) }>(),
                            few_rows: few_rows::handle::<u8, { room(1) }>(),
                        },
                    }
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            2 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        direct: [
                            direct_squares::handle::<u16, SMALL_REGISTERS_BLOCK>(),
                            direct_squares::handle::<u16, REGISTERS_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: if strides.are_lines_apart(2) {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, true) }>()
                            } else {
                                tiles::handle::<u16, { tile_elements(2) }, { blocks_in_many_waves(2, false) }>()
                            },
                            at_once: tiles::handle::<u16, { tile_elements(2) }, { blocks_in_one_wave(2) }>(),
                            few: tiles::handle::<u16, { small_tile_elements(2) }, { blocks_of_small_tiles(2) }>(),
                        },
                        by_words: [
                            word_tiles::handle::<u16, { narrow_tile_words(4, false) }>(),
                            word_tiles::handle::<u16, { narrow_tile_words(4, true) }>(),
                        ],
                        slanted: slanted_tiles::handle::<u16, { tile_elements(2) }>(),
                        strips: StripKernels {
                            few_columns: few_columns::handle::<u16, { taken(2) }>(),
                            few_rows: few_rows::handle::<u16, { room(2) }>(),
                        },
                    }
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            4 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        direct: [
                            direct_squares::handle::<u32, SMALL_REGISTERS_BLOCK>(),
                            direct_squares::handle::<u32, REGISTERS_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_many_waves(4, true) }>(),
                            at_once: tiles::handle::<u32, { tile_elements(4) }, { blocks_in_one_wave(4) }>(),
                            few: tiles::handle::<u32, { small_tile_elements(4) }, { blocks_of_small_tiles(4) }>(),
                        },
                        by_words: [
                            word_tiles::handle::<u32, { narrow_tile_words(4, false) }>(),
                            word_tiles::handle::<u32, { narrow_tile_words(4, true) }>(),
                        ],
                        slanted: slanted_tiles::handle::<u32, { tile_elements(4) }>(),
                        strips: StripKernels {
                            few_columns: few_columns::handle::<u32, { taken(4) }>(),
                            few_rows: few_rows::handle::<u32, { room(4) }>(),
                        },
                    }
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            8 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    Kernels {
                        direct: [
                            direct_squares::handle::<u64, SMALL_REGISTERS_BLOCK>(),
                            direct_squares::handle::<u64, REGISTERS_BLOCK>(),
                        ],
                        by_vectors: ByVectors {
                            many: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_many_waves(8, true) }>(),
                            at_once: tiles::handle::<u64, { tile_elements(8) }, { blocks_in_one_wave(8) }>(),
                            few: tiles::handle::<u64, { small_tile_elements(8) }, { blocks_of_small_tiles(8) }>(),
                        },
                        by_words: [
                            word_tiles::handle::<u64, { narrow_tile_words(8, false) }>(),
                            word_tiles::handle::<u64, { narrow_tile_words(8, true) }>(),
                        ],
                        slanted: slanted_tiles::handle::<u64, { tile_elements(8) }>(),
                        strips: StripKernels {
                            few_columns: few_columns::handle::<u64, { taken(8) }>(),
                            few_rows: few_rows::handle::<u64, { room(8) }>(),
                        },
                    }
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            _ => {
                // They are vectors, wherever they begin.
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let by_vectors = unsafe {
                    ByVectors {
                        many: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_many_waves(16, true) }>(),
                        at_once: tiles::handle::<u128, { tile_elements(16) }, { blocks_in_one_wave(16) }>(),
                        few: tiles::handle::<u128, { small_tile_elements(16) }, { blocks_of_small_tiles(16) }>(),
                    }
                };
                if strides.are_small(16) {
                    // SAFETY: as above.
                    let kernels = unsafe {
                        [
                            direct_squares::handle::<u128, SMALL_REGISTERS_BLOCK>(),
                            direct_squares::handle::<u128, REGISTERS_BLOCK>(),
                        ]
                    };
                    return self.turn_directly(kernels, strides, input.cast(), output.cast());
                }
                let (tiling, amount) = by_vectors_or_few(&strides, 16);
                self.turn_by(by_vectors.of(amount), tiling, strides, input.cast(), output.cast())
            }
        }
    }

    /// Launches the kernel that is best for the shape, of elements of up to 8 bytes.
    fn turn<T: Plain>(
        &self,
        kernels: Kernels<T>,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        if strides.are_wide(input.device_address() | output.device_address(), size) {
            if strides.are_small(size) {
                return self.turn_directly(kernels.direct, strides, input, output);
            }
            if let Some(strip) = Strip::of_vectors(&strides, size) {
                return self.turn_strips(&kernels.strips, strip, strides, input, output);
            }
            let (tiling, amount) = by_vectors_or_few(&strides, size);
            return self.turn_by(kernels.by_vectors.of(amount), tiling, strides, input, output);
        }
        if let Some(strip) = Strip::of(&strides) {
            return self.turn_strips(&kernels.strips, strip, strides, input, output);
        }
        if let Some(tiling) = slanted_if_many(&strides, size) {
            return self.turn_by(kernels.slanted, tiling, strides, input, output);
        }
        let (tiling, are_few) = by_words_or_few(&strides, size);
        self.turn_by(kernels.by_words[usize::from(are_few)], tiling, strides, input, output)
    }

    /// Turns small matrices whose rows begin and end at multiples of 16 bytes.
    fn turn_directly<T: Plain>(
        &self,
        kernels: [Kernel<direct_squares::Args<'static, T>>; 2],
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
        let (kernel, grid) = strides.squares_by(size_of::<T>(), kernels);
        let (rows, columns) = (rows as u32, columns as u32);
        let arguments =
            direct_squares::Args { input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch };
        self.launch(kernel, grid, arguments)
    }

    fn turn_by<T: Plain>(
        &self,
        kernel: Kernel<TileArgs<'static, T>>,
        tiling: Tiling,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        strides.in_bands(tiling, input, output, |strides, input, output| {
            let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
            let (across, [tiles_down, tiles_across]) = tiling.parameters(rows, columns);
            let pieces = strides.pieces(size_of::<T>());
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
                    across,
                    tiles_down,
                    tiles_across,
                    pieces,
                };
                self.launch(kernel, grid, arguments)
            })
        })
    }
}

/// The kernels for an element's size; of two direct ones the first for where blocks are few, of two by words the second
/// for where tiles are.
struct Kernels<T: Plain> {
    direct: [Kernel<direct_squares::Args<'static, T>>; 2],
    by_vectors: ByVectors<T>,
    by_words: [Kernel<TileArgs<'static, T>>; 2],
    slanted: Kernel<TileArgs<'static, T>>,
    strips: StripKernels<T>,
}

/// The kernels that turn tiles of vectors, by how many there are.
struct ByVectors<T: Plain> {
    many: Kernel<TileArgs<'static, T>>,
    at_once: Kernel<TileArgs<'static, T>>,
    few: Kernel<TileArgs<'static, T>>,
}

impl<T: Plain> ByVectors<T> {
    fn of(self, amount: Amount) -> Kernel<TileArgs<'static, T>> {
        match amount {
            Amount::Many => self.many,
            Amount::AtOnce => self.at_once,
            Amount::Few => self.few,
        }
    }
}

impl Strides {
    /// Of one matrix, without gaps.
    pub(super) const fn of_matrix(rows: usize, columns: usize) -> Self {
        let elements = rows * columns;
        Self {
            rows,
            columns,
            batch: 1,
            input_pitch: columns,
            output_pitch: rows,
            input_batch: elements,
            output_batch: elements,
        }
    }

    /// Whether all rows of both sides begin and end at multiples of 16 bytes, if what begins at `address` does (the
    /// bits of either side's).
    pub(super) fn are_wide(&self, address: u64, size: usize) -> bool {
        let Self { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = *self;
        address.is_multiple_of(16)
            && [rows, columns, input_pitch, output_pitch, input_batch, output_batch]
                .iter()
                .all(|elements| (elements * size).is_multiple_of(16))
    }

    /// Into how many pieces the input's rows are cut, whose columns of tiles take turns, as a power of two.
    ///
    /// A column of tiles has a stretch of each row. Where rows begin a multiple of 128 KiB apart, an H200 reads such
    /// stretches 2 to 13 % slower than where they begin 112 or 144 KiB apart, and as fast as those if there are others
    /// between them, every 64 KiB or every 192. Rows 1 MiB apart are slower so, in 16 pieces: 0.953 of a copy, whole
    /// 0.974. (`docs/notes/tiles.md`)
    pub(super) fn pieces(&self, size: usize) -> u32 {
        let zeros = (self.input_pitch * size).trailing_zeros();
        let [first, last] = PARTITIONED_PITCH;
        if (first..=last).contains(&zeros) { zeros - PARTITION } else { 0 }
    }

    /// Whether the input's rows begin a multiple of 256 bytes apart, two lines of memory: if not, L2
    /// [fetches](Tiling::rows_of_band) more than tiles read, and then fewer of these are the better. Of 2 bytes four
    /// blocks, not five, turn 5000 x 30000 in 156.6 us on an H200, not 158.3, but 4096 x 4096 in 18.0, not 17.8.
    pub(super) fn are_lines_apart(&self, size: usize) -> bool {
        (self.input_pitch * size).is_multiple_of(LINE_PAIR)
    }

    /// Whether there is so little that an element's way counts, not how many have it at once.
    pub(super) fn are_small(&self, size: usize) -> bool {
        let Self { rows, columns, batch, .. } = *self;
        let bytes = rows.saturating_mul(columns).saturating_mul(batch).saturating_mul(size);
        // A grid has no more blocks than 65535 down or from matrix to matrix.
        bytes <= in_registers_bytes(size) && batch <= 65535
    }

    /// Of the two kernels for what [is small](Self::are_small), of which the first has few threads, the better one, and
    /// its grid.
    pub(super) fn squares_by<P>(&self, size: usize, kernels: [Kernel<P>; 2]) -> (Kernel<P>, Dim3) {
        let [few, many] = kernels;
        let grids = [few, many].map(|kernel| self.grid_of_squares(size, kernel.block().x as usize));
        if are_better_small(grids[0].count() as usize, grids[1].count() as usize, size) {
            (few, grids[0])
        } else {
            (many, grids[1])
        }
    }

    fn grid_of_squares(&self, size: usize, threads: usize) -> Dim3 {
        let across = self.columns.div_ceil(REGISTERS_ACROSS * direct::columns(size));
        let down = self.rows.div_ceil(threads / REGISTERS_ACROSS * direct::rows(size));
        Dim3::new(across as u32, down as u32, self.batch as u32)
    }

    /// Calls `launch` with the matrices, or, if they are turned in [bands](Tiling::rows_of_band), for each of them with
    /// its bands, as a batch, and with the last, which is as high as one or two.
    pub(super) fn in_bands<T: Plain>(
        self,
        tiling: Tiling,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(Self, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(height) = tiling.rows_of_band(&self, size_of::<T>()) else {
            return launch(self, input, output);
        };
        let batch = self.rows / height - 1;
        let bands = Self { rows: height, batch, input_batch: height * self.input_pitch, output_batch: height, ..self };
        let last = Self { rows: self.rows - batch * height, batch: 1, ..self };
        for matrix in 0..self.batch {
            let (from, to) = (matrix * self.input_batch, matrix * self.output_batch);
            let behind = (from + batch * bands.input_batch, to + batch * height);
            for (strides, (from, to)) in [(bands, (from, to)), (last, behind)] {
                launch(strides, input.behind(from)?, output.reborrow().behind(to)?)?;
            }
        }
        Ok(())
    }

    /// Calls `launch` with the blocks and the views of as many matrices as a grid has blocks for, until all have had
    /// their turn.
    pub(super) fn in_grids<T: Plain>(
        &self,
        blocks_of_matrix: usize,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(u32, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { batch, input_batch, output_batch, .. } = *self;
        for matrices in grids(batch, blocks_of_matrix) {
            let (from, to) = (matrices.start * input_batch, matrices.start * output_batch);
            let grid = (blocks_of_matrix * matrices.len()) as u32;
            launch(grid, input.behind(from)?, output.reborrow().behind(to)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_for_as_many_matrices_as_it_has_blocks_for() {
        let of = |batch: usize, blocks: usize| grids(batch, blocks).collect::<Vec<_>>();
        assert_eq!(of(10, MOST_BLOCKS / 10), vec![0..10; 1]);
        assert_eq!(of(7, MOST_BLOCKS / 3), [0..3, 3..6, 6..7]);
        assert_eq!(of(2, MOST_BLOCKS), [0..1, 1..2]);
        assert!(of(0, 5).is_empty());
    }

    #[test]
    fn rows_that_begin_128_kib_apart_are_in_pieces() {
        let pieces = |columns: usize, size: usize| Strides::of_matrix(1000, columns).pieces(size);
        assert_eq!([8192, 12288, 16400, 20480].map(|columns| pieces(columns, 8)), [0; 4]);
        assert_eq!([16384, 32768, 49152, 65536, 131_072].map(|columns| pieces(columns, 8)), [1, 2, 1, 3, 0]);
        assert_eq!((pieces(8192, 16), pieces(32768, 4), pieces(0, 4)), (1, 1, 0));
    }

    #[test]
    fn small_blocks_are_taken_where_no_multiprocessor_has_much_more_than_another() {
        let is_small = |rows: usize, columns: usize, size: usize| {
            let blocks = |threads| Strides::of_matrix(rows, columns).grid_of_squares(size, threads).count() as usize;
            are_better_small(blocks(SMALL_REGISTERS_BLOCK), blocks(REGISTERS_BLOCK), size)
        };
        // Small blocks of the busiest multiprocessor: one, one, three, four.
        let cases = [(512, 512), (704, 384), (768, 768), (1024, 1024)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 4)), [true, true, true, false]);
        let cases = [(256, 256), (384, 384), (512, 512), (640, 640)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 8)), [true, true, false, false]);
        // One, one, two, three: of these sizes one at most.
        let cases = [(512, 512), (704, 768), (1024, 1024), (1024, 1536)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 1)), [true, true, false, false]);
        let cases = [(128, 128), (176, 96), (192, 112), (192, 192)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 16)), [true, true, false, false]);
    }

    #[test]
    fn a_small_matrix_has_no_more_blocks_down_than_a_grid_may() {
        for size in [1, 2, 4, 8, 16] {
            let rows = in_registers_bytes(size) / 16;
            let high = Strides::of_matrix(rows, 16 / size);
            assert!(high.are_small(size) && !Strides::of_matrix(rows + 16, 16 / size).are_small(size), "{size}");
            assert!(high.grid_of_squares(size, SMALL_REGISTERS_BLOCK).y <= 65535, "{size}");
        }
    }

    #[test]
    fn more_matrices_than_a_grid_has_blocks_for_take_several() {
        let gpu = Gpu::simt();
        let (input, mut output) = (gpu.zeroed::<u8>(64).unwrap(), gpu.zeroed::<u8>(64).unwrap());
        // All matrices lie in the same place, so that there is memory for them.
        let strides = Strides {
            rows: 2,
            columns: 2,
            batch: MOST_BLOCKS + 5,
            input_pitch: 2,
            output_pitch: 2,
            input_batch: 0,
            output_batch: 0,
        };
        let mut grids = Vec::new();
        strides
            .in_grids(1, input.view(), output.view_mut(), |grid, _, _| {
                grids.push(grid);
                Ok(())
            })
            .unwrap();
        assert_eq!(grids, [MOST_BLOCKS as u32, 5]);
    }
}
