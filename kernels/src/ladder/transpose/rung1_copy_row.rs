use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// The ceiling: copies the matrix, lanes along the rows on both sides.
///
/// A transpose with one element per thread in blocks of 1024 cannot be faster than this kernel, which moves the same
/// elements in order. (Rungs with several elements a thread can be faster; their ceiling is the device's own copy.)
/// **Counters:** load efficiency (100 %), store efficiency (100 %).
///
/// Source: the copy that seed 004 measures by its bandwidth formula; Cheng, "Professional CUDA C Programming", 4.4.
#[kernel(instances = [f32], block = [32, 32])]
pub fn copy_row<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let (top, left) = tile_corner::<32>(columns);
    let row = top + thread::thread_idx_y() as usize;
    let column = left + thread::thread_idx_x() as usize;
    if row < rows && column < columns {
        output.store(row * columns + column, input.load(row * columns + column));
    }
}
