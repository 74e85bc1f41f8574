//! Transposes matrices of short runs: elements that are neighbours, stay together, and are too few for accesses of
//! their own.
//!
//! A tile's rows of the input are loaded by aligned vectors, wherever they begin, and kept as they are; its rows of the
//! output are put together from single elements, as those of [strips](super::strips). Where those are in shared memory
//! takes two divisions; so a thread has the same word of several rows of the output, one after the other: from one to
//! the next every place moves by a run. Rows of the output may begin anywhere in a word, but after a few, a power of
//! two, they do so again where the first did; those are the rows that a thread has.
//!
//! Matrices of few rows, whose tiles are one run in the output, are [`run_strips`](super::run_strips)'.

use cuda_std::prelude::*;

use super::in_words::InWords;
use super::kept_runs::{Kept, Runs, at_most};
use super::strips::{all_banks, room, store_any};
use super::tile::launch_dependents;
use super::tuning::{EVEN_TILES, MAX_PASSES, PACKED_BLOCK, PACKED_VECTORS, SMALLEST_PACKED_TILE, elements_per_store};

/// How a matrix of runs is cut in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTiles {
    /// Runs of a tile, one below the other.
    pub height: usize,
    /// And side by side.
    pub width: usize,
    /// The most vectors of 16 bytes that a row's elements lie in, or all of the tile's if it is loaded as one row; at
    /// least 2.
    pub vectors_of_row: usize,
    /// How many elements rows begin apart in shared memory. If that is just what they have, the tile is loaded as one
    /// row: it is one run of the input, since its rows are the matrix's.
    pub room_of_row: usize,
}

impl RunTiles {
    /// Tiles of a matrix of `rows` x `columns` runs of `len` elements of `size` bytes: about `tiles` of them, as many
    /// as a device has at once, if that makes none smaller than 2 KiB or larger than a block has [`room`] for. `len` is
    /// at most that less a vector.
    ///
    /// They are about square where the matrix is large enough, so that runs of a tile's rows are as long on either
    /// side, and so high that a row of the output is as many words as there are [threads for
    /// it](RunTiles::threads_of_row). Where the matrix is narrow, and there would be more than `tiles`, they are
    /// higher.
    pub fn new(rows: usize, columns: usize, len: usize, size: usize, tiles: usize) -> Self {
        let each = elements_per_store(size) as usize;
        let all = (enough(rows * columns * len, size, tiles) / len).max(1);
        let threads = nearest_power_of_two(words_of_row(all.isqrt() * len, each)).min(PACKED_BLOCK);
        // Where rows of the output are whole words, those of a tile are, too.
        let whole = |height: usize| if height > each { height / each * each } else { height.max(1) };
        let mut height = rows.min(whole((threads * each - (each - 1)) / len));
        let mut width = columns.min((all / height).max(1));
        if width == columns && rows.div_ceil(height) > tiles {
            height = rows.min(whole(all / columns));
        }
        let apart = Self::of_sides(1, width, false, len, size);
        let one_run = width == columns && is_better_as_one_run(columns * len, apart.room_of_row, len, size);
        if width == columns && !one_run {
            let fit = (PACKED_BLOCK * PACKED_VECTORS / apart.vectors_of_row).min(room(size) / apart.room_of_row);
            height = height.min(whole(fit));
        }
        loop {
            let cut = Self::of_sides(height, width, one_run && width == columns, len, size);
            if cut.fits(len, size) || (height == 1 && width == 1) {
                let rows_at_once = PACKED_BLOCK / cut.threads_of_row(len, size);
                let width = if width == columns { columns } else { even_width(columns, width, rows_at_once) };
                return Self::of_sides(height, width, one_run && width == columns, len, size);
            }
            if height > 1 && (width == columns || width == 1) {
                height -= if height > each && height.is_multiple_of(each) { each } else { 1 };
            } else {
                width -= 1;
            }
        }
    }

    /// Tiles as high as the matrix, for [`run_strips`](super::run_strips).
    pub fn of_strips(rows: usize, columns: usize, len: usize, size: usize, tiles: usize) -> Self {
        let mut width = columns.min((enough(rows * columns * len, size, tiles) / (rows * len)).max(1));
        loop {
            let cut = Self::of_sides(rows, width, width == columns, len, size);
            if cut.fits(len, size) || width == 1 {
                return cut;
            }
            width -= 1;
        }
    }

    fn of_sides(height: usize, width: usize, one_run: bool, len: usize, size: usize) -> Self {
        let lanes = 16 / size;
        let row = if one_run { height * width * len } else { width * len };
        let vectors_of_row = (row + lanes - 1).div_ceil(lanes).max(2);
        let room_of_row = if one_run { width * len } else { room_of_row(vectors_of_row * lanes, len, size) };
        Self { height, width, vectors_of_row, room_of_row }
    }

    /// Whether a block's threads load so many vectors, and there is room for them.
    fn fits(&self, len: usize, size: usize) -> bool {
        let rows = if self.room_of_row == self.width * len { 1 } else { self.height };
        let needed = (rows - 1) * self.room_of_row + self.vectors_of_row * (16 / size);
        rows * self.vectors_of_row <= PACKED_BLOCK * PACKED_VECTORS && needed <= room(size)
    }

    /// Threads that write a row of the output: a power of two, one for each word if the block has as many.
    pub fn threads_of_row(&self, len: usize, size: usize) -> usize {
        words_of_row(self.height * len, elements_per_store(size) as usize).next_power_of_two().min(PACKED_BLOCK)
    }
}

/// Elements of a tile, if there shall be so many of them and a block has room for one.
fn enough(elements: usize, size: usize, tiles: usize) -> usize {
    elements.div_ceil(tiles).clamp(SMALLEST_PACKED_TILE / size, room(size))
}

/// The width of tiles that may be as wide as `most`: a multiple of the rows of the output that a block writes at once,
/// so that each thread has as many of them. If the columns are two or three tiles, these are about as wide.
fn even_width(columns: usize, most: usize, rows_at_once: usize) -> usize {
    if most <= rows_at_once {
        return most;
    }
    let most = most - most % rows_at_once;
    let tiles = columns.div_ceil(most);
    // A tile of less columns than are written at once leaves most threads without any.
    let is_even = columns % most < rows_at_once;
    if tiles > EVEN_TILES || is_even { most } else { columns.div_ceil(tiles).next_multiple_of(rows_at_once).min(most) }
}

/// The most words of which `each` elements are one that a row of so many elements of the output lies in.
fn words_of_row(elements: usize, each: usize) -> usize {
    (elements + each - 1).div_ceil(each)
}

/// That by whose root of two it is not missed.
fn nearest_power_of_two(number: usize) -> usize {
    let below = 1 << number.ilog2();
    if number * number > 2 * below * below { 2 * below } else { below }
}

/// How many elements rows of `elements` of them begin apart, so that what a warp reads is in different banks: runs of
/// neighbouring rows are in neighbouring banks where there is a lane for each element; and where two lanes never have
/// the same run, rows are an odd number of banks apart, so that all banks have some.
fn room_of_row(elements: usize, len: usize, size: usize) -> usize {
    let word = if size < 4 { 4 / size } else { 1 };
    let words = elements.div_ceil(word);
    if len < elements_per_store(size) as usize {
        return (words | 1) * word;
    }
    let banks = all_banks(size) / word;
    (words + (banks + len.div_ceil(word) % banks - words % banks) % banks) * word
}

/// Whether narrow tiles, whose rows of so many elements are one run of the input, are better loaded as that than row by
/// row: if a warp reads it in few passes, or rows `apart` leave no room for two fifths as many.
fn is_better_as_one_run(elements: usize, apart: usize, len: usize, size: usize) -> bool {
    2 * apart > 5 * elements || passes(elements, len, size) <= MAX_PASSES
}

/// In how many passes a warp reads the first element that each lane writes: the most words in one bank of shared
/// memory, where rows of runs of `len` elements are so many elements apart.
fn passes(apart: usize, len: usize, size: usize) -> u32 {
    let (mut words, mut last) = ([0; 32], [usize::MAX; 32]);
    for lane in 0..32 {
        let nth = lane * elements_per_store(size) as usize;
        let word = (nth / len * apart + nth % len) * size / 4;
        if last[word % 32] != word {
            last[word % 32] = word;
            words[word % 32] += 1;
        }
    }
    words.into_iter().max().unwrap_or(0)
}

/// Writes the transpose of a matrix of `rows` x `columns` runs of `len` elements, without gaps: run `i * columns + j`
/// of the input is run `j * rows + i` of the output.
///
/// `len` is at least 2. A block is for `height` x `width` runs, `tiles_down` of them above each other; these,
/// `vectors_of_row` and `room_of_row` are as in [`RunTiles`]. `threads_of_row` write a row of the output, [as
/// there](RunTiles::threads_of_row). `step` is how many rows of the output are from one of a thread to its next: a
/// power of two, at least as many as the block has threads for, and such that rows so far apart begin at the same place
/// in a word. `LEN` is the [`room`] of a block.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == room(1)] + [u16] x [16384 == room(2)] + [u32] x [8192 == room(4)]
        + [u64] x [4096 == room(8)],
    block = PACKED_BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn run_tiles<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: usize,
    len: u32,
    height: u32,
    width: u32,
    tiles_down: u32,
    vectors_of_row: u32,
    room_of_row: u32,
    threads_of_row: u32,
    step: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let (across, down) = (thread::block_idx_x() / tiles_down, thread::block_idx_x() % tiles_down);
    let (top, left) = (down as usize * height as usize, across as usize * width as usize);
    let (high, wide) = (at_most(rows - top, height), at_most(columns - left, width));
    let runs = Runs { begin: (top * columns + left) * len as usize, columns, high, wide, len };
    let kept = runs.copy_to(&input, vectors_of_row, room_of_row, &tile);
    thread::sync_threads();

    let (each, written) = (elements_per_store(size_of::<T>()), high * len);
    let all_at_once = PACKED_BLOCK as u32 / threads_of_row;
    let mut first = thread::thread_idx_x() / threads_of_row;
    while first < step && first < wide {
        let start = ((left + first as usize) * rows + top) * len as usize;
        let past = output.elements_past(start, each as usize * size_of::<T>());
        let mut word = thread::thread_idx_x() % threads_of_row * each;
        while word < past as u32 + written {
            let at = Word::of::<T>(&kept, word as i32 - past as i32, written);
            let (mut column, mut place) = (first, first * len);
            let mut to = start.wrapping_add(word as usize).wrapping_sub(past);
            while column < wide {
                // SAFETY: where run `column` of a row in the tile is.
                let element = |k: u32| unsafe { tile.load_unchecked((at.places[k as usize] + place) as usize) };
                // SAFETY: these elements are inside of the row; `past` is counted from a word's start, and from a row
                // to the thread's next there are whole words.
                unsafe { store_any(&output, to, at.begin, at.end, element) };
                column += step;
                place += step * len;
                to = to.wrapping_add(step as usize * rows * len as usize);
            }
            word += threads_of_row * each;
        }
        first += all_at_once;
    }
}

/// Elements that are written at once.
struct Word {
    /// Where they are in shared memory, in the tile's first column; of those that are not the row's, where its first
    /// or last is.
    places: [u32; 8],
    /// Which of them are the row's.
    begin: u32,
    end: u32,
}

impl Word {
    /// Those from the `first` on of a row of so many elements.
    #[inline(always)]
    fn of<T: InWords>(kept: &Kept, first: i32, row: u32) -> Self {
        let each = elements_per_store(size_of::<T>());
        let place = |k: u32| {
            let nth = first + k as i32;
            let nth = if nth < 0 { 0 } else { nth as u32 };
            let (row, within) = kept.by_run.divide(if nth < row { nth } else { row - 1 });
            kept.place::<T>(row, within)
        };
        let behind = row as i32 - first;
        Self {
            places: [place(0), place(1), place(2), place(3), place(4), place(5), place(6), place(7)],
            begin: if first < 0 { -first as u32 } else { 0 },
            end: if behind < each as i32 { behind as u32 } else { each },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_strips::are_strips;
    use super::*;

    #[test]
    fn a_block_has_room_for_a_tile_and_threads_for_its_words() {
        for size in [1, 2, 4, 8] {
            let each = elements_per_store(size) as usize;
            for (len, tiles) in (2..=room(size) - 16 / size).flat_map(|len| [(len, 1), (len, 500)]) {
                for (rows, columns) in [(1000, 1000), (2, 1 << 20), (1 << 20, 2), (3, 5), (70, 70)] {
                    let cut = RunTiles::new(rows, columns, len, size, tiles);
                    check(&cut, [rows, columns], len, size);
                    // Most threads have a word, where rows of the output are long enough for so many.
                    let (threads, words) = (cut.threads_of_row(len, size), words_of_row(cut.height * len, each));
                    let are_large = rows == 1000 && cut.height > 8;
                    assert!(!are_large || 8 * words >= 5 * threads, "{len} of {size}: {cut:?}, {words} words");
                    if are_strips(rows, len, size) {
                        check(&RunTiles::of_strips(rows, columns, len, size, tiles), [rows, columns], len, size);
                    }
                }
            }
        }
        let tiles = RunTiles::new(8192, 512, 3, 4, 1);
        assert_eq!((tiles.height, tiles.threads_of_row(3, 4)), (42, 128));
        let tiles = RunTiles::new(8192, 512, 3, 1, 1);
        assert_eq!((tiles.height, tiles.width, tiles.threads_of_row(3, 1)), (80, 128, 32));
        for rows in 2..=16 {
            assert_eq!(RunTiles::of_strips(rows, 1 << 24, 3, 1, 500).height, rows);
            let narrow = RunTiles::new(1 << 24, rows, 3, 4, 500);
            assert!(narrow.width == rows && narrow.height * narrow.room_of_row > room(4) / 8 * 7, "{narrow:?}");
        }
    }

    fn check(tiles: &RunTiles, [rows, columns]: [usize; 2], len: usize, size: usize) {
        let &RunTiles { height, width, vectors_of_row, room_of_row } = tiles;
        assert!((1..=rows).contains(&height) && (1..=columns).contains(&width), "{tiles:?}");
        let (loaded, lanes) = (if room_of_row == width * len { 1 } else { height }, 16 / size);
        assert!(loaded * vectors_of_row <= PACKED_BLOCK * PACKED_VECTORS, "{len} of {size}: {tiles:?}");
        assert!((loaded - 1) * room_of_row + vectors_of_row * lanes <= room(size), "{len} of {size}: {tiles:?}");
        let elements = if loaded == 1 && width == columns { height * width * len } else { width * len };
        assert!(elements + lanes - 1 <= vectors_of_row * lanes, "{len} of {size}: {tiles:?}");
        assert!(vectors_of_row * lanes <= room_of_row || loaded == 1, "{len} of {size}: {tiles:?}");
        // What is divided is small enough for it.
        assert!(height * width * len < 1 << 16, "{len} of {size}: {tiles:?}");
    }

    #[test]
    fn rows_are_apart_where_a_warp_would_wait_for_its_banks() {
        let of = |columns: usize, len: usize, size: usize| passes(columns * len, len, size);
        assert_eq!([of(16, 3, 1), of(64, 3, 1), of(64, 3, 2), of(20, 3, 1), of(20, 3, 4)], [11, 22, 22, 3, 2]);
        assert_eq!(RunTiles::new(400_000, 16, 3, 1, 500).room_of_row, 68);
        assert_eq!(RunTiles::new(300_000, 20, 3, 1, 500).room_of_row, 60);
        // Apart, there would be a third of the rows.
        assert_eq!((of(2, 9, 1), RunTiles::new(3_000_000, 2, 9, 1, 500).room_of_row), (4, 18));
        for size in [1, 2, 4, 8] {
            for (len, elements) in (2..200).flat_map(|len| (1..100).map(move |vectors| (len, vectors * 16 / size))) {
                let passes = passes(room_of_row(elements, len, size), len, size);
                assert!(passes <= 4, "{elements} elements, runs of {len} of {size} bytes: {passes}");
            }
        }
    }

    #[test]
    fn a_tile_may_fill_its_block() {
        for size in [1, 2, 4, 8] {
            let fits = |height: usize, vectors_of_row: usize, room_of_row: usize| {
                RunTiles { height, width: 1, vectors_of_row, room_of_row }.fits(2, size)
            };
            let (most, lanes) = (PACKED_BLOCK * PACKED_VECTORS, 16 / size);
            assert_eq!([fits(1, most, 3), fits(1, most + 1, 3)], [true, false]);
            assert_eq!([fits(2, 9, room(size) - 9 * lanes), fits(2, 9, room(size) - 9 * lanes + 1)], [true, false]);
        }
    }

    #[test]
    fn a_tile_has_as_many_words_as_threads_and_there_are_as_many_tiles_as_asked_for() {
        assert_eq!(RunTiles::new(8192, 512, 2, 4, 500).height, 128 / 2);
        let strips = RunTiles::of_strips(4, 1 << 16, 3, 4, 500);
        assert_eq!(strips.width, (1 << 16) / 500);
    }

    #[test]
    fn two_or_three_tiles_are_about_as_wide() {
        assert_eq!([even_width(80, 65, 4), even_width(80, 32, 1), even_width(512, 129, 8)], [40, 27, 128]);
        assert_eq!([even_width(1000, 7, 8), even_width(9, 8, 4), even_width(513, 128, 8)], [7, 8, 128]);
    }

    #[test]
    fn the_nearest_power_of_two() {
        let of = [1, 2, 3, 4, 5, 6, 40, 46, 108, 156, 181, 182].map(nearest_power_of_two);
        assert_eq!(of, [1, 2, 4, 4, 4, 8, 32, 64, 128, 128, 128, 256]);
    }
}
