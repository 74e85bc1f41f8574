//! The plan and launch of packed transposes: of tall-skinny and short-wide matrices.

use cuda_std::element::Plain;
use kernels::transpose::packed::SECTOR;
use kernels::transpose::packed::short_wide::{self, max_columns, segment_pitch, vectors_per_segment};
use kernels::transpose::packed::tall_skinny::{self, max_positions};
use kernels::transpose::tuning::{
    ASPECT_RATIO, MAX_PACKED_ROW_OF_VECTORS, MAX_SHORT_SIDE, MIN_SECTORS, RESIDENT_PACKED_BLOCKS,
};

use super::kernel_table::UnalignedKernels;
use super::strides::Strides;
use crate::{Error, Gpu, View, ViewMut};

/// The packed kernel for a matrix with a short side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packed {
    ShortWide,
    TallSkinny,
}

impl Packed {
    /// The kernel for the matrices, if they are tall-skinny or short-wide, and the side with the short rows has no
    /// gaps.
    pub(super) fn of(strides: &Strides) -> Option<Self> {
        let Strides { rows, columns, input_pitch, output_pitch, .. } = *strides;
        let has_ratio =
            |short: usize, long: usize| (2..=MAX_SHORT_SIDE).contains(&short) && long / ASPECT_RATIO >= short;
        if has_ratio(columns, rows) && input_pitch == columns {
            Some(Self::TallSkinny)
        } else if has_ratio(rows, columns) && output_pitch == rows {
            Some(Self::ShortWide)
        } else {
            None
        }
    }

    /// [`Packed::of`] matrices whose rows begin and end at multiples of 16 bytes, if packing is better than tiles: for
    /// tall-skinny matrices whose rows are one or two vectors. In a tile, each lane would load another row, far from
    /// those of its neighbours.
    pub(super) fn of_vectors(strides: &Strides, size: usize) -> Option<Self> {
        let [columns, bytes] = MAX_PACKED_ROW_OF_VECTORS;
        Self::of(strides).filter(|&packed| packed == Self::TallSkinny && strides.columns <= columns && size <= bytes)
    }
}

/// The extent of a block along the long side, in elements: at most `max`, or less if there would be too few blocks.
fn extent_of_block(long: usize, batch: usize, max: usize, size: usize) -> usize {
    let sector = SECTOR / size;
    let enough = long.saturating_mul(batch).div_ceil(RESIDENT_PACKED_BLOCKS).next_multiple_of(sector);
    enough.clamp((MIN_SECTORS * sector).min(max), max)
}

impl Gpu {
    /// Launches the kernel for a tall-skinny or short-wide matrix.
    pub(super) fn transpose_packed<T: Plain>(
        &self,
        kernels: &UnalignedKernels<T>,
        packed: Packed,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, batch, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch } =
            strides;
        let size = size_of::<T>();
        match packed {
            Packed::TallSkinny => {
                let height = extent_of_block(rows, batch, max_positions(columns, size), size);
                let blocks = (rows + tall_skinny::halo_rows(size)).div_ceil(height);
                strides.in_grids(blocks, input, output, |grid, input, output| {
                    let arguments = tall_skinny::tall_skinny::Args {
                        input,
                        output,
                        rows,
                        columns: columns as u32,
                        output_pitch,
                        input_batch_pitch,
                        output_batch_pitch,
                        height: height as u32,
                        blocks: blocks as u32,
                    };
                    self.launch(kernels.tall_skinny, grid, arguments)
                })
            }
            Packed::ShortWide => {
                let width = extent_of_block(columns, batch, max_columns(rows, size), size);
                let blocks = (columns + short_wide::halo_columns(rows, size)).div_ceil(width);
                let (vectors, capacity) = (vectors_per_segment(rows, width, size), segment_pitch(rows, width, size));
                strides.in_grids(blocks, input, output, |grid, input, output| {
                    let arguments = short_wide::short_wide::Args {
                        input,
                        output,
                        rows: rows as u32,
                        columns,
                        input_pitch,
                        input_batch_pitch,
                        output_batch_pitch,
                        width: width as u32,
                        blocks: blocks as u32,
                        vectors_per_segment: vectors as u32,
                        segment_pitch: capacity as u32,
                    };
                    self.launch(kernels.short_wide, grid, arguments)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kernels::transpose::packed::capacity;
    use kernels::transpose::tuning::{PACKED_BLOCK, PACKED_VECTORS};

    use super::*;

    #[test]
    fn rows_of_a_vector_or_two_are_packed() {
        let is_packed = |rows, columns, size| Packed::of_vectors(&Strides::of_matrix(rows, columns), size).is_some();
        assert_eq!(
            [(16, 1), (8, 2), (16, 2), (17, 1), (8, 4)].map(|(columns, size)| is_packed(100_000, columns, size)),
            [true, true, true, false, false]
        );
        // Short-wide matrices are not.
        assert!(!is_packed(16, 100_000, 1));
    }

    #[test]
    fn a_block_has_the_capacity_of_its_whole_sectors() {
        for size in [1, 2, 4, 8] {
            let sector = SECTOR / size;
            for short in 2..=MAX_SHORT_SIDE {
                let (positions, columns) = (max_positions(short, size), max_columns(short, size));
                for extent_of_block in [positions, columns] {
                    assert!(
                        extent_of_block >= MIN_SECTORS * sector && extent_of_block % sector == 0,
                        "{short} of {size} bytes: {extent_of_block}"
                    );
                }
                let segment = ((positions + tall_skinny::halo_rows(size)) * short).div_ceil(16 / size) + 1;
                assert!(segment <= PACKED_BLOCK * PACKED_VECTORS, "{short} columns of {size} bytes: {segment} vectors");
                assert!(
                    short * vectors_per_segment(short, columns, size) <= PACKED_BLOCK * PACKED_VECTORS,
                    "{short} rows of {size} bytes"
                );
                let end = short_wide::segment_start(short, segment_pitch(short, columns, size), size);
                assert!(end <= capacity(size), "{short} rows of {size} bytes: {end} elements");
            }
        }
    }

    #[test]
    fn short_matrices_are_divided_among_enough_blocks() {
        assert_eq!(extent_of_block(1 << 24, 1, 512, 1), 512);
        assert_eq!(extent_of_block(1_000_033, 1, 8192, 1), 1920);
        assert_eq!(extent_of_block(2000, 1, 8192, 1), 128);
        assert_eq!(extent_of_block(2000, 1000, 512, 8), 512);
    }

    #[test]
    fn packed_matrices_are_narrow_and_long() {
        let of = |rows, columns| Packed::of(&Strides::of_matrix(rows, columns));
        assert_eq!(
            [of(1, 1000), of(2, 31), of(2, 32), of(128, 2048)],
            [None, None, Some(Packed::ShortWide), Some(Packed::ShortWide)]
        );
        assert_eq!([of(129, 5000), of(1000, 1), of(32, 2)], [None, None, Some(Packed::TallSkinny)]);
        let pitched = Strides { input_pitch: 3, ..Strides::of_matrix(100, 2) };
        assert_eq!(Packed::of(&pitched), None, "tall-skinny with gaps between rows");
    }
}
