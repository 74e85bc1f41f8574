//! How a matrix is cut in tiles, and which kernel's tiles they are.

use kernels::transpose::slanted::{MARGIN, spare};
use kernels::transpose::tile::squares;
use kernels::transpose::tuning::{
    FEW_TILES, LONG_COLUMN, NARROW_BLOCK, PANEL_OF_LINES, SECTOR_ALIGNED_TILES, TILES_IN_ONE_WAVE, narrow_tile_words,
    panel_of_line_pairs, small_tile_elements, tile_elements,
};
use kernels::transpose::words;

use super::launch::Strides;

/// What a tile's loads bring to L2 of the next column of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ahead {
    Nothing,
    /// What is left of a stretch's last line, or of its last sector.
    Lines,
    /// Of the last pair of lines, where rows are no whole number of pairs apart; of bytes always.
    Pairs,
}

/// How many tiles there are, and so by which of three kernels they are turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Many,
    /// There is a place for each.
    AtOnce,
    /// They are small ones.
    Few,
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
    /// By vectors of 16 bytes, tiles of `elements`.
    pub(super) const fn of_vectors(elements: usize, size: usize) -> Self {
        Self {
            squares: squares(elements, size),
            side: 16 / size,
            margin: 0,
            spare: 0,
            most: u32::MAX,
            ahead: Ahead::Pairs,
        }
    }

    /// By vectors of 16 bytes that begin anywhere.
    const fn slanted(size: usize) -> Self {
        let of_vectors = Self::of_vectors(tile_elements(size), size);
        Self { margin: MARGIN as usize, spare: spare(size), ahead: Ahead::Lines, ..of_vectors }
    }

    /// By words.
    const fn of_words(size: usize, are_few: bool) -> Self {
        let side = words::per_word(size);
        let size_of_word = if size == 8 { 8 } else { 4 };
        Self {
            squares: narrow_tile_words(size_of_word, are_few) / side,
            side,
            margin: words::margin(size),
            spare: 0,
            most: NARROW_BLOCK.ilog2(),
            // They are for what is small or low.
            ahead: Ahead::Nothing,
        }
    }

    /// Rows of a band, if the matrix is high enough to be turned in bands.
    ///
    /// Where a tile's stretches of rows begin and end inside of lines, the next column of tiles needs the rest of
    /// these, which L2 [has](cuda_std::global::Fetch) by then; but of a column that is too long it is gone, and was
    /// read for nothing. So columns of [`LONG_COLUMN`] end after [`PANEL_OF_LINES`] or [`panel_of_line_pairs`].
    pub(super) fn rows_of_band(self, strides: &Strides, size: usize) -> Option<usize> {
        let column = match self.ahead {
            Ahead::Nothing => return None,
            Ahead::Lines => PANEL_OF_LINES,
            Ahead::Pairs if size > 1 && strides.are_lines_apart(size) => return None,
            Ahead::Pairs => panel_of_line_pairs(size),
        };
        let width = self.side << self.across(strides.rows, strides.columns);
        let is_long = strides.rows.saturating_mul(width * size) >= LONG_COLUMN;
        (strides.columns > width && is_long).then_some(column / (width * size))
    }

    /// How many squares are across a tile, as a power of two.
    ///
    /// The squares of a tile are always as many, since they fill the shared memory that a block has. It is square, or
    /// twice as high as wide, so that its rows are as long as they can be on both sides: large tiles of vectors have
    /// 128 bytes (of elements of 1 byte, on one side) to 512 bytes, four to sixteen sectors of memory. Tiles whose last
    /// columns are the next one's are twice as wide as high, if they are not square: so they share fewer. A matrix that
    /// is narrower gets a tile that is as narrow and longer for it, since what is outside of the matrix is lost; one
    /// that is lower, a wider one.
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

    /// What a kernel is told of it: squares across, as a power of two, and tiles down and across. No memory holds a
    /// matrix of more tiles than a grid has blocks.
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

/// Tiles of vectors for these matrices, and how many.
pub(super) fn by_vectors_or_few(strides: &Strides, size: usize) -> (Tiling, Amount) {
    let large = Tiling::of_vectors(tile_elements(size), size);
    match large.tiles(strides.rows, strides.columns).saturating_mul(strides.batch) {
        ..FEW_TILES => (Tiling::of_vectors(small_tile_elements(size), size), Amount::Few),
        FEW_TILES..=TILES_IN_ONE_WAVE => (large, Amount::AtOnce),
        _ => (large, Amount::Many),
    }
}

/// Slanted tiles for these matrices, if they are high and many enough.
pub(super) fn slanted_if_many(strides: &Strides, size: usize) -> Option<Tiling> {
    let Strides { rows, columns, batch, .. } = *strides;
    let slanted = Tiling::slanted(size);
    let are_high = slanted.height(rows, columns).is_some_and(|height| rows >= SECTOR_ALIGNED_TILES * height);
    let are_many = slanted.tiles(rows, columns).saturating_mul(batch) >= FEW_TILES;
    // A row's lanes hand vectors to each other. High matrices have no wider tiles, anyway.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_where_there_is_room_and_strips_where_there_is_not() {
        let tile = |rows, columns, size| {
            let Tiling { squares, side, .. } = Tiling::of_vectors(tile_elements(size), size);
            let across = Tiling::of_vectors(tile_elements(size), size).across(rows, columns);
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
    fn columns_of_tiles_that_share_lines_are_short_enough_for_l2() {
        let rows_of_band = |tiling: Tiling, rows, columns, size| {
            tiling.rows_of_band(&Strides::of_matrix(rows, columns), size).unwrap_or(rows)
        };
        let vectors =
            |rows, columns, size| rows_of_band(Tiling::of_vectors(tile_elements(size), size), rows, columns, size);
        assert_eq!((vectors(1_000_003, 127, 16), vectors(8191, 127, 16)), (4096, 8191));
        assert_eq!((vectors(32_768, 5000, 16), vectors(30_000, 5000, 16)), (4096, 30_000), "16 MiB are long");
        assert_eq!((vectors(1 << 20, 1000, 4), vectors(1 << 20, 1024, 4)), (16_384, 1 << 20));
        assert_eq!((vectors(1 << 20, 1024, 1), vectors(1 << 15, 1024, 1)), (32_768, 1 << 15));
        assert_eq!(vectors(1 << 24, 16, 4), 1 << 24, "there is no next column of tiles");
        let slanted = |rows, columns, size| rows_of_band(Tiling::slanted(size), rows, columns, size);
        assert_eq!((slanted(1_000_003, 1001, 8), slanted(30_001, 5001, 8)), (16_384, 30_001));
        assert_eq!((slanted(1_000_003, 1001, 4), slanted(1_000_003, 1001, 1)), (32_768, 32_768));
        assert_eq!(rows_of_band(Tiling::of_words(4, false), 1_000_003, 1001, 4), 1_000_003);
    }

    #[test]
    fn tiles_are_small_where_they_are_few_and_have_more_registers_where_they_are_many() {
        let amount =
            |side, batch, size| by_vectors_or_few(&Strides { batch, ..Strides::of_matrix(side, side) }, size).1;
        assert_eq!(
            [512, 1024, 1056, 2048].map(|side| amount(side, 1, 16)),
            [Amount::Few, Amount::AtOnce, Amount::Many, Amount::Many]
        );
        assert_eq!(
            [1, 2, 4, 5].map(|batch| amount(1024, batch, 4)),
            [Amount::Few, Amount::AtOnce, Amount::AtOnce, Amount::Many]
        );
        assert_eq!(amount(1 << 20, usize::MAX, 1), Amount::Many);
    }

    #[test]
    fn a_tile_of_words_is_higher_than_its_margin() {
        for size in [1, 2, 4, 8] {
            for (rows, columns) in [(1, 1), (1, 1 << 30), (1 << 30, 1), (3, 1000), (4, 1000), (5, 1000), (999, 999)] {
                for tiling in [Tiling::of_words(size, false), Tiling::of_words(size, true)] {
                    let across = tiling.across(rows, columns);
                    let down = tiling.squares >> across;
                    assert!(down > tiling.margin, "{rows} x {columns} of {size} bytes: {down} squares");
                    assert!(down <= NARROW_BLOCK && 1 << across <= NARROW_BLOCK, "{down} squares, {across}");
                }
            }
        }
    }

    #[test]
    fn tiles_of_words_are_small_where_half_of_a_large_one_would_be_outside() {
        for (size, rows, columns) in [(1, 6, 8), (2, 7, 8), (4, 8, 8), (8, 4, 4)] {
            let is_too_long = |rows, columns| Tiling::of_words(size, false).is_too_long(rows, columns);
            assert_eq!([is_too_long(rows, 100_000), is_too_long(rows + 1, 100_000)], [true, false], "{size} bytes");
            assert_eq!(
                [is_too_long(100_000, columns), is_too_long(100_000, columns + 1)],
                [true, false],
                "{size} bytes"
            );
        }
    }
}
