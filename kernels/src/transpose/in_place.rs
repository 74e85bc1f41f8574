//! Transposes of squares where they are.

use cuda_std::prelude::*;

use super::change::Same;
use super::ragged;
use super::tile::{Layout, Tile, squares, threads};
use super::turn::Turn;

/// Elements of a tile, which is square, by their size: up to 16 KiB.
pub const fn elements(size: usize) -> usize {
    let side = side(size);
    side * side
}

/// Elements along the side of such a tile.
pub const fn side(size: usize) -> usize {
    match size {
        1 => 128,
        2 | 4 => 64,
        _ => 32,
    }
}

/// The tiles that block `block` exchanges, as row and column of the one on or above the diagonal, of a square of `tiles` x
/// `tiles` of them. There are `tiles * (tiles + 1) / 2`.
///
/// They are counted in a rectangle. Of an even number of tiles, row `r` of the rectangle has the `tiles - r` of row `r` of
/// the square and the `r + 1` of row `tiles - 1 - r`; of an odd number, those of row `r` and the `r` of row `tiles - r`.
pub const fn pair(block: u32, tiles: u32) -> (u32, u32) {
    let is_even = tiles.is_multiple_of(2) as u32;
    let width = tiles + is_even;
    let (row, place) = (block / width, block % width);
    if place >= row + is_even {
        (row, place - is_even)
    } else {
        let other = tiles - row - is_even;
        (other, other + place)
    }
}

/// Transposes matrices of `side` x `side` elements, whose rows begin `pitch` elements and which begin `batch` elements apart,
/// where they are. `LEN` is [`elements`] of the size.
///
/// A block takes two tiles that change places, or one on the diagonal: both are in shared memory before either is
/// overwritten, and no other block has an element of them. The grid has a block for each [`pair`] of each matrix.
#[kernel(
    instances = [u8] x [16384] + [u16] x [4096] + [u32] x [4096] + [u64] x [1024] + [u128] x [1024],
    block = threads(LEN, size_of::<T>()),
    early
)]
pub fn square_tiles<T: Turn, const LEN: usize>(matrix: GlobalMut<T>, side: usize, pitch: usize, batch: usize) {
    let (one, other) = (shared_array![T; LEN], shared_array![T; LEN]);
    let size = size_of::<T>();
    let layout = Layout { pitch, batch };
    let tiles = side.div_ceil(self::side(size)) as u32;
    let pairs = tiles * (tiles + 1) / 2;
    let block = thread::block_idx_x();
    let (matrix_number, (row, column)) = (block / pairs, pair(block % pairs, tiles));
    let across = squares(LEN, size).trailing_zeros() / 2;
    let tile_at = |row: u32, column: u32| {
        let first = |tile: u32| tile as usize * self::side(size);
        Tile::at(side, side, matrix_number as usize, (first(row), first(column)), (across, across), 16 / size)
    };
    let (above, below) = (tile_at(row, column), tile_at(column, row));

    ragged::load_tile(&matrix.as_global(), &layout, Same, &above, &one);
    if row != column {
        ragged::load_tile(&matrix.as_global(), &layout, Same, &below, &other);
    }
    thread::sync_threads();
    ragged::store_tile(&matrix, &layout, &above, &one);
    if row != column {
        ragged::store_tile(&matrix, &layout, &below, &other);
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
            let pairs: Vec<(u32, u32)> = (0..tiles * (tiles + 1) / 2).map(|block| pair(block, tiles)).collect();
            assert!(pairs.iter().all(|(row, column)| row <= column && *column < tiles), "{tiles}: {pairs:?}");
            assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len(), "{tiles}: {pairs:?}");
        }
    }
}
