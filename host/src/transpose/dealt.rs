//! The launch of transposes whose rows are dealt out: three axes reversed, of which the first or the last is short.

use cuda_std::element::Plain;
use cuda_std::launch::Kernel;
use kernels::transpose::dealt::{DealtArgs, MOST_MEMBERS, dealt_tiles, wide_dealt_tiles};
use kernels::transpose::tuning::{long_axis, tile_elements};

use super::launch::{MOST_BLOCKS, Strides};
use super::tiling::Tiling;
use crate::{Error, Gpu, View, ViewMut};

/// A matrix to transpose, and to how many members its rows are dealt, and those of the transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DealtMatrix {
    pub rows: usize,
    pub columns: usize,
    pub members_of_input: usize,
    pub members_of_output: usize,
}

impl DealtMatrix {
    /// What reverses the axes of an array of that shape, if one of its outer axes is short and the other is not. (If
    /// both are, nothing is gained: the long stretches on one side are short ones on the other.)
    pub fn of_reversal([a, b, c]: [usize; 3], size: usize) -> Option<Self> {
        let is_short = |axis: usize| axis < long_axis(size);
        const { assert!(long_axis(1) <= MOST_MEMBERS) };
        let matrix = match (is_short(a), is_short(c)) {
            (false, true) => Self { rows: a, columns: b * c, members_of_input: 1, members_of_output: c },
            (true, false) => Self { rows: b * a, columns: c, members_of_input: a, members_of_output: 1 },
            _ => return None,
        };
        let Self { rows, columns, .. } = matrix;
        (Tiling::of_vectors(tile_elements(size), size).tiles(rows, columns) <= MOST_BLOCKS).then_some(matrix)
    }
}

impl Gpu {
    /// Writes the transpose with rows dealt out. The views have the matrix' elements.
    pub(super) fn transpose_dealt<T: Plain>(
        &self,
        matrix: DealtMatrix,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        match size_of::<T>() {
            1 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    [
                        dealt_tiles::handle::<u8, { tile_elements(1) }>(),
                        wide_dealt_tiles::handle::<u8, { tile_elements(1) }>(),
                    ]
                };
                self.turn_dealt(kernels, matrix, input.cast(), output.cast())
            }
            2 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    [
                        dealt_tiles::handle::<u16, { tile_elements(2) }>(),
                        wide_dealt_tiles::handle::<u16, { tile_elements(2) }>(),
                    ]
                };
                self.turn_dealt(kernels, matrix, input.cast(), output.cast())
            }
            4 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    [
                        dealt_tiles::handle::<u32, { tile_elements(4) }>(),
                        wide_dealt_tiles::handle::<u32, { tile_elements(4) }>(),
                    ]
                };
                self.turn_dealt(kernels, matrix, input.cast(), output.cast())
            }
            8 => {
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe {
                    [
                        dealt_tiles::handle::<u64, { tile_elements(8) }>(),
                        wide_dealt_tiles::handle::<u64, { tile_elements(8) }>(),
                    ]
                };
                self.turn_dealt(kernels, matrix, input.cast(), output.cast())
            }
            _ => {
                // They are vectors, wherever they begin.
                // SAFETY: only this plan launches them, with arguments that it has made for views that have the shape.
                let kernels = unsafe { [wide_dealt_tiles::handle::<u128, { tile_elements(16) }>(); 2] };
                self.turn_dealt(kernels, matrix, input.cast(), output.cast())
            }
        }
    }

    /// By the first of `kernels`, or where all is at multiples of 16 bytes by the second.
    fn turn_dealt<T: Plain>(
        &self,
        kernels: [Kernel<DealtArgs<'static, T>>; 2],
        matrix: DealtMatrix,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let DealtMatrix { rows, columns, members_of_input, members_of_output } = matrix;
        let size = size_of::<T>();
        let is_wide =
            Strides::of_matrix(rows, columns).are_wide(input.device_address() | output.device_address(), size);
        let tiling = Tiling::of_vectors(tile_elements(size), size);
        let (across, [tiles_down, tiles_across]) = tiling.parameters(rows, columns);
        let (members_of_input, members_of_output) = (members_of_input as u32, members_of_output as u32);
        let arguments = DealtArgs {
            input,
            output,
            rows,
            columns,
            members_of_input,
            members_of_output,
            across,
            tiles_down,
            tiles_across,
        };
        self.launch(kernels[usize::from(is_wide)], tiling.tiles(rows, columns) as u32, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_axis_is_dealt_to() {
        let last = DealtMatrix::of_reversal([1000, 20, 3], 4).unwrap();
        assert_eq!((last.rows, last.columns, last.members_of_input, last.members_of_output), (1000, 60, 1, 3));
        let first = DealtMatrix::of_reversal([3, 20, 1000], 4).unwrap();
        assert_eq!((first.rows, first.columns, first.members_of_input, first.members_of_output), (60, 1000, 3, 1));
        assert_eq!(DealtMatrix::of_reversal([3, 20, 5], 4), None);
        assert_eq!(DealtMatrix::of_reversal([300, 20, 500], 4), None);
        assert_eq!(DealtMatrix::of_reversal([300, 20, 16], 16), None, "long enough");
        assert_eq!(DealtMatrix::of_reversal([1 << 40, 1 << 20, 3], 1), None, "no grid has so many blocks");
    }
}
