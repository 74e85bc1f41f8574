//! Transposes with interleaved rows on one side: three axes reversed, of which the first or the last is short.
//!
//! An array of `a x b x c` elements is a matrix of `a` rows of `b * c` elements. Its transpose has element `(b, c)` in
//! row `b * c_len + c`; the array with its axes reversed has it in row `c * b_len + b`. So the rows of the output are
//! interleaved `c_len` ways: consecutive rows go to consecutive ways, and the rows of a way are contiguous. With a
//! short axis `c`, this loads and stores long parts of rows, where a transpose for each `b` would load `c` elements at
//! a time. For a short axis `a`, the rows of the input are interleaved.

use cuda_std::prelude::*;

use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::{aligned, unaligned};
use crate::transpose::tiled::block_tile::{Tile, TileGrid, micro_tiles, threads};
use crate::transpose::tiled::epilogue::Identity;
use crate::transpose::tiled::micro_tile::Transpose;
use crate::transpose::tiled::row_map::InterleavedRows;
use crate::transpose::tuning::tile_elements;

/// The arguments of [`interleaved_tiles`](fn@interleaved_tiles) and
/// [`aligned_interleaved_tiles`](fn@aligned_interleaved_tiles).
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
    /// The ways of the input's rows; 1 if they are not interleaved.
    pub input_ways: u32,
    /// The ways of the output's rows.
    pub output_ways: u32,
    /// The base-2 logarithm of the micro-tiles across a tile.
    pub log2_across: u32,
    /// Tiles down the matrix.
    pub tiles_down: u32,
    /// Tiles across the matrix.
    pub tiles_across: u32,
}

/// Transposes a matrix of `rows` x `columns` elements, with the input's rows interleaved `input_ways` ways and the
/// output's `output_ways`. Row `i` is at index `i % ways * (rows / ways) + i / ways`. The ways divide the rows and are
/// at most [`MAX_WAYS`](super::row_map::MAX_WAYS).
///
/// `LEN`, tiles and grid are those of [`tiles`](mod@crate::transpose::tiled::kernels). Sides and addresses are
/// arbitrary.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)]
        + [u32] x [4096 == tile_elements(4)] + [u64] x [2048 == tile_elements(8)],
    block = threads(LEN, size_of::<T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn interleaved_tiles<T: Transpose, const LEN: usize>(
    InterleavedArgs {
        input,
        output,
        rows,
        columns,
        input_ways,
        output_ways,
        log2_across,
        tiles_down,
        tiles_across,
    }: InterleavedArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let grid = TileGrid::in_order(log2_across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size), size);
    let from = InterleavedRows::<false>::new(rows, columns, input_ways, (shape.top, shape.left));
    let to = InterleavedRows::<false>::new(columns, rows, output_ways, (shape.left, shape.top));
    unaligned::load_tile(&input, from, Identity, &shape, &tile);
    thread::sync_threads();
    unaligned::store_tile(&output, to, &shape, &tile);
}

/// [`interleaved_tiles`](fn@interleaved_tiles) where sides and addresses are multiples of 16 bytes.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)]
        + [u32] x [4096 == tile_elements(4)] + [u64] x [2048 == tile_elements(8)]
        + [u128] x [1024 == tile_elements(16)],
    block = threads(LEN, size_of::<T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn aligned_interleaved_tiles<T: Transpose, const LEN: usize>(
    InterleavedArgs {
        input,
        output,
        rows,
        columns,
        input_ways,
        output_ways,
        log2_across,
        tiles_down,
        tiles_across,
    }: InterleavedArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let size = size_of::<T>();
    let grid = TileGrid::in_order(log2_across, tiles_down, tiles_across);
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size), size);
    let from = InterleavedRows::<true>::new(rows, columns, input_ways, (shape.top, shape.left));
    let to = InterleavedRows::<true>::new(columns, rows, output_ways, (shape.left, shape.top));
    aligned::load_tile(&input, from, Identity, &shape, &tile);
    thread::sync_threads();
    aligned::store_tile(&output, to, &shape, &tile);
}
