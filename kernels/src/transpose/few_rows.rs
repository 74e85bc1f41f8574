//! Puts a [strip](super::strips) of few rows together: each becomes a column.

use cuda_std::prelude::*;

use crate::divisor::Divisor;

use super::in_words::InWords;
use super::packs_of_rows::RowsInPacks;
use super::strips::{BLOCK, PACKS_EACH, SECTOR, all_banks, at_once, room, store, store_any};
use super::tile::admit_next_grid;

/// Columns of the matrix before those that a block is for, which it may need, because a matrix of the output begins inside of
/// a sector.
pub const fn margin(rows: usize, size: usize) -> usize {
    (SECTOR / size - 1).div_ceil(rows)
}

/// Packs that a run of a row lies in, of a block for `width` columns.
pub const fn packs_of_run(rows: usize, width: usize, size: usize) -> usize {
    let lanes = 16 / size;
    (width + margin(rows, size) + lanes - 1).div_ceil(lanes)
}

/// How many elements the runs of two rows begin apart in shared memory: enough for the packs, and such that what a warp reads
/// of neighbouring rows lies in different banks, where it can.
pub const fn room_of_run(rows: usize, width: usize, size: usize) -> usize {
    let word = if size < 4 { 4 / size } else { 1 };
    let (words, banks) = (packs_of_run(rows, width, size) * (16 / size) / word, all_banks(size) / word);
    if rows >= banks {
        // A warp reads one word of each of many.
        return (words | 1) * word;
    }
    // Or several of each of few.
    let apart = banks.div_ceil(rows);
    (words + (banks + apart - words % banks) % banks) * word
}

/// Columns that a block has room for: whole sectors of the output, and of the input.
pub const fn most_columns(rows: usize, size: usize) -> usize {
    let (packs, step) = (BLOCK * PACKS_EACH, SECTOR / size);
    let mut width = room(size) / rows / step * step;
    while width > 0
        && (packs_of_run(rows, width, size) * rows > packs || room_of_run(rows, width, size) * rows > room(size))
    {
        width -= step;
    }
    width
}

/// Writes the transposes of matrices of `rows` x `columns` elements, whose rows begin `input_pitch` elements apart, without
/// gaps; a further matrix begins `input_batch` and `output_batch` elements behind the one before.
///
/// `rows` is at least 2. A block is for `width` columns, up to [`most_columns`]: it writes so many rows of the output, counted
/// from the start of the sector in which the first begins; `blocks` of them are a matrix. `packs_of_run` and `room_of_run`
/// are the functions' of those names. `LEN` is the [`room`] of a block.
#[kernel(instances = [u8] x [32768] + [u16] x [16384] + [u32] x [8192] + [u64] x [4096], block = BLOCK, early)]
pub fn few_rows<T: InWords, const LEN: usize>(
    input: Global<T>,
    output: GlobalMut<T>,
    rows: u32,
    columns: usize,
    input_pitch: usize,
    input_batch: usize,
    output_batch: usize,
    width: u32,
    blocks: u32,
    packs_of_run: u32,
    room_of_run: u32,
) {
    admit_next_grid();
    let tile = shared_array![T; LEN];
    let (matrix, block) = (thread::block_idx_x() / blocks, thread::block_idx_x() % blocks);
    let start = matrix as usize * output_batch;
    let past = output.elements_past(start, SECTOR) as u32;
    let left = block as usize * width as usize;
    let first = left.saturating_sub(past.div_ceil(rows) as usize);
    let last = if left + (width as usize) < columns { left + width as usize } else { columns };
    if first >= last {
        // The matrix begins where a sector does, and needs one block less.
        return;
    }
    let runs = RowsInPacks {
        input: &input,
        begin: matrix as usize * input_batch + first,
        pitch: input_pitch,
        rows,
        len: (last - first) as u32,
        by_packs: Divisor::new(packs_of_run),
    };
    runs.copy_to(room_of_run, &tile);
    thread::sync_threads();

    let from_rows = FromRows {
        tile: &tile,
        by_rows: Divisor::new(rows),
        room_of_run,
        past: input.elements_past(runs.begin, 16) as u32,
        pitch: input_pitch as u32,
    };
    // The tile's first element in the output, counted from that of its first column: before it, in the first tile.
    let before = ((left - first) as u32 * rows) as i32 - past as i32;
    let to = (start + left * rows as usize).wrapping_sub(past as usize);
    from_rows.store_to(&output, to, width * rows, before, runs.len * rows);
}

/// Runs of rows in shared memory, as columns.
struct FromRows<'a, T, const LEN: usize> {
    tile: &'a SharedArray<T, LEN>,
    by_rows: Divisor,
    room_of_run: u32,
    /// How many elements the first run begins behind its first pack's start, and the pitch that tells so of the others.
    past: u32,
    pitch: u32,
}

impl<T: InWords, const LEN: usize> FromRows<'_, T, LEN> {
    /// Where the element lies that is the `i`-th in the output.
    #[inline(always)]
    fn place(&self, i: u32) -> u32 {
        let (column, row) = self.by_rows.divide(i);
        let past = self.past.wrapping_add(row.wrapping_mul(self.pitch)) % T::Pack::LEN as u32;
        row * self.room_of_run + past + column
    }

    /// Writes `len` elements from the output's `to` on, of which the first is that before `-before` elements, or that many
    /// behind, and of which there are `behind` from that on.
    ///
    /// A thread's elements are a multiple of the rows apart: so they are of the same rows each time, and their places differ by
    /// so many columns. To work out each one's place were most of what there is to do for bytes.
    #[inline(always)]
    fn store_to(&self, output: &GlobalMut<T>, to: usize, len: u32, before: i32, behind: u32) {
        let each = at_once(size_of::<T>());
        let rows = self.by_rows.by();
        let (columns, idle) = self.by_rows.divide(BLOCK as u32);
        let (threads, thread) = (BLOCK as u32 - idle, thread::thread_idx_x());
        if thread >= threads {
            return;
        }
        let mut i = thread * each;
        let mut from_first = before + i as i32;
        // Counted from so many columns before that none is negative.
        let place =
            |k: u32| self.place((from_first + (k + SECTOR as u32 * rows) as i32) as u32).wrapping_sub(SECTOR as u32);
        let first = match each {
            8 => [place(0), place(1), place(2), place(3), place(4), place(5), place(6), place(7)],
            4 => [place(0), place(1), place(2), place(3), 0, 0, 0, 0],
            _ => [place(0), 0, 0, 0, 0, 0, 0, 0],
        };
        let mut further = 0;
        while i < len {
            let begin = if from_first < 0 { -from_first as u32 } else { 0 };
            let left = behind as i32 - from_first;
            if begin == 0 && left >= each as i32 {
                // SAFETY: all of these elements are the runs'.
                let element =
                    |k: u32| unsafe { self.tile.load_unchecked(first[k as usize].wrapping_add(further) as usize) };
                // SAFETY: inside of the matrix; and what is behind `to` by a multiple of so many is aligned.
                unsafe { store_any(output, to.wrapping_add(i as usize), 0, each, element) };
            } else if begin < each && (begin as i32) < left {
                let end = if left < each as i32 { left as u32 } else { each };
                let element = |k: u32| self.tile.load(self.place((from_first + k as i32) as u32) as usize % LEN);
                // SAFETY: as above, of these elements.
                unsafe { store(output, to.wrapping_add(i as usize), begin, end, element) };
            }
            i += threads * each;
            from_first += (threads * each) as i32;
            further += columns * each;
        }
    }
}
