//! Transposes matrices of long contiguous segments whose starts and lengths are multiples of a 4-, 8- or 16-byte
//! access.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use crate::divisor::Divisor;
use crate::transpose::launch_dependents;
use crate::transpose::tuning::{COPY_BLOCK, COPY_ELEMENTS};

/// Transposes a matrix of `rows` x `columns` segments of `len` elements, without gaps: segment `i * columns + j` of the
/// input is segment `j * rows + i` of the output. `len` and `rows` are at least 2.
///
/// Consecutive threads write consecutive elements. Each thread has [`COPY_ELEMENTS`] of them in flight.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(instances = [u32, u64, u128], block = COPY_BLOCK, dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS)]
pub unsafe fn copy_aligned_segments<T: Element>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: usize,
) {
    launch_dependents();
    let first = thread::block_idx_x() as usize * (COPY_BLOCK * COPY_ELEMENTS);
    // The block's first element takes full divisions; the other elements are a small distance from it.
    let segment = first / len;
    let source = SourceIndices {
        columns,
        len,
        row: segment % rows,
        column: segment / rows,
        within: first % len,
        by_len: SumDivisor::new(len),
        by_rows: SumDivisor::new(rows),
    };
    let remaining = rows * columns * len - first;
    let last = if remaining < COPY_BLOCK * COPY_ELEMENTS { remaining } else { COPY_BLOCK * COPY_ELEMENTS } as u32 - 1;
    let nth = |k: usize| thread::thread_idx_x() + (k * COPY_BLOCK) as u32;
    let load = |k: usize| {
        // Clamped to the last element: a conditional load would become a branch, and later loads would wait for it.
        let nth = if nth(k) < last { nth(k) } else { last };
        // SAFETY: an element of the matrix, which is inside the view.
        unsafe { input.load_unchecked(source.index(nth)) }
    };
    let elements: [T; COPY_ELEMENTS] = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
    issue_loads();
    let store = |k: usize| {
        if nth(k) <= last {
            // SAFETY: as above.
            unsafe { output.store_unchecked(first + nth(k) as usize, elements[k]) };
        }
    };
    store(0);
    store(1);
    store(2);
    store(3);
    store(4);
    store(5);
    store(6);
    store(7);
}

/// The source of a block's elements.
struct SourceIndices {
    columns: usize,
    len: usize,
    /// The first element's segment in the input, by row and column, and its index in that segment.
    row: usize,
    column: usize,
    within: usize,
    by_len: SumDivisor,
    by_rows: SumDivisor,
}

impl SourceIndices {
    /// The index in the input of the block's `nth` element of the output.
    #[inline(always)]
    fn index(&self, nth: u32) -> usize {
        let (segments, within) = self.by_len.div_rem(self.within, nth);
        let (columns, row) = self.by_rows.div_rem(self.row, segments);
        (row * self.columns + self.column + columns as usize) * self.len + within
    }
}

/// Divides a sum of two numbers: one below the divisor, one below [`COPY_BLOCK`] times [`COPY_ELEMENTS`]. The divisor
/// is at least 2.
#[derive(Clone, Copy)]
struct SumDivisor {
    by: usize,
    /// Used if the divisor is below `LIMIT`. A larger divisor fits in the sum at most once.
    divisor: Divisor,
}

impl SumDivisor {
    const LIMIT: usize = 1 << 15;

    #[inline(always)]
    fn new(by: usize) -> Self {
        Self { by, divisor: Divisor::new(if by < Self::LIMIT { by as u32 } else { 2 }) }
    }

    /// The quotient and the remainder of `number + more`.
    #[inline(always)]
    fn div_rem(self, number: usize, more: u32) -> (u32, usize) {
        // Both are computed, so that there is no branch.
        let small = self.divisor.div_rem((number as u32).wrapping_add(more));
        let sum = number + more as usize;
        let large = if sum < self.by { (0, sum) } else { (1, sum - self.by) };
        if self.by < Self::LIMIT { (small.0, small.1 as usize) } else { large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_divisors_that_are_small_enough_are_prepared() {
        let limit = SumDivisor::LIMIT;
        assert_eq!([limit - 1, limit].map(|by| SumDivisor::new(by).divisor.value()), [limit as u32 - 1, 2]);
    }

    #[test]
    fn divisors_of_every_size_are_exact() {
        let limit = SumDivisor::LIMIT;
        for by in [2, 3, 7, 2047, 2048, 2049, limit - 1, limit, limit + 1, 1 << 40] {
            for number in [0, 1, by / 2, by - 1] {
                for more in [0, 1, 5, 1000, (COPY_BLOCK * COPY_ELEMENTS) as u32 - 1] {
                    let sum = number + more as usize;
                    let divided = SumDivisor::new(by).div_rem(number, more);
                    assert_eq!(divided, ((sum / by) as u32, sum % by), "{sum} / {by}");
                }
            }
        }
    }
}
