//! Divides columns among the threads that add them to states.

use kernels::reduce::exact::states::columns::{BLOCK, ELEMENTS_IN_FLIGHT};

/// How columns are divided among threads. It does not change the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// The number of threads that share a split of a column.
    pub folded: usize,
    pub rows_of_split: usize,
    /// The number of blocks of a split.
    pub tiles: usize,
    pub splits: usize,
}

impl Columns {
    /// The division of `batches` matrices of `rows` rows of `columns` elements, at least one of each. Eight blocks for
    /// each multiprocessor keep a device busy.
    pub fn of(batches: usize, rows: usize, columns: usize, multiprocessors: usize) -> Self {
        let enough_blocks = 8 * multiprocessors;
        let folded = (BLOCK / columns).clamp(1, rows.div_ceil(ELEMENTS_IN_FLIGHT));
        let tiles = (columns * folded).div_ceil(BLOCK);
        // A thread adds `ELEMENTS_IN_FLIGHT` elements at a time, so the rows of a split are a multiple of this number.
        let granularity = folded * ELEMENTS_IN_FLIGHT;
        let splits = (enough_blocks / tiles.saturating_mul(batches)).clamp(1, rows.div_ceil(granularity));
        let rows_of_split = rows.div_ceil(granularity).div_ceil(splits) * granularity;
        Self { folded, rows_of_split, tiles, splits: rows.div_ceil(rows_of_split) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_all_rows() {
        for batches in [1, 3, 5000] {
            for rows in [1, 7, 8, 9, 100, 4096, 1_000_003] {
                for columns in [1, 2, 3, 200, 256, 257, 5000, 1 << 20] {
                    let Columns { folded, rows_of_split, tiles, splits } = Columns::of(batches, rows, columns, 132);
                    let case = format!("{batches} x {rows} x {columns}");
                    assert!((splits - 1) * rows_of_split < rows && rows <= splits * rows_of_split, "{case}");
                    assert!(tiles * BLOCK >= columns * folded && folded <= BLOCK, "{case}");
                    assert!(rows_of_split.is_multiple_of(folded * ELEMENTS_IN_FLIGHT), "{case}");
                }
            }
        }
    }
}
