use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// The floor of the kernels with one element per thread: copies the matrix, lanes along the columns on both sides.
///
/// Each lane of a warp reads and writes in a row of its own, and so in a 32-byte sector of its own. The cache helps:
/// the block's other warps use the sector's other elements. **Counters:** load efficiency (12.5 %), store efficiency
/// (12.5 %).
///
/// Source: as [`copy_row`](fn@super::copy_row).
#[kernel(instances = [f32], block = [32, 32])]
pub fn copy_column<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let (top, left) = tile_corner::<32>(columns);
    let row = top + thread::thread_idx_x() as usize;
    let column = left + thread::thread_idx_y() as usize;
    if row < rows && column < columns {
        output.store(row * columns + column, input.load(row * columns + column));
    }
}
