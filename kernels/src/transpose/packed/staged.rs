//! A tile of a matrix of runs, loaded by aligned vectors and kept as it is.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::aligned_rows::AlignedRows;
use crate::transpose::tiled::access::word::WordAccess;

/// A tile's runs in the input.
pub(in crate::transpose) struct SegmentTile {
    /// Where the first element is.
    pub begin: usize,
    /// Runs of a row of the matrix.
    pub columns: usize,
    /// Runs of the tile, one below the other and side by side, and elements of each.
    pub high: u32,
    pub wide: u32,
    pub len: u32,
}

impl SegmentTile {
    /// Writes the runs to shared memory, as the vectors that they lie in, and says where. How many vectors, and how far
    /// apart, is as in [`PackedTiling`](crate::transpose::packed::segment_tiling::PackedTiling). Other threads may read them behind the next barrier.
    #[inline(always)]
    pub fn copy_to<T: WordAccess, const LEN: usize>(
        &self,
        input: &Global<T>,
        vectors_per_row: u32,
        row_pitch: u32,
        tile: &SharedArray<T, LEN>,
    ) -> Staged {
        let &Self { begin, columns, high, wide, len } = self;
        let pitch = columns * len as usize;
        // Rows of the tile that are rows of the matrix, with nothing between them.
        let is_whole = row_pitch == wide * len;
        let (rows, row_len) = if is_whole { (1, high * wide * len) } else { (high, wide * len) };
        let by_vectors = Divisor::new(vectors_per_row);
        let loaded = AlignedRows { input, begin, pitch, rows, len: row_len, by_vectors };
        loaded.copy_to(|row| row * row_pitch, tile);
        Staged {
            past: input.elements_past(begin, 16) as u32,
            pitch: if is_whole { 0 } else { pitch as u32 },
            apart: row_pitch,
            by_segment: Divisor::new(len),
        }
    }
}

/// Where the tile's elements lie in shared memory.
pub(in crate::transpose) struct Staged {
    /// How many elements the first row begins behind its first vector's start, and the pitch that tells so of the
    /// others.
    past: u32,
    pitch: u32,
    /// Elements from one row to the next.
    apart: u32,
    /// Divides by a run's length.
    pub by_segment: Divisor,
}

impl Staged {
    /// Where the `nth` element of a row's first run is.
    #[inline(always)]
    pub fn place<T: WordAccess>(&self, row: u32, nth: u32) -> u32 {
        let past = self.past.wrapping_add(row.wrapping_mul(self.pitch)) % T::Vector::LEN as u32;
        row * self.apart + past + nth
    }
}

/// `most`, or `left` if that is less.
#[inline(always)]
pub(in crate::transpose) fn at_most(left: usize, most: u32) -> u32 {
    if left < most as usize { left as u32 } else { most }
}
