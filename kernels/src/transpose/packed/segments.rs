//! Transposes matrices of short contiguous segments, which are too short for accesses of their own.
//!
//! A tile's rows of the input are loaded by aligned vectors and stored to shared memory as they are. Its rows of the
//! output are gathered from single elements, as in the other [packed transposes](crate::transpose::packed). The index
//! of an element in shared memory takes two divisions. So a thread writes the same word of several rows of the output,
//! one after the other: from one row to the next, every index grows by the length of a segment. Rows of the output
//! begin at any element of a word. Rows that are a certain power of two apart begin at the same element of a word, so a
//! thread takes such rows.
//!
//! [`segments_short_wide`](mod@super::segments_short_wide) is for matrices of few rows, whose tiles are contiguous in
//! the output.

use cuda_std::prelude::*;

use super::staged::{SegmentTile, StagedSegments, at_most};
use super::{capacity, store_unclamped};
use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, elements_per_store};

/// Transposes a matrix of `rows` x `columns` segments of `len` elements, without gaps: segment `i * columns + j` of the
/// input is segment `j * rows + i` of the output.
///
/// `len` is at least 2. A block takes `height` x `width` segments, and `tiles_down` blocks cover the rows. These,
/// `vectors_per_row` and `row_pitch` are those of a [`PackedTiling`](super::segment_tiling::PackedTiling);
/// [`threads_per_row`](super::segment_tiling::PackedTiling::threads_per_row) threads write a row of the output. `step`
/// is the distance from one row of a thread to its next: a power of two, at least the rows that a block writes at once,
/// at which rows begin at the same element of a word. `LEN` is the [`capacity`] of a block.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == capacity(1)] + [u16] x [16384 == capacity(2)] + [u32] x [8192 == capacity(4)]
        + [u64] x [4096 == capacity(8)],
    block = PACKED_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn packed_segments<T: WordAccess, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: u32,
    height: u32,
    width: u32,
    tiles_down: u32,
    vectors_per_row: u32,
    row_pitch: u32,
    threads_per_row: u32,
    step: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let (across, down) = (thread::block_idx_x() / tiles_down, thread::block_idx_x() % tiles_down);
    let (top, left) = (down as usize * height as usize, across as usize * width as usize);
    let (tile_height, tile_width) = (at_most(rows - top, height), at_most(columns - left, width));
    let segments = SegmentTile {
        begin: (top * columns + left) * len as usize,
        columns,
        height: tile_height,
        width: tile_width,
        len,
    };
    let staged = segments.copy_to(&input, vectors_per_row, row_pitch, &tile);
    thread::sync_threads();

    let (each, written) = (elements_per_store(size_of::<T>()), tile_height * len);
    let rows_at_once = PACKED_BLOCK as u32 / threads_per_row;
    let mut first = thread::thread_idx_x() / threads_per_row;
    while first < step && first < tile_width {
        let start = ((left + first as usize) * rows + top) * len as usize;
        let past = output.elements_past(start, each as usize * size_of::<T>());
        let mut word = thread::thread_idx_x() % threads_per_row * each;
        while word < past as u32 + written {
            let at = StoredWord::new::<T>(&staged, word as i32 - past as i32, written);
            let (mut column, mut column_offset) = (first, first * len);
            let mut to = start.wrapping_add(word as usize).wrapping_sub(past);
            while column < tile_width {
                // SAFETY: an element of segment `column` of a row in the tile.
                let element =
                    |k: u32| unsafe { tile.load_unchecked((at.shared_indices[k as usize] + column_offset) as usize) };
                // SAFETY: these elements are inside the row. `past` is counted from a word's start, and whole words
                // separate the thread's rows.
                unsafe { store_unclamped(&output, to, at.begin, at.end, element) };
                column += step;
                column_offset += step * len;
                to = to.wrapping_add(step as usize * rows * len as usize);
            }
            word += threads_per_row * each;
        }
        first += rows_at_once;
    }
}

/// The elements of one store.
struct StoredWord {
    /// The elements' indices in shared memory, in the tile's first column. Elements outside the row repeat its first or
    /// last one.
    shared_indices: [u32; 8],
    /// The range of the elements that is in the row.
    begin: u32,
    end: u32,
}

impl StoredWord {
    /// The store that begins at element `first` of a row of `row` elements.
    #[inline(always)]
    fn new<T: WordAccess>(staged: &StagedSegments, first: i32, row: u32) -> Self {
        let each = elements_per_store(size_of::<T>());
        let index = |k: u32| {
            let nth = first + k as i32;
            let nth = if nth < 0 { 0 } else { nth as u32 };
            let (row, within) = staged.by_segment.div_rem(if nth < row { nth } else { row - 1 });
            staged.shared_index::<T>(row, within)
        };
        let remaining = row as i32 - first;
        Self {
            shared_indices: [index(0), index(1), index(2), index(3), index(4), index(5), index(6), index(7)],
            begin: if first < 0 { -first as u32 } else { 0 },
            end: if remaining < each as i32 { remaining as u32 } else { each },
        }
    }
}
