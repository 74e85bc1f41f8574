//! Transposes by 16-byte accesses, of elements of 1 to 16 bytes: what the library launches for large matrices.
//!
//! A block transposes a [tile](crate::transpose::tiled::block_tile) of
//! [micro-tiles](crate::transpose::tiled::micro_tile), squares whose rows are one 16-byte vector. Powers of two are
//! passed as base-2 logarithms, so that the kernel shifts and masks instead of dividing.

use cuda_std::prelude::*;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::sector_aligned;
use crate::transpose::tiled::access::{aligned, unaligned};
use crate::transpose::tiled::block_tile::{Tile, TileGrid, micro_tiles, threads};
use crate::transpose::tiled::epilogue::{Identity, Scale, Scaled, Scaling};
use crate::transpose::tiled::micro_tile::Transpose;
use crate::transpose::tiled::row_map::Layout;
use crate::transpose::tuning::{
    blocks_in_many_waves, blocks_in_one_wave, blocks_of_small_tiles, small_tile_elements, tile_elements,
};

/// The arguments of [`tiles`](fn@tiles), [`sector_aligned_tiles`](fn@sector_aligned_tiles) and
/// [`narrow_tiles`](fn@crate::transpose::tiled::narrow::narrow_tiles).
#[arguments]
pub struct TileArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The transposes.
    pub output: GlobalMut<T>,
    /// Rows of a matrix of the input. The host transposes a very tall matrix as a batch of panels of its rows.
    pub rows: usize,
    /// Columns of a matrix of the input.
    pub columns: usize,
    /// Elements from the start of a row of the input to that of the next one.
    pub input_pitch: usize,
    /// Elements from the start of a row of the output to that of the next one.
    pub output_pitch: usize,
    /// Elements from the start of a matrix of the input to that of the next one.
    pub input_batch_pitch: usize,
    /// Elements from the start of a matrix of the output to that of the next one.
    pub output_batch_pitch: usize,
    /// The base-2 logarithm of the micro-tiles across a tile.
    pub log2_across: u32,
    /// Tiles down a matrix. Sector-aligned and narrow tiles begin at a sector or word of the output, so there may be
    /// one more than the rows fill.
    pub tiles_down: u32,
    /// Tiles across a matrix.
    pub tiles_across: u32,
    /// The base-2 logarithm of the number of parts, about equally wide, into which the columns of tiles are divided.
    /// Blocks take a column of tiles of each part in turn. 0, one part, for most pitches;
    /// [`LOG2_PARTITIONED_PITCHES`](crate::transpose::tuning::LOG2_PARTITIONED_PITCHES) has the others.
    pub log2_partitions: u32,
}

/// Transposes a batch of matrices of `rows` x `columns` elements. Rows begin `input_pitch` elements apart in the input
/// and `output_pitch` in the output; matrices begin `input_batch_pitch` and `output_batch_pitch` elements apart.
///
/// `LEN` is [`tile_elements`] or [`small_tile_elements`] of the element's size. A
/// [tile](crate::transpose::tiled::block_tile) is `1 << log2_across` micro-tiles wide. Each matrix has `tiles_down` x
/// `tiles_across` tiles, in `1 << log2_partitions` partitions that are traversed round-robin.
///
/// `BLOCKS` is the kernel's `min_blocks`: [`blocks_in_many_waves`], [`blocks_in_one_wave`] or
/// [`blocks_of_small_tiles`].
///
/// All accesses are 16 bytes wide, so sides, pitches and addresses must be multiples of 16 bytes. Each thread of a
/// large tile has 64 bytes or more in flight. A thread transposes its micro-tiles in registers, small elements by
/// permuting bytes.
///
/// The grid has a block for each tile of each matrix.
///
/// Source: the tile in shared memory, Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009); the XOR
/// in place of a column of padding, so that 16-byte accesses stay aligned, is common.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] x [5 == blocks_in_one_wave(1)]
        + [u16] x [16384 == tile_elements(2)] x [4 == blocks_in_many_waves(2, false), 5 == blocks_in_one_wave(2)]
        + [u32] x [4096 == tile_elements(4)] x [4 == blocks_in_many_waves(4, true), 8 == blocks_in_one_wave(4)]
        + [u64] x [2048 == tile_elements(8)] x [4 == blocks_in_many_waves(8, true), 8 == blocks_in_one_wave(8)]
        + [u128] x [1024 == tile_elements(16)] x [4 == blocks_in_many_waves(16, true), 8 == blocks_in_one_wave(16)]
        + [u8] x [8192 == small_tile_elements(1)] x [10 == blocks_of_small_tiles(1)]
        + [u16] x [4096 == small_tile_elements(2)] x [8 == blocks_of_small_tiles(2)]
        + [u32] x [1024 == small_tile_elements(4)] x [32 == blocks_of_small_tiles(4)]
        + [u64] x [512 == small_tile_elements(8)] x [16 == blocks_of_small_tiles(8)]
        + [u128] x [256 == small_tile_elements(16)] x [8 == blocks_of_small_tiles(16)],
    block = threads(LEN, size_of::<T>()),
    min_blocks = BLOCKS,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn tiles<T: Transpose, const LEN: usize, const BLOCKS: usize>(
    TileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        log2_across,
        tiles_down,
        tiles_across,
        log2_partitions,
    }: TileArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let grid = TileGrid { log2_across, tiles_down, tiles_across, log2_partitions };
    let from = Layout { pitch: input_pitch, batch_pitch: input_batch_pitch };
    let to = Layout { pitch: output_pitch, batch_pitch: output_batch_pitch };
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size_of::<T>()), size_of::<T>());
    aligned::load_tile(&input, shape.rows_of_input(&from), Identity, &shape, &tile);
    thread::sync_threads();
    aligned::store_tile(&output, shape.rows_of_output(&to), &shape, &tile);
}

/// [`tiles`](fn@tiles) for any side, pitch and address, if there are many tiles: by [sector-aligned](sector_aligned)
/// tiles. Neighbouring tiles overlap, so that each writes whole sectors: a tile loads 64 x 64 `f32`, and writes 56 of
/// the rows and 60 of the columns. A matrix of 8191 x 8193 has 147 tiles down and 137 across. The grid covers the
/// [positions](sector_aligned::positions) of a row of the output.
///
/// # Safety
/// The arguments are as described for [`tiles`](fn@tiles), and the views have every element that they name: accesses
/// are unchecked.
#[kernel(
    instances = [u8] x [32768 == tile_elements(1)] + [u16] x [16384 == tile_elements(2)]
        + [u32] x [4096 == tile_elements(4)] + [u64] x [2048 == tile_elements(8)],
    block = sector_aligned::threads(LEN, size_of::<T>()),
    min_blocks = crate::transpose::tuning::sector_aligned_min_blocks(size_of::<T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn sector_aligned_tiles<T: Transpose, const LEN: usize>(
    TileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        log2_across,
        tiles_down,
        tiles_across,
        log2_partitions,
    }: TileArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let grid = TileGrid { log2_across, tiles_down, tiles_across, log2_partitions };
    let from = Layout { pitch: input_pitch, batch_pitch: input_batch_pitch };
    let to = Layout { pitch: output_pitch, batch_pitch: output_batch_pitch };
    let size = size_of::<T>();
    let shape = sector_aligned::tile_of_block(rows, columns, grid, LEN, size);
    sector_aligned::load_tile(&input, (rows, columns), &from, Identity, &shape, &tile);
    thread::sync_threads();
    sector_aligned::store_tile(&output, rows, &to, &shape, &tile);
}

/// The arguments of the kernels with an epilogue: [`scaled_tiles`](fn@scaled_tiles),
/// [`aligned_scaled_tiles`](fn@aligned_scaled_tiles), [`sector_aligned_scaled_tiles`](fn@sector_aligned_scaled_tiles)
/// and [`scaled_narrow_tiles`](fn@crate::transpose::tiled::narrow::scaled_narrow_tiles).
#[arguments]
pub struct ScaledTileArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The transposes.
    pub output: GlobalMut<T>,
    /// Rows of a matrix of the input. The host transposes a very tall matrix as a batch of panels of its rows.
    pub rows: usize,
    /// Columns of a matrix of the input.
    pub columns: usize,
    /// Elements from the start of a row of the input to that of the next one.
    pub input_pitch: usize,
    /// Elements from the start of a row of the output to that of the next one.
    pub output_pitch: usize,
    /// Elements from the start of a matrix of the input to that of the next one.
    pub input_batch_pitch: usize,
    /// Elements from the start of a matrix of the output to that of the next one.
    pub output_batch_pitch: usize,
    /// The base-2 logarithm of the micro-tiles across a tile.
    pub log2_across: u32,
    /// Tiles down a matrix. Sector-aligned and narrow tiles cover the positions of a row of the output: its elements,
    /// and those of the sector or word in which it may begin.
    pub tiles_down: u32,
    /// Tiles across a matrix.
    pub tiles_across: u32,
    /// The base-2 logarithm of the number of partitions, parts of equal width of a matrix of the input. Consecutive
    /// blocks take a column of tiles from each partition in turn, if the pitch is one of
    /// [`LOG2_PARTITIONED_PITCHES`](crate::transpose::tuning::LOG2_PARTITIONED_PITCHES); otherwise there is one
    /// partition.
    pub log2_partitions: u32,
    /// The operations on each element: see [`Scaling`].
    pub operations: u32,
    /// The real part of the factor.
    pub real: f64,
    /// The imaginary part of the factor.
    pub imaginary: f64,
}

/// [`tiles`](fn@tiles) for any side, pitch and address, of elements of 2 bytes, with the
/// [epilogue](crate::transpose::tiled::epilogue) of a [`Scaling`].
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [f16, bf16] x [16384 == tile_elements(2)],
    block = threads(LEN, size_of::<N>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn scaled_tiles<N: Scale, const LEN: usize>(
    ScaledTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        log2_across,
        tiles_down,
        tiles_across,
        log2_partitions,
        operations,
        real,
        imaginary,
    }: ScaledTileArgs<<N as Scale>::Bits>,
) {
    launch_dependents();
    let tile = shared_array![<N as Scale>::Bits; LEN];
    let grid = TileGrid { log2_across, tiles_down, tiles_across, log2_partitions };
    let from = Layout { pitch: input_pitch, batch_pitch: input_batch_pitch };
    let to = Layout { pitch: output_pitch, batch_pitch: output_batch_pitch };
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size_of::<N>()), size_of::<N>());
    let epilogue = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    unaligned::load_tile(&input, shape.rows_of_input(&from), epilogue, &shape, &tile);
    thread::sync_threads();
    unaligned::store_tile(&output, shape.rows_of_output(&to), &shape, &tile);
}

/// [`scaled_tiles`](fn@scaled_tiles) where [`tiles`](fn@tiles) applies: sides, pitches and addresses are multiples of
/// 16 bytes.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [f16, bf16] x [16384 == tile_elements(2)] + [f32] x [4096 == tile_elements(4)]
        + [f64, Complex32] x [2048 == tile_elements(8)] + [Complex64] x [1024 == tile_elements(16)],
    block = threads(LEN, size_of::<N>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn aligned_scaled_tiles<N: Scale, const LEN: usize>(
    ScaledTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        log2_across,
        tiles_down,
        tiles_across,
        log2_partitions,
        operations,
        real,
        imaginary,
    }: ScaledTileArgs<<N as Scale>::Bits>,
) {
    launch_dependents();
    let tile = shared_array![<N as Scale>::Bits; LEN];
    let grid = TileGrid { log2_across, tiles_down, tiles_across, log2_partitions };
    let from = Layout { pitch: input_pitch, batch_pitch: input_batch_pitch };
    let to = Layout { pitch: output_pitch, batch_pitch: output_batch_pitch };
    let shape = Tile::of_block(rows, columns, grid, micro_tiles(LEN, size_of::<N>()), size_of::<N>());
    let epilogue = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    aligned::load_tile(&input, shape.rows_of_input(&from), epilogue, &shape, &tile);
    thread::sync_threads();
    aligned::store_tile(&output, shape.rows_of_output(&to), &shape, &tile);
}

/// [`scaled_tiles`](fn@scaled_tiles) where [`sector_aligned_tiles`](fn@sector_aligned_tiles) applies.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [f16, bf16] x [16384 == tile_elements(2)] + [f32] x [4096 == tile_elements(4)]
        + [f64, Complex32] x [2048 == tile_elements(8)],
    block = sector_aligned::threads(LEN, size_of::<N>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn sector_aligned_scaled_tiles<N: Scale, const LEN: usize>(
    ScaledTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        log2_across,
        tiles_down,
        tiles_across,
        log2_partitions,
        operations,
        real,
        imaginary,
    }: ScaledTileArgs<<N as Scale>::Bits>,
) {
    launch_dependents();
    let tile = shared_array![<N as Scale>::Bits; LEN];
    let grid = TileGrid { log2_across, tiles_down, tiles_across, log2_partitions };
    let from = Layout { pitch: input_pitch, batch_pitch: input_batch_pitch };
    let to = Layout { pitch: output_pitch, batch_pitch: output_batch_pitch };
    let size = size_of::<N>();
    let shape = sector_aligned::tile_of_block(rows, columns, grid, LEN, size);
    let epilogue = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    sector_aligned::load_tile(&input, (rows, columns), &from, epilogue, &shape, &tile);
    thread::sync_threads();
    sector_aligned::store_tile(&output, rows, &to, &shape, &tile);
}
