use cuda_std::prelude::*;

use super::{TransposeArgs, tile_corner};

/// A block reads a tile row by row, transposes it in shared memory, and writes it row by row.
///
/// Both global accesses are now along rows. The scattered access is the read of shared memory: the lanes of a warp take
/// a column of the tile, and in a tile of 32 x 32 words a column is one bank. **Saves:** scattered stores. **Costs:** a
/// barrier, and bank conflicts, 32-way at `TILE` = 32. Smaller tiles conflict less and wait less at the barrier, but
/// their rows are shorter than a 128-byte line. **Counters:** store efficiency (100 %), bank conflicts.
///
/// Source: seed 004, `transpose_parallel_per_element_tiled` (its `K`).
#[kernel(instances = [f32] x [8, 16, 32], block = [TILE, TILE])]
pub fn tiled<T: Element, const TILE: usize>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let tile = shared_tile![T; TILE x TILE];
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
