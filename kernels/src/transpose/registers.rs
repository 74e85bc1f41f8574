//! Transposes of small matrices, in registers alone.
//!
//! A small matrix is there in the time of one load; what counts is how long the way of an element is. So there is no
//! tile in shared memory and no barrier: a thread loads a square of few elements (of bytes two side by side), turns it,
//! and writes it. Larger matrices are faster by tiles, whose rows are longer on both sides.

use cuda_std::bits::permute_bytes;
use cuda_std::prelude::*;
use half::{bf16, f16};
use num_complex::{Complex32, Complex64};

use crate::transpose::tiled::epilogue::{Scale, Scaled, Scaling};
use crate::transpose::tiled::micro_tile::{Transpose, transpose_bytes};
use crate::transpose::tuning::{REGISTERS_ACROSS, REGISTERS_BLOCK, SMALL_REGISTERS_BLOCK, registers_across_warp};

/// Rows of a square: four, or as many elements as 16 bytes have, if that is less.
pub const fn rows(size: usize) -> usize {
    if size < 4 { 4 } else { 16 / size }
}

/// Columns of a square: as many, but of bytes twice as many, so that no more accesses are needed than of elements of
/// two bytes.
pub const fn columns(size: usize) -> usize {
    if size == 1 { 8 } else { rows(size) }
}

/// An element of whose squares a row is loaded, and a column is stored, by one access.
pub trait InRegisters: Element {
    /// A square's row.
    type Row: Copy;
    /// A square's column.
    type Column: Copy;

    /// The row that begins at element `i`.
    ///
    /// # Safety
    /// All of it is inside of the view, and its address is a multiple of its size.
    unsafe fn load(input: &Global<'_, Self>, i: usize) -> Self::Row;

    /// Writes a column from element `i` on.
    ///
    /// # Safety
    /// As of [`InRegisters::load`].
    unsafe fn store(output: &GlobalMut<'_, Self>, i: usize, column: Self::Column);

    /// The columns of the square that has these rows; what is behind its rows, and its columns, is of no meaning.
    fn transpose(micro_tile: [Self::Row; 4]) -> [Self::Column; 8];

    /// The column with each element changed.
    fn map(column: Self::Column, of_element: impl Fn(Self) -> Self) -> Self::Column;
}

macro_rules! by_words {
    ($type:ident in $row:ident, $word:ident: |$micro_tile:ident| $transposed:expr) => {
        impl InRegisters for $type {
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
            fn map(column: $word, of_element: impl Fn(Self) -> Self) -> $word {
                let mapped = |i: u32| $word::from(of_element((column >> (i * Self::BITS)) as Self)) << (i * Self::BITS);
                mapped(0) | mapped(1) | mapped(2) | mapped(3)
            }
        }
    };
}

by_words!(u8 in u64, u32: |micro_tile| {
    let (left, right) = (transpose_bytes(micro_tile.map(|row| row as u32)), transpose_bytes(micro_tile.map(|row| (row >> 32) as u32)));
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

/// Four rows of four halves of words, turned.
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
        impl InRegisters for $type {
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
            fn map(column: Self::Row, of_element: impl Fn(Self) -> Self) -> Self::Row {
                let mut column = column;
                let mut i = 0;
                while i < Self::Row::LEN {
                    column = column.with(i, of_element(column.get(i)));
                    i += 1;
                }
                column
            }
        }
    )*};
}

by_vectors!(u32, u64, u128);

/// Writes the transposes of matrices of `rows` x `columns` elements, whose rows begin `input_pitch` elements apart, to
/// matrices whose rows begin `output_pitch` apart; a further matrix begins `input_batch` and `output_batch` elements
/// behind the one before. Sides, pitches and addresses are multiples of 16 bytes.
///
/// A block is for [`REGISTERS_ACROSS`] squares of [`rows()`] x [`columns()`] elements side by side, and as many below
/// each other as its threads are for; the grid has one for each of these: across, down, and from matrix to matrix.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8, u16, u32, u64, u128] x [128 == SMALL_REGISTERS_BLOCK, 256 == REGISTERS_BLOCK],
    block = BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn register_tiles<T: InRegisters, const BLOCK: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: u32,
    input_pitch: usize,
    output_pitch: usize,
    input_batch: usize,
    output_batch: usize,
) {
    let layout = Layout { rows, columns, input_pitch, output_pitch, input_batch, output_batch };
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
    /// The same of the output.
    pub output_pitch: usize,
    /// Elements from the start of a matrix of the input to that of the next one.
    pub input_batch: usize,
    /// The same of the output.
    pub output_batch: usize,
    /// What is done with each element: see [`Scaling`].
    pub how: u32,
    /// The real part of the factor.
    pub real: f64,
    /// Its imaginary part.
    pub imaginary: f64,
}

/// [`register_tiles`](fn@register_tiles) of numbers that are [scaled](crate::transpose::tiled::epilogue) on their way: `how` and the
/// factor's parts are those of a [`Scaling`].
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [f16, bf16, f32, f64, Complex32, Complex64] x [128 == SMALL_REGISTERS_BLOCK, 256 == REGISTERS_BLOCK],
    block = BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn scaled_register_tiles<N: Scale<Bits: InRegisters>, const BLOCK: usize>(
    ScaledRegisterTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch,
        output_batch,
        how,
        real,
        imaginary,
    }: ScaledRegisterTileArgs<<N as Scale>::Bits>,
) {
    let layout = Layout { rows, columns, input_pitch, output_pitch, input_batch, output_batch };
    let scaled = Scaled::<N>::by(Scaling { factor: [real, imaginary], how });
    transpose_micro_tile::<N::Bits, BLOCK>(&input, &output, &layout, |column| {
        N::Bits::map(column, |x| scaled.of_element(x))
    });
}

/// Where matrices lie: the kernels' parameters.
struct Layout {
    rows: u32,
    columns: u32,
    input_pitch: usize,
    output_pitch: usize,
    input_batch: usize,
    output_batch: usize,
}

/// Turns this thread's square, and changes its columns.
#[inline(always)]
fn transpose_micro_tile<T: InRegisters, const BLOCK: usize>(
    input: &Global<T>,
    output: &GlobalMut<T>,
    layout: &Layout,
    epilogue: impl Fn(T::Column) -> T::Column,
) {
    thread::launch_dependents();
    let Layout { rows, columns, input_pitch, output_pitch, input_batch, output_batch } = *layout;
    let size = size_of::<T>();
    let (high, wide, lanes) = (self::rows(size), self::columns(size), registers_across_warp(size) as u32);
    let thread = thread::index_in_block::<BLOCK>() as u32;
    let (lane, warp, warps) = (thread % 32, thread / 32, REGISTERS_ACROSS as u32 / lanes);
    let x = thread::block_idx_x() * REGISTERS_ACROSS as u32 + warp % warps * lanes + lane % lanes;
    let y = thread::block_idx_y() * (BLOCK / REGISTERS_ACROSS) as u32 + warp / warps * (32 / lanes) + lane / lanes;
    let (row, column) = (y * high as u32, x * wide as u32);
    if row >= rows || column >= columns {
        return;
    }
    let batch = thread::block_idx_z() as usize;
    let from = batch * input_batch + row as usize * input_pitch + column as usize;
    // SAFETY: a square is inside of the matrix, whose sides are multiples of a square's, or outside of it.
    let row_of_square = |i: usize| unsafe { T::load(input, from + i * input_pitch) };
    // A square has one row, two, or four.
    let first = row_of_square(0);
    let further = |i: usize| if i < high { row_of_square(i) } else { first };
    let transposed = T::transpose([first, further(1), further(2), further(3)]);
    let to = batch * output_batch + column as usize * output_pitch + row as usize;
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
    fn squares_of_halves_are_turned() {
        let row = |i: u64| (0..4).map(|j| (16 * i + j) << (16 * j)).sum::<u64>();
        let transposed = transpose_halves([row(0), row(1), row(2), row(3)]);
        for (j, word) in (0..).zip(transposed) {
            assert!((0..4).all(|i| word >> (16 * i) & 0xFFFF == 16 * i + j), "{word:#x}");
        }
    }
}
