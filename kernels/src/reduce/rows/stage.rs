//! Copies the rows of a block to shared memory.

use cuda_std::prelude::*;

use super::{BLOCK, VECTORS, VECTORS_PER_LANE, VECTORS_WITH_GAPS};
use crate::divisor::Divisor;

/// A block's capacity in vectors: whole lines of eight. Rows without gaps span one vector more than they fill, as they
/// may begin and end inside a vector.
pub(super) const CAPACITY: usize = VECTORS_WITH_GAPS;
const _: () = assert!(CAPACITY > VECTORS && CAPACITY.is_multiple_of(8));

/// The swizzled index of vector `i` in shared memory. Each line of eight vectors, which covers all banks, is rotated by
/// the line's number. So lanes that read the same vector of neighbouring rows read different banks, if a row is shorter
/// than a line.
#[inline(always)]
pub(super) fn swizzled(i: usize) -> usize {
    i / 8 * 8 + (i + i / 8) % 8
}

/// Rows, and their layout in shared memory.
///
/// Shared memory holds the rows' aligned vectors: those of all rows together if the rows have no gaps, else those of
/// each row by itself.
pub(super) struct Stage<'a, T> {
    input: &'a Global<'a, T>,
    /// The first row's first element, and its distance from the start of a vector.
    begin: usize,
    past: u32,
    rows: u32,
    len: u32,
    pitch: usize,
}

impl<'a, T: Element> Stage<'a, T> {
    /// `rows` rows of `len` elements from `begin` on.
    #[inline(always)]
    pub fn new(input: &'a Global<'a, T>, begin: usize, (rows, len): (u32, u32), pitch: usize) -> Self {
        Self { input, begin, past: input.elements_past(begin, 16) as u32, rows, len, pitch }
    }

    /// Whether the rows have no gaps between them.
    #[inline(always)]
    fn is_contiguous(&self) -> bool {
        self.pitch == self.len as usize
    }

    /// Elements from the start of a vector to the start of row `row`.
    #[inline(always)]
    fn past(&self, row: u32) -> u32 {
        self.past.wrapping_add(row.wrapping_mul(self.pitch as u32)) % T::Vector::LEN as u32
    }

    /// Whether all rows begin at the start of a vector.
    #[inline(always)]
    pub fn is_aligned(&self) -> bool {
        self.past == 0 && self.pitch.is_multiple_of(T::Vector::LEN)
    }

    /// The first element of row `row` in shared memory.
    #[inline(always)]
    pub fn row_start(&self, row: u32, vectors_per_row: u32) -> u32 {
        if self.is_contiguous() {
            self.past + row * self.len
        } else {
            row * vectors_per_row * T::Vector::LEN as u32 + self.past(row)
        }
    }

    /// Writes the rows to shared memory. All loads are in flight before the first is stored.
    #[inline(always)]
    pub fn copy_to(&self, vectors_per_row: u32, tile: &SharedArray<T::Vector, CAPACITY>) {
        const { assert!(VECTORS_PER_LANE == 4) };
        if self.is_contiguous() {
            self.copy(|nth| self.contiguous_vector(nth), tile);
        } else {
            let by_vectors = Divisor::new(vectors_per_row);
            self.copy(|nth| self.row_vector(by_vectors, nth), tile);
        }
    }

    #[inline(always)]
    fn copy(&self, vector: impl Fn(u32) -> RowVector, tile: &SharedArray<T::Vector, CAPACITY>) {
        let nth = |k: usize| thread::thread_idx_x() + (k * BLOCK) as u32;
        let sources = [vector(nth(0)), vector(nth(1)), vector(nth(2)), vector(nth(3)), vector(nth(4))];
        let load = |k: usize| self.load(sources[k]);
        let vectors = [load(0), load(1), load(2), load(3), load(4)];
        let store = |k: usize| {
            if sources[k].is_valid {
                // SAFETY: the index is within the capacity.
                unsafe { tile.store_unchecked(swizzled(nth(k) as usize), vectors[k]) };
            }
        };
        store(0);
        store(1);
        store(2);
        store(3);
        store(4);
    }

    /// The `nth` of the vectors that hold all rows, if these have no gaps.
    #[inline(always)]
    fn contiguous_vector(&self, nth: u32) -> RowVector {
        self.vector(self.begin, self.past, self.rows * self.len, nth)
    }

    /// The `nth` vector, if each row has `by_vectors` vectors.
    #[inline(always)]
    fn row_vector(&self, by_vectors: Divisor, nth: u32) -> RowVector {
        let (row, i) = by_vectors.div_rem_outside_loops(nth);
        let begin = self.begin.wrapping_add((row as usize).wrapping_mul(self.pitch));
        let vector = self.vector(begin, self.past(row), self.len, i);
        RowVector { is_valid: vector.is_valid && row < self.rows, ..vector }
    }

    /// Vector `i` of those that hold `len` elements from `begin` on. `begin` is `past` elements after the start of the
    /// first vector.
    #[inline(always)]
    fn vector(&self, begin: usize, past: u32, len: u32, i: u32) -> RowVector {
        let of_vector = T::Vector::LEN as u32;
        let (first, end) = (i * of_vector, past + len);
        RowVector {
            is_valid: len > 0 && first < end,
            start: begin.wrapping_sub(past as usize).wrapping_add(first as usize),
            from: if i == 0 { past } else { 0 },
            to: if first + of_vector < end { of_vector } else { end.wrapping_sub(first) },
        }
    }

    #[inline(always)]
    fn load(&self, vector: RowVector) -> T::Vector {
        let RowVector { is_valid, start, from, to } = vector;
        // SAFETY: if the vector is valid, these elements belong to the rows, which are inside the view; and `start` is
        // aligned.
        unsafe { self.input.load_aligned_partial_if_unchecked(is_valid, start, from as usize, to as usize) }
    }
}

/// An aligned vector of the input, if `is_valid`.
#[derive(Clone, Copy)]
struct RowVector {
    is_valid: bool,
    /// Its first element in the view, and the range of its elements that belong to the rows.
    start: usize,
    from: u32,
    to: u32,
}
