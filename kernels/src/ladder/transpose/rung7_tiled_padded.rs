use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// The same tile with one unused column, so that a column lies across the banks.
///
/// A row of 33 words shifts each row's banks by one: the 32 elements of a column are in 32 banks. **Saves:** every bank
/// conflict of a tile of 32; rows of 9 and 17 words still have 2-way ones. **Costs:** `TILE` unused elements.
/// **Counter:** bank conflicts.
///
/// Source: past seed 004, which stops at "shared memory replay overhead is high"; NVIDIA, "An Efficient Matrix
/// Transpose in CUDA C/C++" (2013).
#[kernel(instances = [f32] x [8, 16, 32], block = [TILE, TILE])]
pub fn tiled_padded<T: Element, const TILE: usize>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let tile = shared_tile![T; TILE x TILE + 1];
    let (top, left) = tile_corner::<TILE>(columns);
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);

    if top + y < rows && left + x < columns {
        tile.store(y, x, input.load((top + y) * columns + left + x));
    }
    thread::sync_threads();
    if left + y < columns && top + x < rows {
        output.store((left + y) * rows + top + x, tile.load(x, y));
    }
}
