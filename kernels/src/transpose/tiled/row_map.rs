//! Where the rows of a tile begin in memory: at a pitch, or interleaved.

use crate::divisor::Divisor;
use crate::transpose::tuning::LINE_PAIR;

/// The strides of a batch of matrices, on the input's or the output's side.
pub(in crate::transpose) struct Layout {
    /// Elements from the start of a row to that of the next row.
    pub pitch: usize,
    /// Elements from the start of a matrix to that of the next matrix.
    pub batch_pitch: usize,
}

/// Maps a row of the tile to its address.
pub(in crate::transpose) trait RowMap: Copy {
    /// The index of the tile's first element of row `row`.
    fn start(self, row: u32) -> usize;
    /// Whether the distance between rows is a multiple of [`LINE_PAIR`] bytes, or unknown.
    fn are_line_pair_aligned<T>(self) -> bool;
}

/// Rows at a pitch.
#[derive(Clone, Copy)]
pub(in crate::transpose) struct PitchedRows {
    pub(in crate::transpose) first: usize,
    pub(in crate::transpose) pitch: usize,
}

impl RowMap for PitchedRows {
    #[inline(always)]
    fn start(self, row: u32) -> usize {
        self.first + row as usize * self.pitch
    }

    #[inline(always)]
    fn are_line_pair_aligned<T>(self) -> bool {
        (self.pitch * size_of::<T>()).is_multiple_of(LINE_PAIR)
    }
}

/// The maximum number of ways of an interleaving.
pub const MAX_WAYS: usize = 1 << 12;

/// A divisor above the number of rows of a tile: all rows are in group 0.
const NOT_INTERLEAVED: u32 = 1 << 31;

/// Interleaved rows of a tile. `ALIGNED` says that the tile's rows begin at multiples of 16 bytes; then no row's
/// address is computed in a loop.
#[derive(Clone, Copy)]
pub(in crate::transpose) struct InterleavedRows<const ALIGNED: bool> {
    /// Where way 0 of the group of the tile's first row begins.
    first: usize,
    /// The way of the tile's first row.
    past: u32,
    ways: Divisor,
    /// Elements from one way to the next, and from one group to the next.
    way_stride: usize,
    group_stride: usize,
}

impl<const ALIGNED: bool> InterleavedRows<ALIGNED> {
    /// The rows of a tile whose first row is `top` and first column `left`, in a matrix of `rows` rows of `pitch`
    /// elements. `ways` divides `rows`.
    #[inline(always)]
    pub(in crate::transpose) fn new(rows: usize, pitch: usize, ways: u32, (top, left): (usize, usize)) -> Self {
        if ways == 1 {
            let first = top * pitch + left;
            return Self { first, past: 0, ways: Divisor::new(NOT_INTERLEAVED), way_stride: pitch, group_stride: 0 };
        }
        let groups = rows / ways as usize;
        let (group, past) = (top / ways as usize, (top % ways as usize) as u32);
        let first = group * pitch + left;
        Self { first, past, ways: Divisor::new(ways), way_stride: groups * pitch, group_stride: pitch }
    }
}

impl<const ALIGNED: bool> RowMap for InterleavedRows<ALIGNED> {
    #[inline(always)]
    fn start(self, row: u32) -> usize {
        let nth = self.past + row;
        let (group, way) = if ALIGNED { self.ways.div_rem_outside_loops(nth) } else { self.ways.div_rem(nth) };
        self.first + group as usize * self.group_stride + way as usize * self.way_stride
    }

    #[inline(always)]
    fn are_line_pair_aligned<T>(self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_interleaved() {
        // 4 groups of 3 rows, of 10 elements: ways are 40 apart.
        let rows = InterleavedRows::<false>::new(12, 10, 3, (5, 2));
        let starts = [0, 1, 2, 3, 6].map(|row| rows.start(row));
        assert_eq!(starts, [82 + 10, 2 + 20, 42 + 20, 82 + 20, 82 + 30]);
        let rows = InterleavedRows::<true>::new(12, 10, 1, (5, 2));
        assert_eq!([0, 1, 6].map(|row| rows.start(row)), [52, 62, 112]);
    }
}
