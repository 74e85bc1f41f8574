//! Puts a [strip](super::strips) of few rows together: each becomes a column.

use cuda_std::prelude::*;

use super::in_words::InWords;
use super::packs_of_rows::RowsInPacks;
use super::strips::{BLOCK, Divisor, PACKS_EACH, SECTOR, all_banks, at_once, room, store};
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

    let by_rows = Divisor::new(rows);
    let each = at_once(size_of::<T>());
    let (first_past, pitch) = (input.elements_past(runs.begin, 16) as u32, input_pitch as u32);
    // The tile's first element in the output, counted from that of its first column: before it, in the first tile.
    let before = ((left - first) as u32 * rows) as i32 - past as i32;
    let mut i = thread::thread_idx_x() * each;
    while i < width * rows {
        let from_first = before + i as i32;
        let begin = if from_first < 0 { -from_first as u32 } else { 0 };
        let behind = (runs.len * rows) as i32 - from_first;
        let end = if behind < each as i32 { behind } else { each as i32 };
        if (begin as i32) < end {
            let element = |k: u32| {
                let (column, row) = by_rows.divide((from_first + k as i32) as u32);
                let past = first_past.wrapping_add(row.wrapping_mul(pitch)) % T::Pack::LEN as u32;
                tile.load((row * room_of_run + past + column) as usize % LEN)
            };
            let to = (start + left * rows as usize + i as usize).wrapping_sub(past as usize);
            // SAFETY: these elements are inside of the matrix; and `past` is counted from a sector's start.
            unsafe { store(&output, to, begin, end as u32, element) };
        }
        i += BLOCK as u32 * each;
    }
}
