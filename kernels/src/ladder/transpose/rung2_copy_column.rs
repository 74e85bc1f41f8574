use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// The floor of the kernels with an element a thread: copies the matrix, lanes along the columns on both sides.
///
/// Each lane of a warp is in a row, and so in a 32-byte sector, of its own, in reading and in writing. What makes it
/// bearable is the cache: the sector's other elements are wanted by the block's other warps. **Counters:** load
/// efficiency (12.5 %), store efficiency (12.5 %).
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
