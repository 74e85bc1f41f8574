//! The launch of the kernels that turn tiles.

use cuda_std::element::Plain;
use cuda_std::global::{Global, GlobalMut};
use cuda_std::launch::Kernel;
use kernels::transpose::slanted::{MARGIN, positions};
use kernels::transpose::tile::squares;
use kernels::transpose::tiles::{elements, few_elements, ragged_tiles, slanted_tiles, tiles};

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

/// Tiles that are few: two for each multiprocessor of an H200.
const FEW_TILES: usize = 2 * 132;

/// How many squares are across a tile of `tile` elements of `size` bytes, as a power of two.
///
/// A square's side is 16 bytes of elements, and a tile has a fixed number of [`squares`]. It is square, or twice as high as
/// wide, so that its rows are as long as they can be on both sides: 256 bytes, eight sectors of memory, or half of that where
/// the other side has 256. A matrix that is narrower gets a tile that is as narrow and longer for it, since what is outside of
/// the matrix is lost; one that is lower, a wider one.
fn squares_across(rows: usize, columns: usize, tile: usize, size: usize) -> u32 {
    let side = 16 / size;
    let all = squares(tile, size).ilog2();
    let log_of_needed = |elements: usize| elements.div_ceil(side).next_power_of_two().ilog2();
    let most_across = log_of_needed(columns);
    let fewest_across = all.saturating_sub(log_of_needed(rows));
    (all / 2).max(fewest_across).min(most_across).min(all)
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
                let kernels = Kernels {
                    wide: [tiles::handle::<u8, 32768>(), tiles::handle::<u8, 8192>()],
                    ragged: [ragged_tiles::handle::<u8, 32768>(), ragged_tiles::handle::<u8, 8192>()],
                    slanted: slanted_tiles::handle::<u8, 32768>(),
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            2 => {
                let kernels = Kernels {
                    wide: [tiles::handle::<u16, 16384>(), tiles::handle::<u16, 4096>()],
                    ragged: [ragged_tiles::handle::<u16, 16384>(), ragged_tiles::handle::<u16, 4096>()],
                    slanted: slanted_tiles::handle::<u16, 16384>(),
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            4 => {
                let kernels = Kernels {
                    wide: [tiles::handle::<u32, 4096>(), tiles::handle::<u32, 1024>()],
                    ragged: [ragged_tiles::handle::<u32, 4096>(), ragged_tiles::handle::<u32, 1024>()],
                    slanted: slanted_tiles::handle::<u32, 4096>(),
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            8 => {
                let kernels = Kernels {
                    wide: [tiles::handle::<u64, 2048>(), tiles::handle::<u64, 512>()],
                    ragged: [ragged_tiles::handle::<u64, 2048>(), ragged_tiles::handle::<u64, 512>()],
                    slanted: slanted_tiles::handle::<u64, 2048>(),
                };
                self.turn(kernels, strides, input.cast(), output.cast())
            }
            _ => {
                // Their accesses are always 16 bytes wide.
                let wide = [tiles::handle::<u128, 1024>(), tiles::handle::<u128, 256>()];
                let slanted = slanted_tiles::handle::<u128, 1024>();
                self.turn(Kernels { wide, ragged: wide, slanted }, strides, input.cast(), output.cast())
            }
        }
    }

    /// Launches the kernel that is best for the shape.
    fn turn<T: Plain>(
        &self,
        kernels: Kernels<T>,
        strides: Strides,
        input: View<'_, T>,
        output: ViewMut<'_, T>,
    ) -> Result<(), Error> {
        let Strides { rows, columns, batch, input_pitch, output_pitch, input_batch, output_batch } = strides;
        let size = size_of::<T>();
        let are_multiples = |bytes: u64, of: &[usize]| {
            (input.device_address() | output.device_address()).is_multiple_of(bytes)
                && of.iter().all(|elements| (elements * size).is_multiple_of(bytes as usize))
        };
        let large = Tiles { elements: elements(size), margin: 0 };
        let small = Tiles { elements: few_elements(size), margin: 0 };
        let slanted = Tiles { elements: elements(size), margin: MARGIN };
        let are_few = |tiles: Tiles| strides.tiles(tiles, size).saturating_mul(batch) < FEW_TILES;
        let is_wide = are_multiples(16, &[rows, columns, input_pitch, output_pitch, input_batch, output_batch]);
        let has_whole_sectors = is_wide && are_multiples(32, &[output_pitch, output_batch]);
        let height = slanted.height(&strides, size);
        let is_slanted = !has_whole_sectors && height > 0 && rows >= SLANTED_TILES * height && !are_few(slanted);
        let (kernel, tiles) = if is_slanted {
            (kernels.slanted, slanted)
        } else {
            let [of_large, of_small] = if is_wide { kernels.wide } else { kernels.ragged };
            if are_few(large) { (of_small, small) } else { (of_large, large) }
        };
        strides.in_grids(tiles, input, output, |grid, across, input, output| {
            let arguments =
                (input, output, rows, columns, input_pitch, output_pitch, input_batch, output_batch, across);
            self.launch(kernel, grid, arguments)
        })
    }
}

/// The kernels of an element's size.
struct Kernels<T: Plain> {
    /// For where all begins at multiples of 16 bytes: for large tiles, and for small ones where there are few.
    wide: [Kernel<TilesParameters<T>>; 2],
    /// For anywhere, likewise.
    ragged: [Kernel<TilesParameters<T>>; 2],
    /// For anywhere, where columns are long.
    slanted: Kernel<TilesParameters<T>>,
}

/// The fewest slanted tiles of a column: with less of them too much of their margins would be outside of the matrix.
const SLANTED_TILES: usize = 4;

/// Tiles of a kind.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    /// Elements of each.
    pub elements: usize,
    /// Rows of squares that each shares with its neighbour above.
    pub margin: u32,
}

impl Tiles {
    /// Rows of each, but for the margin; none if it is no higher than that.
    fn height(self, strides: &Strides, size: usize) -> usize {
        let across = squares_across(strides.rows, strides.columns, self.elements, size);
        let down = squares(self.elements, size) >> across;
        (16 / size) * down.saturating_sub(self.margin as usize)
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

    /// How many tiles of that kind each matrix has.
    fn tiles(&self, tiles: Tiles, size: usize) -> usize {
        let across = squares_across(self.rows, self.columns, tiles.elements, size);
        let rows = if tiles.margin == 0 { self.rows } else { positions(self.rows, size) };
        rows.div_ceil(tiles.height(self, size).max(1)) * self.columns.div_ceil((16 / size) << across)
    }

    /// Calls `launch` with the blocks, the squares across a tile, and the views of as many matrices as a
    /// grid has blocks for, until all have had their turn.
    pub(super) fn in_grids<T: Plain>(
        &self,
        tiles: Tiles,
        input: View<'_, T>,
        mut output: ViewMut<'_, T>,
        mut launch: impl FnMut(u32, u32, View<'_, T>, ViewMut<'_, T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { rows, columns, batch, input_batch, output_batch, .. } = *self;
        let size = size_of::<T>();
        let across = squares_across(rows, columns, tiles.elements, size);
        let blocks_of_matrix = self.tiles(tiles, size);
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
            let across = squares_across(rows, columns, elements(size), size);
            let side = 16 / size;
            ((squares(elements(size), size) * side) >> across, side << across)
        };
        assert_eq!(
            [1, 2, 4, 8, 16].map(|size| tile(9999, 9999, size)),
            [(256, 128), (128, 128), (64, 64), (64, 32), (32, 32)]
        );
        assert_eq!((tile(1 << 24, 16, 4), tile(16, 1 << 24, 4)), ((256, 16), (16, 256)));
        assert_eq!((tile(3, 1_000_033, 4), tile(1_000_033, 3, 4)), ((4, 1024), (1024, 4)));
        assert_eq!((tile(1, 1, 1), tile(1, 1, 16)), ((2048, 16), (1024, 1)));
        assert_eq!(squares_across(9999, 9999, few_elements(1), 1), 2);
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
            .in_grids(Tiles { elements: elements(1), margin: 0 }, input.view(), output.view_mut(), |grid, _, _, _| {
                grids.push(grid);
                Ok(())
            })
            .unwrap();
        assert_eq!(grids, [MOST_BLOCKS as u32, 5]);
    }
}
