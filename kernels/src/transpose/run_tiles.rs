//! Transposes matrices of short runs: elements that are neighbours, stay together, and are too few for accesses of their own.
//!
//! A tile's rows of the input are loaded by aligned packs, wherever they begin, and kept as they are; its rows of the output
//! are put together from single elements, as those of [strips](super::strips). Where a tile is as wide as the matrix, all of
//! its rows are one run in the input; where it is as high, in the output: then that is what is loaded, or written, as one.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::in_words::InWords;
use super::packs_of_rows::RowsInPacks;
use super::strips::{BLOCK, PACKS_EACH, all_banks, at_once, room, store_any};
use super::tile::admit_next_grid;

/// How a matrix of runs is cut in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTiles {
    /// Runs of a tile, one below the other.
    pub height: usize,
    /// And side by side.
    pub width: usize,
    /// The most packs of 16 bytes that the elements lie in that are loaded as one run, at least 2.
    pub packs_of_row: usize,
    /// How many elements such rows begin apart in shared memory.
    pub room_of_row: usize,
}

impl RunTiles {
    /// Tiles of up to `most` elements of `size` bytes, of a matrix of `rows` x `columns` runs of `len` elements, which is at
    /// most `most`: square where the matrix is large enough, so that runs of a tile's rows are as long on either side, and as
    /// high as the matrix where that is low.
    pub const fn new(rows: usize, columns: usize, len: usize, size: usize, most: usize) -> Self {
        let all = if most / len > 1 { most / len } else { 1 };
        let mut width = min(columns, all.isqrt());
        let mut height = min(rows, all / width);
        width = min(columns, all / height);
        loop {
            let tiles = Self::of_sides(height, width, columns, len, size);
            let loaded = if width == columns { 1 } else { height };
            let fits = tiles.packs_of_row * loaded <= BLOCK * PACKS_EACH && tiles.room_of_row * loaded <= room(size);
            if fits || (height == 1 && width == 1) {
                return tiles;
            }
            // All rows together are one run of the output, and all columns one of the input.
            if height > 1 && (height < rows || width == columns || width == 1) {
                height -= 1;
            } else {
                width -= 1;
            }
        }
    }

    const fn of_sides(height: usize, width: usize, columns: usize, len: usize, size: usize) -> Self {
        let lanes = 16 / size;
        let row = if width == columns { height * width * len } else { width * len };
        let packs = (row + lanes - 1).div_ceil(lanes);
        let packs_of_row = if packs < 2 { 2 } else { packs };
        Self { height, width, packs_of_row, room_of_row: room_of_row(packs_of_row * lanes, len, size) }
    }
}

/// How many elements rows of `elements` of them begin apart: so that runs of neighbouring rows, which a warp reads, are
/// in neighbouring banks, where words are small enough.
const fn room_of_row(elements: usize, len: usize, size: usize) -> usize {
    let word = if size < 4 { 4 / size } else { 1 };
    let banks = all_banks(size) / word;
    let (words, apart) = (elements.div_ceil(word), len.div_ceil(word) % banks);
    (words + (banks + apart - words % banks) % banks) * word
}

const fn min(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

/// Writes the transpose of a matrix of `rows` x `columns` runs of `len` elements, without gaps: run `i * columns + j` of the
/// input is run `j * rows + i` of the output.
///
/// `len` is at least 2. A block is for `height` x `width` runs, `tiles_down` of them above each other; these, `packs_of_row`
/// and `room_of_row` are as in [`RunTiles`]. `LEN` is the [`room`] of a block.
#[kernel(instances = [u8] x [32768] + [u16] x [16384] + [u32] x [8192] + [u64] x [4096], block = BLOCK, early)]
pub fn run_tiles<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: u32,
    height: u32,
    width: u32,
    tiles_down: u32,
    packs_of_row: u32,
    room_of_row: u32,
) {
    admit_next_grid();
    let tile = shared_array![T; LEN];
    let (across, down) = (thread::block_idx_x() / tiles_down, thread::block_idx_x() % tiles_down);
    let (top, left) = (down as usize * height as usize, across as usize * width as usize);
    let (high, wide) = (at_most(rows - top, height), at_most(columns - left, width));
    let is_one_run = width as usize == columns;
    let pitch = columns * len as usize;
    let loaded = RowsInPacks {
        input: &input,
        begin: (top * columns + left) * len as usize,
        pitch,
        rows: if is_one_run { 1 } else { high },
        len: if is_one_run { high * wide * len } else { wide * len },
        by_packs: Divisor::new(packs_of_row),
    };
    loaded.copy_to(|row| row * room_of_row, &tile);
    thread::sync_threads();

    let kept = Kept {
        past: input.elements_past(loaded.begin, 16) as u32,
        pitch: if is_one_run { 0 } else { pitch as u32 },
        apart: if is_one_run { wide * len } else { room_of_row },
        len,
        by_column: Divisor::new(high * len),
        by_run: Divisor::new(len),
    };
    let is_one_run = height as usize == rows;
    let written = if is_one_run { wide * high * len } else { high * len };
    let written_rows = if is_one_run { 1 } else { wide };
    let each = at_once(size_of::<T>());
    // A row begins anywhere in the first word, and so there may be one more.
    let by_row = Divisor::new((written + each - 1).div_ceil(each) + 1);
    let mut i = thread::thread_idx_x();
    while i < written_rows * by_row.by() {
        let (row, nth) = by_row.divide(i);
        let start = ((left + row as usize) * rows + top) * len as usize;
        let past = output.elements_past(start, each as usize * size_of::<T>());
        let from_start = (nth * each) as i32 - past as i32;
        let begin = if from_start < 0 { -from_start as u32 } else { 0 };
        let behind = written as i32 - from_start;
        let end = if behind < each as i32 { behind } else { each as i32 };
        if (begin as i32) < end {
            // Of those beside the row it is its first or last one. Rows are short, so that most warps have some of them: a
            // branch would be done twice.
            let element = |k: u32| {
                let nth = from_start + k as i32;
                let nth = if nth < 0 { 0 } else { nth as u32 };
                let nth = if each == 1 || nth < written { nth } else { written - 1 };
                tile.load(kept.place::<T>(row * written + nth) as usize % LEN)
            };
            let to = start.wrapping_add((nth * each) as usize).wrapping_sub(past);
            // SAFETY: these elements are inside of the row; and `past` is counted from a word's start.
            unsafe { store_any(&output, to, begin, end as u32, element) };
        }
        i += BLOCK as u32;
    }
}

/// `most`, or `left` if that is less.
#[inline(always)]
fn at_most(left: usize, most: u32) -> u32 {
    if left < most as usize { left as u32 } else { most }
}

/// Where the tile's elements lie in shared memory.
struct Kept {
    /// How many elements the first row begins behind its first pack's start, and the pitch that tells so of the others.
    past: u32,
    pitch: u32,
    /// Elements from one row to the next.
    apart: u32,
    len: u32,
    by_column: Divisor,
    by_run: Divisor,
}

impl Kept {
    /// Where that is which comes `i`-th in the output, counted over all of the tile.
    #[inline(always)]
    fn place<T: InWords>(&self, i: u32) -> u32 {
        let (column, within) = self.by_column.divide(i);
        let (row, nth) = self.by_run.divide(within);
        let past = self.past.wrapping_add(row.wrapping_mul(self.pitch)) % T::Pack::LEN as u32;
        row * self.apart + past + column * self.len + nth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_square_and_a_block_has_room_for_them() {
        for size in [1, 2, 4, 8] {
            for len in 2..=room(size) / 4 {
                for (rows, columns) in [(1000, 1000), (2, 1 << 20), (1 << 20, 2), (3, 5), (70, 70)] {
                    let tiles = RunTiles::new(rows, columns, len, size, room(size));
                    let RunTiles { height, width, packs_of_row, room_of_row } = tiles;
                    let loaded = if width == columns { 1 } else { height };
                    assert!((1..=rows).contains(&height) && (1..=columns).contains(&width), "{tiles:?}");
                    assert!(loaded * packs_of_row <= BLOCK * PACKS_EACH, "{len} of {size}: {tiles:?}");
                    assert!(loaded * room_of_row <= room(size), "{len} of {size}: {tiles:?}");
                    assert!(packs_of_row * (16 / size) <= room_of_row || loaded == 1, "{len} of {size}: {tiles:?}");
                    // What is divided is small enough for it.
                    let words = width * ((height * len).div_ceil(at_once(size) as usize) + 2);
                    assert!(words < 1 << 16, "{len} of {size}: {tiles:?}");
                }
            }
        }
        let tiles = RunTiles::new(8192, 512, 3, 4, room(4));
        assert!((40..=56).contains(&tiles.height) && (48..=56).contains(&tiles.width), "{tiles:?}");
        for rows in 2..=16 {
            assert_eq!(RunTiles::new(rows, 1 << 24, 3, 1, room(1)).height, rows);
            assert_eq!(RunTiles::new(1 << 24, rows, 3, 4, room(4)).width, rows);
        }
    }
}
