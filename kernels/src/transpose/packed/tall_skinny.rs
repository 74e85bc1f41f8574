//! Transposes a tall-skinny matrix: each of its few columns becomes a row.

use cuda_std::global::L2Prefetch;
use cuda_std::prelude::*;

use crate::divisor::{Divisor, Walk};

use super::{
    SECTOR, capacity, elements_per_bank_row, elements_per_word, store, store_unclamped, words, words_of_vector,
};
use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, PACKED_VECTORS, elements_per_store, tall_skinny_allocation};

/// The halo: rows above the block's own that it may need, because a row of the output may begin inside a sector.
pub const fn halo_rows(size: usize) -> usize {
    SECTOR / size - 1
}

/// The maximum number of positions of a row of the output for one block: whole sectors.
pub const fn max_positions(columns: usize, size: usize) -> usize {
    // The segment may begin inside a vector, and the whole vector is stored.
    let mut segment = capacity(size) - 16 / size;
    while shared_index((segment + 16 / size - 1) as u32, size) as usize >= capacity(size) {
        segment -= 16 / size;
    }
    (segment / columns).saturating_sub(halo_rows(size)) / (SECTOR / size) * (SECTOR / size)
}

/// The index of element `i` of the tile's segment in shared memory. One word is skipped after every row of banks, so
/// that elements at multiples of that distance are in different banks.
#[inline(always)]
const fn shared_index(i: u32, size: usize) -> u32 {
    let padding = if size < 4 { 4 / size } else { 1 };
    i + i / elements_per_bank_row(size) as u32 * padding as u32
}

/// Elements of `size` bytes that a block allocates in shared memory.
pub const fn allocation(size: usize) -> usize {
    tall_skinny_allocation(capacity(size))
}

/// Transposes a batch of matrices of `rows` x `columns` elements. The input has no gaps between rows; rows of the
/// output begin `output_pitch` elements apart; matrices begin `input_batch_pitch` and `output_batch_pitch` elements
/// apart.
///
/// `columns` is at least 2. A block writes `height` positions of each row of the output: whole sectors, at most
/// [`max_positions`], counted from the start of the sector in which the row begins. Each matrix takes `blocks` blocks.
/// `LEN` is the [`allocation`] of shared memory.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [49152 == allocation(1)] + [u16] x [24576 == allocation(2)] + [u32] x [12288 == allocation(4)]
        + [u64] x [6144 == allocation(8)],
    block = PACKED_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn tall_skinny<T: WordAccess, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: u32,
    output_pitch: usize,
    input_batch_pitch: usize,
    output_batch_pitch: usize,
    height: u32,
    blocks: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let (matrix, block) = (thread::block_idx_x() / blocks, thread::block_idx_x() % blocks);
    let top = block as usize * height as usize;
    let first = top.saturating_sub(halo_rows(size_of::<T>()));
    let last = if top + (height as usize) < rows { top + height as usize } else { rows };
    let segment = Segment::new(
        &input,
        matrix as usize * input_batch_pitch + first * columns as usize,
        (last - first) as u32 * columns,
    );
    let vectors: [T::Vector; PACKED_VECTORS] = [
        segment.load(0),
        segment.load(1),
        segment.load(2),
        segment.load(3),
        segment.load(4),
        segment.load(5),
        segment.load(6),
        segment.load(7),
    ];
    segment.stage(0, vectors[0], &tile);
    segment.stage(1, vectors[1], &tile);
    segment.stage(2, vectors[2], &tile);
    segment.stage(3, vectors[3], &tile);
    segment.stage(4, vectors[4], &tile);
    segment.stage(5, vectors[5], &tile);
    segment.stage(6, vectors[6], &tile);
    segment.stage(7, vectors[7], &tile);
    thread::sync_threads();

    let segment_columns = SegmentColumns {
        tile: &tile,
        output: &output,
        past: segment.past,
        columns,
        per_row: Divisor::new(height / elements_per_store(size_of::<T>())),
        begin: matrix as usize * output_batch_pitch + top,
        pitch: output_pitch,
        halo_rows: (top - first) as u32,
        rows: (last - first) as u32,
    };
    // The segment has every element that the block may write.
    if top - first >= halo_rows(size_of::<T>()) && last == top + height as usize {
        segment_columns.store_whole();
    } else {
        segment_columns.store();
    }
}

/// A segment in shared memory, as columns of the matrix.
struct SegmentColumns<'a, T, const LEN: usize> {
    tile: &'a SharedArray<T, LEN>,
    output: &'a GlobalMut<'a, T>,
    /// Elements from the start of the first vector to the segment.
    past: u32,
    columns: u32,
    /// Divides by the stores of each row of the output.
    per_row: Divisor,
    /// The index of the tile's first position in the first row of the output, if a sector begins there, and the
    /// distance to the next row.
    begin: usize,
    pitch: usize,
    /// Rows of the segment before the tile's first position, and all rows of the segment.
    halo_rows: u32,
    rows: u32,
}

/// The elements of one store.
#[derive(Clone, Copy)]
struct OutputStore {
    /// The index in the output, the first element's row in the segment, and its index in the segment.
    to: usize,
    first_row: i32,
    segment_index: u32,
}

// Functions that a thread calls many times are inlined except in debug builds, where inlined code shares no stack.

impl<T: WordAccess, const LEN: usize> SegmentColumns<'_, T, LEN> {
    /// The `nth` store of a column.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn output_store(&self, column: u32, nth: u32) -> OutputStore {
        let row = self.begin + column as usize * self.pitch;
        let past = (self.output.elements_past(row, SECTOR)) as u32;
        let position = nth * const { elements_per_store(size_of::<T>()) };
        let first_row = (self.halo_rows + position) as i32 - past as i32;
        OutputStore {
            to: (row + position as usize).wrapping_sub(past as usize),
            first_row,
            segment_index: (self.past + column).wrapping_add((first_row as u32).wrapping_mul(self.columns)),
        }
    }

    /// Element `k` of a store.
    ///
    /// # Safety
    /// It is an element of the segment.
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn element(&self, target: OutputStore, k: u32) -> T {
        let shared_index = shared_index(target.segment_index.wrapping_add(k * self.columns), size_of::<T>());
        // SAFETY: the allocation has all of the segment.
        unsafe { self.tile.load_unchecked(shared_index as usize) }
    }

    #[inline(always)]
    fn store(&self) {
        let each = elements_per_store(size_of::<T>());
        let mut i = thread::thread_idx_x();
        while i < self.columns * self.per_row.value() {
            let (column, nth) = self.per_row.div_rem(i);
            let target = self.output_store(column, nth);
            // In the first tile, the first element's row may be above the matrix.
            let begin = if target.first_row < 0 { -target.first_row as u32 } else { 0 };
            let remaining = self.rows as i32 - target.first_row;
            let end = if remaining < each as i32 { remaining } else { each as i32 };
            if (begin as i32) < end {
                // SAFETY: these elements are in the segment and in the row, and a sector's start is a multiple of a
                // store's size.
                unsafe { store(self.output, target.to, begin, end as u32, |k| self.element(target, k)) };
            }
            i += PACKED_BLOCK as u32;
        }
    }

    /// [`SegmentColumns::store`] where the segment has all elements of the tile: with four elements in flight.
    #[inline(always)]
    fn store_whole(&self) {
        const STEP: u32 = PACKED_BLOCK as u32;
        let (each, all) = (const { elements_per_store(size_of::<T>()) }, self.columns * self.per_row.value());
        let mut i = thread::thread_idx_x();
        let mut walk = self.per_row.walk(i, STEP);
        let output_store = |walk: Walk| self.output_store(walk.quotient, walk.remainder);
        // SAFETY: an element of the segment.
        let element = |target: OutputStore, k: u32| unsafe { self.element(target, k) };
        while each == 1 && i + 3 * STEP < all {
            let second = walk.next();
            let third = second.next();
            let fourth = third.next();
            let four = [output_store(walk), output_store(second), output_store(third), output_store(fourth)];
            let elements = [element(four[0], 0), element(four[1], 0), element(four[2], 0), element(four[3], 0)];
            // SAFETY: inside the row.
            unsafe { self.output.store_unchecked(four[0].to, elements[0]) };
            // SAFETY: inside the row.
            unsafe { self.output.store_unchecked(four[1].to, elements[1]) };
            // SAFETY: inside the row.
            unsafe { self.output.store_unchecked(four[2].to, elements[2]) };
            // SAFETY: inside the row.
            unsafe { self.output.store_unchecked(four[3].to, elements[3]) };
            walk = fourth.next();
            i += 4 * STEP;
        }
        while i < all {
            let one = output_store(walk);
            // SAFETY: inside the row, and a sector's start is a multiple of a store's size.
            unsafe { store_unclamped(self.output, one.to, 0, each, |k| element(one, k)) };
            walk = walk.next();
            i += STEP;
        }
    }
}

/// A contiguous segment of global memory, and the aligned vectors that contain it.
struct Segment<'a, T> {
    input: &'a Global<'a, T>,
    /// The start of the first vector, `past` elements before the segment.
    start: usize,
    past: u32,
    /// Elements from the start of the first vector to the end of the segment.
    end: u32,
    /// The number of vectors.
    vectors: u32,
    thread: u32,
}

impl<'a, T: WordAccess> Segment<'a, T> {
    #[inline(always)]
    fn new(input: &'a Global<'a, T>, begin: usize, len: u32) -> Self {
        let past = input.elements_past(begin, 16);
        let end = past as u32 + len;
        let vectors = end.div_ceil(T::Vector::LEN as u32);
        Self { input, start: begin.wrapping_sub(past), past: past as u32, end, vectors, thread: thread::thread_idx_x() }
    }

    /// The index of the thread's `k`-th vector, clamped to the last one, and whether it is the thread's own.
    #[inline(always)]
    fn vector(&self, k: usize) -> (u32, bool) {
        let i = self.thread + (k * PACKED_BLOCK) as u32;
        if i < self.vectors { (i, true) } else { (self.vectors - 1, false) }
    }

    /// The thread's `k`-th vector. Clamped to the last vector, so that the loads need no branch.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(&self, k: usize) -> T::Vector {
        let lanes = T::Vector::LEN as u32;
        let (i, _) = self.vector(k);
        let from = if i == 0 { self.past } else { 0 };
        let to = if (i + 1) * lanes < self.end { lanes } else { self.end - i * lanes };
        // SAFETY: these elements are the segment's, which is inside the view, and `start` is aligned.
        unsafe {
            self.input.load_aligned_partial_unchecked(
                self.start.wrapping_add((i * lanes) as usize),
                from as usize,
                to as usize,
                L2Prefetch::Sectors,
            )
        }
    }

    /// Stores the thread's `k`-th vector to shared memory.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn stage<const LEN: usize>(&self, k: usize, vector: T::Vector, tile: &SharedArray<T, LEN>) {
        let (i, is_valid) = self.vector(k);
        if is_valid {
            let words = words::<T>(vector);
            let (of_vector, of_word) = const { (words_of_vector::<T>(), elements_per_word::<T>()) };
            let mut j = 0;
            while j < of_vector {
                let at = (i * of_vector + j) * of_word;
                tile.store_word(
                    shared_index(at, size_of::<T>()) as usize % const { capacity(size_of::<T>()) },
                    words[j as usize],
                );
                j += 1;
            }
        }
    }
}
