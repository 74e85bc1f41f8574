//! The transpose ladder: each rung is one kernel that changes one thing of the rung before.
//!
//! Every rung writes the transpose of `input`, `rows` x `columns` in row-major order, to `output`. A block does one square
//! tile. The grid is one-dimensional, tiles counted along the rows: CUDA allows 65535 blocks along y, too few for a tall
//! matrix.
//!
//! | rung | changes | removes |
//! |---|---|---|
//! | [`per_element`](fn@per_element) | | |
//! | [`tiled`](fn@tiled) | a tile in shared memory turns | scattered writes |
//! | [`tiled_padded`](fn@tiled_padded) | one column of padding | bank conflicts |

mod rung1_per_element;
mod rung2_tiled;
mod rung3_tiled_padded;

pub use rung1_per_element::per_element;
pub use rung2_tiled::tiled;
pub use rung3_tiled_padded::tiled_padded;

use cuda_std::prelude::*;

/// Tiles of side `tile` that cover `rows` x `columns`: the blocks of a launch.
pub const fn tiles(rows: usize, columns: usize, tile: usize) -> usize {
    rows.div_ceil(tile) * columns.div_ceil(tile)
}

/// The first row and column of the block's tile.
#[inline(always)]
fn tile_corner<const TILE: usize>(columns: usize) -> (usize, usize) {
    let across = columns.div_ceil(TILE) as u32;
    let tile = thread::block_idx_x();
    ((tile / across) as usize * TILE, (tile % across) as usize * TILE)
}
