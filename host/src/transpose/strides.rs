//! The kernels' description of matrices: rows, columns and strides; and the grids for them.

use std::ops::Range;

use cuda_std::element::Plain;
use cuda_std::launch::{Dim3, Kernel};
use kernels::transpose::registers;
use kernels::transpose::tuning::{
    LINE_PAIR, LOG2_PARTITION, LOG2_PARTITIONED_PITCHES, MAX_SMALL_BLOCKS_PER_MULTIPROCESSOR, REGISTER_TILES_ACROSS,
    REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, max_register_tiles_bytes,
};

use crate::{Error, MULTIPROCESSORS, View, ViewMut};

/// Matrices to transpose, with the distances between rows and between matrices, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    pub rows: usize,
    pub columns: usize,
    pub batch: usize,
    pub input_pitch: usize,
    pub output_pitch: usize,
    pub input_batch_pitch: usize,
    pub output_batch_pitch: usize,
}

/// The maximum number of blocks of a grid.
pub(super) const MAX_BLOCKS: usize = i32::MAX as usize;

/// The range of matrices for each grid, if each matrix takes `blocks_of_matrix` blocks.
pub(super) fn grids(batch: usize, blocks_of_matrix: usize) -> impl Iterator<Item = Range<usize>> {
    let matrices_per_grid = (MAX_BLOCKS / blocks_of_matrix).max(1);
    (0..batch).step_by(matrices_per_grid).map(move |first| first..batch.min(first + matrices_per_grid))
}

/// Whether `small` blocks of [`SMALL_REGISTER_TILES_BLOCK`] threads are better than `large` blocks of
/// [`REGISTER_TILES_BLOCK`] threads: if no multiprocessor gets more than one small block; or if none gets more than
/// [`MAX_SMALL_BLOCKS_PER_MULTIPROCESSOR`], and the busiest has fewer threads than with large blocks.
fn prefers_small_blocks(small: usize, large: usize, size: usize) -> bool {
    let of_busiest = |blocks: usize, threads: usize| blocks.div_ceil(MULTIPROCESSORS) * threads;
    let is_more_even = of_busiest(small, SMALL_REGISTER_TILES_BLOCK) < of_busiest(large, REGISTER_TILES_BLOCK);
    small <= MULTIPROCESSORS
        || (small <= MAX_SMALL_BLOCKS_PER_MULTIPROCESSOR * MULTIPROCESSORS && is_more_even && matches!(size, 2..=8))
}

impl Strides {
    /// The strides of one matrix, without gaps.
    pub(super) const fn of_matrix(rows: usize, columns: usize) -> Self {
        let elements = rows * columns;
        Self {
            rows,
            columns,
            batch: 1,
            input_pitch: columns,
            output_pitch: rows,
            input_batch_pitch: elements,
            output_batch_pitch: elements,
        }
    }

    /// Whether all rows of both sides begin and end at multiples of 16 bytes. `address` is the OR of both sides'
    /// addresses.
    pub(super) fn is_aligned(&self, address: u64, size: usize) -> bool {
        let Self { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch, .. } = *self;
        address.is_multiple_of(16)
            && [rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch]
                .iter()
                .all(|elements| (elements * size).is_multiple_of(16))
    }

    /// The base-2 logarithm of the number of partitions of the input's rows. The columns of tiles of the partitions are
    /// traversed round-robin, because at some pitches it is slow to read down one column of tiles:
    /// [`LOG2_PARTITIONED_PITCHES`].
    pub(super) fn partitions(&self, size: usize) -> u32 {
        let zeros = (self.input_pitch * size).trailing_zeros();
        let [first, last] = LOG2_PARTITIONED_PITCHES;
        if (first..=last).contains(&zeros) { zeros - LOG2_PARTITION } else { 0 }
    }

    /// Whether the input's rows begin a multiple of [`LINE_PAIR`] bytes apart. If not, L2 fetches more than the tiles
    /// read, and fewer tiles in flight are better: see `blocks_in_many_waves` in `kernels::transpose::tuning`.
    pub(super) fn are_line_pair_aligned(&self, size: usize) -> bool {
        (self.input_pitch * size).is_multiple_of(LINE_PAIR)
    }

    /// Whether the launch is bound by latency, not bandwidth.
    pub(super) fn is_small(&self, size: usize) -> bool {
        let Self { rows, columns, batch, .. } = *self;
        let bytes = rows.saturating_mul(columns).saturating_mul(batch).saturating_mul(size);
        // CUDA's limit for the grid's y and z is 65535.
        bytes <= max_register_tiles_bytes(size) && batch <= 65535
    }

    /// The better of the two kernels for [small](Self::is_small) matrices, and its grid. The first kernel has smaller
    /// blocks.
    pub(super) fn register_kernel<P>(&self, size: usize, kernels: [Kernel<P>; 2]) -> (Kernel<P>, Dim3) {
        let [small, large] = kernels;
        let grids = [small, large].map(|kernel| self.register_grid(size, kernel.block().x as usize));
        if prefers_small_blocks(grids[0].count() as usize, grids[1].count() as usize, size) {
            (small, grids[0])
        } else {
            (large, grids[1])
        }
    }

    fn register_grid(&self, size: usize, threads: usize) -> Dim3 {
        let across = self.columns.div_ceil(REGISTER_TILES_ACROSS * registers::columns(size));
        let down = self.rows.div_ceil(threads / REGISTER_TILES_ACROSS * registers::rows(size));
        Dim3::new(across as u32, down as u32, self.batch as u32)
    }

    /// Calls `launch` for each grid, with the number of blocks and the views of the grid's matrices.
    pub(super) fn in_grids<T: Plain>(
        &self,
        blocks_of_matrix: usize,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(u32, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { batch, input_batch_pitch, output_batch_pitch, .. } = *self;
        for matrices in grids(batch, blocks_of_matrix) {
            let (from, to) = (matrices.start * input_batch_pitch, matrices.start * output_batch_pitch);
            let grid = (blocks_of_matrix * matrices.len()) as u32;
            launch(grid, input.skip(from)?, output.reborrow().skip(to)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpu;

    #[test]
    fn a_grid_takes_the_matrices_that_its_blocks_suffice_for() {
        let of = |batch: usize, blocks: usize| grids(batch, blocks).collect::<Vec<_>>();
        assert_eq!(of(10, MAX_BLOCKS / 10), vec![0..10; 1]);
        assert_eq!(of(7, MAX_BLOCKS / 3), [0..3, 3..6, 6..7]);
        assert_eq!(of(2, MAX_BLOCKS), [0..1, 1..2]);
        assert!(of(0, 5).is_empty());
    }

    #[test]
    fn rows_that_begin_128_kib_apart_have_partitions() {
        let partitions = |columns: usize, size: usize| Strides::of_matrix(1000, columns).partitions(size);
        assert_eq!([8192, 12288, 16400, 20480].map(|columns| partitions(columns, 8)), [0; 4]);
        assert_eq!([16384, 32768, 49152, 65536, 131_072].map(|columns| partitions(columns, 8)), [1, 2, 1, 3, 0]);
        assert_eq!((partitions(8192, 16), partitions(32768, 4), partitions(0, 4)), (1, 1, 0));
    }

    #[test]
    fn small_blocks_are_used_where_they_balance_the_multiprocessors() {
        let is_small = |rows: usize, columns: usize, size: usize| {
            let blocks = |threads| Strides::of_matrix(rows, columns).register_grid(size, threads).count() as usize;
            prefers_small_blocks(blocks(SMALL_REGISTER_TILES_BLOCK), blocks(REGISTER_TILES_BLOCK), size)
        };
        // Small blocks on the busiest multiprocessor: one, one, three, four.
        let cases = [(512, 512), (704, 384), (768, 768), (1024, 1024)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 4)), [true, true, true, false]);
        let cases = [(256, 256), (384, 384), (512, 512), (640, 640)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 8)), [true, true, false, false]);
        // One, one, two, three. For elements of this size and of 16 bytes, at most one is allowed.
        let cases = [(512, 512), (704, 768), (1024, 1024), (1024, 1536)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 1)), [true, true, false, false]);
        let cases = [(128, 128), (176, 96), (192, 112), (192, 192)];
        assert_eq!(cases.map(|(rows, columns)| is_small(rows, columns, 16)), [true, true, false, false]);
    }

    #[test]
    fn a_small_matrix_fits_the_height_of_a_grid() {
        for size in [1, 2, 4, 8, 16] {
            let rows = max_register_tiles_bytes(size) / 16;
            let high = Strides::of_matrix(rows, 16 / size);
            assert!(high.is_small(size) && !Strides::of_matrix(rows + 16, 16 / size).is_small(size), "{size}");
            assert!(high.register_grid(size, SMALL_REGISTER_TILES_BLOCK).y <= 65535, "{size}");
        }
    }

    #[test]
    fn a_large_batch_takes_several_grids() {
        let gpu = Gpu::simt();
        let (input, mut output) = (gpu.zeroed::<u8>(64).unwrap(), gpu.zeroed::<u8>(64).unwrap());
        // All matrices have the same address, so that they fit in memory.
        let strides = Strides {
            rows: 2,
            columns: 2,
            batch: MAX_BLOCKS + 5,
            input_pitch: 2,
            output_pitch: 2,
            input_batch_pitch: 0,
            output_batch_pitch: 0,
        };
        let mut grids = Vec::new();
        strides
            .in_grids(1, input.view(), output.view_mut(), |grid, _, _| {
                grids.push(grid);
                Ok(())
            })
            .unwrap();
        assert_eq!(grids, [MAX_BLOCKS as u32, 5]);
    }
}
