//! The launch of the kernels that turn tiles.

use cuda_std::element::Plain;
use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::{Dim3, Kernel};
use kernels::transpose::direct::{self, direct_squares};
use kernels::transpose::few_columns::few_columns;
use kernels::transpose::few_rows::few_rows;
use kernels::transpose::slanted::{MARGIN, spare};
use kernels::transpose::tile::squares;
use kernels::transpose::tiles::{elements, few_elements, slanted_tiles, tiles};
use kernels::transpose::words::{self, word_tiles};

use super::strips::{Strip, StripKernels};
use crate::{Error, Gpu, View, ViewMut};

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

/// Tiles that are few: two for each multiprocessor of an H200.
pub(super) const FEW_TILES: usize = 2 * 132;

/// The fewest slanted tiles of a column: with less of them too much of their margins would be outside of the matrix.
const SLANTED_TILES: usize = 4;

/// Bytes of the columns of tiles of a band of rows.
const COLUMN_OF_BAND: usize = 16 << 20;

/// What L2 fetches beside what a kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// Lines.
    Lines,
    /// Lines in pairs, where rows are no whole number of pairs apart; of bytes always.
    Pairs,
}

/// How a kernel cuts a matrix in tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    /// Squares of a tile, a power of two.
    squares: usize,
    /// Rows and columns of a square.
    side: usize,
    /// Rows of squares that a tile shares with the one above it, and columns with the one to its right.
    margin: usize,
    spare: usize,
    /// The most of them across, or down, as a power of two.
    most: u32,
    ahead: Ahead,
}

impl Tiling {
    /// By packs of 16 bytes, tiles of `elements`.
    pub(super) const fn of_packs(elements: usize, size: usize) -> Self {
        Self {
            squares: squares(elements, size),
            side: 16 / size,
            margin: 0,
            spare: 0,
            most: u32::MAX,
            ahead: Ahead::Pairs,
        }
    }

    /// By packs of 16 bytes that begin anywhere.
    const fn slanted(size: usize) -> Self {
        let ahead = if size == 1 { Ahead::Nothing } else { Ahead::Lines };
        Self { margin: MARGIN as usize, spare: spare(size), ahead, ..Self::of_packs(elements(size), size) }
    }

    /// By words.
    const fn of_words(size: usize, are_few: bool) -> Self {
        let side = words::per_word(size);
        let size_of_word = if size == 8 { 8 } else { 4 };
        Self {
            squares: words::words(size_of_word, are_few) / side,
            side,
            margin: words::margin(size),
            spare: 0,
            most: words::BLOCK.ilog2(),
            ahead: Ahead::Nothing,
        }
    }

    /// Rows of a band, if the matrix is turned in bands.
    ///
    /// What L2 [fetches](cuda_std::global::Fetch) beside what is asked for is the next column of tiles': of a column that is
    /// longer than L2 it is gone by then, and was read for nothing.
    fn rows_of_band(self, strides: &Strides, size: usize) -> Option<usize> {
        let is_fetched = match self.ahead {
            Ahead::Nothing => false,
            Ahead::Lines => true,
            Ahead::Pairs => size == 1 || !(strides.input_pitch * size).is_multiple_of(256),
        };
        let width = self.side << self.across(strides.rows, strides.columns);
        let rows = COLUMN_OF_BAND / (width * size);
        (is_fetched && strides.columns > width && strides.rows >= 2 * rows).then_some(rows)
    }

    /// How many squares are across a tile, as a power of two.
    ///
    /// The squares of a tile are always as many, since they fill the shared memory that a block has. It is square, or twice
    /// as high as wide, so that its rows are as long as they can be on both sides: large tiles of packs have 128 bytes (of
    /// elements of 1 byte, on one side) to 512 bytes, four to sixteen sectors of memory. Tiles whose last columns are the
    /// next one's are twice as wide as high, if they are not square: so they share fewer. A matrix that is narrower gets a
    /// tile that is as narrow and longer for it, since what is outside of the matrix is lost; one that is lower, a wider one.
    fn across(self, rows: usize, columns: usize) -> u32 {
        let all = self.squares.ilog2();
        let log_of_needed = |squares: usize| squares.next_power_of_two().ilog2();
        let most_across = log_of_needed((columns + self.spare).div_ceil(self.side));
        let rows_of_squares = self.positions(rows).div_ceil(self.side) + self.margin;
        let fewest_across = all.saturating_sub(log_of_needed(rows_of_squares));
        let across = if self.spare > 0 { all.div_ceil(2) } else { all / 2 };
        let across = across.max(fewest_across).min(most_across).min(all);
        if self.most == u32::MAX { across } else { across.min(self.most).max(all.saturating_sub(self.most)) }
    }

    /// Rows that a tile writes; none if it would have nothing but its margin.
    fn height(self, rows: usize, columns: usize) -> Option<usize> {
        let down = self.squares >> self.across(rows, columns);
        down.checked_sub(self.margin).filter(|&down| down > 0).map(|down| down * self.side)
    }

    /// What a kernel is told of it: squares across, as a power of two, and tiles down and across. No memory holds a matrix of
    /// more tiles than a grid has blocks.
    pub(super) fn parameters(self, rows: usize, columns: usize) -> (u32, [u32; 2]) {
        let (down, across) = self.grid(rows, columns);
        (self.across(rows, columns), [down as u32, across as u32])
    }

    /// Whether half of a tile or more would be outside of the matrix.
    fn is_too_long(self, rows: usize, columns: usize) -> bool {
        let across = self.across(rows, columns);
        let (height, width) = (self.height(rows, columns).unwrap_or(1), self.side << across);
        2 * rows <= height || 2 * columns <= width
    }

    /// The places that a row of the output may take: where tiles share a margin, it may begin inside of a square.
    fn positions(self, rows: usize) -> usize {
        if self.margin == 0 { rows } else { rows + self.margin * self.side - 1 }
    }

    /// Tiles of each matrix: down and across.
    fn grid(self, rows: usize, columns: usize) -> (usize, usize) {
        let width = (self.side << self.across(rows, columns)) - self.spare;
        let height = self.height(rows, columns).unwrap_or(1);
        (self.positions(rows).div_ceil(height), columns.div_ceil(width))
    }

    /// Tiles of each matrix.
    pub(super) fn tiles(self, rows: usize, columns: usize) -> usize {
        let (down, across) = self.grid(rows, columns);
        down * across
    }
}

/// Bytes of matrices that are small, all together.
const MOST_OF_SMALL: usize = 4 << 20;

type DirectParameters<T> = (Global<'static, T>, GlobalMut<'static, T>, u32, u32, usize, usize, usize, usize);
type TilesParameters<T> =
    (Global<'static, T>, GlobalMut<'static, T>, usize, usize, usize, usize, usize, usize, u32, u32, u32, u32);

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
                let kernels = Kernels {
                    direct: direct_squares::handle::<u8>(),
                    by_packs: [tiles::handle::<u8, 32768>(), tiles::handle::<u8, 8192>()],
                    by_words: [word_tiles::handle::<u8, 4096>(), word_tiles::handle::<u8, 1024>()],
                    slanted: slanted_tiles::handle::<u8, 32768>(),
                    strips: StripKernels {
                        few_columns: few_columns::handle::<u8, 49152>(),
                        few_rows: few_rows::handle::<u8, 32768>(),
                    },
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            2 => {
                let kernels = Kernels {
                    direct: direct_squares::handle::<u16>(),
                    by_packs: [tiles::handle::<u16, 16384>(), tiles::handle::<u16, 4096>()],
                    by_words: [word_tiles::handle::<u16, 4096>(), word_tiles::handle::<u16, 1024>()],
                    slanted: slanted_tiles::handle::<u16, 16384>(),
                    strips: StripKernels {
                        few_columns: few_columns::handle::<u16, 24576>(),
                        few_rows: few_rows::handle::<u16, 16384>(),
                    },
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            4 => {
                let kernels = Kernels {
                    direct: direct_squares::handle::<u32>(),
                    by_packs: [tiles::handle::<u32, 4096>(), tiles::handle::<u32, 1024>()],
                    by_words: [word_tiles::handle::<u32, 4096>(), word_tiles::handle::<u32, 1024>()],
                    slanted: slanted_tiles::handle::<u32, 4096>(),
                    strips: StripKernels {
                        few_columns: few_columns::handle::<u32, 12288>(),
                        few_rows: few_rows::handle::<u32, 8192>(),
                    },
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            8 => {
                let kernels = Kernels {
                    direct: direct_squares::handle::<u64>(),
                    by_packs: [tiles::handle::<u64, 2048>(), tiles::handle::<u64, 512>()],
                    by_words: [word_tiles::handle::<u64, 2048>(), word_tiles::handle::<u64, 512>()],
                    slanted: slanted_tiles::handle::<u64, 2048>(),
                    strips: StripKernels {
                        few_columns: few_columns::handle::<u64, 6144>(),
                        few_rows: few_rows::handle::<u64, 4096>(),
                    },
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            _ => {
                // They are packs, wherever they begin.
                let by_packs = [tiles::handle::<u128, 1024>(), tiles::handle::<u128, 256>()];
                if strides.are_small(16) {
                    let kernel = direct_squares::handle::<u128>();
                    return self.turn_directly(kernel, strides, input.cast(), output.cast());
                }
                let (tiling, are_few) = by_packs_or_few(&strides, 16);
                self.turn_by(by_packs[usize::from(are_few)], tiling, strides, input.cast(), output.cast())
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
            if let Some(strip) = Strip::of_packs(&strides, size) {
                return self.turn_strips(&kernels.strips, strip, strides, input, output);
            }
            let (tiling, are_few) = by_packs_or_few(&strides, size);
            return self.turn_by(kernels.by_packs[usize::from(are_few)], tiling, strides, input, output);
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
        kernel: Kernel<DirectParameters<T>>,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
        let grid = strides.grid_of_squares(size_of::<T>());
        let (rows, columns) = (rows as u32, columns as u32);
        let arguments = (input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch);
        self.launch(kernel, grid, arguments)
    }

    fn turn_by<T: Plain>(
        &self,
        kernel: Kernel<TilesParameters<T>>,
        tiling: Tiling,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        strides.in_bands(tiling, input, output, |strides, input, output| {
            self.turn_bands(kernel, tiling, strides, input, output)
        })
    }

    fn turn_bands<T: Plain>(
        &self,
        kernel: Kernel<TilesParameters<T>>,
        tiling: Tiling,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
        let (across, [down, right]) = tiling.parameters(rows, columns);
        let pieces = strides.pieces(size_of::<T>());
        strides.in_grids(tiling.tiles(rows, columns), input, output, |grid, input, output| {
            let arguments = (
                input,
                output,
                rows,
                columns,
                input_pitch,
                output_pitch,
                input_batch,
                output_batch,
                across,
                down,
                right,
                pieces,
            );
            self.launch(kernel, grid, arguments)
        })
    }
}

/// Tiles of packs for these matrices, and whether they are the small ones.
fn by_packs_or_few(strides: &Strides, size: usize) -> (Tiling, bool) {
    let large = Tiling::of_packs(elements(size), size);
    let are_few = large.tiles(strides.rows, strides.columns).saturating_mul(strides.batch) < FEW_TILES;
    (if are_few { Tiling::of_packs(few_elements(size), size) } else { large }, are_few)
}

/// Slanted tiles for these matrices, if they are high and many enough.
pub(super) fn slanted_if_many(strides: &Strides, size: usize) -> Option<Tiling> {
    let Strides { rows, columns, batch, .. } = *strides;
    let slanted = Tiling::slanted(size);
    let are_high = slanted.height(rows, columns).is_some_and(|height| rows >= SLANTED_TILES * height);
    let are_many = slanted.tiles(rows, columns).saturating_mul(batch) >= FEW_TILES;
    // A row's lanes hand packs to each other. High matrices have no wider tiles, anyway.
    let has_warps = slanted.side << slanted.across(rows, columns) <= 32 * slanted.spare;
    (are_high && are_many && has_warps).then_some(slanted)
}

/// Tiles of words for these matrices, and whether they are the small ones.
pub(super) fn by_words_or_few(strides: &Strides, size: usize) -> (Tiling, bool) {
    let Strides { rows, columns, batch, .. } = *strides;
    let large = Tiling::of_words(size, false);
    let are_few = large.tiles(rows, columns).saturating_mul(batch) < FEW_TILES || large.is_too_long(rows, columns);
    (if are_few { Tiling::of_words(size, true) } else { large }, are_few)
}

/// The kernels for an element's size; of two the second for where tiles are few.
struct Kernels<T: Plain> {
    direct: Kernel<DirectParameters<T>>,
    by_packs: [Kernel<TilesParameters<T>>; 2],
    by_words: [Kernel<TilesParameters<T>>; 2],
    slanted: Kernel<TilesParameters<T>>,
    strips: StripKernels<T>,
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

    /// Whether all rows of both sides begin and end at multiples of 16 bytes, if what begins at `address` does (the bits of
    /// either side's).
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
    /// stretches 2 to 13 % slower than where they begin 112 or 144 KiB apart, and as fast as those if there are others halfway
    /// between them: every 64 KiB, or three, five times as much. Rows of 1 MiB and more would be in so many pieces that
    /// writing becomes slower than reading does faster. (`docs/benchmarks/h200.md`)
    pub(super) fn pieces(&self, size: usize) -> u32 {
        let zeros = (self.input_pitch * size).trailing_zeros();
        if (17..20).contains(&zeros) { zeros - 16 } else { 0 }
    }

    /// Whether there is so little that an element's way counts, not how many have it at once.
    pub(super) fn are_small(&self, size: usize) -> bool {
        let Self { rows, columns, batch, .. } = *self;
        let bytes = rows.saturating_mul(columns).saturating_mul(batch).saturating_mul(size);
        // A grid has no more blocks than 65535 down or from matrix to matrix.
        bytes <= MOST_OF_SMALL && batch <= 65535
    }

    /// The grid of the kernels for what [is small](Self::are_small).
    pub(super) fn grid_of_squares(&self, size: usize) -> Dim3 {
        let blocks = |elements: usize, squares: usize| elements.div_ceil(squares * direct::side(size)) as u32;
        Dim3::new(blocks(self.columns, direct::ACROSS), blocks(self.rows, direct::DOWN), self.batch as u32)
    }

    /// Calls `launch` with the matrices, or, if they are turned in bands of rows, for each of them with its bands, as a batch,
    /// and with the last, which is as high as one or two.
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
            for (strides, from, to) in
                [(bands, from, to), (last, from + batch * bands.input_batch, to + batch * height)]
            {
                let room = output.len() - to;
                let input = input.slice(from, input.len() - from)?;
                launch(strides, input, output.reborrow().slice(to, room)?)?;
            }
        }
        Ok(())
    }

    /// Calls `launch` with the blocks and the views of as many matrices as a grid has blocks for, until all have had their
    /// turn.
    pub(super) fn in_grids<T: Plain>(
        &self,
        blocks_of_matrix: usize,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(u32, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { batch, input_batch, output_batch, .. } = *self;
        let at_once = (MOST_BLOCKS / blocks_of_matrix).max(1);
        let mut first = 0;
        while first < batch {
            let matrices = at_once.min(batch - first);
            let (from, to) = (first * input_batch, first * output_batch);
            let input = input.slice(from, input.len() - from)?;
            let room = output.len() - to;
            launch((blocks_of_matrix * matrices) as u32, input, output.reborrow().slice(to, room)?)?;
            first += matrices;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_where_there_is_room_and_strips_where_there_is_not() {
        let tile = |rows, columns, size| {
            let Tiling { squares, side, .. } = Tiling::of_packs(elements(size), size);
            let across = Tiling::of_packs(elements(size), size).across(rows, columns);
            ((squares * side) >> across, side << across)
        };
        assert_eq!(
            [1, 2, 4, 8, 16].map(|size| tile(9999, 9999, size)),
            [(256, 128), (128, 128), (64, 64), (64, 32), (32, 32)]
        );
        assert_eq!((tile(1 << 24, 16, 4), tile(16, 1 << 24, 4)), ((256, 16), (16, 256)));
        assert_eq!((tile(3, 1_000_033, 4), tile(1_000_033, 3, 4)), ((4, 1024), (1024, 4)));
        assert_eq!((tile(1, 1, 1), tile(1, 1, 16)), ((2048, 16), (1024, 1)));
    }

    #[test]
    fn rows_that_begin_128_kib_apart_are_in_pieces() {
        let pieces = |columns: usize, size: usize| Strides::of_matrix(1000, columns).pieces(size);
        assert_eq!([8192, 12288, 16400, 20480].map(|columns| pieces(columns, 8)), [0; 4]);
        assert_eq!([16384, 32768, 49152, 65536, 131_072].map(|columns| pieces(columns, 8)), [1, 2, 1, 3, 0]);
        assert_eq!((pieces(8192, 16), pieces(32768, 4), pieces(0, 4)), (1, 1, 0));
    }

    #[test]
    fn what_is_fetched_ahead_is_in_l2_when_its_turn_comes() {
        let rows_of_band = |tiling: Tiling, rows, columns, size| {
            tiling.rows_of_band(&Strides::of_matrix(rows, columns), size).unwrap_or(rows)
        };
        let packs = |rows, columns, size| rows_of_band(Tiling::of_packs(elements(size), size), rows, columns, size);
        assert_eq!((packs(1_000_003, 127, 16), packs(65_535, 127, 16)), (32_768, 65_535));
        assert_eq!((packs(1 << 20, 1000, 4), packs(1 << 20, 1024, 4)), (65_536, 1 << 20));
        assert_eq!((packs(1 << 20, 1024, 1), packs(1 << 18, 1024, 1)), (131_072, 131_072));
        assert_eq!(packs(1 << 24, 16, 4), 1 << 24, "there is no next column of tiles");
        let slanted = |rows, columns, size| rows_of_band(Tiling::slanted(size), rows, columns, size);
        assert_eq!((slanted(1_000_003, 1001, 8), slanted(30_001, 5001, 8)), (32_768, 30_001));
        assert_eq!((slanted(1_000_003, 1001, 4), slanted(1_000_003, 1001, 1)), (65_536, 1_000_003));
        assert_eq!(rows_of_band(Tiling::of_words(4, false), 1_000_003, 1001, 4), 1_000_003);
    }

    #[test]
    fn a_tile_of_words_is_higher_than_its_margin() {
        for size in [1, 2, 4, 8] {
            for (rows, columns) in [(1, 1), (1, 1 << 30), (1 << 30, 1), (3, 1000), (4, 1000), (5, 1000), (999, 999)] {
                for tiling in [Tiling::of_words(size, false), Tiling::of_words(size, true)] {
                    let across = tiling.across(rows, columns);
                    let down = tiling.squares >> across;
                    assert!(down > tiling.margin, "{rows} x {columns} of {size} bytes: {down} squares");
                    assert!(down <= words::BLOCK && 1 << across <= words::BLOCK, "{down} squares, {across}");
                }
            }
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
