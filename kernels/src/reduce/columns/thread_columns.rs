//! Which columns a thread folds.

use cuda_std::prelude::*;

use super::{BLOCK, COLUMNS};

/// The columns of a tile that a thread folds.
#[derive(Clone, Copy)]
pub(in crate::reduce) struct ThreadColumns {
    /// The thread's row of threads, of `rows` in the block.
    pub(in crate::reduce) row: usize,
    pub(in crate::reduce) rows: usize,
    /// The thread's first column, and the distances from it to the second and the third. The fourth's is their sum.
    pub(in crate::reduce) column: usize,
    second: usize,
    third: usize,
    /// The columns of a folded row.
    pub(in crate::reduce) folded_columns: usize,
    /// The columns of one row.
    row_columns: usize,
}

impl ThreadColumns {
    /// The columns of a thread of the block.
    ///
    /// A tile has rows of `columns` columns of `size` bytes, of which `folded_rows` are read as one. The columns of a
    /// vectorized access are contiguous.
    #[inline(always)]
    pub(in crate::reduce) fn of_thread(
        thread: usize,
        tile: usize,
        lanes: usize,
        columns: usize,
        folded_rows: usize,
        size: usize,
        is_vectorized: bool,
    ) -> Self {
        let (first, lane) = (tile * lanes * COLUMNS, thread % lanes);
        let (each, second, third) = match (is_vectorized, size) {
            (true, 8) => (2, 1, 2 * lanes),
            (true, _) => (4, 1, 2),
            (false, _) => (1, lanes, 2 * lanes),
        };
        let (row, rows) = (thread / lanes, BLOCK / lanes);
        Self {
            row,
            rows,
            column: first + lane * each,
            second,
            third,
            folded_columns: columns * folded_rows,
            row_columns: columns,
        }
    }

    /// Whether the thread's columns are contiguous in groups of `together`: two or all of them.
    #[inline(always)]
    pub(in crate::reduce) fn are_contiguous(&self, together: usize) -> bool {
        self.second == 1 && (together == 2 || self.third == 2)
    }

    /// The thread's column `c`.
    #[inline(always)]
    pub(in crate::reduce) fn column(&self, c: usize) -> usize {
        self.column + c % 2 * self.second + c / 2 * self.third
    }

    #[inline(always)]
    pub(in crate::reduce) fn has(&self, c: usize) -> bool {
        self.column(c) < self.folded_columns
    }

    /// Whether any of the thread's columns exists, and so its first.
    #[inline(always)]
    pub(in crate::reduce) fn has_any(&self) -> bool {
        self.column < self.folded_columns
    }

    /// Calls `work` for each column that exists.
    #[inline(always)]
    pub(in crate::reduce) fn each(&self, work: impl Fn(usize)) {
        per_column(|c| {
            if self.has(c) {
                work(c);
            }
        });
    }

    /// The row of column `c` within the folded row. The host passes fewer than 2^32 columns if there are several.
    #[inline(always)]
    pub(in crate::reduce) fn folded_row(&self, c: usize) -> usize {
        if self.folded_columns == self.row_columns {
            0
        } else {
            (self.column(c) as u32 / self.row_columns as u32) as usize
        }
    }

    /// The offset of the column's element from the first of the folded row, whose rows are `pitch` apart. 0 if the
    /// column does not exist, since a conditional load would be a branch.
    #[inline(always)]
    pub(in crate::reduce) fn offset(&self, c: usize, pitch: usize) -> usize {
        let row = self.folded_row(c);
        if self.has(c) { row * pitch + (self.column(c) - row * self.row_columns) } else { 0 }
    }
}

/// Loads a thread's elements by vectorized accesses, at [`ThreadColumns::offset`]s `at` in a folded row that begins at
/// `row`.
///
/// # Safety
/// Each access is inside the view, and aligned to its size.
#[inline(always)]
pub(in crate::reduce) unsafe fn load_vectorized<T: Element>(
    input: &Global<T>,
    row: usize,
    at: [usize; COLUMNS],
) -> [T; COLUMNS] {
    if size_of::<T>() < 8 {
        // SAFETY: as promised by the caller.
        return unsafe { input.load_four_unchecked(row.wrapping_add(at[0])) };
    }
    // SAFETY: as promised by the caller.
    let vector = |c: usize| unsafe { input.load_vector_unchecked(row.wrapping_add(at[c])) };
    let (first, second) = (vector(0), vector(2));
    [first.get(0), first.get(1), second.get(0), second.get(1)]
}

/// One value for each column of a thread. Written out, since an array whose loop is not unrolled goes to local memory.
#[inline(always)]
pub(in crate::reduce) fn per_column<S>(of_column: impl Fn(usize) -> S) -> [S; COLUMNS] {
    [of_column(0), of_column(1), of_column(2), of_column(3)]
}
