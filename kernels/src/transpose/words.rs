//! Transposes word by word: of matrices whose rows begin at any address, if they are small or low; [slanted
//! tiles](super::slanted) are for the others.
//!
//! A thread moves words of 4 bytes (8 where an element has 8), neighbouring lanes neighbouring ones. A word has one
//! element, or two or four: then a thread takes as many rows of it, a square, and turns that in registers.
//!
//! Of elements that are words nothing is unaligned. Of smaller ones, a row of the input is cut out of its aligned
//! words; and in each row of the output a tile ends where a word ends. Rows of the output begin at any place in a word,
//! so those ends are not in one row of the input, and a tile has a slanted upper and lower edge: a block loads one more
//! row of squares than it writes. Only at the matrix' own edges are there parts of words.
//!
//! Of 8191 x 8193 on an H200 this reaches 0.60, 0.65, 0.73 and 0.89 of a copy's speed for 1, 2, 4 and 8 bytes, slanted
//! tiles 0.92, 0.95, 0.96 and 0.95.
//!
//! # Bank conflicts
//!
//! The tile is kept turned: *slots* of one column each, the first columns of all squares before the second ones; in a
//! slot, word `q` lies at place `q ^ swizzle`. Neighbouring lanes store the same word of neighbouring slots, and load
//! neighbouring words of a slot: either way from all 32 banks, but for stores of 1039 x 1041 elements of 1 and 2 bytes,
//! in two passes.

use cuda_std::global::Word;
use cuda_std::prelude::*;
use num_complex::Complex32;

use super::change::{Scale, Scaled, Scaling};
use super::in_words::{InWords, ScaledInWords};
use super::tile::{Cut, launch_dependents};
use super::tiles::{ScaledTileArgs, TileArgs};
use super::tuning::{NARROW_BLOCK, narrow_tile_words};
use super::turn::{Each, sixteen};

/// Elements of a word.
pub const fn per_word(size: usize) -> usize {
    if size < 4 { 4 / size } else { 1 }
}

/// Rows of squares that a tile shares with the one above it.
pub const fn margin(size: usize) -> usize {
    if size < 4 { 1 } else { 0 }
}

/// The positions that rows of the output of `rows` elements of `size` bytes may reach, counted from the start of the
/// word in which they begin.
pub const fn positions(rows: usize, size: usize) -> usize {
    rows + per_word(size) - 1
}

/// Writes the transposes of matrices of `rows` x `columns` elements, whose rows begin `input_pitch` elements apart, to
/// matrices whose rows begin `output_pitch` apart; a further matrix begins `input_batch` and `output_batch` elements
/// behind the one before. `LEN` is [`narrow_tile_words`] of the word's size, and a tile is `1 << across` words wide: as
/// many as leave two rows of squares, and neither words across nor squares down are more than the block has threads.
///
/// There are `tiles_down` x `tiles_across` tiles in each matrix, and the grid has a block for each tile of each matrix.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8, u16, u32] x [4096 == narrow_tile_words(4, false), 1024 == narrow_tile_words(4, true)]
        + [u64] x [2048 == narrow_tile_words(8, false), 512 == narrow_tile_words(8, true)],
    block = NARROW_BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn word_tiles<T: InWords, const LEN: usize>(
    TileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch,
        output_batch,
        across,
        tiles_down,
        tiles_across,
        pieces,
    }: TileArgs<T>,
) {
    launch_dependents();
    let tile = shared_array![<T as InWords>::Word; LEN];
    let shape = Tile::of_block::<T, LEN>(rows, columns, Cut { across, tiles_down, tiles_across, pieces });
    let words = load_tile::<T, LEN>(&input, shape.batch * input_batch + shape.left, input_pitch, &shape);
    sixteen(&Squares::<T, LEN>::of_thread(words, &shape, &tile));
    thread::sync_threads();
    store_tile(&output, shape.batch * output_batch + shape.left * output_pitch, output_pitch, &shape, &tile);
}

/// [`word_tiles`](fn@word_tiles) of elements that are words, which are [scaled](super::change) on their way: `how` and
/// the factor's parts are those of a [`Scaling`].
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [f32] x [4096 == narrow_tile_words(4, false), 1024 == narrow_tile_words(4, true)]
        + [f64, Complex32] x [2048 == narrow_tile_words(8, false), 512 == narrow_tile_words(8, true)],
    block = NARROW_BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn scaled_word_tiles<N: ScaledInWords, const LEN: usize>(
    ScaledTileArgs {
        input,
        output,
        rows,
        columns,
        input_pitch,
        output_pitch,
        input_batch,
        output_batch,
        across,
        tiles_down,
        tiles_across,
        pieces,
        how,
        real,
        imaginary,
    }: ScaledTileArgs<<N as ScaledInWords>::Word>,
) {
    launch_dependents();
    let tile = shared_array![<N as ScaledInWords>::Word; LEN];
    let shape = Tile::of_block::<N::Word, LEN>(rows, columns, Cut { across, tiles_down, tiles_across, pieces });
    let words = load_tile::<N::Word, LEN>(&input, shape.batch * input_batch + shape.left, input_pitch, &shape);
    let change = Scaled::<N>::by(Scaling { factor: [real, imaginary], how });
    let words = sixteen(&Changed { words, change });
    sixteen(&Squares::<N::Word, LEN>::of_thread(words, &shape, &tile));
    thread::sync_threads();
    store_tile(&output, shape.batch * output_batch + shape.left * output_pitch, output_pitch, &shape, &tile);
}

/// The thread's words, of which the tile's first row begins at `first`.
///
/// Where nothing has to be compared, all loads are on their way before the first word is there, and in [`store_tile`]
/// all stores behind each other: not so around branches.
#[inline(always)]
fn load_tile<T: InWords, const LEN: usize>(
    input: &Global<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
) -> [T::Word; 16] {
    let words = WordsOfInput::<T, LEN>::of_thread(input, first, pitch, shape);
    if shape.is_inside::<T>() { sixteen(&Inside(&words)) } else { sixteen(&words) }
}

/// Writes what the thread has of the tile, whose first row begins at `first`.
#[inline(always)]
fn store_tile<T: InWords, const LEN: usize>(
    output: &GlobalMut<T>,
    first: usize,
    pitch: usize,
    shape: &Tile,
    tile: &SharedArray<T::Word, LEN>,
) {
    let words = WordsOfOutput::<T, LEN>::of_thread(output, first, pitch, shape, tile);
    if !shape.is_inside::<T>() {
        sixteen(&words);
    } else if words.is_written() {
        sixteen(&Inside(&words));
    }
}

/// Words that are elements, changed.
struct Changed<N: Scale> {
    words: [N::Bits; 16],
    change: Scaled<N>,
}

impl<N: Scale> Each for Changed<N> {
    type Of = N::Bits;

    #[inline(always)]
    fn of(&self, i: usize) -> N::Bits {
        self.change.of_element(self.words[i])
    }
}

/// What is done where the tile, with its margins, is inside of the matrix.
struct Inside<'a, E>(&'a E);

/// A block's tile.
struct Tile {
    batch: usize,
    /// The first position in a row of the output that the tile has.
    top: usize,
    /// The first column, and how many the matrix has from there on, up to the tile's.
    left: usize,
    columns: u32,
    /// Rows of the matrix.
    rows: usize,
    /// Words across and squares down, as powers of two.
    across: u32,
    down: u32,
}

impl Tile {
    #[inline(always)]
    fn of_block<T: InWords, const LEN: usize>(rows: usize, columns: usize, cut: Cut) -> Self {
        let (size, side) = (size_of::<T>(), per_word(size_of::<T>()));
        let (across, down) = (cut.across, (LEN / side).trailing_zeros() - cut.across);
        let (height, width) = (((1 << down) - margin(size)) * side, side << across);
        let (batch, row, column) = cut.of_block();
        let left = column as usize * width;
        let columns = if columns - left < width { columns - left } else { width };
        Self { batch: batch as usize, rows, top: row as usize * height, left, columns: columns as u32, across, down }
    }

    /// Whether the matrix has all of the tile's rows and columns, and so many rows more on either side that no row of
    /// the output begins or ends in it.
    #[inline(always)]
    fn is_inside<T: InWords>(&self) -> bool {
        let side = per_word(size_of::<T>());
        let below = (side << self.down) + side;
        self.columns as usize == side << self.across
            && self.top + below <= self.rows
            && (self.top >= side || margin(size_of::<T>()) == 0)
    }

    /// What word `q` of a slot is exchanged with: `q ^ swizzle`. Linear: of `a ^ b` it is that of `a` and that of `b`.
    #[inline(always)]
    fn swizzle<W: Word>(&self, slot: u32) -> u32 {
        // As powers of two, the words in all banks; of shorter slots several lie in them.
        let banks: u32 = if size_of::<W>() == 8 { 4 } else { 5 };
        (slot >> banks.saturating_sub(self.down)) & ((1 << self.down) - 1) & ((1 << banks) - 1)
    }

    /// Where word `q` of slot `slot` lies in shared memory. Linear as well.
    #[inline(always)]
    fn place<W: Word>(&self, slot: u32, q: u32) -> u32 {
        (slot << self.down) | (q ^ self.swizzle::<W>(slot))
    }
}

/// Words that a thread has.
const fn words_each<const LEN: usize>() -> usize {
    LEN / NARROW_BLOCK
}

/// The words of the thread's squares, square after square; any where the matrix has none. They lie below each other,
/// and what differs from thread to thread is worked out once.
struct WordsOfInput<'a, T, const LEN: usize> {
    input: &'a Global<'a, T>,
    /// Where the first square begins, how far a row is from the next, and a square.
    place: usize,
    pitch: usize,
    step: usize,
    /// Where the thread's columns begin in the first of the tile's rows that the matrix has.
    top: usize,
    /// The first square's first row, counted from the first of the tile's that the matrix has (wrapped, if it is
    /// above), how many of those there are, and rows from square to square.
    row: u32,
    rows: u32,
    rows_of_step: u32,
    /// Elements of each word.
    count: u32,
}

impl<'a, T: InWords, const LEN: usize> WordsOfInput<'a, T, LEN> {
    #[inline(always)]
    fn of_thread(input: &'a Global<'a, T>, first: usize, pitch: usize, shape: &Tile) -> Self {
        let (side, margin) = (per_word(size_of::<T>()) as u32, margin(size_of::<T>()) as u32);
        let thread = thread::thread_idx_x();
        let (w, d) = (thread & ((1 << shape.across) - 1), thread >> shape.across);
        let rows_of_step = (NARROW_BLOCK as u32 >> shape.across) * side;
        let (row, column) = (d * side, w * side);
        // The tile's first row is a margin above its first position: not there, in the first tile.
        let above = if shape.top == 0 { margin * side } else { 0 };
        let (left, all) = (shape.rows + (margin * side) as usize - shape.top, side << shape.down);
        let rows = if left < all as usize { left as u32 } else { all };
        let first_row = (shape.top + row as usize).wrapping_sub((margin * side) as usize);
        // Behind the last column it is the first one again.
        let column = if column < shape.columns { column } else { 0 };
        let of_columns = shape.columns - column;
        Self {
            input,
            place: first.wrapping_add(first_row.wrapping_mul(pitch)).wrapping_add(column as usize),
            pitch,
            step: rows_of_step as usize * pitch,
            top: first + (shape.top + above as usize - (margin * side) as usize) * pitch + column as usize,
            row: row.wrapping_sub(above),
            rows: rows - above,
            rows_of_step,
            count: if of_columns < side { of_columns } else { side },
        }
    }
}

impl<T: InWords, const LEN: usize> Each for WordsOfInput<'_, T, LEN> {
    type Of = T::Word;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Word {
        let side = per_word(size_of::<T>());
        let (square, row_of_square) = (i / side, i % side);
        if i >= words_each::<LEN>() {
            return T::Word::default();
        }
        let row = self.row.wrapping_add(square as u32 * self.rows_of_step + row_of_square as u32);
        // Of no row of the matrix it is its last one: a load that has to be done or not is a branch, and waits for it.
        let row = if row < self.rows { row } else { self.rows - 1 };
        // SAFETY: inside of the matrix, and so the view.
        unsafe { self.input.load_word_unchecked(self.top + row as usize * self.pitch, self.count as usize) }
    }
}

impl<T: InWords, const LEN: usize> Each for Inside<'_, WordsOfInput<'_, T, LEN>> {
    type Of = T::Word;

    #[inline(always)]
    fn of(&self, i: usize) -> T::Word {
        if i >= words_each::<LEN>() {
            return T::Word::default();
        }
        let (side, words) = (per_word(size_of::<T>()), self.0);
        let place = words.place.wrapping_add(i / side * words.step + i % side * words.pitch);
        // SAFETY: all of the tile is inside of the matrix, and so the view; and so is another word, in this row or
        // (rows are at least a word long) the one below, which there is where words are of several elements.
        unsafe { words.input.load_word_of_many_unchecked(place) }
    }
}

/// The thread's squares, on their way to shared memory.
struct Squares<'a, T: InWords, const LEN: usize> {
    words: [T::Word; 16],
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
    /// Where the first word of the first square goes, and how many rows of squares it is to the next.
    place: u32,
    step: u32,
}

impl<'a, T: InWords, const LEN: usize> Squares<'a, T, LEN> {
    #[inline(always)]
    fn of_thread(words: [T::Word; 16], shape: &'a Tile, tile: &'a SharedArray<T::Word, LEN>) -> Self {
        let thread = thread::thread_idx_x();
        let place = shape.place::<T::Word>(thread & ((1 << shape.across) - 1), thread >> shape.across);
        Self { words, shape, tile, place, step: NARROW_BLOCK as u32 >> shape.across }
    }
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
        let mut i = 0;
        while i < side {
            // Places are linear, and these bits not in the first one's slot and square.
            let further = self.shape.place::<T::Word>((i as u32) << self.shape.across, k as u32 * self.step);
            self.tile.store((self.place ^ further) as usize % LEN, turned[i]);
            i += 1;
        }
    }
}

/// The words that a thread writes: the same of several slots. What differs from thread to thread is worked out once.
struct WordsOfOutput<'a, T: InWords, const LEN: usize> {
    output: &'a GlobalMut<'a, T>,
    shape: &'a Tile,
    tile: &'a SharedArray<T::Word, LEN>,
    /// The first slot, how far it is to the next, and the word in each.
    slot: u32,
    step: u32,
    q: u32,
    /// The first slot's column, and the place in that row of the output of the word's position, if the row began with
    /// a word; it begins `past` elements later.
    column: u32,
    place: usize,
    past: u32,
    pitch: usize,
    /// How far apart the words' rows are, if slots are columns.
    row_step: usize,
    position: usize,
}

impl<'a, T: InWords, const LEN: usize> WordsOfOutput<'a, T, LEN> {
    #[inline(always)]
    fn of_thread(
        output: &'a GlobalMut<'a, T>,
        first: usize,
        pitch: usize,
        shape: &'a Tile,
        tile: &'a SharedArray<T::Word, LEN>,
    ) -> Self {
        let (thread, side) = (thread::thread_idx_x(), per_word(size_of::<T>()) as u32);
        let (slot, q) = (thread >> shape.down, thread & ((1 << shape.down) - 1));
        let column = Self::column(slot, shape);
        let row = first + column as usize * pitch;
        let past = output.elements_past(row, size_of::<T::Word>()) as u32;
        let position = shape.top + (q * side) as usize;
        let (step, place) = (NARROW_BLOCK as u32 >> shape.down, row + position);
        let row_step = step as usize * pitch;
        Self { output, shape, tile, slot, step, q, column, place, past, pitch, row_step, position }
    }

    /// A slot's column. Linear, too.
    #[inline(always)]
    fn column(slot: u32, shape: &Tile) -> u32 {
        let side = per_word(size_of::<T>()) as u32;
        if side == 1 { slot } else { (slot & ((1 << shape.across) - 1)) * side + (slot >> shape.across) }
    }

    /// Word `q` of the slot that is `further` behind the first.
    #[inline(always)]
    fn load(&self, further: u32, q: u32) -> T::Word {
        let place = self.shape.place::<T::Word>(self.slot, q) ^ self.shape.place::<T::Word>(further, 0);
        self.tile.load(place as usize % LEN)
    }

    /// Writes what of a word is inside of the row, which begins `past` elements into one.
    #[inline(always)]
    fn store_part(&self, place: usize, word: T::Word, past: usize) {
        let (position, end, all) = (self.position, past + self.shape.rows, per_word(size_of::<T>()));
        let from = past.saturating_sub(position);
        let to = if position + all <= end { all } else { end.saturating_sub(position) };
        if from < to {
            // SAFETY: so many elements of the word are inside of the row, and it is aligned.
            unsafe { self.output.store_word_unchecked(place, word, from, to) };
        }
    }
}

impl<T: InWords, const LEN: usize> WordsOfOutput<'_, T, LEN> {
    /// Whether it is this tile that writes the thread's words: not those of its margin.
    #[inline(always)]
    fn is_written(&self) -> bool {
        self.q + (margin(size_of::<T>()) as u32) < 1 << self.shape.down
    }

    /// Word `i` of the thread's, where it goes, and how many elements its row begins behind a word's start.
    #[inline(always)]
    fn word(&self, i: usize) -> (T::Word, usize, u32) {
        let (side, mask) = (per_word(size_of::<T>()) as u32, (1 << self.shape.down) - 1);
        let further = i as u32 * self.step;
        if side == 1 {
            return (self.load(further, self.q), self.place.wrapping_add(i * self.row_step), 0);
        }
        let further_column = Self::column(further, self.shape);
        // Wrapping, since a side is a power of two.
        let past = self.past.wrapping_add(further_column.wrapping_mul(self.pitch as u32)) % side;
        // The slot's words begin a row of squares above the tile.
        let low = self.q + u32::from(past == 0);
        let (low, high) = (self.load(further, low & mask), self.load(further, (low + 1) & mask));
        let place = self.place.wrapping_add(further_column as usize * self.pitch).wrapping_sub(past as usize);
        (T::cut(low, high, side.wrapping_sub(past) % side), place, past)
    }
}

impl<T: InWords, const LEN: usize> Each for Inside<'_, WordsOfOutput<'_, T, LEN>> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        if i < words_each::<LEN>() {
            let (word, place, _) = self.0.word(i);
            // SAFETY: all of the word is inside of the row, wherever in a word that begins; and it is aligned.
            unsafe { self.0.output.store_word_unchecked(place, word, 0, per_word(size_of::<T>())) };
        }
    }
}

impl<T: InWords, const LEN: usize> Each for WordsOfOutput<'_, T, LEN> {
    type Of = ();

    #[inline(always)]
    fn of(&self, i: usize) {
        let column = self.column + Self::column(i as u32 * self.step, self.shape);
        if i < words_each::<LEN>() && self.is_written() && column < self.shape.columns {
            let (word, place, past) = self.word(i);
            self.store_part(place, word, past as usize);
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

    #[test]
    fn a_tile_is_inside_with_a_square_more_above_and_below() {
        let is_inside = |columns: u32, top: usize, rows: usize| {
            let tile = Tile { batch: 0, top, left: 0, columns, rows, across: 2, down: 3 };
            (tile.is_inside::<u8>(), tile.is_inside::<u32>())
        };
        // Of bytes 4 x 8 squares of 4 x 4, of words as many words.
        assert_eq!(is_inside(16, 4, 40), (true, false));
        assert_eq!([is_inside(15, 4, 40), is_inside(16, 3, 40), is_inside(16, 4, 39)], [(false, false); 3]);
        assert_eq!(
            [is_inside(4, 0, 9), is_inside(4, 0, 8), is_inside(3, 0, 9)].map(|inside| inside.1),
            [true, false, false]
        );
    }
}
