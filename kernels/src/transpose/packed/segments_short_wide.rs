//! Transposes matrices of few rows of short contiguous segments: a tile is as high as the matrix, so that it is one
//! contiguous segment of the output. It is loaded as in [`segments`](mod@super::segments).

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::staged::{SegmentTile, at_most};
use super::{capacity, store_unclamped};
use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, SHORT_WIDE_ROW, elements_per_store};

/// Whether rows of the output are so short that many stores would span two of them, for `rows` segments of `len`
/// elements of `size` bytes.
pub const fn is_short_wide(rows: usize, len: usize, size: usize) -> bool {
    rows * len * size < SHORT_WIDE_ROW
}

/// Transposes a matrix of `rows` x `columns` segments of `len` elements, without gaps: segment `i * columns + j` of the
/// input is segment `j * rows + i` of the output.
///
/// `len` is at least 2. A block takes `width` segments of each row. That, `vectors_per_row` and `row_pitch` are those
/// of a [`PackedTiling`](crate::transpose::packed::segment_tiling::PackedTiling). `LEN` is the [`capacity`] of a block.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == capacity(1)] + [u16] x [16384 == capacity(2)] + [u32] x [8192 == capacity(4)]
        + [u64] x [4096 == capacity(8)],
    block = PACKED_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn packed_segments_short_wide<T: WordAccess, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: usize,
    len: u32,
    width: u32,
    vectors_per_row: u32,
    row_pitch: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let left = thread::block_idx_x() as usize * width as usize;
    let tile_width = at_most(columns - left, width);
    let segments = SegmentTile { begin: left * len as usize, columns, height: rows, width: tile_width, len };
    let staged = segments.copy_to(&input, vectors_per_row, row_pitch, &tile);
    thread::sync_threads();

    let by_column = Divisor::new(rows * len);
    let (each, written) = (elements_per_store(size_of::<T>()), tile_width * rows * len);
    let start = left * rows as usize * len as usize;
    let past = output.elements_past(start, each as usize * size_of::<T>());
    let mut word = thread::thread_idx_x() * each;
    while word < past as u32 + written {
        let first = word as i32 - past as i32;
        let begin = if first < 0 { -first as u32 } else { 0 };
        let remaining = written as i32 - first;
        let end = if remaining < each as i32 { remaining as u32 } else { each };
        // Elements outside the segment repeat its first or last one: with a branch, nearly every warp would diverge.
        let element = |k: u32| {
            let nth = first + k as i32;
            let nth = if nth < 0 { 0 } else { nth as u32 };
            let (column, within) = by_column.div_rem(if nth < written { nth } else { written - 1 });
            let (row, nth) = staged.by_segment.div_rem(within);
            // SAFETY: an element of segment `column` of a row in the tile.
            unsafe { tile.load_unchecked((staged.shared_index::<T>(row, nth) + column * len) as usize) }
        };
        let to = start.wrapping_add(word as usize).wrapping_sub(past);
        // SAFETY: these elements are in the segment, and `past` is counted from a word's start.
        unsafe { store_unclamped(&output, to, begin, end, element) };
        word += PACKED_BLOCK as u32 * each;
    }
}
