//! The transpose ladder: each rung is a kernel that differs from the previous rung in one thing.
//!
//! Every rung writes the transpose of `input`, `rows` x `columns` in row-major order, to `output`. The two copies write
//! the input itself: they are the ceiling and the floor of a transpose. The grid is one-dimensional, and tiles are
//! counted along the rows: CUDA allows 65535 blocks along y, too few for a tall matrix.
//!
//! [The ladders](super) explain the terms used in each rung's documentation.
//!
//! | rung | changes | removes |
//! |---|---|---|
//! | [`copy_row`](fn@copy_row) | (the ceiling) | |
//! | [`copy_column`](fn@copy_column) | (the floor) | |
//! | [`serial`](fn@serial) | one thread for the whole matrix | |
//! | [`per_row`](fn@per_row) | one thread per row | serial execution |
//! | [`per_element`](fn@per_element) | one thread per element | scattered reads |
//! | [`tiled`](fn@tiled) | the tile is transposed in shared memory | scattered writes |
//! | [`tiled_padded`](fn@tiled_padded) | one column of padding | bank conflicts |
//! | [`tiled_rows`](fn@tiled_rows) | four elements per thread | threads at the barrier |
//! | [`diagonal`](fn@diagonal) | the order of blocks | partition camping (on GPUs of 2009) |
//! | [`vectorized`](fn@vectorized) | 16-byte accesses, transposed in registers | three of four accesses |

mod rung10_vectorized;
mod rung1_copy_row;
mod rung2_copy_column;
mod rung3_serial;
mod rung4_per_row;
mod rung5_per_element;
mod rung6_tiled;
mod rung7_tiled_padded;
mod rung8_tiled_rows;
mod rung9_diagonal;

pub use rung1_copy_row::copy_row;
pub use rung2_copy_column::copy_column;
pub use rung3_serial::serial;
pub use rung4_per_row::per_row;
pub use rung5_per_element::per_element;
pub use rung6_tiled::tiled;
pub use rung7_tiled_padded::tiled_padded;
pub use rung8_tiled_rows::tiled_rows;
pub use rung9_diagonal::diagonal;
pub use rung10_vectorized::{TILE as VECTORIZED_TILE, vectorized};

use cuda_std::prelude::*;

/// The blocks of a launch: tiles of side `tile` that cover `rows` x `columns`.
pub const fn tiles(rows: usize, columns: usize, tile: usize) -> usize {
    rows.div_ceil(tile) * columns.div_ceil(tile)
}

/// The first row and column of the block's tile. Consecutive blocks go along the rows.
#[inline(always)]
fn tile_corner<const TILE: usize>(columns: usize) -> (usize, usize) {
    let across = columns.div_ceil(TILE) as u32;
    let tile = thread::block_idx_x();
    ((tile / across) as usize * TILE, (tile % across) as usize * TILE)
}

/// The arguments of each rung.
#[arguments]
pub struct TransposeArgs<T: Plain> {
    /// The matrix, row by row.
    pub input: Global<T>,
    /// The transpose.
    pub output: GlobalMut<T>,
    /// Rows of the input.
    pub rows: usize,
    /// Columns of the input.
    pub columns: usize,
}
