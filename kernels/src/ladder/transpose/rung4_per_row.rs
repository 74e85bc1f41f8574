use cuda_std::prelude::*;

use super::TransposeArgs;

/// One thread for each row.
///
/// A warp's lanes read 32 rows side by side: 32 sectors for 128 bytes, though each sector serves the next seven steps
/// too, if the cache keeps it. Their stores are coalesced. **Saves:** latency, since the waits of many threads overlap.
/// **Costs:** seven of eight loaded bytes, and no more threads than rows: the 16 blocks of 4096 rows leave most of a
/// large GPU idle. **Counters:** load efficiency (12.5 %), blocks.
///
/// Source: seed 004, "parallel per row".
#[kernel(instances = [f32], block = 256)]
pub fn per_row<T: Element>(TransposeArgs { input, output, rows, columns }: TransposeArgs<T>) {
    let row = thread::index_1d_wide();
    if row < rows {
        let mut column = 0;
        while column < columns {
            output.store(column * rows + row, input.load(row * columns + column));
            column += 1;
        }
    }
}
