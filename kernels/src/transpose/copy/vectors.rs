//! Transposes matrices of long contiguous segments that begin and end at any address.

use cuda_std::prelude::*;

use crate::transpose::tuning::{COPY_BLOCK, COPY_VECTORS};

/// Transposes a matrix of `rows` x `columns` segments of `len` elements, without gaps: segment `i * columns + j` of the
/// input is segment `j * rows + i` of the output. `vectors` is the maximum number of aligned 16-byte vectors that a
/// segment of the output touches: one more than it fills if segments may begin at any address.
///
/// Consecutive threads write consecutive aligned vectors, each of which they extract from the input. Each thread has
/// [`COPY_VECTORS`] of them in flight. At both ends of a segment, a thread writes part of a vector.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(instances = [u8, u16], block = COPY_BLOCK, dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS)]
pub unsafe fn copy_segments<T: Element>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: usize,
    vectors: usize,
) {
    let first = thread::block_idx_x() as usize * (COPY_BLOCK * COPY_VECTORS) + thread::index_in_block::<COPY_BLOCK>();
    let part = |k: usize| PartialVector::new::<T>(first + k * COPY_BLOCK, &output, rows, columns, len, vectors);
    let parts: [PartialVector; COPY_VECTORS] = [part(0), part(1)];
    let loaded = [parts[0].load(&input), parts[1].load(&input)];
    parts[0].store(&output, loaded[0]);
    parts[1].store(&output, loaded[1]);
}

/// An aligned vector of the output, restricted to one segment.
struct PartialVector {
    /// The vector's start in the input and the output, which may be before both views.
    from: usize,
    to: usize,
    /// The range of the vector's elements that is in the segment; empty if `begin` is not below `end`.
    begin: usize,
    end: usize,
}

impl PartialVector {
    /// Vector `i`, with `vectors` vectors for each segment.
    #[inline(always)]
    fn new<T: Element>(
        i: usize,
        output: &GlobalMut<T>,
        rows: usize,
        columns: usize,
        len: usize,
        vectors: usize,
    ) -> Self {
        let (segment, k) = (i / vectors, i % vectors);
        if segment >= rows * columns {
            return Self { from: 0, to: 0, begin: 1, end: 0 };
        }
        let (column, row) = (segment / rows, segment % rows);
        let (from, to) = ((row * columns + column) * len, segment * len);
        let lanes = T::Vector::LEN;
        let past = output.elements_past(to, 16);
        let (first, segment_end) = (k * lanes, past + len);
        Self {
            from: from.wrapping_add(first).wrapping_sub(past),
            to: to.wrapping_add(first).wrapping_sub(past),
            begin: if k == 0 { past } else { 0 },
            end: if first + lanes <= segment_end { lanes } else { segment_end.saturating_sub(first) },
        }
    }

    #[inline(always)]
    fn load<T: Element>(&self, input: &Global<T>) -> T::Vector {
        if self.begin < self.end {
            // SAFETY: elements of the segment, which is inside the view.
            unsafe { input.load_partial_unchecked(self.from, self.begin, self.end) }
        } else {
            T::Vector::splat(T::default())
        }
    }

    #[inline(always)]
    fn store<T: Element>(&self, output: &GlobalMut<T>, vector: T::Vector) {
        if self.begin < self.end {
            // SAFETY: elements of the segment, which is inside the view; the vector is aligned.
            unsafe { output.store_partial_unchecked(self.to, vector, self.begin, self.end) };
        }
    }
}
