//! Transposes word by word: of matrices whose rows begin at any address, and of small ones.
//!
//! A thread moves words of 4 bytes (8 where an element has 8), neighbouring lanes neighbouring ones. A word has one element,
//! or two or four: then a thread takes as many rows of it, a square, and turns that in registers.
//!
//! Of elements that are words nothing is unaligned. Of smaller ones, a row of the input is cut out of its aligned words; and
//! in each row of the output a tile ends where a word ends. Rows of the output begin at any place in a word, so those ends
//! are not in one row of the input, and a tile has a slanted upper and lower edge: a block loads one more row of squares
//! than it writes. Only at the matrix' own edges are there parts of words.
//!
//! By accesses of 16 bytes it was slower (8191 x 8193 on an H200, in parts of a copy's speed: 0.43, 0.63, 0.83 and 0.78 for 1,
//! 2, 4 and 8 bytes): to cut packs takes so many instructions that the multiprocessors had no more to give.
//!
//! # Bank conflicts
//!
//! The tile is kept turned: *slots* of one column each, the first columns of all squares before the second ones; in a slot,
//! word `q` lies at place `q ^ swizzle`. Neighbouring lanes store the same word of neighbouring slots, and load neighbouring
//! words of a slot: either way from all 32 banks.

use cuda_std::bits::{funnel_shift, permute_bytes};
use cuda_std::global::Word;
use cuda_std::prelude::*;

use super::tile::admit_next_grid;
use super::turn::{Each, sixteen, turn_bytes};

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Words of the tile of a block, by their size: 16 KiB, or a quarter of it where there are few tiles.
pub const fn words(size_of_word: usize, are_few: bool) -> usize {
    let words = (16 << 10) / size_of_word;
    if are_few { words / 4 } else { words }
}

/// Elements of a word.
pub const fn per_word(size: usize) -> usize {
    if size < 4 { 4 / size } else { 1 }
}

/// Rows of squares that a tile shares with the one above it.
pub const fn margin(size: usize) -> usize {
    if size < 4 { 1 } else { 0 }
}

/// The positions that rows of the output of `rows` elements of `size` bytes may reach, counted from the start of the word in
/// which they begin.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + per_word(size) - 1
}

/// An unsigned number that is moved by words.
pub trait InWords: Element {
    /// The word.
    type Word: Word + Default;
    /// A square of as many words as a word has elements, turned; what is behind them is of no meaning.
    fn turn(square: [Self::Word; 4]) -> [Self::Word; 4];
    /// The word that begins `elements` elements, less than a word's, into two.
    fn cut(low: Self::Word, high: Self::Word, elements: u32) -> Self::Word;
}

impl InWords for u8 {
    type Word = u32;

    #[inline(always)]
    fn turn(square: [u32; 4]) -> [u32; 4] {
        turn_bytes(square)
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 8 * elements)
    }
}

impl InWords for u16 {
    type Word = u32;

    #[inline(always)]
    fn turn([a, b, c, d]: [u32; 4]) -> [u32; 4] {
        [permute_bytes(a, b, 0x5410), permute_bytes(a, b, 0x7632), c, d]
    }

    #[inline(always)]
    fn cut(low: u32, high: u32, elements: u32) -> u32 {
        funnel_shift(low, high, 16 * elements)
    }
}

macro_rules! words_themselves {
    ($($type:ty),*) => {$(
        impl InWords for $type {
            type Word = $type;

            #[inline(always)]
            fn turn(square: [$type; 4]) -> [$type; 4] {
                square
            }

            #[inline(always)]
            fn cut(low: $type, _high: $type, _elements: u32) -> $type {
                low
            }
        }
    )*};
}

words_themselves!(u32, u64);

/// Writes the transposes of matrices of `rows` x `columns` elements, whose rows begin `input_pitch` elements apart, to
/// matrices whose rows begin `output_pitch` apart; a further matrix begins `input_batch` and `output_batch` elements behind
/// the one before. `LEN` is [`words()`] of the word's size, and a tile is `1 << across` words wide, at most as many as leave
/// two rows of squares.
///
/// Blocks go down each column of tiles, then across, and then from matrix to matrix. The grid has a block for each tile of
/// each matrix.
#[kernel(
    instances = [u8, u16, u32] x [4096, 1024] + [u64] x [2048, 512],
    block = BLOCK,
    early
)]
pub fn word_tiles<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    input_pitch: usize,
    output_pitch: usize,
    input_batch: usize,
    output_batch: usize,
    across: u32,
) {
    admit_next_grid();
    let tile = shared_array![<T as InWords>::Word; LEN];
    let shape = Tile::of_block::<T, LEN>(rows, columns, across);
    let first = shape.batch * input_batch + shape.left;
    let words = sixteen(&WordsOfInput::<T, LEN> { input: &input, first, pitch: input_pitch, shape: &shape });
    sixteen(&Squares::<T, LEN> { words, shape: &shape, tile: &tile });
    thread::sync_threads();
    let first = shape.batch * output_batch + shape.left * output_pitch;
    sixteen(&WordsOfOutput::<T, LEN> { output: &output, first, pitch: output_pitch, shape: &shape, tile: &tile });
}

/// A block's tile.
struct Tile {
    batch: usize,
    /// The matrix' rows, and the first position in a row of the output that the tile has.
    rows: usize,
    top: usize,
    /// The first column, and how many the matrix has from there on.
    left: usize,
    columns: usize,
    /// Words across and down, as powers of two.
    across: u32,
    down: u32,
}

impl Tile {
    #[inline(always)]
    fn of_block<T: InWords, const LEN: usize>(rows: usize, columns: usize, across: u32) -> Self {
        let (size, side) = (size_of::<T>(), per_word(size_of::<T>()));
        let down = (LEN / side).trailing_zeros() - across;
        let (height, width) = (((1 << down) - margin(size)) * side, side << across);
        let tiles_down = positions(rows, size).div_ceil(height) as u32;
        let tiles_across = columns.div_ceil(width) as u32;
        let block = thread::block_idx_x();
        let (column, row) = (block / tiles_down, block % tiles_down);
        let (batch, column) = (column / tiles_across, column % tiles_across);
        let left = column as usize * width;
        let (batch, top) = (batch as usize, row as usize * height);
        Self { batch, rows, top, left, columns: columns - left, across, down }
    }

    /// Where word `q` of slot `slot` lies in shared memory, which has `LEN` words.
    #[inline(always)]
    fn place<W: Word, const LEN: usize>(&self, slot: u32, q: u32) -> usize {
        // As powers of two, the words in all banks; of shorter slots several lie in them.
        let banks: u32 = if size_of::<W>() == 8 { 4 } else { 5 };
        let swizzle = (slot >> banks.saturating_sub(self.down)) & ((1 << self.down) - 1) & ((1 << banks) - 1);
        // In range anyway: so that nobody has to compare.
        ((slot << self.down) + (q ^ swizzle)) as usize % LEN
    }
}

/// Words that a thread has.
const fn words_each<const LEN: usize>() -> usize {
    LEN / BLOCK
}

/// Square `k` of the thread's: its word in the tile's rows, and its row of squares.
#[inline(always)]
fn square_of_thread(k: usize, shape: &Tile) -> (u32, u32) {
    let square = thread::thread_idx_x() + (k * BLOCK) as u32;
    (square & ((1 << shape.across) - 1), square >> shape.across)
}

/// The words of the thread's squares, square after square, as far as the matrix has them.
struct WordsOfInput<'a, T, const LEN: usize> {
    input: &'a Global<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
}

impl<T: InWords, const LEN: usize> Each for WordsOfInput<'_, T, LEN> {
    type Of = T::Word;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Word {
        let (side, shape) = (per_word(size_of::<T>()), self.shape);
        let (w, d) = square_of_thread(i / side, shape);
        // A row above the first is, wrapped, one far behind the last.
        let first_row = (shape.top + d as usize * side).wrapping_sub(margin(size_of::<T>()) * side);
        let (row, column) = (first_row.wrapping_add(i % side), w as usize * side);
        if i < words_each::<LEN>() && row < shape.rows && column < shape.columns {
            let left = shape.columns - column;
            let first = self.first.wrapping_add(first_row.wrapping_mul(self.pitch));
            let place = first.wrapping_add(i % side * self.pitch).wrapping_add(column);
            // SAFETY: inside of the matrix, and so the view.
            unsafe { self.input.load_word_unchecked(place, if left < side { left } else { side }) }
        } else {
            T::Word::default()
        }
    }
}

/// The thread's squares, on their way to shared memory.
struct Squares<'a, T: InWords, const LEN: usize> {
    words: [T::Word; 16],
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
}

impl<T: InWords, const LEN: usize> Each for Squares<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, k: usize) {
        let side = per_word(size_of::<T>());
        if (k + 1) * side > words_each::<LEN>() {
            return;
        }
        let word = |i: usize| self.words[(k * side + i) % 16];
        let turned = T::turn([word(0), word(1), word(2), word(3)]);
        let (w, d) = square_of_thread(k, self.shape);
        let mut i = 0;
        while i < side {
            let slot = ((i as u32) << self.shape.across) + w;
            self.tile.store(self.shape.place::<T::Word, LEN>(slot, d), turned[i]);
            i += 1;
        }
    }
}

/// The words that a thread writes.
struct WordsOfOutput<'a, T: InWords, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    first: usize,
    pitch: usize,
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
}

impl<T: InWords, const LEN: usize> Each for WordsOfOutput<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let (size, side, shape) = (size_of::<T>(), per_word(size_of::<T>()) as u32, self.shape);
        let word = thread::thread_idx_x() + (i * BLOCK) as u32;
        let (slot, k) = (word >> shape.down, word & ((1 << shape.down) - 1));
        let column = ((slot & ((1 << shape.across) - 1)) * side + (slot >> shape.across)) as usize;
        let is_there = i < words_each::<LEN>() && k + (margin(size) as u32) < 1 << shape.down;
        if !is_there || column >= shape.columns {
            return;
        }
        let row = self.first + column * self.pitch;
        let of_slot = |q: u32| self.tile.load(shape.place::<T::Word, LEN>(slot, q & ((1 << shape.down) - 1)));
        let position = shape.top + (k * side) as usize;
        if side == 1 {
            if position < shape.rows {
                // SAFETY: inside of the row.
                unsafe { self.output.store_word_unchecked(row + position, of_slot(k), 0, 1) };
            }
            return;
        }
        // The slot's words begin a row of squares above the tile, and the row `past` elements into a word.
        let past = self.output.elements_past(row, size_of::<T::Word>());
        let begin = (k + 1) * side - past as u32;
        let word = T::cut(of_slot(begin / side), of_slot(begin / side + 1), begin % side);
        let (end, all) = (past + shape.rows, side as usize);
        let from = past.saturating_sub(position);
        let to = if position + all <= end { all } else { end.saturating_sub(position) };
        if from < to {
            let place = row.wrapping_add(position).wrapping_sub(past);
            // SAFETY: so many elements of the word are inside of the row, and it is aligned.
            unsafe { self.output.store_word_unchecked(place, word, from, to) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_words_are_turned() {
        let turned = u8::turn([0x0302_0100, 0x1312_1110, 0x2322_2120, 0x3332_3130]);
        assert_eq!(turned, [0x3020_1000, 0x3121_1101, 0x3222_1202, 0x3323_1303]);
        assert_eq!(u16::turn([0x0001_0000, 0x0101_0100, 0, 0])[..2], [0x0100_0000, 0x0101_0001]);
        assert_eq!(u8::cut(0x0302_0100, 0x0706_0504, 3), 0x0605_0403);
        assert_eq!(u16::cut(0x0302_0100, 0x0706_0504, 1), 0x0504_0302);
    }
}
