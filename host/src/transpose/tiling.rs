//! How each kernel divides matrices into tiles.

use cuda_std::element::Plain;
use kernels::transpose::tiled::access::sector_aligned::{HALO_MICRO_TILES, overlap};
use kernels::transpose::tiled::block_tile::micro_tiles;
use kernels::transpose::tiled::narrow;
use kernels::transpose::tuning::{
    LONG_COLUMN, MIN_LARGE_TILES, NARROW_BLOCK, PANEL_OF_LINES, TILES_IN_ONE_WAVE, min_sector_aligned_tiles,
    narrow_tile_words, panel_of_line_pairs, small_tile_elements, tile_elements,
};

use super::strides::Strides;
use crate::{Error, View, ViewMut};

/// What the loads of a tile also fetch into L2, for the next column of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefetched {
    Nothing,
    /// The rest of a row's last cache line, or of its last sector.
    Lines,
    /// The rest of a row's last pair of cache lines: for elements of one byte always, for others if rows are not a
    /// whole number of pairs apart.
    Pairs,
}

/// The number of waves that the tiles take, which selects one of three kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waves {
    Many,
    /// All tiles run at once.
    One,
    /// Fewer than [`MIN_LARGE_TILES`](kernels::transpose::tuning::MIN_LARGE_TILES) large tiles: small tiles instead.
    Partial,
}

/// A kernel's tiles of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiling {
    /// Micro-tiles of a tile, a power of two.
    micro_tiles: usize,
    /// Rows and columns of a micro-tile.
    side: usize,
    /// The number of rows of micro-tiles that a tile shares with the tile above it.
    halo_micro_tiles: usize,
    /// The number of columns of elements that a tile shares with the next tile.
    overlap: usize,
    /// The base-2 logarithm of the maximum number of micro-tiles across or down.
    log2_max_side: u32,
    prefetched: Prefetched,
}

impl Tiling {
    /// Tiles of `elements` elements, by 16-byte accesses.
    pub(super) const fn of_vectors(elements: usize, size: usize) -> Self {
        Self {
            micro_tiles: micro_tiles(elements, size),
            side: 16 / size,
            halo_micro_tiles: 0,
            overlap: 0,
            log2_max_side: u32::MAX,
            prefetched: Prefetched::Pairs,
        }
    }

    /// Sector-aligned tiles.
    const fn sector_aligned(size: usize) -> Self {
        let of_vectors = Self::of_vectors(tile_elements(size), size);
        Self {
            halo_micro_tiles: HALO_MICRO_TILES as usize,
            overlap: overlap(size),
            prefetched: Prefetched::Lines,
            ..of_vectors
        }
    }

    /// Narrow tiles.
    const fn narrow(size: usize, is_small: bool) -> Self {
        let side = narrow::elements_per_word(size);
        let size_of_word = if size == 8 { 8 } else { 4 };
        Self {
            micro_tiles: narrow_tile_words(size_of_word, is_small) / side,
            side,
            halo_micro_tiles: narrow::halo_micro_tiles(size),
            overlap: 0,
            log2_max_side: NARROW_BLOCK.ilog2(),
            // Narrow tiles are for small or short-wide matrices.
            prefetched: Prefetched::Nothing,
        }
    }

    /// Rows of a panel, if the matrix is tall enough to be transposed in panels.
    ///
    /// Where a tile's rows begin and end inside cache lines, the next column of tiles needs the rest of these lines. L2
    /// [still has them](cuda_std::global::L2Prefetch), unless the column of tiles is too long. So columns of
    /// [`LONG_COLUMN`] bytes and more are divided into panels of [`PANEL_OF_LINES`] or [`panel_of_line_pairs`] bytes.
    pub(super) fn panel_rows(self, strides: &Strides, size: usize) -> Option<usize> {
        let column = match self.prefetched {
            Prefetched::Nothing => return None,
            Prefetched::Lines => PANEL_OF_LINES,
            Prefetched::Pairs if size > 1 && strides.are_line_pair_aligned(size) => return None,
            Prefetched::Pairs => panel_of_line_pairs(size),
        };
        let width = self.side << self.across(strides.rows, strides.columns);
        let is_long = strides.rows.saturating_mul(width * size) >= LONG_COLUMN;
        (strides.columns > width && is_long).then_some(column / (width * size))
    }

    /// The base-2 logarithm of the micro-tiles across a tile.
    ///
    /// The number of micro-tiles of a tile is fixed, since they fill a block's shared memory. A tile is square, or
    /// twice as high as wide, so that its rows are long in the input and in the output: rows of large tiles of vectors
    /// have 128 to 512 bytes, which is four to sixteen sectors. (Tiles of bytes have such rows on one side only.) Tiles
    /// that overlap the next tile are square or twice as wide as high, so that they overlap less. The part of a tile
    /// outside of the matrix is wasted, so a narrow matrix gets narrower and higher tiles, and a low matrix gets wider
    /// and lower ones.
    fn across(self, rows: usize, columns: usize) -> u32 {
        let all = self.micro_tiles.ilog2();
        let log_of_needed = |micro_tiles: usize| micro_tiles.next_power_of_two().ilog2();
        let most_across = log_of_needed((columns + self.overlap).div_ceil(self.side));
        let rows_of_micro_tiles = self.positions(rows).div_ceil(self.side) + self.halo_micro_tiles;
        let fewest_across = all.saturating_sub(log_of_needed(rows_of_micro_tiles));
        let across = if self.overlap > 0 { all.div_ceil(2) } else { all / 2 };
        let across = across.max(fewest_across).min(most_across).min(all);
        if self.log2_max_side == u32::MAX {
            across
        } else {
            across.min(self.log2_max_side).max(all.saturating_sub(self.log2_max_side))
        }
    }

    /// The number of rows that a tile writes; `None` if the tile would be all halo.
    fn height(self, rows: usize, columns: usize) -> Option<usize> {
        let down = self.micro_tiles >> self.across(rows, columns);
        down.checked_sub(self.halo_micro_tiles).filter(|&down| down > 0).map(|down| down * self.side)
    }

    /// The kernel's parameters: the base-2 logarithm of the micro-tiles across, and the numbers of tiles down and
    /// across. These fit in a `u32`: a matrix with more tiles would not fit in memory.
    pub(super) fn parameters(self, rows: usize, columns: usize) -> (u32, [u32; 2]) {
        let (down, across) = self.grid(rows, columns);
        (self.across(rows, columns), [down as u32, across as u32])
    }

    /// Whether at least half of a tile would be outside of the matrix.
    fn is_mostly_outside(self, rows: usize, columns: usize) -> bool {
        let across = self.across(rows, columns);
        let (height, width) = (self.height(rows, columns).unwrap_or(1), self.side << across);
        2 * rows <= height || 2 * columns <= width
    }

    /// The number of positions of a row of the output. Where tiles share a halo, a row may begin inside a micro-tile,
    /// so there are more positions than elements.
    fn positions(self, rows: usize) -> usize {
        if self.halo_micro_tiles == 0 { rows } else { rows + self.halo_micro_tiles * self.side - 1 }
    }

    /// The numbers of tiles of each matrix, down and across.
    fn grid(self, rows: usize, columns: usize) -> (usize, usize) {
        let width = (self.side << self.across(rows, columns)) - self.overlap;
        let height = self.height(rows, columns).unwrap_or(1);
        (self.positions(rows).div_ceil(height), columns.div_ceil(width))
    }

    /// The number of tiles of each matrix.
    pub(super) fn tiles(self, rows: usize, columns: usize) -> usize {
        let (down, across) = self.grid(rows, columns);
        down * across
    }
}

/// Tiles of vectors for these matrices, and their waves.
pub(super) fn vector_tiling(strides: &Strides, size: usize) -> (Tiling, Waves) {
    let large = Tiling::of_vectors(tile_elements(size), size);
    match large.tiles(strides.rows, strides.columns).saturating_mul(strides.batch) {
        ..MIN_LARGE_TILES => (Tiling::of_vectors(small_tile_elements(size), size), Waves::Partial),
        MIN_LARGE_TILES..=TILES_IN_ONE_WAVE => (large, Waves::One),
        _ => (large, Waves::Many),
    }
}

/// Sector-aligned tiles for these matrices, if they are tall enough and have at least [`MIN_LARGE_TILES`] tiles.
pub(super) fn sector_aligned_if_enough(strides: &Strides, size: usize) -> Option<Tiling> {
    let Strides { rows, columns, batch, .. } = *strides;
    let sector_aligned = Tiling::sector_aligned(size);
    let are_tall =
        sector_aligned.height(rows, columns).is_some_and(|height| rows >= min_sector_aligned_tiles(size) * height);
    let are_enough = sector_aligned.tiles(rows, columns).saturating_mul(batch) >= MIN_LARGE_TILES;
    // Lanes of a row shuffle vectors to each other, so a row must fit a warp. Tiles of tall matrices always do.
    let has_warps = sector_aligned.side << sector_aligned.across(rows, columns) <= 32 * sector_aligned.overlap;
    (are_tall && are_enough && has_warps).then_some(sector_aligned)
}

/// Narrow tiles for these matrices, and whether they are the small ones.
pub(super) fn narrow_tiling(strides: &Strides, size: usize) -> (Tiling, bool) {
    let Strides { rows, columns, batch, .. } = *strides;
    let large = Tiling::narrow(size, false);
    let is_small =
        large.tiles(rows, columns).saturating_mul(batch) < MIN_LARGE_TILES || large.is_mostly_outside(rows, columns);
    (if is_small { Tiling::narrow(size, true) } else { large }, is_small)
}

impl Strides {
    /// Calls `launch` with the matrices. If they are transposed in [panels](Tiling::panel_rows), calls `launch` twice
    /// for each matrix: with all panels but the last as a batch, and with the last, which is one to two panels high.
    pub(super) fn in_panels<T: Plain>(
        self,
        tiling: Tiling,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(Self, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(height) = tiling.panel_rows(&self, size_of::<T>()) else {
            return launch(self, input, output);
        };
        let batch = self.rows / height - 1;
        let panels = Self {
            rows: height,
            batch,
            input_batch_pitch: height * self.input_pitch,
            output_batch_pitch: height,
            ..self
        };
        let last = Self { rows: self.rows - batch * height, batch: 1, ..self };
        for matrix in 0..self.batch {
            let (from, to) = (matrix * self.input_batch_pitch, matrix * self.output_batch_pitch);
            let last_start = (from + batch * panels.input_batch_pitch, to + batch * height);
            for (strides, (from, to)) in [(panels, (from, to)), (last, last_start)] {
                launch(strides, input.skip(from)?, output.reborrow().skip(to)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_unless_the_matrix_is_narrow_or_low() {
        let tile = |rows, columns, size| {
            let Tiling { micro_tiles, side, .. } = Tiling::of_vectors(tile_elements(size), size);
            let across = Tiling::of_vectors(tile_elements(size), size).across(rows, columns);
            ((micro_tiles * side) >> across, side << across)
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
    fn columns_of_tiles_that_share_lines_fit_in_l2() {
        let panel_rows = |tiling: Tiling, rows, columns, size| {
            tiling.panel_rows(&Strides::of_matrix(rows, columns), size).unwrap_or(rows)
        };
        let vectors =
            |rows, columns, size| panel_rows(Tiling::of_vectors(tile_elements(size), size), rows, columns, size);
        assert_eq!((vectors(1_000_003, 127, 16), vectors(8191, 127, 16)), (4096, 8191));
        assert_eq!((vectors(32_768, 5000, 16), vectors(30_000, 5000, 16)), (4096, 30_000), "16 MiB is a long column");
        assert_eq!((vectors(1 << 20, 1000, 4), vectors(1 << 20, 1024, 4)), (16_384, 1 << 20));
        assert_eq!((vectors(1 << 20, 1024, 1), vectors(1 << 15, 1024, 1)), (32_768, 1 << 15));
        assert_eq!(vectors(1 << 24, 16, 4), 1 << 24, "there is no next column of tiles");
        let sector_aligned = |rows, columns, size| panel_rows(Tiling::sector_aligned(size), rows, columns, size);
        assert_eq!((sector_aligned(1_000_003, 1001, 8), sector_aligned(30_001, 5001, 8)), (16_384, 30_001));
        assert_eq!((sector_aligned(1_000_003, 1001, 4), sector_aligned(1_000_003, 1001, 1)), (32_768, 32_768));
        assert_eq!(panel_rows(Tiling::narrow(4, false), 1_000_003, 1001, 4), 1_000_003);
    }

    #[test]
    fn the_number_of_tiles_selects_the_kernel() {
        let waves = |side, batch, size| vector_tiling(&Strides { batch, ..Strides::of_matrix(side, side) }, size).1;
        assert_eq!(
            [512, 1024, 1056, 2048].map(|side| waves(side, 1, 16)),
            [Waves::Partial, Waves::One, Waves::Many, Waves::Many]
        );
        assert_eq!(
            [1, 2, 4, 5].map(|batch| waves(1024, batch, 4)),
            [Waves::Partial, Waves::One, Waves::One, Waves::Many]
        );
        assert_eq!(waves(1 << 20, usize::MAX, 1), Waves::Many);
    }

    #[test]
    fn a_narrow_tile_is_higher_than_its_halo() {
        for size in [1, 2, 4, 8] {
            for (rows, columns) in [(1, 1), (1, 1 << 30), (1 << 30, 1), (3, 1000), (4, 1000), (5, 1000), (999, 999)] {
                for tiling in [Tiling::narrow(size, false), Tiling::narrow(size, true)] {
                    let across = tiling.across(rows, columns);
                    let down = tiling.micro_tiles >> across;
                    assert!(down > tiling.halo_micro_tiles, "{rows} x {columns} of {size} bytes: {down} micro-tiles");
                    assert!(down <= NARROW_BLOCK && 1 << across <= NARROW_BLOCK, "{down} micro-tiles, {across}");
                }
            }
        }
    }

    #[test]
    fn narrow_tiles_are_small_if_half_of_a_large_one_would_be_outside() {
        for (size, rows, columns) in [(1, 6, 8), (2, 7, 8), (4, 8, 8), (8, 4, 4)] {
            let is_mostly_outside = |rows, columns| Tiling::narrow(size, false).is_mostly_outside(rows, columns);
            assert_eq!(
                [is_mostly_outside(rows, 100_000), is_mostly_outside(rows + 1, 100_000)],
                [true, false],
                "{size} bytes"
            );
            assert_eq!(
                [is_mostly_outside(100_000, columns), is_mostly_outside(100_000, columns + 1)],
                [true, false],
                "{size} bytes"
            );
        }
    }
}
