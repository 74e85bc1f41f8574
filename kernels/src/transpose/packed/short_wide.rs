//! Transposes a short-wide matrix: each of its few rows becomes a column.

use cuda_std::prelude::*;

use crate::divisor::{Divisor, Walk};

use super::aligned_rows::AlignedRows;
use super::{SECTOR, capacity, elements_per_bank_row, store, store_unclamped};
use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, PACKED_VECTORS, elements_per_store, short_wide_skew};

/// The halo: columns before the block's own that it may need, because a matrix of the output may begin inside a sector.
pub const fn halo_columns(rows: usize, size: usize) -> usize {
    (SECTOR / size - 1).div_ceil(rows)
}

/// Vectors of a row's segment, for a block of `width` columns.
pub const fn vectors_per_segment(rows: usize, width: usize, size: usize) -> usize {
    let lanes = 16 / size;
    (width + halo_columns(rows, size) + lanes - 1).div_ceil(lanes)
}

/// The pitch of rows in shared memory, in elements. A row has the capacity for its vectors, and a warp's reads of
/// neighbouring rows are in different banks where that is possible.
pub const fn segment_pitch(rows: usize, width: usize, size: usize) -> usize {
    let word = if size < 4 { 4 / size } else { 1 };
    let (words, banks) =
        (vectors_per_segment(rows, width, size) * (16 / size) / word, elements_per_bank_row(size) / word);
    if rows >= banks {
        // A warp reads one word of each of many rows.
        return (words | 1) * word;
    }
    // A warp reads several words of each of few rows.
    let apart = banks.div_ceil(rows);
    (words + (banks + apart - words % banks) % banks) * word
}

/// The index of a row's segment in shared memory.
pub const fn segment_start(row: usize, segment_pitch: usize, size: usize) -> usize {
    row * segment_pitch + row / 8 * short_wide_skew(size)
}

/// The maximum number of columns of a block: whole sectors of the output and of the input.
pub const fn max_columns(rows: usize, size: usize) -> usize {
    let (vectors, step) = (PACKED_BLOCK * PACKED_VECTORS, SECTOR / size);
    let mut width = capacity(size) / rows / step * step;
    while width > 0
        && (vectors_per_segment(rows, width, size) * rows > vectors
            || segment_start(rows, segment_pitch(rows, width, size), size) > capacity(size))
    {
        width -= step;
    }
    width
}

/// Transposes a batch of matrices of `rows` x `columns` elements. Rows of the input begin `input_pitch` elements apart;
/// the output has no gaps; matrices begin `input_batch_pitch` and `output_batch_pitch` elements apart.
///
/// `rows` is 2 to 128. A block takes `width` columns, at most [`max_columns`], and writes the same number of rows of
/// the output, counted from the start of the sector in which the first row begins. Each matrix takes `blocks` blocks.
/// `vectors_per_segment` and `segment_pitch` are the results of the functions of those names. `LEN` is the [`capacity`]
/// of a block.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == capacity(1)] + [u16] x [16384 == capacity(2)] + [u32] x [8192 == capacity(4)]
        + [u64] x [4096 == capacity(8)],
    block = PACKED_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn short_wide<T: WordAccess, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: usize,
    input_pitch: usize,
    input_batch_pitch: usize,
    output_batch_pitch: usize,
    width: u32,
    blocks: u32,
    vectors_per_segment: u32,
    segment_pitch: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let (matrix, block) = (thread::block_idx_x() / blocks, thread::block_idx_x() % blocks);
    let start = matrix as usize * output_batch_pitch;
    let past = output.elements_past(start, SECTOR) as u32;
    let left = block as usize * width as usize;
    let first = left.saturating_sub(past.div_ceil(rows) as usize);
    let last = if left + (width as usize) < columns { left + width as usize } else { columns };
    if first >= last {
        // This matrix begins where a sector begins, and needs one block less.
        return;
    }
    let segments = AlignedRows {
        input: &input,
        begin: matrix as usize * input_batch_pitch + first,
        pitch: input_pitch,
        rows,
        len: (last - first) as u32,
        by_vectors: Divisor::new(vectors_per_segment),
    };
    if size_of::<T>() == 8 {
        segments.copy_at_pitch(segment_pitch, &tile);
    } else {
        segments.copy_to(|row| segment_start(row as usize, segment_pitch as usize, size_of::<T>()) as u32, &tile);
    }
    thread::sync_threads();

    let segment_rows = SegmentRows {
        tile: &tile,
        by_rows: Divisor::new(rows),
        segment_pitch,
        past: input.elements_past(segments.begin, 16) as u32,
        pitch: input_pitch as u32,
    };
    // The index in the tile of the first element that is written; negative in the first tile.
    let first_element = ((left - first) as u32 * rows) as i32 - past as i32;
    let to = (start + left * rows as usize).wrapping_sub(past as usize);
    segment_rows.store_to(&output, to, width * rows, first_element, segments.len * rows);
}

/// Segments of rows in shared memory, as columns of the matrix.
struct SegmentRows<'a, T, const LEN: usize> {
    tile: &'a SharedArray<T, LEN>,
    by_rows: Divisor,
    segment_pitch: u32,
    /// Elements of the first row's first vector before its segment. The other rows' follow from the pitch.
    past: u32,
    pitch: u32,
}

impl<T: WordAccess, const LEN: usize> SegmentRows<'_, T, LEN> {
    /// The index in shared memory of element `i` of the output.
    #[inline(always)]
    fn shared_index(&self, i: u32) -> u32 {
        let (column, row) = self.by_rows.div_rem(i);
        self.shared_index_of(column, row)
    }

    /// The index in shared memory of an element by column and row.
    #[inline(always)]
    fn shared_index_of(&self, column: u32, row: u32) -> u32 {
        let past = self.past.wrapping_add(row.wrapping_mul(self.pitch)) % T::Vector::LEN as u32;
        segment_start(row as usize, self.segment_pitch as usize, size_of::<T>()) as u32 + past + column
    }

    /// Writes `len` elements of the output from `to` on. The first one is element `first_element` of the tile's
    /// `tile_len` elements; that index may be negative.
    #[inline(always)]
    fn store_to(&self, output: &GlobalMut<T>, to: usize, len: u32, first_element: i32, tile_len: u32) {
        let each = elements_per_store(size_of::<T>());
        if each == 1 {
            return self.store_singles(output, to, len, first_element, tile_len);
        }
        let threads = threads_of_whole_columns(self.by_rows.value(), each);
        self.store_whole_columns(output, to, len, first_element, tile_len, threads);
    }

    /// [`SegmentRows::store_to`] for stores of one element, with four elements in flight.
    #[inline(always)]
    fn store_singles(&self, output: &GlobalMut<T>, to: usize, len: u32, first_element: i32, tile_len: u32) {
        const STEP: u32 = PACKED_BLOCK as u32;
        let end = (tile_len as i32 - first_element) as u32;
        let end = if end < len { end } else { len };
        let mut i = thread::thread_idx_x();
        if (i as i32) < -first_element {
            // Fewer than a sector's elements precede the first one.
            i += STEP;
        }
        if i >= end {
            return;
        }
        let mut walk = self.by_rows.walk((first_element + i as i32) as u32, STEP);
        // SAFETY: an element of the segments.
        let load = |walk: Walk| unsafe {
            self.tile.load_unchecked(self.shared_index_of(walk.quotient, walk.remainder) as usize)
        };
        let store = |i: u32, element: T| {
            // SAFETY: an element of the matrix.
            unsafe { store_unclamped(output, to.wrapping_add(i as usize), 0, 1, |_| element) };
        };
        while i + 3 * STEP < end {
            let second = walk.next();
            let third = second.next();
            let fourth = third.next();
            let elements = [load(walk), load(second), load(third), load(fourth)];
            store(i, elements[0]);
            store(i + STEP, elements[1]);
            store(i + 2 * STEP, elements[2]);
            store(i + 3 * STEP, elements[3]);
            walk = fourth.next();
            i += 4 * STEP;
        }
        while i < end {
            store(i, load(walk));
            walk = walk.next();
            i += STEP;
        }
    }

    /// [`SegmentRows::store_to`] by `threads` threads, which together write whole columns. So all stores of a thread
    /// have elements of the same rows, and their indices grow by a fixed number of columns. For bytes, computing
    /// indices is most of the work.
    #[inline(always)]
    fn store_whole_columns(
        &self,
        output: &GlobalMut<T>,
        to: usize,
        len: u32,
        first_element: i32,
        tile_len: u32,
        threads: u32,
    ) {
        let (each, rows) = (elements_per_store(size_of::<T>()), self.by_rows.value());
        if thread::thread_idx_x() >= threads {
            return;
        }
        let mut i = thread::thread_idx_x() * each;
        let mut element_index = first_element + i as i32;
        // Offset by `SECTOR` columns, so that no index is negative.
        let index = |k: u32| {
            self.shared_index((element_index + (k + SECTOR as u32 * rows) as i32) as u32).wrapping_sub(SECTOR as u32)
        };
        let first = match each {
            8 => [index(0), index(1), index(2), index(3), index(4), index(5), index(6), index(7)],
            _ => [index(0), index(1), index(2), index(3), 0, 0, 0, 0],
        };
        let (columns, _) = self.by_rows.div_rem(threads * each);
        let mut column_offset = 0;
        while i < len {
            let to = to.wrapping_add(i as usize);
            if element_index >= 0 && tile_len as i32 - element_index >= each as i32 {
                // SAFETY: all of these elements are in the segments.
                let element = |k: u32| unsafe {
                    self.tile.load_unchecked(first[k as usize].wrapping_add(column_offset) as usize)
                };
                // SAFETY: inside the matrix, and multiples of a store's size after the first `to` are aligned.
                unsafe { store_unclamped(output, to, 0, each, element) };
            } else {
                self.store_at(output, to, element_index, tile_len);
            }
            i += threads * each;
            element_index += (threads * each) as i32;
            column_offset += columns;
        }
    }

    /// Writes those elements of one store that the tile has. The store begins at element `element_index` of the tile's
    /// `tile_len` elements.
    #[inline(always)]
    fn store_at(&self, output: &GlobalMut<T>, to: usize, element_index: i32, tile_len: u32) {
        let each = elements_per_store(size_of::<T>());
        let begin = if element_index < 0 { -element_index as u32 } else { 0 };
        let left = tile_len as i32 - element_index;
        let end = if left < each as i32 { left } else { each as i32 };
        if (begin as i32) < end {
            let element = |k: u32| self.tile.load(self.shared_index((element_index + k as i32) as u32) as usize % LEN);
            // SAFETY: these elements are inside the matrix, and `to` is counted from a sector's start.
            unsafe { store(output, to, begin, end as u32, element) };
        }
    }
}

/// The maximum number of threads of a block that write whole columns of `rows` elements together, `each` elements per
/// store. They write whole sectors where a block has enough threads, since a warp would otherwise write parts of
/// sectors. The result is at least 1, because `rows` is at most 128.
#[inline(always)]
const fn threads_of_whole_columns(rows: u32, each: u32) -> u32 {
    const THREADS_OF_SECTOR: u32 = SECTOR as u32 / 8;
    let columns = rows / common_power_of_two(rows, each);
    let together = columns * (THREADS_OF_SECTOR / common_power_of_two(columns, THREADS_OF_SECTOR));
    if together <= PACKED_BLOCK as u32 {
        PACKED_BLOCK as u32 / together * together
    } else {
        PACKED_BLOCK as u32 / columns * columns
    }
}

/// The greatest power of two that divides both numbers.
const fn common_power_of_two(a: u32, b: u32) -> u32 {
    let of_both = a | b;
    of_both & of_both.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_begins_inside_a_vector_takes_one_vector_more() {
        // For 40 rows, a row of the output is whole sectors, and a segment has one element more than its width.
        assert_eq!([8, 9, 12, 13].map(|width| vectors_per_segment(40, width, 4)), [3, 4, 4, 5]);
        assert_eq!([16, 31, 32].map(|width| vectors_per_segment(40, width, 1)), [2, 3, 3]);
    }

    #[test]
    fn threads_write_whole_columns_and_sectors() {
        for each in [4, 8] {
            for rows in 2..=128 {
                let threads = threads_of_whole_columns(rows, each);
                assert!((1..=PACKED_BLOCK as u32).contains(&threads), "{rows}: {threads}");
                assert!((threads * each).is_multiple_of(rows), "{rows}: {threads}");
                // A whole sector takes four threads; a block has too few for that with more rows.
                assert!(rows > PACKED_BLOCK as u32 / 4 || threads.is_multiple_of(4), "{rows}: {threads}");
            }
        }
        assert_eq!(
            [2, 3, 16, 63, 65, 96, 127].map(|rows| threads_of_whole_columns(rows, 8)),
            [256, 252, 256, 252, 195, 252, 254]
        );
    }
}
