//! The plan and launch of transposes of matrices of contiguous segments.

use cuda_std::element::Plain;
use kernels::transpose::copy::elements::copy_aligned_segments;
use kernels::transpose::copy::vectors::copy_segments;
use kernels::transpose::packed::segment_tiling::PackedTiling;
use kernels::transpose::packed::segments::packed_segments;
use kernels::transpose::packed::segments_short_wide::{is_short_wide, packed_segments_short_wide};
use kernels::transpose::tuning::{
    COPY_BLOCK, COPY_ELEMENTS, COPY_VECTORS, PACKED_BLOCK, TILES_OF_SEGMENTS, elements_per_store, long_segment,
};

use super::OPERATION;
use super::kernel_table::{HasKernels, Kernels, LongSegments, UnalignedKernels, for_unit};
use super::strides::MAX_BLOCKS;
use super::unit::Unit;
use crate::{Error, Gpu, View, ViewMut};

/// A matrix whose elements are contiguous segments of `len` units. It has at least two rows and two columns, and a
/// segment is more than one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentMatrix {
    pub rows: usize,
    pub columns: usize,
    pub len: usize,
}

impl Gpu {
    /// Transposes a matrix of segments. Short segments are packed, and long ones are copied one by one. All segments of
    /// both sides begin and end at multiples of the unit.
    pub(super) fn permute_segments(
        &self,
        matrix: SegmentMatrix,
        unit: Unit,
        input: View<'_, u8>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        let bytes = matrix.len * unit.bytes();
        let is_short = bytes < long_segment(unit.bytes());
        // Packed kernels take units of up to 8 bytes.
        let unit = if is_short && unit == Unit::Sixteen { Unit::Eight } else { unit };
        let matrix = SegmentMatrix { len: bytes / unit.bytes(), ..matrix };
        for_unit!(unit, |U| {
            let (input, output) = (input.cast::<U>(), output.cast::<U>());
            let Kernels { unaligned, long_segments, .. } = U::kernels();
            match unaligned.filter(|_| is_short) {
                Some(kernels) => self.pack_segments(&kernels, matrix, input, output),
                None => self.copy_segments(long_segments, matrix, input, output),
            }
        })
    }

    /// Launches one of the two packed kernels.
    fn pack_segments<T: Plain>(
        &self,
        kernels: &UnalignedKernels<T>,
        SegmentMatrix { rows, columns, len }: SegmentMatrix,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        if is_short_wide(rows, len, size) {
            let short_wide = PackedTiling::short_wide(rows, columns, len, size, TILES_OF_SEGMENTS);
            let grid = grid(columns.div_ceil(short_wide.width))?;
            let arguments = packed_segments_short_wide::Args {
                input,
                output,
                rows: rows as u32,
                columns,
                len: len as u32,
                width: short_wide.width as u32,
                vectors_per_row: short_wide.vectors_per_row as u32,
                row_pitch: short_wide.row_pitch as u32,
            };
            return self.launch(kernels.segments_short_wide, grid, arguments);
        }
        let tiles = PackedTiling::new(rows, columns, len, size, TILES_OF_SEGMENTS).balanced(rows, columns, len, size);
        let down = rows.div_ceil(tiles.height);
        let grid = grid(down * columns.div_ceil(tiles.width))?;
        let threads = tiles.threads_per_row(len, size);
        // The number of output rows after which the offset of a row's start in a 4-byte word repeats.
        let rows_until_repeat =
            elements_per_store(size) >> (rows * len).trailing_zeros().min(elements_per_store(size).ilog2());
        let step = (PACKED_BLOCK / threads).max(rows_until_repeat as usize) as u32;
        let arguments = packed_segments::Args {
            input,
            output,
            rows,
            columns,
            len: len as u32,
            height: tiles.height as u32,
            width: tiles.width as u32,
            tiles_down: down as u32,
            vectors_per_row: tiles.vectors_per_row as u32,
            row_pitch: tiles.row_pitch as u32,
            threads_per_row: threads as u32,
            step,
        };
        self.launch(kernels.segments, grid, arguments)
    }

    /// Launches the kernel of long segments.
    fn copy_segments<T: Plain>(
        &self,
        kernel: LongSegments<T>,
        SegmentMatrix { rows, columns, len }: SegmentMatrix,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        match kernel {
            LongSegments::Units(kernel) => {
                let grid = grid((rows * columns * len).div_ceil(COPY_BLOCK * COPY_ELEMENTS))?;
                self.launch(kernel, grid, copy_aligned_segments::Args { input, output, rows, columns, len })
            }
            LongSegments::Vectors(kernel) => {
                let of_vector = 16 / size_of::<T>();
                let is_aligned = len.is_multiple_of(of_vector) && output.address().is_multiple_of(16);
                let vectors = len.div_ceil(of_vector) + usize::from(!is_aligned);
                let grid = grid((rows * columns * vectors).div_ceil(COPY_BLOCK * COPY_VECTORS))?;
                self.launch(kernel, grid, copy_segments::Args { input, output, rows, columns, len, vectors })
            }
        }
    }
}

/// The grid of `blocks` blocks, if a grid can have them.
fn grid(blocks: usize) -> Result<u32, Error> {
    if blocks > MAX_BLOCKS {
        let expected = "but a grid has fewer than 2^31".to_owned();
        return Err(Error::Shape { operation: OPERATION, what: "the number of blocks", found: blocks, expected });
    }
    Ok(blocks as u32)
}
