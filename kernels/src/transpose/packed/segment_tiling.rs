//! How a matrix of segments is divided into tiles: computed on the host, once for each launch.

use super::{capacity, elements_per_bank_row};
use crate::MULTIPROCESSORS;
use crate::transpose::tuning::{
    LOWEST_BALANCED_HEIGHT, MAX_EVEN_TILES, MAX_PASSES, MIN_PACKED_TILE, PACKED_BLOCK, PACKED_VECTORS,
    RESIDENT_PACKED_BLOCKS, elements_per_store,
};

/// A tiling of a matrix of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedTiling {
    /// Segments down a tile.
    pub height: usize,
    /// Segments across a tile.
    pub width: usize,
    /// The maximum number of 16-byte vectors of a row, or of the whole tile if it is loaded as one row; at least 2.
    pub vectors_per_row: usize,
    /// The pitch of rows in shared memory, in elements. If it is a row's length, the tile is loaded as one row: it has
    /// whole rows of the matrix, and is contiguous in the input.
    pub row_pitch: usize,
}

impl PackedTiling {
    /// The tiling of a matrix of `rows` x `columns` segments of `len` elements of `size` bytes, in about `tiles` tiles,
    /// of at least 2 KiB and at most the [`capacity`] of a block. `len` is at most that capacity less a vector.
    ///
    /// Tiles of a large matrix are about square, so that both sides have contiguous parts of the same length. Their
    /// height gives a row of the output one word for each of its [threads](PackedTiling::threads_per_row). Tiles of a
    /// narrow matrix are higher if there would otherwise be more than `tiles` of them.
    pub fn new(rows: usize, columns: usize, len: usize, size: usize, tiles: usize) -> Self {
        let each = elements_per_store(size) as usize;
        let all = (elements_per_tile(rows * columns * len, size, tiles) / len).max(1);
        let threads = nearest_power_of_two(words_per_row(all.isqrt() * len, each)).min(PACKED_BLOCK);
        // If rows of the output are whole words, so are a tile's parts of them.
        let whole = |height: usize| if height > each { height / each * each } else { height.max(1) };
        let mut height = rows.min(whole((threads * each - (each - 1)) / len));
        let mut width = columns.min((all / height).max(1));
        if width == columns && rows.div_ceil(height) > tiles {
            height = rows.min(whole(all / columns));
        }
        let padded = Self::with_sides(1, width, false, len, size);
        let one_segment = width == columns && is_better_as_one_segment(columns * len, padded.row_pitch, len, size);
        if width == columns && !one_segment {
            let fit = (PACKED_BLOCK * PACKED_VECTORS / padded.vectors_per_row).min(capacity(size) / padded.row_pitch);
            height = height.min(whole(fit));
        }
        loop {
            let tiling = Self::with_sides(height, width, one_segment && width == columns, len, size);
            if tiling.fits(len, size) || (height == 1 && width == 1) {
                let rows_at_once = PACKED_BLOCK / tiling.threads_per_row(len, size);
                let width = if width == columns { columns } else { even_width(columns, width, rows_at_once) };
                return Self::with_sides(height, width, one_segment && width == columns, len, size);
            }
            if height > 1 && (width == columns || width == 1) {
                height -= if height > each && height.is_multiple_of(each) { each } else { 1 };
            } else {
                width -= 1;
            }
        }
    }

    /// The tiling, with lower tiles if these divide the matrix more evenly among the multiprocessors: where all tiles
    /// run at once, the multiprocessor with the most segments finishes last. A matrix of more tiles keeps its tiling.
    #[must_use]
    pub fn balanced(self, rows: usize, columns: usize, len: usize, size: usize) -> Self {
        let tiles = |height: usize| rows.div_ceil(height) * columns.div_ceil(self.width);
        let most_segments = |height: usize| tiles(height).div_ceil(MULTIPROCESSORS) * height * self.width;
        let [numerator, denominator] = LOWEST_BALANCED_HEIGHT;
        let each = elements_per_store(size) as usize;
        // Of equally good heights, the first: the highest.
        let best = ((self.height * numerator).div_ceil(denominator)..=self.height)
            .rev()
            .filter(|&height| height == self.height || height.is_multiple_of(each))
            .filter(|&height| tiles(height) <= RESIDENT_PACKED_BLOCKS)
            .min_by_key(|&height| most_segments(height));
        let one_segment = self.row_pitch == self.width * len;
        best.map_or(self, |height| Self::with_sides(height, self.width, one_segment, len, size))
    }

    /// Tiles as high as the matrix, for [`segments_short_wide`](mod@super::segments_short_wide).
    pub fn short_wide(rows: usize, columns: usize, len: usize, size: usize, tiles: usize) -> Self {
        let mut width = columns.min((elements_per_tile(rows * columns * len, size, tiles) / (rows * len)).max(1));
        loop {
            let tiling = Self::with_sides(rows, width, width == columns, len, size);
            if tiling.fits(len, size) || width == 1 {
                return tiling;
            }
            width -= 1;
        }
    }

    fn with_sides(height: usize, width: usize, one_segment: bool, len: usize, size: usize) -> Self {
        let lanes = 16 / size;
        let row = if one_segment { height * width * len } else { width * len };
        let vectors_per_row = (row + lanes - 1).div_ceil(lanes).max(2);
        let row_pitch = if one_segment { width * len } else { row_pitch(vectors_per_row * lanes, len, size) };
        Self { height, width, vectors_per_row, row_pitch }
    }

    /// Whether the block's threads can load the tile's vectors, and its capacity holds them.
    fn fits(&self, len: usize, size: usize) -> bool {
        let rows = if self.row_pitch == self.width * len { 1 } else { self.height };
        let needed = (rows - 1) * self.row_pitch + self.vectors_per_row * (16 / size);
        rows * self.vectors_per_row <= PACKED_BLOCK * PACKED_VECTORS && needed <= capacity(size)
    }

    /// Threads that write a row of the output: the row's words, rounded up to a power of two, at most the block.
    pub fn threads_per_row(&self, len: usize, size: usize) -> usize {
        words_per_row(self.height * len, elements_per_store(size) as usize).next_power_of_two().min(PACKED_BLOCK)
    }
}

/// Elements of a tile, if `tiles` tiles cover the matrix, within the limits of a block.
fn elements_per_tile(elements: usize, size: usize, tiles: usize) -> usize {
    elements.div_ceil(tiles).clamp(MIN_PACKED_TILE / size, capacity(size))
}

/// The width of a tile, at most `most`: a multiple of the rows of the output that a block writes at once, so that each
/// thread writes the same number of rows. Up to [`MAX_EVEN_TILES`] tiles are about equally wide.
fn even_width(columns: usize, most: usize, rows_at_once: usize) -> usize {
    if most <= rows_at_once {
        return most;
    }
    let most = most - most % rows_at_once;
    let tiles = columns.div_ceil(most);
    // A tile of fewer columns than a block writes at once would leave most threads idle.
    let is_even = columns % most < rows_at_once;
    if tiles > MAX_EVEN_TILES || is_even {
        most
    } else {
        columns.div_ceil(tiles).next_multiple_of(rows_at_once).min(most)
    }
}

/// The maximum number of words that a row of the output spans, with `each` elements per word.
fn words_per_row(elements: usize, each: usize) -> usize {
    (elements + each - 1).div_ceil(each)
}

/// The nearest power of two, geometrically.
fn nearest_power_of_two(number: usize) -> usize {
    let below = 1 << number.ilog2();
    if number * number > 2 * below * below { 2 * below } else { below }
}

/// The pitch of rows of `elements` elements in shared memory, so that a warp reads different banks. If there is a lane
/// for each element, segments of neighbouring rows are in neighbouring banks. If two lanes never read the same segment,
/// the pitch is an odd number of banks, so that every bank is used.
fn row_pitch(elements: usize, len: usize, size: usize) -> usize {
    let word = if size < 4 { 4 / size } else { 1 };
    let words = elements.div_ceil(word);
    if len < elements_per_store(size) as usize {
        return (words | 1) * word;
    }
    let banks = elements_per_bank_row(size) / word;
    (words + (banks + len.div_ceil(word) % banks - words % banks) % banks) * word
}

/// Whether a narrow tile, whose rows are one contiguous segment of the input, is better loaded as one row: if a warp
/// reads it in few passes, or if fewer than two fifths of the rows fit at the padded pitch.
fn is_better_as_one_segment(elements: usize, padded_pitch: usize, len: usize, size: usize) -> bool {
    2 * padded_pitch > 5 * elements || passes(elements, len, size) <= MAX_PASSES
}

/// The passes in which a warp reads the first element of each lane's store: the maximum number of words in one bank,
/// for rows that begin `row_pitch` elements apart.
fn passes(row_pitch: usize, len: usize, size: usize) -> u32 {
    let (mut words, mut last) = ([0; 32], [usize::MAX; 32]);
    for lane in 0..32 {
        let nth = lane * elements_per_store(size) as usize;
        let word = (nth / len * row_pitch + nth % len) * size / 4;
        if last[word % 32] != word {
            last[word % 32] = word;
            words[word % 32] += 1;
        }
    }
    words.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::segments_short_wide::is_short_wide;
    use super::*;

    #[test]
    fn a_block_has_the_capacity_of_a_tile_and_threads_for_its_words() {
        for size in [1, 2, 4, 8] {
            let each = elements_per_store(size) as usize;
            for (len, tiles) in (2..=capacity(size) - 16 / size).flat_map(|len| [(len, 1), (len, 500)]) {
                for (rows, columns) in [(1000, 1000), (2, 1 << 20), (1 << 20, 2), (3, 5), (70, 70)] {
                    let tiling = PackedTiling::new(rows, columns, len, size, tiles);
                    check(&tiling, [rows, columns], len, size);
                    // Most threads have a word if rows of the output are long enough.
                    let (threads, words) =
                        (tiling.threads_per_row(len, size), words_per_row(tiling.height * len, each));
                    let are_large = rows == 1000 && tiling.height > 8;
                    assert!(!are_large || 8 * words >= 5 * threads, "{len} of {size}: {tiling:?}, {words} words");
                    if is_short_wide(rows, len, size) {
                        check(&PackedTiling::short_wide(rows, columns, len, size, tiles), [rows, columns], len, size);
                    }
                }
            }
        }
        let tiles = PackedTiling::new(8192, 512, 3, 4, 1);
        assert_eq!((tiles.height, tiles.threads_per_row(3, 4)), (42, 128));
        let tiles = PackedTiling::new(8192, 512, 3, 1, 1);
        assert_eq!((tiles.height, tiles.width, tiles.threads_per_row(3, 1)), (80, 128, 32));
        for rows in 2..=16 {
            assert_eq!(PackedTiling::short_wide(rows, 1 << 24, 3, 1, 500).height, rows);
            let narrow = PackedTiling::new(1 << 24, rows, 3, 4, 500);
            assert!(narrow.width == rows && narrow.height * narrow.row_pitch > capacity(4) / 8 * 7, "{narrow:?}");
        }
    }

    #[test]
    fn tiles_that_run_at_once_are_lowered_to_balance_the_multiprocessors() {
        let sides = |tiles: PackedTiling| (tiles.height, tiles.width);
        let both = |rows: usize, columns: usize, len: usize, size: usize| {
            let tiles = PackedTiling::new(rows, columns, len, size, 2 * MULTIPROCESSORS);
            (sides(tiles), sides(tiles.balanced(rows, columns, len, size)))
        };
        // 412 tiles, four of 80 x 128 segments on the busiest multiprocessor, become 512.
        assert_eq!(both(8192, 512, 3, 1), ((80, 128), (64, 128)));
        assert_eq!(both(1080, 1920, 3, 1), ((80, 96), (64, 96)));
        // More tiles than run at once; and tiles that are even.
        assert_eq!(both(8192, 512, 3, 4), ((42, 62), (42, 62)));
        assert_eq!(both(480, 640, 3, 1), ((40, 16), (40, 16)));
        for size in [1, 2, 4, 8] {
            for (rows, columns, len) in [(9_000, 20, 3), (701, 900, 9), (64, 1000, 5), (5, 70_000, 3), (300, 41, 70)] {
                let tiles = PackedTiling::new(rows, columns, len, size, 2 * MULTIPROCESSORS);
                let balanced = tiles.balanced(rows, columns, len, size);
                check(&balanced, [rows, columns], len, size);
                assert!(balanced.width == tiles.width, "{tiles:?}, {balanced:?}");
                assert!(4 * balanced.height >= 3 * tiles.height, "{tiles:?}, {balanced:?}");
            }
        }
    }

    fn check(tiles: &PackedTiling, [rows, columns]: [usize; 2], len: usize, size: usize) {
        let &PackedTiling { height, width, vectors_per_row, row_pitch } = tiles;
        assert!((1..=rows).contains(&height) && (1..=columns).contains(&width), "{tiles:?}");
        let (loaded, lanes) = (if row_pitch == width * len { 1 } else { height }, 16 / size);
        assert!(loaded * vectors_per_row <= PACKED_BLOCK * PACKED_VECTORS, "{len} of {size}: {tiles:?}");
        assert!((loaded - 1) * row_pitch + vectors_per_row * lanes <= capacity(size), "{len} of {size}: {tiles:?}");
        let elements = if loaded == 1 && width == columns { height * width * len } else { width * len };
        assert!(elements + lanes - 1 <= vectors_per_row * lanes, "{len} of {size}: {tiles:?}");
        assert!(vectors_per_row * lanes <= row_pitch || loaded == 1, "{len} of {size}: {tiles:?}");
        // Dividends are below the divisor's limit.
        assert!(height * width * len < 1 << 16, "{len} of {size}: {tiles:?}");
    }

    #[test]
    fn rows_are_padded_against_bank_conflicts() {
        let of = |columns: usize, len: usize, size: usize| passes(columns * len, len, size);
        assert_eq!([of(16, 3, 1), of(64, 3, 1), of(64, 3, 2), of(20, 3, 1), of(20, 3, 4)], [11, 22, 22, 3, 2]);
        assert_eq!(PackedTiling::new(400_000, 16, 3, 1, 500).row_pitch, 68);
        assert_eq!(PackedTiling::new(300_000, 20, 3, 1, 500).row_pitch, 60);
        // With padding, a third of the rows would fit.
        assert_eq!((of(2, 9, 1), PackedTiling::new(3_000_000, 2, 9, 1, 500).row_pitch), (4, 18));
        for size in [1, 2, 4, 8] {
            for (len, elements) in (2..200).flat_map(|len| (1..100).map(move |vectors| (len, vectors * 16 / size))) {
                let passes = passes(row_pitch(elements, len, size), len, size);
                assert!(passes <= 4, "{elements} elements, segments of {len} of {size} bytes: {passes}");
            }
        }
    }

    #[test]
    fn a_tile_may_fill_its_block() {
        for size in [1, 2, 4, 8] {
            let fits = |height: usize, vectors_per_row: usize, row_pitch: usize| {
                PackedTiling { height, width: 1, vectors_per_row, row_pitch }.fits(2, size)
            };
            let (most, lanes) = (PACKED_BLOCK * PACKED_VECTORS, 16 / size);
            assert_eq!([fits(1, most, 3), fits(1, most + 1, 3)], [true, false]);
            assert_eq!(
                [fits(2, 9, capacity(size) - 9 * lanes), fits(2, 9, capacity(size) - 9 * lanes + 1)],
                [true, false]
            );
        }
    }

    #[test]
    fn a_tile_has_a_word_for_each_thread_and_tilings_have_the_requested_number_of_tiles() {
        assert_eq!(PackedTiling::new(8192, 512, 2, 4, 500).height, 128 / 2);
        let short_wide = PackedTiling::short_wide(4, 1 << 16, 3, 4, 500);
        assert_eq!(short_wide.width, (1 << 16) / 500);
    }

    #[test]
    fn two_or_three_tiles_are_about_equally_wide() {
        assert_eq!([even_width(80, 65, 4), even_width(80, 32, 1), even_width(512, 129, 8)], [40, 27, 128]);
        assert_eq!([even_width(1000, 7, 8), even_width(9, 8, 4), even_width(513, 128, 8)], [7, 8, 128]);
    }

    #[test]
    fn the_nearest_power_of_two() {
        let of = [1, 2, 3, 4, 5, 6, 40, 46, 108, 156, 181, 182].map(nearest_power_of_two);
        assert_eq!(of, [1, 2, 4, 4, 4, 8, 32, 64, 128, 128, 128, 256]);
    }
}
