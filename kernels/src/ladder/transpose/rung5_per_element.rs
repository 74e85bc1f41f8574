use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// One thread for each element, straight from input to output.
///
/// The lanes of a warp read neighbours in a row, one 128-byte line for 32 elements. They write down a column, each to
/// its own sector: 4 of the 32 bytes of each stored sector are written. (The block's other warps write the rest of the
/// sector, and the L2 merges some of the writes.) **Counters:** store efficiency (12.5 %), sectors per store request
/// (32, where 4 would do).
///
/// Source: seed 004, "parallel per element".
#[kernel(instances = [f32], block = [32, 32])]
pub fn per_element<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let (top, left) = tile_corner::<32>(columns);
    let row = top + thread::thread_idx_y() as usize;
    let column = left + thread::thread_idx_x() as usize;
    if row < rows && column < columns {
        output.store(column * rows + row, input.load(row * columns + column));
    }
}
