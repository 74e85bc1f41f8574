//! Contiguous segments of several rows, loaded by aligned vectors.

use cuda_std::global::L2Prefetch;
use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::{elements_per_word, words, words_of_vector};
use crate::transpose::tiled::access::word::WordAccess;
use crate::transpose::tuning::{PACKED_BLOCK, PACKED_VECTORS};

/// A contiguous segment of each of several rows, and the aligned vectors that contain it.
pub(in crate::transpose) struct AlignedRows<'a, T> {
    pub input: &'a Global<'a, T>,
    /// The index of the first segment, and the distance to the next.
    pub begin: usize,
    pub pitch: usize,
    pub rows: u32,
    /// Elements of each segment.
    pub len: u32,
    /// Divides by the maximum number of vectors of a segment.
    pub by_vectors: Divisor,
}

/// A vector of a segment.
#[derive(Clone, Copy)]
struct SegmentVector {
    /// Whether the thread stores it.
    is_valid: bool,
    /// The vector's start in the view, and the range of its elements that is in the segment.
    start: usize,
    from: u32,
    to: u32,
    /// The vector's index in shared memory.
    shared_index: u32,
}

impl<T: WordAccess> AlignedRows<'_, T> {
    /// Stores the segments' vectors to shared memory, at the index that `segment_start` gives for each row. The tile
    /// has the capacity for all of them.
    ///
    /// Each thread has [`PACKED_VECTORS`] vectors in flight, or two if there are few. The block's threads cover all
    /// vectors.
    #[inline(always)]
    pub fn copy_to<const LEN: usize>(&self, segment_start: impl Fn(u32) -> u32, tile: &SharedArray<T, LEN>) {
        let load = |k: usize| self.load(self.vector(k, &segment_start));
        let stage = |k: usize, vector: T::Vector| stage(self.vector(k, &segment_start), vector, tile);
        if self.rows * self.by_vectors.value() <= 2 * PACKED_BLOCK as u32 {
            let vectors = [load(0), load(1)];
            stage(0, vectors[0]);
            stage(1, vectors[1]);
            return;
        }
        let vectors: [T::Vector; PACKED_VECTORS] =
            [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        stage(0, vectors[0]);
        stage(1, vectors[1]);
        stage(2, vectors[2]);
        stage(3, vectors[3]);
        stage(4, vectors[4]);
        stage(5, vectors[5]);
        stage(6, vectors[6]);
        stage(7, vectors[7]);
    }

    /// [`AlignedRows::copy_to`] for elements of 8 bytes, at a fixed pitch. A duplicate, because with a closure `ptxas`
    /// orders the accesses so that short-wide matrices take 5 % longer.
    #[inline(always)]
    pub fn copy_at_pitch<const LEN: usize>(&self, segment_pitch: u32, tile: &SharedArray<T, LEN>) {
        let load = |k: usize| self.load(self.vector_at_pitch(k, segment_pitch));
        let stage = |k: usize, vector: T::Vector| stage(self.vector_at_pitch(k, segment_pitch), vector, tile);
        if self.rows * self.by_vectors.value() <= 2 * PACKED_BLOCK as u32 {
            let vectors = [load(0), load(1)];
            stage(0, vectors[0]);
            stage(1, vectors[1]);
            return;
        }
        let vectors: [T::Vector; PACKED_VECTORS] =
            [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        stage(0, vectors[0]);
        stage(1, vectors[1]);
        stage(2, vectors[2]);
        stage(3, vectors[3]);
        stage(4, vectors[4]);
        stage(5, vectors[5]);
        stage(6, vectors[6]);
        stage(7, vectors[7]);
    }

    #[inline(always)]
    fn vector_at_pitch(&self, k: usize, segment_pitch: u32) -> SegmentVector {
        self.vector(k, &|row| row * segment_pitch)
    }

    /// The thread's `k`-th vector, clamped to the last vector, so that the loads need no predicate: `ptxas` has seven
    /// predicates, and would keep one or two of eight loads in flight.
    #[inline(always)]
    fn vector(&self, k: usize, segment_start: &impl Fn(u32) -> u32) -> SegmentVector {
        let lanes = T::Vector::LEN as u32;
        let nth = thread::thread_idx_x() + (k * PACKED_BLOCK) as u32;
        let is_row = nth < self.rows * self.by_vectors.value();
        let (row, i) = self.by_vectors.div_rem(if is_row { nth } else { 0 });
        let begin = self.begin + row as usize * self.pitch;
        let past = self.input.elements_past(begin, 16) as u32;
        let end = past + self.len;
        let vectors = end.div_ceil(lanes);
        let is_valid = is_row && i < vectors;
        let i = if i < vectors { i } else { vectors - 1 };
        SegmentVector {
            is_valid,
            start: begin.wrapping_sub(past as usize).wrapping_add((i * lanes) as usize),
            from: if i == 0 { past } else { 0 },
            to: if (i + 1) * lanes < end { lanes } else { end - i * lanes },
            shared_index: segment_start(row) + i * lanes,
        }
    }

    #[inline(always)]
    fn load(&self, vector: SegmentVector) -> T::Vector {
        let SegmentVector { start, from, to, .. } = vector;
        // Segments are short and begin at any address, so the next block reads the rest of the lines that L2 fetches.
        // SAFETY: these elements are the segment's, which is inside the view, and `start` is aligned.
        unsafe { self.input.load_aligned_partial_unchecked(start, from as usize, to as usize, L2Prefetch::TwoLines) }
    }
}

/// Stores a vector to shared memory. The stores are checked: without the branches of the checks, `ptxas` would save
/// registers by storing the first vectors before it loads the last ones.
#[inline(always)]
fn stage<T: WordAccess, const LEN: usize>(at: SegmentVector, vector: T::Vector, tile: &SharedArray<T, LEN>) {
    if !at.is_valid {
        return;
    }
    let words = words::<T>(vector);
    let mut j = 0;
    while j < words_of_vector::<T>() {
        tile.store_word((at.shared_index + j * elements_per_word::<T>()) as usize % LEN, words[j as usize]);
        j += 1;
    }
}
