//! The launch of the kernels that turn tiles.

use cuda_std::element::Plain;
use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::Kernel;
use kernels::transpose::tile::squares;
use kernels::transpose::tiles::{elements, ragged_tiles, tiles};

use crate::{Error, Gpu, View, ViewMut};

/// Matrices to transpose, and how far apart their rows and they themselves begin, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strides {
    pub rows: usize,
    pub columns: usize,
    pub batch: usize,
    pub input_pitch: usize,
    pub output_pitch: usize,
    pub input_batch: usize,
    pub output_batch: usize,
}

/// The most blocks of a grid.
const MOST_BLOCKS: usize = i32::MAX as usize;

/// How many squares are across a tile, as a power of two, for elements of `size` bytes.
///
/// A square's side is 16 bytes of elements, and a tile has a fixed number of squares ([`squares`] of [`elements`]). Rows of a tile should
/// be 256 bytes on both sides, eight sectors of memory in a row, which takes 16 squares; elements of 1 and 8 bytes have
/// room for 16 across and 8 or 32 down, those of 16 for 32 both ways. A matrix that is narrower gets a tile that is as
/// narrow and longer for it, since what is outside of the matrix is lost; one that is lower, a wider one.
pub(super) fn squares_across(rows: usize, columns: usize, size: usize) -> u32 {
    let side = 16 / size;
    let all = squares(elements(size), size).ilog2();
    let usual = if size == 16 { 5 } else { 4 };
    let log_of_needed = |elements: usize| elements.div_ceil(side).next_power_of_two().ilog2();
    let most_across = log_of_needed(columns);
    let fewest_across = all.saturating_sub(log_of_needed(rows));
    usual.max(fewest_across).min(most_across).min(all)
}

type TilesParameters<T> = (Global<'static, T>, GlobalMut<'static, T>, usize, usize, usize, usize, usize, usize, u32);

impl Gpu {
    /// Turns tile by tile. The views have room for the shape, which has elements.
    pub(super) fn transpose_by_tiles<T: Plain>(
        &self,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        match size_of::<T>() {
            1 => {
                let kernels = [tiles::handle::<u8, 32768>(), ragged_tiles::handle::<u8, 32768>()];
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            2 => {
                let kernels = [tiles::handle::<u16, 16384>(), ragged_tiles::handle::<u16, 16384>()];
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            4 => {
                let kernels = [tiles::handle::<u32, 4096>(), ragged_tiles::handle::<u32, 4096>()];
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            8 => {
                let kernels = [tiles::handle::<u64, 2048>(), ragged_tiles::handle::<u64, 2048>()];
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            // They always begin at multiples of 16 bytes.
            _ => self.turn([tiles::handle::<u128, 1024>(); 2], strides, input.cast(), output.cast()),
        }
    }

    /// Launches the first of two kernels if all begins at multiples of 16 bytes, or else the second.
    fn turn<T: Plain>(
        &self,
        [wide, ragged]: [Kernel<TilesParameters<T>>; 2],
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, input_pitch, output_pitch, input_batch, output_batch, .. } = strides;
        let is_wide = (input.device_address() | output.device_address()).is_multiple_of(16)
            && [rows, columns, input_pitch, output_pitch, input_batch, output_batch]
                .iter()
                .all(|elements| (elements * size_of::<T>()).is_multiple_of(16));
        let kernel = if is_wide { wide } else { ragged };
        strides.in_grids(elements(size_of::<T>()), input, output, |grid, across, input, output| {
            let arguments =
                (input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch, across);
            self.launch(kernel, grid, arguments)
        })
    }
}

impl Strides {
    /// Of one matrix, without gaps.
    pub(super) const fn of_matrix(rows: usize, columns: usize) -> Self {
        let elements = rows * columns;
        Self {
            rows,
            columns,
            batch: 1,
            input_pitch: columns,
            output_pitch: rows,
            input_batch: elements,
            output_batch: elements,
        }
    }

    /// Calls `launch` with the blocks, the squares across a tile of `tile` elements, and the views of as many matrices as a
    /// grid has blocks for, until all have had their turn.
    pub(super) fn in_grids<T: Plain>(
        &self,
        tile: usize,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(u32, u32, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { rows, columns, batch, input_batch, output_batch, .. } = *self;
        let size = size_of::<T>();
        let across = squares_across(rows, columns, size);
        let (side, squares) = (16 / size, squares(tile, size));
        let (width, height) = (side << across, (squares * side) >> across);
        let blocks_of_matrix = rows.div_ceil(height) * columns.div_ceil(width);
        let at_once = (MOST_BLOCKS / blocks_of_matrix).max(1);
        let mut first = 0;
        while first < batch {
            let matrices = at_once.min(batch - first);
            let (from, to) = (first * input_batch, first * output_batch);
            let input = input.slice(from, input.len() - from)?;
            let room = output.len() - to;
            launch((blocks_of_matrix * matrices) as u32, across, input, output.reborrow().slice(to, room)?)?;
            first += matrices;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_where_there_is_room_and_strips_where_there_is_not() {
        let tile = |rows, columns, size| {
            let across = squares_across(rows, columns, size);
            let side = 16 / size;
            ((squares(elements(size), size) * side) >> across, side << across)
        };
        assert_eq!(
            [1, 2, 4, 8, 16].map(|size| tile(9999, 9999, size)),
            [(128, 256), (128, 128), (64, 64), (64, 32), (32, 32)]
        );
        assert_eq!((tile(1 << 24, 16, 4), tile(16, 1 << 24, 4)), ((256, 16), (16, 256)));
        assert_eq!((tile(3, 1_000_033, 4), tile(1_000_033, 3, 4)), ((4, 1024), (1024, 4)));
        assert_eq!((tile(1, 1, 1), tile(1, 1, 16)), ((2048, 16), (1024, 1)));
    }

    #[test]
    fn more_matrices_than_a_grid_has_blocks_for_take_several() {
        let gpu = Gpu::simt();
        let (input, mut output) = (gpu.zeroed::<u8>(64).unwrap(), gpu.zeroed::<u8>(64).unwrap());
        // All matrices lie in the same place, so that there is memory for them.
        let strides = Strides {
            rows: 2,
            columns: 2,
            batch: MOST_BLOCKS + 5,
            input_pitch: 2,
            output_pitch: 2,
            input_batch: 0,
            output_batch: 0,
        };
        let mut grids = Vec::new();
        strides
            .in_grids(elements(1), input.view(), output.view_mut(), |grid, _, _, _| {
                grids.push(grid);
                Ok(())
            })
            .unwrap();
        assert_eq!(grids, [MOST_BLOCKS as u32, 5]);
    }
}
