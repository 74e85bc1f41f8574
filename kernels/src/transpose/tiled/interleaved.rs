//! Transposes whose rows are dealt out, on one side: what reverses three axes of which the first or the last is short.
//!
//! An array of `a x b x c` elements is a matrix of `a` rows of `b * c` elements. In its transpose, element `(b, c)` of
//! a row is row `b * c_len + c`; where all axes are reversed, it is row `c * b_len + b`. So rows go to members of
//! groups as cards go to players: consecutive ones to consecutive members, each member keeping what it gets together.
//! With a short axis `c` this loads and writes long stretches, where a transpose for each `b` would load `c` elements
//! at a time. A short axis `a` is dealt in the input.

use cuda_std::prelude::*;

use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::{aligned, unaligned};
use crate::transpose::tiled::block_tile::{Tile, TileGrid, micro_tiles, threads};
use crate::transpose::tiled::epilogue::Identity;
use crate::transpose::tiled::micro_tile::Transpose;
use crate::transpose::tiled::row_map::InterleavedRows;
use crate::transpose::tuning::tile_elements;

/// The arguments of [`interleaved_tiles`](fn@interleaved_tiles) and [`aligned_interleaved_tiles`](fn@aligned_interleaved_tiles).
#[arguments]
pub struct InterleavedArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The transposes.
    pub output: GlobalMut<T>,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// To how many members the rows are dealt.
    pub input_ways: u32,
    /// To how many members the rows of the transpose are dealt.
    pub output_ways: u32,
    /// The binary logarithm of the squares side by side in a tile.
    pub across: u32,
    /// Tiles one below the other.
    pub tiles_down: u32,
    /// Tiles side by side.
    pub tiles_across: u32,
}

/// Writes the transpose of a matrix of `rows` x `columns` elements. The input's rows are dealt to `input_ways`,
/// the output's to `output_ways`: row `i` is the one at place `i % members * (rows / members) + i / members`.
/// Members are at most [`MAX_WAYS`] and divide the rows; 1 is as it is.
///
/// `LEN`, tiles and grid are as of [`tiles`](mod@crate::transpose::tiled::kernels); sides and addresses may be any.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)] + [u32] x [4096 == tile_elements(4)]
        + [u64] x [2048 == tile_elements(8)],
    block = threads(LEN, size_of::<T>()),
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn interleaved_tiles<T: Transpose, const LEN: usize>(
    InterleavedArgs { input, output, rows, columns, input_ways, output_ways, across, tiles_down, tiles_across }: InterleavedArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let grid = TileGrid::in_order(across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size), size);
    let from = InterleavedRows::<false>::new(rows, columns, input_ways, (shape.top, shape.left));
    let to = InterleavedRows::<false>::new(columns, rows, output_ways, (shape.left, shape.top));
    unaligned::load_tile(&input, from, Identity, &shape, &tile);
    thread::sync_threads();
    unaligned::store_tile(&output, to, &shape, &tile);
}

/// [`interleaved_tiles`](fn@interleaved_tiles) whose sides and addresses are multiples of 16 bytes.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)] + [u32] x [4096 == tile_elements(4)]
        + [u64] x [2048 == tile_elements(8)] + [u128] x [1024 == tile_elements(16)],
    block = threads(LEN, size_of::<T>()),
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn aligned_interleaved_tiles<T: Transpose, const LEN: usize>(
    InterleavedArgs { input, output, rows, columns, input_ways, output_ways, across, tiles_down, tiles_across }: InterleavedArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let grid = TileGrid::in_order(across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size), size);
    let from = InterleavedRows::<true>::new(rows, columns, input_ways, (shape.top, shape.left));
    let to = InterleavedRows::<true>::new(columns, rows, output_ways, (shape.left, shape.top));
    aligned::load_tile(&input, from, Identity, &shape, &tile);
    thread::sync_threads();
    aligned::store_tile(&output, to, &shape, &tile);
}
