//! Transposes of square matrices in place.

use cuda_std::prelude::*;

use crate::transpose::tiled::access::{aligned, unaligned};
use crate::transpose::tiled::block_tile::{Tile, micro_tiles, threads};
use crate::transpose::tiled::epilogue::Identity;
use crate::transpose::tiled::micro_tile::Transpose;
use crate::transpose::tiled::row_map::Layout;
use crate::transpose::tuning::{in_place_halves, in_place_side, small_in_place_elements};

/// Elements of a tile, for elements of `size` bytes.
pub const fn elements_of_tile(size: usize) -> usize {
    in_place_side(size) * in_place_side(size)
}

/// The tile on or above the diagonal that block `block` exchanges with its mirror image, as row and column, in a matrix
/// of `tiles` x `tiles` tiles. There are `tiles * (tiles + 1) / 2` such tiles.
///
/// Blocks are counted in a rectangle. For an even number of tiles, row `r` of the rectangle has the `tiles - r` tiles
/// of row `r` of the matrix and the `r + 1` of row `tiles - 1 - r`. For an odd number, it has the tiles of row `r` and
/// the `r` tiles of row `tiles - r`.
pub const fn tile_pair(block: u32, tiles: u32) -> (u32, u32) {
    let is_even = tiles.is_multiple_of(2) as u32;
    let width = tiles + is_even;
    let (row, column) = (block / width, block % width);
    if column >= row + is_even {
        (row, column - is_even)
    } else {
        let other = tiles - row - is_even;
        (other, other + column)
    }
}

/// The arguments of [`in_place_tiles`](fn@in_place_tiles) and [`aligned_in_place_tiles`](fn@aligned_in_place_tiles).
#[arguments]
pub struct InPlaceArgs<T: Plain> {
    /// The matrices.
    pub matrix: GlobalMut<T>,
    /// The rows and columns of a matrix.
    pub side: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Elements from the start of a matrix to that of the next one.
    pub batch_pitch: usize,
}

/// Transposes a batch of matrices of `side` x `side` elements in place. Rows begin `pitch` elements apart, matrices
/// `batch_pitch`. `LEN` is [`elements_of_tile`] of the size.
///
/// A block exchanges two tiles, or transposes one on the diagonal. Both tiles are in shared memory before either is
/// overwritten, and no other block has an element of them. With two [`in_place_halves`], each half of the threads takes
/// one tile. The grid has a block for each [`tile_pair`] of each matrix.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [16384 == elements_of_tile(1)] + [u16] x [4096 == elements_of_tile(2)]
        + [u32] x [4096 == elements_of_tile(4)] + [u64] x [1024 == elements_of_tile(8)],
    block = [threads(LEN, size_of::<T>()), in_place_halves(size_of::<T>())],
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn in_place_tiles<T: Transpose, const LEN: usize>(
    InPlaceArgs { matrix, side, pitch, batch_pitch }: InPlaceArgs<T>,
) {
    let tiles = [shared_array![T; LEN], shared_array![T; LEN]];
    let layout = Layout { pitch, batch_pitch };
    let own = thread::thread_idx_y();
    let are_both_own = in_place_halves(size_of::<T>()) == 1;
    let (half, other) = (Half::new::<T, LEN>(side, own), Half::new::<T, LEN>(side, 1));
    let (tile, other_tile) = (if own == 0 { tiles[0] } else { tiles[1] }, tiles[1]);
    if half.is_needed {
        unaligned::load_tile(&matrix.as_global(), half.shape.rows_of_input(&layout), Identity, &half.shape, &tile);
    }
    if are_both_own && other.is_needed {
        unaligned::load_tile(
            &matrix.as_global(),
            other.shape.rows_of_input(&layout),
            Identity,
            &other.shape,
            &other_tile,
        );
    }
    thread::sync_threads();
    if half.is_needed {
        unaligned::store_tile(&matrix, half.shape.rows_of_output(&layout), &half.shape, &tile);
    }
    if are_both_own && other.is_needed {
        unaligned::store_tile(&matrix, other.shape.rows_of_output(&layout), &other.shape, &other_tile);
    }
}

/// [`in_place_tiles`](fn@in_place_tiles) where sides, pitches and addresses are multiples of 16 bytes. `LEN` is
/// [`elements_of_tile`] of the size, or [`small_in_place_elements`].
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [16384 == elements_of_tile(1), 4096 == small_in_place_elements(1)]
        + [u16] x [4096 == elements_of_tile(2), 1024 == small_in_place_elements(2)]
        + [u32] x [4096 == elements_of_tile(4), 1024 == small_in_place_elements(4)]
        + [u64] x [1024 == elements_of_tile(8)] + [u128] x [1024 == elements_of_tile(16)],
    block = [threads(LEN, size_of::<T>()), 2],
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn aligned_in_place_tiles<T: Transpose, const LEN: usize>(
    InPlaceArgs { matrix, side, pitch, batch_pitch }: InPlaceArgs<T>,
) {
    let tiles = [shared_array![T; LEN], shared_array![T; LEN]];
    let tile = if thread::thread_idx_y() == 0 { tiles[0] } else { tiles[1] };
    let layout = Layout { pitch, batch_pitch };
    let Half { shape, is_needed } = Half::new::<T, LEN>(side, thread::thread_idx_y());
    if is_needed {
        aligned::load_tile(&matrix.as_global(), shape.rows_of_input(&layout), Identity, &shape, &tile);
    }
    thread::sync_threads();
    if is_needed {
        aligned::store_tile(&matrix, shape.rows_of_output(&layout), &shape, &tile);
    }
}

/// The work of half of a block: one of the two tiles that are exchanged.
struct Half {
    shape: Tile,
    /// False for the second half on the diagonal.
    is_needed: bool,
}

impl Half {
    /// For `half` 0 the tile on or above the diagonal, for 1 its mirror image.
    #[inline(always)]
    fn new<T: Transpose, const LEN: usize>(side: usize, half: u32) -> Self {
        let size = size_of::<T>();
        // `LEN` is a power of two and a square.
        let side_of_tile = 1 << (LEN.trailing_zeros() / 2);
        let tiles = side.div_ceil(side_of_tile) as u32;
        let pairs = tiles * (tiles + 1) / 2;
        let block = thread::block_idx_x();
        let (matrix, (row, column)) = (block / pairs, tile_pair(block % pairs, tiles));
        let is_above = half == 0;
        let (down, right) = if is_above { (row, column) } else { (column, row) };
        let log2_across = micro_tiles(LEN, size).trailing_zeros() / 2;
        let corner = (down as usize * side_of_tile, right as usize * side_of_tile);
        let shape = Tile::at(side, side, matrix as usize, corner, (log2_across, log2_across), 16 / size);
        Self { shape, is_needed: is_above || row != column }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn every_pair_of_tiles_has_one_block() {
        for tiles in [1, 2, 3, 4, 5, 8, 31] {
            let pairs: Vec<(u32, u32)> = (0..tiles * (tiles + 1) / 2).map(|block| tile_pair(block, tiles)).collect();
            assert!(pairs.iter().all(|(row, column)| row <= column && *column < tiles), "{tiles}: {pairs:?}");
            assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len(), "{tiles}: {pairs:?}");
        }
    }
}
