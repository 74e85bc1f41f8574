use cuda_std::prelude::*;

use super::tile_corner;

/// The ceiling: copies the matrix, lanes along the rows on both sides.
///
/// No transpose can be faster than a kernel of the same shape that turns nothing. **Counters:** load and store efficiency
/// 100 %.
///
/// Source: the copy that seed 004 measures by its bandwidth formula; Cheng, "Professional CUDA C Programming", 4.4.
#[kernel(instances = [f32], block = [32, 32])]
pub fn copy_row<T: Element>(input: Global<T>, output: GlobalMut<T>, rows: usize, columns: usize) {
    let (top, left) = tile_corner::<32>(columns);
    let row = top + thread::thread_idx_y() as usize;
    let column = left + thread::thread_idx_x() as usize;
    if row < rows && column < columns {
        output.store(row * columns + column, input.load(row * columns + column));
    }
}
