//! Transposes by 4-byte accesses, or 8-byte accesses of elements of 8 bytes: for rows that begin at any address, in
//! small matrices and matrices of few rows. [Sector-aligned tiles](crate::transpose::tiled::access::sector_aligned) are
//! for other matrices.
//!
//! A lane moves one word, and neighbouring lanes move neighbouring words. A word has one, two or four elements. With
//! two or four, a thread takes a micro-tile of two or four rows and transposes it in registers.
//!
//! Elements of a word's size are always aligned. For smaller elements, a row of the input is cut out of its aligned
//! words, and in each row of the output a tile ends where a word ends. Rows of the output begin anywhere in a word, so
//! these ends are in different rows of the input, and the tile's upper and lower edges are staggered. A block therefore
//! loads a halo of one more row of micro-tiles than it writes. Only the edges of the matrix have parts of words.
//!
//! For 8191 x 8193 on an H200 this reaches 0.60, 0.65, 0.73 and 0.89 of a copy's speed with 1, 2, 4 and 8 bytes;
//! sector-aligned tiles reach 0.92, 0.95, 0.96 and 0.95.
//!
//! # Bank conflicts
//!
//! The tile is stored transposed, in *slots* of one column each: the first columns of all micro-tiles, then the second
//! ones. In a slot, word `q` lies at index `q ^ swizzle`. Neighbouring lanes store the same word of neighbouring slots,
//! and load neighbouring words of a slot. Both use all 32 banks, except for stores of 1039 x 1041 elements of 1 and 2
//! bytes, which take two passes.

mod input;
mod output;
mod tile;

use cuda_std::prelude::*;
use num_complex::Complex32;

use crate::transpose::launch_dependents;
use crate::transpose::tiled::access::word::{ScaledWordAccess, WordAccess};
use crate::transpose::tiled::block_tile::TileGrid;
use crate::transpose::tiled::epilogue::{Scale, Scaled, Scaling};
use crate::transpose::tiled::kernels::{ScaledTileArgs, TileArgs};
use crate::transpose::tiled::micro_tile::{Unroll, unroll_16};
use crate::transpose::tuning::{NARROW_BLOCK, narrow_tile_words};

use input::{MicroTiles, WordsOfInput};
use output::WordsOfOutput;
use tile::{Inside, Tile};

/// Elements of a word.
pub const fn elements_per_word(size: usize) -> usize {
    if size < 4 { 4 / size } else { 1 }
}

/// Rows of micro-tiles that a tile shares with the tile above it.
pub const fn halo_micro_tiles(size: usize) -> usize {
    if size < 4 { 1 } else { 0 }
}

/// Positions of a row of the output of `rows` elements of `size` bytes, counted from the start of the word in which the
/// row begins.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + elements_per_word(size) - 1
}

/// Transposes a batch of matrices of `rows` x `columns` elements. Rows begin `input_pitch` elements apart in the input
/// and `output_pitch` in the output; matrices begin `input_batch_pitch` and `output_batch_pitch` elements apart.
///
/// `LEN` is [`narrow_tile_words`] of the word's size. A tile is `1 << log2_across` words wide and at least two rows of
/// micro-tiles high; neither side exceeds the block's threads. Each matrix has `tiles_down` x `tiles_across` tiles, and
/// the grid has a block for each tile of each matrix.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8, u16, u32] x [4096 == narrow_tile_words(4, false), 1024 == narrow_tile_words(4, true)]
        + [u64] x [2048 == narrow_tile_words(8, false), 512 == narrow_tile_words(8, true)],
    block = NARROW_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn narrow_tiles<T: WordAccess, const LEN: usize>(
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
    let tile = shared_array![<T as WordAccess>::Word; LEN];
    let shape =
        Tile::of_block::<T, LEN>(rows, columns, TileGrid { log2_across, tiles_down, tiles_across, log2_partitions });
    let words = load_tile::<T, LEN>(&input, shape.batch * input_batch_pitch + shape.left, input_pitch, &shape);
    unroll_16(&MicroTiles::<T, LEN>::of_thread(words, &shape, &tile));
    thread::sync_threads();
    store_tile(&output, shape.batch * output_batch_pitch + shape.left * output_pitch, output_pitch, &shape, &tile);
}

/// [`narrow_tiles`](fn@narrow_tiles) of elements of a word's size, with the
/// [epilogue](crate::transpose::tiled::epilogue) of a [`Scaling`].
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [f32] x [4096 == narrow_tile_words(4, false), 1024 == narrow_tile_words(4, true)]
        + [f64, Complex32] x [2048 == narrow_tile_words(8, false), 512 == narrow_tile_words(8, true)],
    block = NARROW_BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn scaled_narrow_tiles<N: ScaledWordAccess, const LEN: usize>(
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
    }: ScaledTileArgs<<N as ScaledWordAccess>::Word>,
) {
    launch_dependents();
    let tile = shared_array![<N as ScaledWordAccess>::Word; LEN];
    let shape = Tile::of_block::<N::Word, LEN>(
        rows,
        columns,
        TileGrid { log2_across, tiles_down, tiles_across, log2_partitions },
    );
    let words = load_tile::<N::Word, LEN>(&input, shape.batch * input_batch_pitch + shape.left, input_pitch, &shape);
    let epilogue = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    let words = unroll_16(&AfterEpilogue { words, epilogue });
    unroll_16(&MicroTiles::<N::Word, LEN>::of_thread(words, &shape, &tile));
    thread::sync_threads();
    store_tile(&output, shape.batch * output_batch_pitch + shape.left * output_pitch, output_pitch, &shape, &tile);
}

/// Loads the thread's words; the tile's first row begins at `first`.
///
/// A tile inside the matrix has no comparisons, so all loads are issued before the first word arrives, and in
/// [`store_tile`] all stores follow each other. Branches would prevent both.
#[inline(always)]
fn load_tile<T: WordAccess, const LEN: usize>(
    input: &Global<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
) -> [T::Word; 16] {
    let words = WordsOfInput::<T, LEN>::of_thread(input, first, pitch, shape);
    if shape.is_inside::<T>() { unroll_16(&Inside(&words)) } else { unroll_16(&words) }
}

/// Stores the thread's words of the tile, whose first row begins at `first`.
#[inline(always)]
fn store_tile<T: WordAccess, const LEN: usize>(
    output: &GlobalMut<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T::Word, LEN>,
) {
    let words = WordsOfOutput::<T, LEN>::of_thread(output, first, pitch, shape, tile);
    if !shape.is_inside::<T>() {
        unroll_16(&words);
    } else if words.is_written() {
        unroll_16(&Inside(&words));
    }
}

/// Words of one element each, after the epilogue.
struct AfterEpilogue<N: Scale> {
    words: [N::Bits; 16],
    epilogue: Scaled<N>,
}

impl<N: Scale> Unroll for AfterEpilogue<N> {
    type Output = N::Bits;

    #[inline(always)]
    fn value(&self, i: usize) -> N::Bits {
        self.epilogue.apply_to_element(self.words[i])
    }
}
