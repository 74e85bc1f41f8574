//! The plan and launch of transposes with interleaved rows: three axes reversed, of which the first or the last is
//! short.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::tiled::interleaved::InterleavedArgs;
use kernels::transpose::tiled::row_map::MAX_WAYS;
use kernels::transpose::tuning::{long_axis, tile_elements};

use super::kernel_table::{HasKernels, for_unit};
use super::strides::{MAX_BLOCKS, Strides};
use super::tiling::Tiling;
use super::unit::Unit;
use crate::{Error, Gpu, View, ViewMut};

/// A matrix to transpose, and the numbers of rows (ways) that are interleaved in the input and in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterleavedMatrix {
    pub rows: usize,
    pub columns: usize,
    pub input_ways: usize,
    pub output_ways: usize,
}

impl InterleavedMatrix {
    /// The matrix whose transpose reverses the axes of an array of this shape, if exactly one of the first and the last
    /// axis is short. If both are short, interleaving does not help: the contiguous segments are short on one side or
    /// the other.
    pub fn of_reversal([a, b, c]: [usize; 3], size: usize) -> Option<Self> {
        let is_short = |axis: usize| axis < long_axis(size);
        const { assert!(long_axis(1) <= MAX_WAYS) };
        let matrix = match (is_short(a), is_short(c)) {
            (false, true) => Self { rows: a, columns: b * c, input_ways: 1, output_ways: c },
            (true, false) => Self { rows: b * a, columns: c, input_ways: a, output_ways: 1 },
            _ => return None,
        };
        let Self { rows, columns, .. } = matrix;
        (Tiling::of_vectors(tile_elements(size), size).tiles(rows, columns) <= MAX_BLOCKS).then_some(matrix)
    }
}

impl Gpu {
    /// Launches the transpose with interleaved rows, of elements that one access moves. The views have the matrix's
    /// elements, and begin at multiples of the unit.
    pub(super) fn transpose_interleaved(
        &self,
        unit: Unit,
        matrix: InterleavedMatrix,
        input: View<'_, u8>,
        output: ViewMut<'_, u8>,
    ) -> Result<(), Error> {
        for_unit!(unit, |U| {
            self.launch_interleaved(U::kernels().interleaved, matrix, input.cast::<U>(), output.cast())
        })
    }

    /// Launches the first of `kernels`, or the second if all rows begin and end at multiples of 16 bytes.
    fn launch_interleaved<T: Plain>(
        &self,
        kernels: [Kernel<InterleavedArgs<'static, T>>; 2],
        matrix: InterleavedMatrix,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let InterleavedMatrix { rows, columns, input_ways, output_ways } = matrix;
        let size = size_of::<T>();
        let is_aligned = Strides::of_matrix(rows, columns).is_aligned(input.address() | output.address(), size);
        let tiling = Tiling::of_vectors(tile_elements(size), size);
        let (log2_across, [tiles_down, tiles_across]) = tiling.parameters(rows, columns);
        let (input_ways, output_ways) = (input_ways as u32, output_ways as u32);
        let arguments = InterleavedArgs {
            input,
            output,
            rows,
            columns,
            input_ways,
            output_ways,
            log2_across,
            tiles_down,
            tiles_across,
        };
        self.launch(kernels[usize::from(is_aligned)], tiling.tiles(rows, columns) as u32, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_axis_is_the_ways() {
        let last = InterleavedMatrix::of_reversal([1000, 20, 3], 4).unwrap();
        assert_eq!((last.rows, last.columns, last.input_ways, last.output_ways), (1000, 60, 1, 3));
        let first = InterleavedMatrix::of_reversal([3, 20, 1000], 4).unwrap();
        assert_eq!((first.rows, first.columns, first.input_ways, first.output_ways), (60, 1000, 3, 1));
        assert_eq!(InterleavedMatrix::of_reversal([3, 20, 5], 4), None);
        assert_eq!(InterleavedMatrix::of_reversal([300, 20, 500], 4), None);
        assert_eq!(InterleavedMatrix::of_reversal([300, 20, 16], 16), None, "long enough");
        assert_eq!(InterleavedMatrix::of_reversal([1 << 40, 1 << 20, 3], 1), None, "more blocks than a grid can have");
    }
}
