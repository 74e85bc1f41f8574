//! Which columns a thread folds.

use cuda_std::prelude::*;

use super::{BLOCK, COLUMNS};

/// Where a thread stands.
#[derive(Clone, Copy)]
pub(in crate::reduce) struct Place {
    /// Its row of threads, of `rows` in the block.
    pub(in crate::reduce) row: usize,
    pub(in crate::reduce) rows: usize,
    /// Its first column, how far behind that the second is, and the third; the fourth is as far behind the third.
    pub(in crate::reduce) column: usize,
    second: usize,
    third: usize,
    /// All columns that there are, those of rows abreast behind each other.
    pub(in crate::reduce) all: usize,
    /// Those of one row.
    of_row: usize,
}

impl Place {
    /// That of a thread of the block, in a tile of rows of `columns` columns of `size` bytes, of which `abreast` are
    /// read as one. By wide accesses, a thread's columns are neighbours as far as an access reaches.
    #[inline(always)]
    pub(in crate::reduce) fn of_thread(
        thread: usize,
        tile: usize,
        lanes: usize,
        columns: usize,
        abreast: usize,
        size: usize,
        is_wide: bool,
    ) -> Self {
        let (first, lane) = (tile * lanes * COLUMNS, thread % lanes);
        let (each, second, third) = match (is_wide, size) {
            (true, 8) => (2, 1, 2 * lanes),
            (true, _) => (4, 1, 2),
            (false, _) => (1, lanes, 2 * lanes),
        };
        let (row, rows) = (thread / lanes, BLOCK / lanes);
        Self { row, rows, column: first + lane * each, second, third, all: columns * abreast, of_row: columns }
    }

    /// Whether each so many of the thread's columns, two or all of them, are neighbours.
    #[inline(always)]
    pub(in crate::reduce) fn has_neighbours(&self, together: usize) -> bool {
        self.second == 1 && (together == 2 || self.third == 2)
    }

    /// Column `c` of the thread's.
    #[inline(always)]
    pub(in crate::reduce) fn column(&self, c: usize) -> usize {
        self.column + c % 2 * self.second + c / 2 * self.third
    }

    #[inline(always)]
    pub(in crate::reduce) fn has(&self, c: usize) -> bool {
        self.column(c) < self.all
    }

    /// Whether the first of the thread's columns is one of those that there are: where it is not, none is.
    #[inline(always)]
    pub(in crate::reduce) fn has_first(&self) -> bool {
        self.column < self.all
    }

    /// Does `work` for each of the columns that there are.
    #[inline(always)]
    pub(in crate::reduce) fn each(&self, work: impl Fn(usize)) {
        four(|c| {
            if self.has(c) {
                work(c);
            }
        });
    }

    /// In which of the rows abreast that is. The host has less than 2^32 columns where there are several.
    #[inline(always)]
    pub(in crate::reduce) fn row_abreast(&self, c: usize) -> usize {
        if self.all == self.of_row { 0 } else { (self.column(c) as u32 / self.of_row as u32) as usize }
    }

    /// How far the column's element is behind the first of all rows abreast, which are `pitch` apart; that one itself,
    /// where there is no such column: a load that has to be done or not is a branch.
    #[inline(always)]
    pub(in crate::reduce) fn offset(&self, c: usize, pitch: usize) -> usize {
        let row = self.row_abreast(c);
        if self.has(c) { row * pitch + (self.column(c) - row * self.of_row) } else { 0 }
    }
}

/// By wide accesses the elements of a thread with [`Place::offset`]s `at`, in rows of which the first begins at `row`.
///
/// # Safety
/// What an access takes is inside of the view, and it begins at a multiple of its size.
#[inline(always)]
pub(in crate::reduce) unsafe fn load_wide<T: Element>(
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

/// One value for each column of a thread. Written out, because what a compiler does not unroll goes to memory.
#[inline(always)]
pub(in crate::reduce) fn four<S>(of_column: impl Fn(usize) -> S) -> [S; COLUMNS] {
    [of_column(0), of_column(1), of_column(2), of_column(3)]
}
