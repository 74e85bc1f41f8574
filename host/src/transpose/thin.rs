//! The plan and launch of tall-skinny and short-wide transposes.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::packed::SECTOR;
use kernels::transpose::packed::short_wide::{self, max_columns, segment_pitch, vectors_per_segment};
use kernels::transpose::packed::tall_skinny::{self, max_positions};
use kernels::transpose::tuning::{
    ASPECT_RATIO, MAX_PACKED_ROW_OF_VECTORS, MAX_SHORT_SIDE, MIN_SECTORS, RESIDENT_PACKED_BLOCKS,
};

use super::strides::Strides;
use crate::{Error, Gpu, View, ViewMut};

/// The kernels for an element's size.
pub(super) struct ThinKernels<T: Plain> {
    pub tall_skinny: Kernel<tall_skinny::tall_skinny::Args<'static, T>>,
    pub short_wide: Kernel<short_wide::short_wide::Args<'static, T>>,
}

/// Which side of a matrix is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thin {
    ShortWide,
    TallSkinny,
}

impl Thin {
    /// The kind of the matrices, if they are tall-skinny or short-wide and contiguous on that side.
    pub(super) fn of(strides: &Strides) -> Option<Self> {
        let Strides { rows, columns, input_pitch, output_pitch, .. } = *strides;
        let is_strip = |few: usize, many: usize| (2..=MAX_SHORT_SIDE).contains(&few) && many / ASPECT_RATIO >= few;
        if is_strip(columns, rows) && input_pitch == columns {
            Some(Self::TallSkinny)
        } else if is_strip(rows, columns) && output_pitch == rows {
            Some(Self::ShortWide)
        } else {
            None
        }
    }

    /// [`Thin::of`] matrices whose rows begin and end at multiples of 16 bytes, if packing is better than tiles:
    /// tall-skinny ones whose rows are one or two vectors. Tiles would load each row in another lane, far apart.
    pub(super) fn of_vectors(strides: &Strides, size: usize) -> Option<Self> {
        let [columns, bytes] = MAX_PACKED_ROW_OF_VECTORS;
        Self::of(strides).filter(|&thin| thin == Self::TallSkinny && strides.columns <= columns && size <= bytes)
    }
}

/// The elements of the long side for a block: at most `most`, and few enough that there are enough blocks.
fn extent_of_block(long: usize, batch: usize, most: usize, size: usize) -> usize {
    let sector = SECTOR / size;
    let enough = long.saturating_mul(batch).div_ceil(RESIDENT_PACKED_BLOCKS).next_multiple_of(sector);
    enough.clamp((MIN_SECTORS * sector).min(most), most)
}

impl Gpu {
    /// Launches the kernel for a tall-skinny or short-wide matrix.
    pub(super) fn transpose_thin<T: Plain>(
        &self,
        kernels: &ThinKernels<T>,
        thin: Thin,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, batch, input_pitch, output_pitch, input_batch, output_batch } = strides;
        let size = size_of::<T>();
        match thin {
            Thin::TallSkinny => {
                let height = extent_of_block(rows, batch, max_positions(columns, size), size);
                let blocks = (rows + tall_skinny::halo(size)).div_ceil(height);
                strides.in_grids(blocks, input, output, |grid, input, output| {
                    let arguments = tall_skinny::tall_skinny::Args {
                        input,
                        output,
                        rows,
                        columns: columns as u32,
                        output_pitch,
                        input_batch,
                        output_batch,
                        height: height as u32,
                        blocks: blocks as u32,
                    };
                    self.launch(kernels.tall_skinny, grid, arguments)
                })
            }
            Thin::ShortWide => {
                let width = extent_of_block(columns, batch, max_columns(rows, size), size);
                let blocks = (columns + short_wide::halo(rows, size)).div_ceil(width);
                let (vectors, capacity) = (vectors_per_segment(rows, width, size), segment_pitch(rows, width, size));
                strides.in_grids(blocks, input, output, |grid, input, output| {
                    let arguments = short_wide::short_wide::Args {
                        input,
                        output,
                        rows: rows as u32,
                        columns,
                        input_pitch,
                        input_batch,
                        output_batch,
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
    fn rows_of_a_vector_or_two_are_better_off_as_strips() {
        let is_strip = |rows, columns, size| Thin::of_vectors(&Strides::of_matrix(rows, columns), size).is_some();
        assert_eq!(
            [(16, 1), (8, 2), (16, 2), (17, 1), (8, 4)].map(|(columns, size)| is_strip(100_000, columns, size)),
            [true, true, true, false, false]
        );
        // Short-wide matrices are not.
        assert!(!is_strip(16, 100_000, 1));
    }

    #[test]
    fn parts_are_whole_sectors_that_a_block_has_room_for() {
        for size in [1, 2, 4, 8] {
            let sector = SECTOR / size;
            for few in 2..=MAX_SHORT_SIDE {
                let (positions, columns) = (max_positions(few, size), max_columns(few, size));
                for extent_of_block in [positions, columns] {
                    assert!(
                        extent_of_block >= MIN_SECTORS * sector && extent_of_block % sector == 0,
                        "{few} of {size} bytes: {extent_of_block}"
                    );
                }
                let segment = ((positions + tall_skinny::halo(size)) * few).div_ceil(16 / size) + 1;
                assert!(segment <= PACKED_BLOCK * PACKED_VECTORS, "{few} columns of {size} bytes: {segment} vectors");
                assert!(
                    few * vectors_per_segment(few, columns, size) <= PACKED_BLOCK * PACKED_VECTORS,
                    "{few} rows of {size} bytes"
                );
                let end = short_wide::segment_start(few, segment_pitch(few, columns, size), size);
                assert!(end <= capacity(size), "{few} rows of {size} bytes: {end} elements");
            }
        }
    }

    #[test]
    fn short_strips_are_cut_in_many_parts() {
        assert_eq!(extent_of_block(1 << 24, 1, 512, 1), 512);
        assert_eq!(extent_of_block(1_000_033, 1, 8192, 1), 1920);
        assert_eq!(extent_of_block(2000, 1, 8192, 1), 128);
        assert_eq!(extent_of_block(2000, 1000, 512, 8), 512);
    }

    #[test]
    fn strips_are_narrow_and_long() {
        let of = |rows, columns| Thin::of(&Strides::of_matrix(rows, columns));
        assert_eq!(
            [of(1, 1000), of(2, 31), of(2, 32), of(128, 2048)],
            [None, None, Some(Thin::ShortWide), Some(Thin::ShortWide)]
        );
        assert_eq!([of(129, 5000), of(1000, 1), of(32, 2)], [None, None, Some(Thin::TallSkinny)]);
        let pitched = Strides { input_pitch: 3, ..Strides::of_matrix(100, 2) };
        assert_eq!(Thin::of(&pitched), None, "tall-skinny with gaps between rows");
    }
}
