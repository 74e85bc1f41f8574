//! A block's tile of words, and where its words lie in shared memory.

use cuda_std::global::Word;

use super::{elements_per_word, halo_micro_tiles};
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tiled::block_tile::TileGrid;
use crate::transpose::tuning::NARROW_BLOCK;

/// The variant for a tile that is inside the matrix with its halo.
pub(in crate::transpose) struct Inside<'a, E>(pub(in crate::transpose) &'a E);

/// A block's tile.
pub(in crate::transpose) struct Tile {
    pub(in crate::transpose) batch: usize,
    /// The first position in a row of the output that the tile writes.
    pub(in crate::transpose) top: usize,
    /// The first column, and the columns that are inside the matrix.
    pub(in crate::transpose) left: usize,
    pub(in crate::transpose) columns: u32,
    /// Rows of the matrix.
    pub(in crate::transpose) rows: usize,
    /// Words across and micro-tiles down, as base-2 logarithms.
    pub(in crate::transpose) log2_across: u32,
    pub(in crate::transpose) log2_down: u32,
}

impl Tile {
    #[inline(always)]
    pub(in crate::transpose) fn of_block<T: WordAccess, const LEN: usize>(
        rows: usize,
        columns: usize,
        grid: TileGrid,
    ) -> Self {
        let (size, side) = (size_of::<T>(), elements_per_word(size_of::<T>()));
        let (log2_across, log2_down) = (grid.log2_across, (LEN / side).trailing_zeros() - grid.log2_across);
        let (height, width) = (((1 << log2_down) - halo_micro_tiles(size)) * side, side << log2_across);
        let (batch, row, column) = grid.of_block();
        let left = column as usize * width;
        let columns = if columns - left < width { columns - left } else { width };
        Self {
            batch: batch as usize,
            rows,
            top: row as usize * height,
            left,
            columns: columns as u32,
            log2_across,
            log2_down,
        }
    }

    /// Whether the tile is inside the matrix, with enough rows above and below that no row of the output begins or ends
    /// in it.
    #[inline(always)]
    pub(in crate::transpose) fn is_inside<T: WordAccess>(&self) -> bool {
        let side = elements_per_word(size_of::<T>());
        let below = (side << self.log2_down) + side;
        self.columns as usize == side << self.log2_across
            && self.top + below <= self.rows
            && (self.top >= side || halo_micro_tiles(size_of::<T>()) == 0)
    }

    /// The swizzle: word `q` of a slot lies at `q ^ swizzle`. Linear over XOR in the slot.
    #[inline(always)]
    pub(in crate::transpose) fn swizzle<W: Word>(&self, slot: u32) -> u32 {
        // The base-2 logarithm of the words that fill all banks. Several short slots share the banks.
        let banks: u32 = if size_of::<W>() == 8 { 4 } else { 5 };
        (slot >> banks.saturating_sub(self.log2_down)) & ((1 << self.log2_down) - 1) & ((1 << banks) - 1)
    }

    /// The index of word `q` of slot `slot` in shared memory. Linear over XOR.
    #[inline(always)]
    pub(in crate::transpose) fn shared_index<W: Word>(&self, slot: u32, q: u32) -> u32 {
        (slot << self.log2_down) | (q ^ self.swizzle::<W>(slot))
    }
}

/// Words that a thread has.
pub(in crate::transpose) const fn words_per_thread<const LEN: usize>() -> usize {
    LEN / NARROW_BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_is_inside_with_a_micro_tile_more_above_and_below() {
        let is_inside = |columns: u32, top: usize, rows: usize| {
            let tile = Tile { batch: 0, top, left: 0, columns, rows, log2_across: 2, log2_down: 3 };
            (tile.is_inside::<u8>(), tile.is_inside::<u32>())
        };
        // Bytes: 4 x 8 micro-tiles of 4 x 4. Words: 4 x 8 words.
        assert_eq!(is_inside(16, 4, 40), (true, false));
        assert_eq!([is_inside(15, 4, 40), is_inside(16, 3, 40), is_inside(16, 4, 39)], [(false, false); 3]);
        assert_eq!(
            [is_inside(4, 0, 9), is_inside(4, 0, 8), is_inside(3, 0, 9)].map(|inside| inside.1),
            [true, false, false]
        );
    }
}
