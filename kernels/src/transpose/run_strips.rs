//! Transposes matrices of short runs that have few rows: a tile is as high as they are, and so it is one run in the
//! output, which is written word by word. It is loaded as by [`run_tiles`](super::run_tiles).

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::in_words::InWords;
use super::kept_runs::{Runs, at_most};
use super::strips::{room, store_any};
use super::tile::launch_dependents;
use super::tuning::{PACKED_BLOCK, SHORT_WIDE_ROW, elements_per_store};

/// Whether rows of the output are so short that many words would be of two of them: `rows` runs of `len` elements of
/// `size` bytes.
pub const fn are_strips(rows: usize, len: usize, size: usize) -> bool {
    rows * len * size < SHORT_WIDE_ROW
}

/// Writes the transpose of a matrix of `rows` x `columns` runs of `len` elements, without gaps: run `i * columns + j`
/// of the input is run `j * rows + i` of the output.
///
/// `len` is at least 2. A block is for `width` runs of each row; that, `vectors_of_row` and `room_of_row` are as in
/// [`RunTiles`](super::run_tiles::RunTiles). `LEN` is the [`room`] of a block.
///
/// # Safety
/// The arguments are as said above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = [u8] x [32768 == room(1)] + [u16] x [16384 == room(2)] + [u32] x [8192 == room(4)]
        + [u64] x [4096 == room(8)],
    block = PACKED_BLOCK,
    early = crate::PREFETCH_BLOCKS
)]
pub unsafe fn run_strips<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: usize,
    len: u32,
    width: u32,
    vectors_of_row: u32,
    room_of_row: u32,
) {
    launch_dependents();
    let tile = shared_array![T; LEN];
    let left = thread::block_idx_x() as usize * width as usize;
    let wide = at_most(columns - left, width);
    let runs = Runs { begin: left * len as usize, columns, high: rows, wide, len };
    let kept = runs.copy_to(&input, vectors_of_row, room_of_row, &tile);
    thread::sync_threads();

    let by_column = Divisor::new(rows * len);
    let (each, written) = (elements_per_store(size_of::<T>()), wide * rows * len);
    let start = left * rows as usize * len as usize;
    let past = output.elements_past(start, each as usize * size_of::<T>());
    let mut word = thread::thread_idx_x() * each;
    while word < past as u32 + written {
        let first = word as i32 - past as i32;
        let begin = if first < 0 { -first as u32 } else { 0 };
        let behind = written as i32 - first;
        let end = if behind < each as i32 { behind as u32 } else { each };
        // Of those beside the run it is its first or last one: a branch would be done twice.
        let element = |k: u32| {
            let nth = first + k as i32;
            let nth = if nth < 0 { 0 } else { nth as u32 };
            let (column, within) = by_column.divide(if nth < written { nth } else { written - 1 });
            let (row, nth) = kept.by_run.divide(within);
            // SAFETY: where that element of run `column` of a row in the tile is.
            unsafe { tile.load_unchecked((kept.place::<T>(row, nth) + column * len) as usize) }
        };
        let to = start.wrapping_add(word as usize).wrapping_sub(past);
        // SAFETY: these elements are the run's; and `past` is counted from a word's start.
        unsafe { store_any(&output, to, begin, end, element) };
        word += PACKED_BLOCK as u32 * each;
    }
}
