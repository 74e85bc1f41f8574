use cuda_std::prelude::*;

use super::TransposeArgs;

use super::rung8_tiled_rows::transpose_tile;

/// The same tile, with consecutive blocks along a diagonal of the matrix.
///
/// On GPUs of 2009 memory was split into partitions of 256 bytes by address alone. If the length of a row of the output
/// was a multiple of the combined size of all partitions, blocks that ran at the same time wrote to one partition:
/// partition camping. Along a diagonal they write to all partitions. Today's memory controllers hash addresses, so that
/// nothing is left to save, and the diagonal costs locality. **Counter:** time, which shows the change of hardware.
///
/// Source: past seed 004; Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (NVIDIA, 2009).
#[kernel(instances = [f32], block = [32, 8])]
pub fn diagonal<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let (down, across) = (rows.div_ceil(32) as u32, columns.div_ceil(32) as u32);
    let block = thread::block_idx_x();
    let tile_row = block % down;
    let tile_column = (block / down + tile_row) % across;
    transpose_tile(&input, &output, rows, columns, tile_row as usize * 32, tile_column as usize * 32);
}
