//! A tile of a matrix of segments, loaded by aligned vectors and staged in shared memory as it is.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::aligned_rows::AlignedRows;
use crate::transpose::tiled::access::word::WordAccess;

/// A tile's segments in the input.
pub(in crate::transpose) struct SegmentTile {
    /// The index of the first element.
    pub begin: usize,
    /// Segments in a row of the matrix.
    pub columns: usize,
    /// Segments down and across the tile, and elements of each.
    pub height: u32,
    pub width: u32,
    pub len: u32,
}

impl SegmentTile {
    /// Stores the segments' vectors to shared memory, and returns the layout of their elements. The vectors of a row
    /// and the pitch are those of a [`PackedTiling`](crate::transpose::packed::segment_tiling::PackedTiling). Other
    /// threads may read them after the next barrier.
    #[inline(always)]
    pub fn copy_to<T: WordAccess, const LEN: usize>(
        &self,
        input: &Global<T>,
        vectors_per_row: u32,
        row_pitch: u32,
        tile: &SharedArray<T, LEN>,
    ) -> StagedSegments {
        let &Self { begin, columns, height, width, len } = self;
        let pitch = columns * len as usize;
        // The tile has whole rows of the matrix, without gaps.
        let is_whole = row_pitch == width * len;
        let (rows, row_len) = if is_whole { (1, height * width * len) } else { (height, width * len) };
        let by_vectors = Divisor::new(vectors_per_row);
        let loaded = AlignedRows { input, begin, pitch, rows, len: row_len, by_vectors };
        loaded.copy_to(|row| row * row_pitch, tile);
        StagedSegments {
            past: input.elements_past(begin, 16) as u32,
            pitch: if is_whole { 0 } else { pitch as u32 },
            row_pitch,
            by_segment: Divisor::new(len),
        }
    }
}

/// The layout of the tile's elements in shared memory.
pub(in crate::transpose) struct StagedSegments {
    /// Elements of the first row's first vector before the row. The other rows' follow from the pitch, which is 0 if
    /// the tile was loaded as one row.
    past: u32,
    pitch: u32,
    /// Elements from one row to the next.
    row_pitch: u32,
    /// Divides by a segment's length.
    pub by_segment: Divisor,
}

impl StagedSegments {
    /// The index of element `nth` of a row's first segment.
    #[inline(always)]
    pub fn shared_index<T: WordAccess>(&self, row: u32, nth: u32) -> u32 {
        let past = self.past.wrapping_add(row.wrapping_mul(self.pitch)) % T::Vector::LEN as u32;
        row * self.row_pitch + past + nth
    }
}

/// The smaller of both numbers.
#[inline(always)]
pub(in crate::transpose) fn at_most(left: usize, most: u32) -> u32 {
    if left < most as usize { left as u32 } else { most }
}
