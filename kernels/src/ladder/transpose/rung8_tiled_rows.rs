use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// The padded tile, by a quarter of the threads: 32 x 8, each of which moves four elements.
///
/// Seed 004 sees that 1024 threads wait at the barrier for the slowest of them, with one load each in flight, and makes
/// the tile smaller. Here the tile stays and the block shrinks: a thread has four independent loads in flight, eight
/// blocks of 256 threads fit on a multiprocessor instead of two of 1024, and four elements share the index arithmetic.
/// **Saves:** time at the barrier. **Counters:** bytes in flight, resident blocks.
///
/// Source: past seed 004, from its section on Little's law; NVIDIA, "An Efficient Matrix Transpose in CUDA C/C++"
/// (2013).
#[kernel(instances = [f32], block = [32, 8])]
pub fn tiled_rows<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let (top, left) = tile_corner::<32>(columns);
    transpose_tile(&input, &output, rows, columns, top, left);
}

/// Transposes the tile of 32 x 32 whose corner is at row `top` and column `left`, by a block of 32 x 8.
#[inline(always)]
pub(super) fn transpose_tile<T: Element>(
    input: &Global<T>,
    output: &GlobalMut<T>,
    rows: usize,
    columns: usize,
    top: usize,
    left: usize,
) {
    const TILE: usize = 32;
    const THREADS_Y: usize = 8;
    let tile = shared_tile![T; TILE x TILE + 1];
    let (x, y) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);

    // The number of iterations is constant, so that the compiler unrolls the loop and issues all four loads before the
    // first store.
    let mut loaded = [T::default(); TILE / THREADS_Y];
    let mut k = 0;
    while k < loaded.len() {
        let row = top + y + k * THREADS_Y;
        if row < rows && left + x < columns {
            loaded[k] = input.load(row * columns + left + x);
        }
        k += 1;
    }
    let mut k = 0;
    while k < loaded.len() {
        tile.store(y + k * THREADS_Y, x, loaded[k]);
        k += 1;
    }
    thread::sync_threads();
    let mut k = 0;
    while k < loaded.len() {
        let row = left + y + k * THREADS_Y;
        if row < columns && top + x < rows {
            output.store(row * rows + top + x, tile.load(x, y + k * THREADS_Y));
        }
        k += 1;
    }
}
