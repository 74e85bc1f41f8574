//! Takes a [strip](super::strips) of few columns apart: each becomes a row.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::in_words::InWords;
use super::strips::{BLOCK, PACKS_EACH, SECTOR, all_banks, at_once, per_word, room, store, words, words_of_pack};
use super::tile::admit_next_grid;

/// Rows of the matrix above those that a block writes, which it may need: a row of the output begins so many elements
/// behind a sector's start, at most.
pub const fn margin(size: usize) -> usize {
    SECTOR / size - 1
}

/// Positions in a row of the output that a block has room for: whole sectors.
pub const fn most_positions(columns: usize, size: usize) -> usize {
    // The run may begin inside of a pack, and that it lies in has to have a place.
    let mut run = room(size) - 16 / size;
    while place((run + 16 / size - 1) as u32, size) as usize >= room(size) {
        run -= 16 / size;
    }
    (run / columns).saturating_sub(margin(size)) / (SECTOR / size) * (SECTOR / size)
}

/// Where element `i` of the tile's run lies in shared memory: a word is left out after those that fill all banks, so that
/// elements that are a multiple of that apart are in different ones.
const fn place(i: u32, size: usize) -> u32 {
    let left_out = if size < 4 { 4 / size } else { 1 };
    i + i / all_banks(size) as u32 * left_out as u32
}

/// Writes the transposes of matrices of `rows` x `columns` elements without gaps to rows that begin `output_pitch` elements
/// apart; a further matrix begins `input_batch` and `output_batch` elements behind the one before.
///
/// `columns` is at least 2. A block writes `height` positions of each row of the output, whole sectors, up to
/// [`most_positions`], counted from the start of the sector in which that begins; `blocks` of them are a matrix. `LEN` is
/// the [`room`] of a block.
#[kernel(instances = [u8] x [32768] + [u16] x [16384] + [u32] x [8192] + [u64] x [4096], block = BLOCK, early)]
pub fn few_columns<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: usize,
    columns: u32,
    output_pitch: usize,
    input_batch: usize,
    output_batch: usize,
    height: u32,
    blocks: u32,
) {
    admit_next_grid();
    let tile = shared_array![T; LEN];
    let (matrix, block) = (thread::block_idx_x() / blocks, thread::block_idx_x() % blocks);
    let top = block as usize * height as usize;
    let first = top.saturating_sub(margin(size_of::<T>()));
    let last = if top + (height as usize) < rows { top + height as usize } else { rows };
    let run =
        Run::of(&input, matrix as usize * input_batch + first * columns as usize, (last - first) as u32 * columns);
    let packs: [T::Pack; PACKS_EACH] =
        [run.load(0), run.load(1), run.load(2), run.load(3), run.load(4), run.load(5), run.load(6), run.load(7)];
    run.keep(0, packs[0], &tile);
    run.keep(1, packs[1], &tile);
    run.keep(2, packs[2], &tile);
    run.keep(3, packs[3], &tile);
    run.keep(4, packs[4], &tile);
    run.keep(5, packs[5], &tile);
    run.keep(6, packs[6], &tile);
    run.keep(7, packs[7], &tile);
    thread::sync_threads();

    let each = at_once(size_of::<T>());
    let per_row = Divisor::new(height / each);
    let mut i = thread::thread_idx_x();
    while i < columns * (height / each) {
        let (column, nth) = per_row.divide(i);
        let row = matrix as usize * output_batch + column as usize * output_pitch;
        let past = output.elements_past(row, SECTOR);
        let position = (nth * each) as usize;
        // The first element's row of the matrix, counted from the tile's first: before it, in the first tile.
        let from_first = ((top - first + position) as i32) - past as i32;
        let begin = if from_first < 0 { -from_first as u32 } else { 0 };
        let behind = (last - first) as i32 - from_first;
        let end = if behind < each as i32 { behind } else { each as i32 };
        if (begin as i32) < end {
            let at = ((run.past + column) as i32 + from_first * columns as i32) as u32;
            let element = |k: u32| tile.load(place(at.wrapping_add(k * columns), size_of::<T>()) as usize % LEN);
            let to = (row + top + position).wrapping_sub(past);
            // SAFETY: these elements are inside of the row; and `past` is counted from a sector's start.
            unsafe { store(&output, to, begin, end as u32, element) };
        }
        i += BLOCK as u32;
    }
}

/// A run of elements in global memory, and the aligned packs that it lies in.
struct Run<'a, T> {
    input: &'a Global<'a, T>,
    /// Where the first pack begins: `past` elements before the run.
    start: usize,
    past: u32,
    /// Elements, from the first pack's start on.
    end: u32,
}

impl<'a, T: InWords> Run<'a, T> {
    #[inline(always)]
    fn of(input: &'a Global<'a, T>, begin: usize, len: u32) -> Self {
        let past = input.elements_past(begin, 16);
        Self { input, start: begin.wrapping_sub(past), past: past as u32, end: past as u32 + len }
    }

    /// The number of the thread's `k`-th pack, and whether there is one.
    #[inline(always)]
    fn pack(&self, k: usize) -> (u32, bool) {
        let (i, packs) = (thread::thread_idx_x() + (k * BLOCK) as u32, self.end.div_ceil(T::Pack::LEN as u32));
        if i < packs { (i, true) } else { (packs - 1, false) }
    }

    /// The thread's `k`-th pack, or the run's last: so that there is no branch, behind which loads would wait.
    #[inline(always)]
    fn load(&self, k: usize) -> T::Pack {
        let lanes = T::Pack::LEN as u32;
        let (i, _) = self.pack(k);
        let from = if i == 0 { self.past } else { 0 };
        let to = if (i + 1) * lanes < self.end { lanes } else { self.end - i * lanes };
        // SAFETY: these elements are the run's, which is inside of the view; and `start` is aligned.
        unsafe {
            self.input.load_aligned_part_unchecked(
                self.start.wrapping_add((i * lanes) as usize),
                from as usize,
                to as usize,
            )
        }
    }

    /// Writes the thread's `k`-th pack to shared memory.
    #[inline(always)]
    fn keep<const LEN: usize>(&self, k: usize, pack: T::Pack, tile: &SharedArray<T, LEN>) {
        let (i, is_there) = self.pack(k);
        if is_there {
            let words = words::<T>(pack);
            let mut j = 0;
            while j < words_of_pack::<T>() {
                let at = (i * words_of_pack::<T>() + j) * per_word::<T>();
                tile.store_word(place(at, size_of::<T>()) as usize % LEN, words[j as usize]);
                j += 1;
            }
        }
    }
}
