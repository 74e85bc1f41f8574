//! Transposes of small matrices in registers.
//!
//! A small matrix takes about the time of one load, so the launch is bound by latency, not bandwidth. There is no tile
//! in shared memory and no barrier: a thread loads a small micro-tile (for bytes, two side by side), transposes it, and
//! stores it. For larger matrices tiles in shared memory are faster, because their rows are longer on both sides.

use cuda_std::bits::permute_bytes;
use cuda_std::prelude::*;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::transpose::tiled::epilogue::{Scale, Scaled, Scaling};
use crate::transpose::tiled::micro_tile::{Transpose, transpose_bytes};
use crate::transpose::tuning::{
    REGISTER_TILES_ACROSS, REGISTER_TILES_BLOCK, SMALL_REGISTER_TILES_BLOCK, register_tiles_across_warp,
};

/// Rows of a micro-tile: four, or the elements of 16 bytes if those are fewer.
pub const fn rows(size: usize) -> usize {
    if size < 4 { 4 } else { 16 / size }
}

/// Columns of a micro-tile: the number of rows, or twice that number for bytes, which then need no more accesses than
/// elements of 2 bytes.
pub const fn columns(size: usize) -> usize {
    if size == 1 { 8 } else { rows(size) }
}

/// An element whose micro-tiles are loaded a row at a time and stored a column at a time.
pub trait RegisterTile: Element {
    /// A row of a micro-tile.
    type Row: Copy;
    /// A column of a micro-tile.
    type Column: Copy;

    /// The row that begins at element `i`.
    ///
    /// # Safety
    /// All of it is inside the view, and its address is a multiple of its size.
    unsafe fn load(input: &Global<'_, Self>, i: usize) -> Self::Row;

    /// Writes a column from element `i` on.
    ///
    /// # Safety
    /// As of [`RegisterTile::load`].
    unsafe fn store(output: &GlobalMut<'_, Self>, i: usize, column: Self::Column);

    /// The columns of the micro-tile with these rows. Rows and columns past the micro-tile's are unspecified.
    fn transpose(micro_tile: [Self::Row; 4]) -> [Self::Column; 8];

    /// The column with a function applied to each element.
    fn map(column: Self::Column, function: impl Fn(Self) -> Self) -> Self::Column;
}

macro_rules! by_words {
    ($type:ident in $row:ident, $word:ident: |$micro_tile:ident| $transposed:expr) => {
        impl RegisterTile for $type {
            type Row = $row;
            type Column = $word;

            #[inline(always)]
            unsafe fn load(input: &Global<'_, Self>, i: usize) -> $row {
                // SAFETY: as promised by the caller.
                unsafe { input.load_aligned_word_unchecked(i) }
            }

            #[inline(always)]
            unsafe fn store(output: &GlobalMut<'_, Self>, i: usize, column: $word) {
                // SAFETY: as promised by the caller.
                unsafe { output.store_word_unchecked(i, column, 0, 4) };
            }

            #[inline(always)]
            fn transpose($micro_tile: [$row; 4]) -> [$word; 8] {
                $transposed
            }

            #[inline(always)]
            fn map(column: $word, function: impl Fn(Self) -> Self) -> $word {
                let mapped = |i: u32| $word::from(function((column >> (i * Self::BITS)) as Self)) << (i * Self::BITS);
                mapped(0) | mapped(1) | mapped(2) | mapped(3)
            }
        }
    };
}

by_words!(u8 in u64, u32: |micro_tile| {
    let left = transpose_bytes(micro_tile.map(|row| row as u32));
    let right = transpose_bytes(micro_tile.map(|row| (row >> 32) as u32));
    eight(left, right)
});
by_words!(u16 in u64, u64: |micro_tile| {
    let columns = transpose_halves(micro_tile);
    eight(columns, columns)
});

#[inline(always)]
fn eight<C: Copy>([a, b, c, d]: [C; 4], [e, f, g, h]: [C; 4]) -> [C; 8] {
    [a, b, c, d, e, f, g, h]
}

/// Transposes four rows of four 2-byte elements.
#[inline(always)]
fn transpose_halves([a, b, c, d]: [u64; 4]) -> [u64; 4] {
    let row = |[a, b, c, d]: [u32; 4], halves: u32| {
        u64::from(permute_bytes(a, b, halves)) | u64::from(permute_bytes(c, d, halves)) << 32
    };
    let (low, high) = ([a, b, c, d].map(|x| x as u32), [a, b, c, d].map(|x| (x >> 32) as u32));
    [row(low, 0x5410), row(low, 0x7632), row(high, 0x5410), row(high, 0x7632)]
}

macro_rules! by_vectors {
    ($($type:ident),*) => {$(
        impl RegisterTile for $type {
            type Row = <Self as Element>::Vector;
            type Column = Self::Row;

            #[inline(always)]
            unsafe fn load(input: &Global<'_, Self>, i: usize) -> Self::Row {
                // SAFETY: as promised by the caller.
                unsafe { input.load_vector_unchecked(i) }
            }

            #[inline(always)]
            unsafe fn store(output: &GlobalMut<'_, Self>, i: usize, column: Self::Row) {
                // SAFETY: as promised by the caller.
                unsafe { output.store_vector_unchecked(i, column) };
            }

            #[inline(always)]
            fn transpose([a, b, c, d]: [Self::Row; 4]) -> [Self::Row; 8] {
                let [a, b, c, d, ..] = <Self as Transpose>::transpose([a, b, c, d, a, b, c, d, a, b, c, d, a, b, c, d]);
                eight([a, b, c, d], [a, b, c, d])
            }

            #[inline(always)]
            fn map(column: Self::Row, function: impl Fn(Self) -> Self) -> Self::Row {
                let mut column = column;
                let mut i = 0;
                while i < Self::Row::LEN {
                    column = column.with(i, function(column.get(i)));
                    i += 1;
                }
                column
            }
        }
    )*};
}

by_vectors!(u32, u64, u128);

/// Transposes a batch of matrices of `rows` x `columns` elements. Rows begin `input_pitch` elements apart in the input
/// and `output_pitch` in the output; matrices begin `input_batch_pitch` and `output_batch_pitch` elements apart. Sides,
/// pitches and addresses are multiples of 16 bytes.
///
/// A block takes [`REGISTER_TILES_ACROSS`] micro-tiles of [`rows()`] x [`columns()`] elements across, and one down for
/// each row of threads. The grid covers a matrix in x and y, and the batch in z.
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [u8, u16, u32, u64, u128] x [128 == SMALL_REGISTER_TILES_BLOCK, 256 == REGISTER_TILES_BLOCK],
    block = BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn register_tiles<T: RegisterTile, const BLOCK: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: u32,
    input_pitch: usize,
    output_pitch: usize,
    input_batch_pitch: usize,
    output_batch_pitch: usize,
) {
    let layout = Layout { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch };
    transpose_micro_tile::<T, BLOCK>(&input, &output, &layout, |column| column);
}

/// The arguments of [`scaled_register_tiles`](fn@scaled_register_tiles).
#[arguments]
pub struct ScaledRegisterTileArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The transposes.
    pub output: GlobalMut<T>,
    /// Rows of a matrix of the input.
    pub rows: u32,
    /// Columns of a matrix of the input.
    pub columns: u32,
    /// Elements from the start of a row of the input to that of the next one.
    pub input_pitch: usize,
    /// Elements from the start of a row of the output to that of the next one.
    pub output_pitch: usize,
    /// Elements from the start of a matrix of the input to that of the next one.
    pub input_batch_pitch: usize,
    /// Elements from the start of a matrix of the output to that of the next one.
    pub output_batch_pitch: usize,
    /// The operations on each element: see [`Scaling`].
    pub operations: u32,
    /// The real part of the factor.
    pub real: f64,
    /// The imaginary part of the factor.
    pub imaginary: f64,
}

/// [`register_tiles`](fn@register_tiles) with the [epilogue](crate::transpose::tiled::epilogue) of a [`Scaling`].
///
/// # Safety
/// The arguments are as described above, and the views have every element that they name: accesses are unchecked.
#[kernel(
    instances = [f16, bf16, f32, f64, Complex32, Complex64]
        x [128 == SMALL_REGISTER_TILES_BLOCK, 256 == REGISTER_TILES_BLOCK],
    block = BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn scaled_register_tiles<N: Scale<Bits: RegisterTile>, const BLOCK: usize>(
    ScaledRegisterTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch_pitch,
        output_batch_pitch,
        operations,
        real,
        imaginary,
    }: ScaledRegisterTileArgs<<N as Scale>::Bits>,
) {
    let layout = Layout { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch };
    let scaled = Scaled::<N>::new(Scaling { factor: [real, imaginary], operations });
    transpose_micro_tile::<N::Bits, BLOCK>(&input, &output, &layout, |column| {
        N::Bits::map(column, |x| scaled.apply_to_element(x))
    });
}

/// The shape and strides of a batch of matrices.
struct Layout {
    rows: u32,
    columns: u32,
    input_pitch: usize,
    output_pitch: usize,
    input_batch_pitch: usize,
    output_batch_pitch: usize,
}

/// Transposes this thread's micro-tile and applies the epilogue to its columns.
#[inline(always)]
fn transpose_micro_tile<T: RegisterTile, const BLOCK: usize>(
    input: &Global<T>,
    output: &GlobalMut<T>,
    layout: &Layout,
    epilogue: impl Fn(T::Column) -> T::Column,
) {
    thread::launch_dependents();
    let Layout { rows, columns, input_pitch, output_pitch, input_batch_pitch, output_batch_pitch } = *layout;
    let size = size_of::<T>();
    let (high, wide, lanes) = (self::rows(size), self::columns(size), register_tiles_across_warp(size) as u32);
    let thread = thread::index_in_block::<BLOCK>() as u32;
    let (lane, warp, warps) = (thread % 32, thread / 32, REGISTER_TILES_ACROSS as u32 / lanes);
    let x = thread::block_idx_x() * REGISTER_TILES_ACROSS as u32 + warp % warps * lanes + lane % lanes;
    let y = thread::block_idx_y() * (BLOCK / REGISTER_TILES_ACROSS) as u32 + warp / warps * (32 / lanes) + lane / lanes;
    let (row, column) = (y * high as u32, x * wide as u32);
    if row >= rows || column >= columns {
        return;
    }
    let batch = thread::block_idx_z() as usize;
    let from = batch * input_batch_pitch + row as usize * input_pitch + column as usize;
    // SAFETY: the matrix's sides are multiples of a micro-tile's, so a micro-tile is inside it or outside.
    let load_row = |i: usize| unsafe { T::load(input, from + i * input_pitch) };
    // A micro-tile has one row, two, or four.
    let first = load_row(0);
    let further = |i: usize| if i < high { load_row(i) } else { first };
    let transposed = T::transpose([first, further(1), further(2), further(3)]);
    let to = batch * output_batch_pitch + column as usize * output_pitch + row as usize;
    let mut i = 0;
    while i < wide {
        // SAFETY: as above.
        unsafe { T::store(output, to + i * output_pitch, epilogue(transposed[i])) };
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micro_tiles_of_halves_are_transposed() {
        let row = |i: u64| (0..4).map(|j| (16 * i + j) << (16 * j)).sum::<u64>();
        let transposed = transpose_halves([row(0), row(1), row(2), row(3)]);
        for (j, word) in (0..).zip(transposed) {
            assert!((0..4).all(|i| word >> (16 * i) & 0xFFFF == 16 * i + j), "{word:#x}");
        }
    }
}
