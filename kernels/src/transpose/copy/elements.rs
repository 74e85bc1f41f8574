//! Transposes matrices of long runs whose borders are those of accesses of 4, 8 or 16 bytes.

use cuda_std::global::issue_loads;
use cuda_std::prelude::*;

use crate::divisor::Divisor;
use crate::transpose::launch_dependents;
use crate::transpose::tuning::{COPY_BLOCK, COPY_ELEMENTS};

/// Writes the transpose of a matrix of `rows` x `columns` runs of `len` elements, without gaps: run `i * columns + j`
/// of the input is run `j * rows + i` of the output. `len` and `rows` are at least 2.
///
/// Consecutive threads write consecutive elements, [`COPY_ELEMENTS`] of which each has on the way.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(instances = [u32, u64, u128], block = COPY_BLOCK, early = crate::PREFETCH_BLOCKS)]
pub unsafe fn copy_aligned_segments<T: Element>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: usize,
) {
    launch_dependents();
    let first = thread::block_idx_x() as usize * (COPY_BLOCK * COPY_ELEMENTS);
    // Numbers of the block's first element are divided once; those of the others are a little larger.
    let segment = first / len;
    let places = Places {
        columns,
        len,
        row: segment % rows,
        column: segment / rows,
        within: first % len,
        by_len: Wrap::new(len),
        by_rows: Wrap::new(rows),
    };
    let behind = rows * columns * len - first;
    let last = if behind < COPY_BLOCK * COPY_ELEMENTS { behind } else { COPY_BLOCK * COPY_ELEMENTS } as u32 - 1;
    let nth = |k: usize| thread::thread_idx_x() + (k * COPY_BLOCK) as u32;
    let load = |k: usize| {
        // Behind the last element it is that one again: a load that has to be done or not is a branch, and waits for
        // it.
        let nth = if nth(k) < last { nth(k) } else { last };
        // SAFETY: an element of the matrix, which the view has.
        unsafe { input.load_unchecked(places.of_input(nth)) }
    };
    let elements = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
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

/// Where a block's elements come from.
struct Places {
    columns: usize,
    len: usize,
    /// The first one's run in the input, by row and column, and its place in that.
    row: usize,
    column: usize,
    within: usize,
    by_len: Wrap,
    by_rows: Wrap,
}

impl Places {
    /// Where the block's `nth` element of the output is in the input.
    #[inline(always)]
    fn of_input(&self, nth: u32) -> usize {
        let (segments, within) = self.by_len.divide(self.within, nth);
        let (columns, row) = self.by_rows.divide(self.row, segments);
        (row * self.columns + self.column + columns as usize) * self.len + within
    }
}

/// What a divisor of at least 2 makes of numbers below it to which less than [`COPY_BLOCK`] times [`COPY_ELEMENTS`] is
/// added.
#[derive(Clone, Copy)]
struct Wrap {
    by: usize,
    /// Of divisors that are small enough, and else of no meaning: then it is in there once, or not at all.
    divisor: Divisor,
}

impl Wrap {
    const MOST: usize = 1 << 15;

    #[inline(always)]
    fn new(by: usize) -> Self {
        Self { by, divisor: Divisor::new(if by < Self::MOST { by as u32 } else { 2 }) }
    }

    /// The quotient and the remainder of `number + more`.
    #[inline(always)]
    fn divide(self, number: usize, more: u32) -> (u32, usize) {
        // Both ways, so that there is no branch.
        let small = self.divisor.divide((number as u32).wrapping_add(more));
        let sum = number + more as usize;
        let large = if sum < self.by { (0, sum) } else { (1, sum - self.by) };
        if self.by < Self::MOST { (small.0, small.1 as usize) } else { large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_divisors_that_are_small_enough_are_prepared() {
        assert_eq!([Wrap::MOST - 1, Wrap::MOST].map(|by| Wrap::new(by).divisor.by()), [Wrap::MOST as u32 - 1, 2]);
    }

    #[test]
    fn divisors_of_every_size_are_exact() {
        for by in [2, 3, 7, 2047, 2048, 2049, Wrap::MOST - 1, Wrap::MOST, Wrap::MOST + 1, 1 << 40] {
            for number in [0, 1, by / 2, by - 1] {
                for more in [0, 1, 5, 1000, (COPY_BLOCK * COPY_ELEMENTS) as u32 - 1] {
                    let sum = number + more as usize;
                    assert_eq!(Wrap::new(by).divide(number, more), ((sum / by) as u32, sum % by), "{sum} / {by}");
                }
            }
        }
    }
}
