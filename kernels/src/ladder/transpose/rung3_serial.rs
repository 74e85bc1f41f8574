use cuda_std::prelude::*;

use super::TransposeArgs;

/// One thread transposes the whole matrix.
///
/// A single GPU thread is slow, and no other thread hides its memory latency. **Counters:** blocks (1), lanes active (1
/// of 32).
///
/// Source: seed 004, "serial".
#[kernel(instances = [f32], block = 1)]
pub fn serial<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    if thread::block_idx_x() > 0 {
        return;
    }
    let mut row = 0;
    while row < rows {
        let mut column = 0;
        while column < columns {
            output.store(column * rows + row, input.load(row * columns + column));
            column += 1;
        }
        row += 1;
    }
}
