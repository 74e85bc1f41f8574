//! Exact sums of columns: each column of threads sums four of them.

use cuda_std::global::issue_loads;
use cuda_std::hint::{compute_now, keep_rolled};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_vote_all, warp_vote_any};
use exact_sum::Window;
use half::{bf16, f16};

use super::column_share::{Exponents, Matrix, Share};
use super::column_sums::{
    ColumnSums, NOT_SUMMED, OutsideBins, Slots, integer_and_position, load_slot, store_slot, window_of_column,
};
use super::column_tile::Tile;
use super::columns_full_range::sum_full_range;
use super::format::Format;
use super::global_superaccumulators::{GlobalSuperaccumulators, WordRange};
use super::grid::Grid;
use super::lane_memory::LaneMemory;
use super::result::{ExactOperator, Results};
use super::terms::{Float, Terms};
use super::unrolled::each;
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::columns::thread_columns::{ThreadColumns, load_vectorized, per_column};
use crate::reduce::columns::{BLOCK, COLUMNS, DEPENDENT_LAUNCH_BLOCKS};
use crate::reduce::fold::is_last_block;
pub use crate::reduce::tuning::exact_columns::{MIN_BLOCKS, rows_in_flight};
use crate::reduce::tuning::exact_columns::{MIN_LANES, has_single_half, rows_of_half_tile};

/// The arguments of [`exact_columns`](fn@exact_columns): as [`ColumnArgs`](crate::reduce::columns::ColumnArgs), but
/// with superaccumulators instead of partials.
#[arguments]
pub struct ExactColumnArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// Rows of a matrix.
    pub rows: usize,
    /// Columns of a matrix.
    pub columns: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Elements from the start of a matrix to that of the next one.
    pub batch_pitch: usize,
    /// Rows that are folded into one.
    pub folded_rows: u32,
    /// Threads in a row of threads.
    pub lanes: u32,
    /// Tiles across a row.
    pub tiles: u32,
    /// Blocks that share a column: its splits.
    pub splits: u32,
    /// Rows of each split but the last, which may have fewer; a multiple of `folded_rows`.
    pub rows_of_split: usize,
    /// Superaccumulators to which the blocks of a column add; all 0 before and after the launch.
    pub superaccumulators: GlobalMut<i64>,
    /// Counts of finished blocks, and ranges of words that they added to: [`WORDS_OF_TICKET`] entries for each ticket.
    /// All 0 before and after the launch.
    pub tickets: GlobalMut<u32>,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// Entries of `tickets` for each ticket: the count, and a [`WordRange`].
pub const WORDS_OF_TICKET: usize = 1 + WordRange::SHARED_WORDS;

/// The dynamic shared memory of a block that sums terms `K`.
pub const fn lane_memory<K: Terms>() -> LaneMemory {
    // Each column has a slot and an exponent; counts take less than 1 KiB.
    let static_bytes = BLOCK * COLUMNS * (size_of::<[u64; 2]>() + size_of::<u32>()) + 1024;
    LaneMemory::of::<K>(static_bytes, MIN_LANES)
}

/// [`columns`](fn@crate::reduce::columns::columns) with exact sums.
///
/// Each column has a window, chosen by the largest of the column's first terms in the block. Terms outside the window,
/// and residuals, are added one by one to an integer of 112 bits. Columns whose sums do not fit in it are summed again,
/// in superaccumulators of lanes. Blocks that share a column add their integers to one of `superaccumulators`, and the
/// last of these blocks writes the result.
///
/// # Safety
/// As for [`columns`](fn@crate::reduce::columns::columns); but with several splits, there is a superaccumulator for
/// each column of each batch, of [`words_of_superaccumulator`](super::long_rows::words_of_superaccumulator) words, and
/// `tickets` has one ticket for each batch if rows are folded, else one for each tile. Both are 0. The block has
/// [`lane_memory`] for all its threads.
#[kernel(
    instances = [Sum] x [f32, f64, f16, bf16] + [SumOfSquares] x [f32, f16, bf16],
    block = BLOCK,
    min_blocks = 2,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_columns<O: ExactOperator<T>, T: Element>(
    ExactColumnArgs {
        input,
        rows,
        columns,
        pitch,
        batch_pitch,
        folded_rows,
        lanes,
        tiles,
        splits,
        rows_of_split,
        superaccumulators,
        tickets,
        finish,
        output,
        term,
    }: ExactColumnArgs<T>,
) {
    assert!(!<O::Terms as Terms>::HAS_LOW, "columns of two terms each are transposed");
    let matrix = Matrix { rows, columns, pitch, batch_pitch, folded_rows, lanes, tiles, splits, rows_of_split };
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(finish, output) };
    let terms = O::Terms::of_word(term);
    sum_columns::<O, T>(&input, &matrix, terms, &superaccumulators, &tickets, results);
}

/// The grid of the terms.
type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;

#[inline(always)]
fn sum_columns<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    matrix: &Matrix,
    terms: O::Terms,
    superaccumulators: &GlobalMut<i64>,
    tickets: &GlobalMut<u32>,
    results: Results<'_, O::Terms>,
) {
    let slots: Slots = shared_array!([u64; 2]; BLOCK * COLUMNS);
    let exponents: Exponents = shared_array!(u32; BLOCK * COLUMNS);
    let shared_ticket = shared_array!(u32; 1);
    let sums = sum_rows_of_block::<O, T>(input, &matrix.share(input), terms, slots, exponents);

    let matrix = matrix.recomputed();
    let Matrix { rows, splits, .. } = matrix;
    let share = matrix.share(input);
    let thread = thread::index_in_block::<BLOCK>();
    let place = share.place::<T>(thread);
    let batch = share.batch as usize;
    let shared = GlobalSuperaccumulators::<GridOf<O, T>>::new(superaccumulators, batch, share.columns);
    let mut range = WordRange::EMPTY;
    let result = |sum: i128, window| {
        let (integer, position) = integer_and_position::<GridOf<O, T>>(sum, window);
        let exponent = GridOf::<O, T>::UNIT + position as i32;
        results.finish.of_integer_by_call::<GridOf<O, T>>(integer, exponent, rows as u64)
    };
    let mut is_again = false;
    if place.rows == 1 && splits == 1 {
        each::<COLUMNS>(|c| {
            let is_summed = !place.has(c) || sums.values[c] != NOT_SUMMED;
            is_again |= !is_summed;
            store_slot(slots, c * BLOCK + thread, if is_summed { 0 } else { NOT_SUMMED });
        });
        let finish = |c: usize| result(sums.values[c], sums.windows[c]);
        // The results of columns that are not summed are replaced later.
        results.store_columns([finish(0), finish(1), finish(2), finish(3)], share.output(0), &place);
    } else {
        each::<COLUMNS>(|c| store_slot(slots, c * BLOCK + thread, sums.values[c]));
        thread::sync_threads();
        let lane = thread & (share.lanes as usize - 1);
        // Each row of threads combines the sums of some columns.
        let mut c = place.row;
        while c < COLUMNS {
            let own = c * BLOCK + lane;
            let (mut sum, mut is_summed) = (0_i128, true);
            each_of_column(own, share.lanes as usize, (c + 1) * BLOCK, |i, exists| {
                let of_row = load_slot(slots, i);
                is_summed &= of_row != NOT_SUMMED;
                sum = sum.wrapping_add(if exists { of_row } else { 0 });
            });
            // A thread without such a column holds the sum of another column.
            is_summed |= !place.has(c);
            is_again |= !is_summed;
            store_slot(slots, own, if is_summed { 0 } else { NOT_SUMMED });
            if is_summed && place.has(c) {
                let window = window_in::<O::Terms>(exponents, own);
                let to = share.output(place.column(c));
                if splits > 1 {
                    let (integer, position) = integer_and_position::<GridOf<O, T>>(sum, window);
                    range = range.union(shared.add(to - batch * share.columns, integer, position));
                } else {
                    results.store(to, result(sum, window));
                }
            }
            c += place.rows;
        }
    }
    if thread::sync_threads_or(is_again.into()) != 0 {
        let superaccumulators = if splits > 1 { Some(*superaccumulators) } else { None };
        let of_full_range =
            sum_full_range::<O, T>(*input, share, (slots, exponents), rows, terms, superaccumulators, results);
        range = range.union(of_full_range);
    }
    if splits == 1 {
        return;
    }

    let Matrix { columns, folded_rows, tiles, .. } = matrix;
    let tile = share.tile as usize;
    // A folded row has columns in other tiles, too.
    let (ticket, blocks) =
        if folded_rows == 1 { (batch * tiles as usize + tile, splits) } else { (batch, splits * tiles) };
    let ticket = ticket * WORDS_OF_TICKET;
    range.share(tickets, ticket + 1);
    if !is_last_block(tickets, ticket, blocks, &shared_ticket) {
        return;
    }
    let range = WordRange::shared(tickets, ticket + 1);
    let of_tile = share.lanes as usize * COLUMNS;
    let (first, end) = if folded_rows == 1 { (tile * of_tile, (tile + 1) * of_tile) } else { (0, columns) };
    let mut column = first + thread;
    while column < end && column < columns {
        let result = shared.finish(results.finish, column, range, rows as u64);
        results.store(batch * columns + column, result);
        column += BLOCK;
    }
    // All threads have read the range.
    thread::sync_threads();
    if thread < WordRange::SHARED_WORDS {
        tickets.store_volatile(ticket + 1 + thread, 0);
    }
}

/// A thread's sums of its columns.
#[derive(Clone, Copy)]
struct ThreadSums<F: Format> {
    /// [`NOT_SUMMED`], or integers in a slot's units.
    values: [i128; COLUMNS],
    windows: [Window<F>; COLUMNS],
}

/// This thread's sums of a block's share.
#[inline(always)]
fn sum_rows_of_block<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    share: &Share,
    terms: O::Terms,
    slots: Slots,
    exponents: Exponents,
) -> ThreadSums<Float<O::Terms>> {
    const SHORT: usize = 16;
    let place = share.place::<T>(thread::index_in_block::<BLOCK>());
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS && share.whole() <= SHORT * place.rows {
        thread::launch_dependents();
    }
    // A function for each case, because with a branch around each load, loads would wait for each other.
    if share.is_vectorized {
        // SAFETY: all rows are aligned. Accesses are inside the view, even if they extend into the next row.
        let load = |row: usize, at| unsafe { load_vectorized(input, row, at) };
        sum_rows_of::<O, T>(input, share, &place, terms, slots, exponents, load)
    } else {
        // SAFETY: the column is in the row.
        let load =
            |row: usize, at: [usize; COLUMNS]| per_column(|c| unsafe { input.load_unchecked(row.wrapping_add(at[c])) });
        sum_rows_of::<O, T>(input, share, &place, terms, slots, exponents, load)
    }
}

/// The window of a column: that of all columns if the terms have a fixed one, else the column's own.
#[inline(always)]
fn window_in<K: Terms>(exponents: Exponents, i: usize) -> Window<Float<K>> {
    K::Grid::window(match K::WINDOW {
        Some(exponent) => exponent,
        None => exponents.load(i) as i32,
    })
}

/// [`sum_rows`], with the number of rows of half a tile for the element type.
#[inline(always)]
fn sum_rows_of<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    share: &Share,
    place: &ThreadColumns,
    terms: O::Terms,
    slots: Slots,
    exponents: Exponents,
    load: impl Fn(usize, [usize; COLUMNS]) -> [T; COLUMNS],
) -> ThreadSums<Float<O::Terms>> {
    let rows = const {
        let is_single = has_single_half(size_of::<T>(), O::Terms::WINDOW);
        rows_of_half_tile(size_of::<T>(), size_of::<Float<O::Terms>>(), is_single)
    };
    match rows {
        8 => sum_rows::<O::Terms, T, 8>(input, share, place, terms, slots, exponents, load),
        4 => sum_rows::<O::Terms, T, 4>(input, share, place, terms, slots, exponents, load),
        2 => sum_rows::<O::Terms, T, 2>(input, share, place, terms, slots, exponents, load),
        _ => unreachable!(),
    }
}

/// This thread's sums of its columns. `load` loads its elements of a row.
///
/// A tile has two halves of `HALF` rows. As soon as one half is added, the same half of the next tile is loaded to its
/// registers, and is in flight while the other half is added. Or a tile has one half, and the next tile is in flight in
/// other registers.
#[inline(always)]
fn sum_rows<K: Terms<Element = T, Item = T>, T: Element, const HALF: usize>(
    input: &Global<T>,
    share: &Share,
    place: &ThreadColumns,
    terms: K,
    slots: Slots,
    exponents: Exponents,
    load: impl Fn(usize, [usize; COLUMNS]) -> [T; COLUMNS],
) -> ThreadSums<Float<K>> {
    let (thread, is_single) = (thread::index_in_block::<BLOCK>(), const { has_single_half(size_of::<T>(), K::WINDOW) });
    let (rows_of_half, halves_of_tile) = (HALF as u32, if is_single { 1 } else { 2 });
    let rows_of_tile = halves_of_tile * rows_of_half;
    // The number of the thread's remaining rows, and the index of the first. All threads take equally many halves of
    // tiles.
    let (row, rows, whole) = (place.row as u32, place.rows as u32, share.whole() as u32);
    // `rows` and `HALF` are powers of two: shifts are much faster than divisions.
    let (rows_log, half_log) = (rows.trailing_zeros(), (rows * rows_of_half).trailing_zeros());
    let mut left = if row < whole { ((whole - row - 1) >> rows_log) + 1 } else { 0 };
    let mut halves = if whole > 0 { ((whole - 1) >> half_log) + 1 } else { 0 };
    let distance = (rows * share.folded_rows) as usize * share.pitch;
    let first_row = if left > 0 { row * share.folded_rows } else { 0 };
    let at = per_column(|c| place.offset(c, share.pitch));
    let mut first = share.start + (share.begin + first_row as usize) * share.pitch + at[0];
    // The distances of the thread's columns from its first.
    let at = per_column(|c| at[c].wrapping_sub(at[0]));
    // Half of the tile whose first row is `first`, and of which `left` rows exist: the second half if `skipped` is
    // `HALF`.
    let load_half = |first: usize, left: u32, skipped: u32| {
        // Opaque, so that its multiples are recomputed: kept from tile to tile, they would take registers.
        let distance = compute_wide_now(distance);
        let mut tile = Tile::<T, HALF>::zeros();
        if left >= skipped + rows_of_half {
            // Opaque, so that the two cases do not share the first load, for which the others would wait.
            let first = compute_wide_now(first + skipped as usize * distance);
            each::<HALF>(|k| tile.set_row(k, load(first + k * distance, at)));
        } else {
            // Rows past the end are zeros.
            each::<HALF>(|k| {
                let row = skipped + k as u32;
                let exists = row < left;
                let loaded = load(if exists { first + row as usize * distance } else { first }, at);
                tile.set_row(k, per_column(|c| if exists { loaded[c] } else { T::default() }));
            });
        }
        tile
    };
    let mut upper = load_half(first, left, 0);
    let mut lower = if !is_single && halves > 1 { load_half(first, left, rows_of_half) } else { Tile::zeros() };
    issue_loads();
    let windows = choose_windows::<K, T, HALF>(terms, [&upper, &lower], place.row, share.lanes as usize, exponents);
    let mut sums = ColumnSums::in_windows(windows);
    let mut outside = OutsideBins::new(slots, thread);
    // Not if terms are larger than their elements, which leaves no registers.
    let prefetches_to_other = is_single && const { size_of::<Float<K>>() == 4 };
    // A branch for the lower half, which may be empty in the last tile, takes registers, too.
    let skips_empty_half = const { size_of::<Float<K>>() == 4 };
    let (all, mut retry_cost, mut is_abandoned) = (halves, 0, false);
    while halves > 0 {
        let mut is_exact = true;
        while is_exact && halves > 0 && sums.has_capacity::<K>(rows_of_tile as usize) {
            let next_left = left.saturating_sub(rows_of_tile);
            let next_first = first + if next_left > 0 { rows_of_tile as usize * distance } else { 0 };
            let has_next = halves > halves_of_tile;
            let next = if prefetches_to_other && has_next { load_half(next_first, next_left, 0) } else { upper };
            issue_loads();
            let mut are_exact = sums.take::<K, HALF>(terms, &upper);
            if const { HALF * COLUMNS * size_of::<Float<K>>() >= 128 } {
                // Computed now: after the loads, so large terms would take too many registers.
                are_exact = compute_now(are_exact.into()) != 0;
            }
            upper = if !prefetches_to_other && has_next { load_half(next_first, next_left, 0) } else { next };
            issue_loads();
            if !is_single {
                if !skips_empty_half || halves > 1 {
                    are_exact &= sums.take::<K, HALF>(terms, &lower);
                }
                if has_next {
                    lower = load_half(next_first, next_left, rows_of_half);
                }
                issue_loads();
            }
            // Uniform in a warp, so that its lanes stay together.
            is_exact = !warp_vote_any(FULL_MASK, !(are_exact | is_abandoned));
            if is_exact {
                halves = halves.saturating_sub(halves_of_tile);
                (left, first) = (next_left, next_first);
            }
        }
        // Outside the inner loop, so that the loop has all registers.
        if !is_exact {
            let (mut k, mut has_missing) = (0, false);
            while k < left && k < rows_of_tile && !is_abandoned {
                k = keep_rolled(k);
                let row = load(first + k as usize * distance, at);
                each::<COLUMNS>(|c| has_missing |= sums.complete(terms, c, row[c], &mut outside));
                k += 1;
            }
            halves = halves.saturating_sub(halves_of_tile);
            // If many tiles are not exact, summing the columns again takes less time.
            const FEW: u32 = 16;
            retry_cost += if has_missing { 4 * halves_of_tile } else { 0 };
            is_abandoned |= retry_cost > all - halves + FEW;
            if warp_vote_all(FULL_MASK, is_abandoned) {
                break;
            }
            left = left.saturating_sub(rows_of_tile);
            first += if left > 0 { rows_of_tile as usize * distance } else { 0 };
        }
        if halves > 0 && !sums.has_capacity::<K>(rows_of_tile as usize) {
            each::<COLUMNS>(|c| outside.add(c, sums.value::<K::Grid>(c)));
            sums = sums.cleared();
        }
    }
    if share.left > 0 && place.row == 0 {
        let mut c = 0;
        while c < COLUMNS as u32 {
            c = keep_rolled(c);
            let column = c as usize;
            if place.column(column) < share.left {
                // SAFETY: this row exists, and has the column.
                let item = unsafe { input.load_unchecked(share.element(place, column, share.whole())) };
                let lane = thread & (share.lanes as usize - 1);
                let window = window_in::<K>(exponents, column * BLOCK + lane);
                outside.add_term::<K>(column, window, terms.term(item));
            }
            c += 1;
        }
    }
    let values = per_column(|c| if is_abandoned { NOT_SUMMED } else { outside.sum(c, sums.value::<K::Grid>(c)) });
    ThreadSums { values, windows }
}

/// Calls `work` with every `lanes`-th entry from `first` to before `end`: those of a column, one for each row of
/// threads. Four loads are in flight together. If fewer entries are left, `work` gets the first one again, and `false`.
#[inline(always)]
fn each_of_column(first: usize, lanes: usize, end: usize, mut work: impl FnMut(usize, bool)) {
    let mut i = first;
    while i < end {
        each::<4>(|k| {
            let exists = i + k * lanes < end;
            work(if exists { i + k * lanes } else { first }, exists);
        });
        i += 4 * lanes;
    }
}

/// [`compute_now`] of a `usize`.
#[inline(always)]
fn compute_wide_now(word: usize) -> usize {
    compute_now(word as u32) as usize | (compute_now((word >> 32) as u32) as usize) << 32
}

/// The windows of a thread's columns, the same in all threads of a column. If there are several such threads, the
/// windows are stored in the entries of the first one. All threads must call this.
#[inline(always)]
fn choose_windows<K: Terms<Item = T>, T: Element, const HALF: usize>(
    terms: K,
    halves: [&Tile<T, HALF>; 2],
    row: usize,
    lanes: usize,
    exponents: Exponents,
) -> [Window<Float<K>>; COLUMNS] {
    if let Some(exponent) = K::WINDOW {
        return [K::Grid::window(exponent); COLUMNS];
    }
    // `lanes` is a power of two.
    let thread = thread::index_in_block::<BLOCK>();
    let lane = thread & (lanes - 1);
    let mut largest = [0.0_f32; COLUMNS];
    let [upper, lower] = halves;
    each::<HALF>(|k| {
        each::<COLUMNS>(|c| {
            largest[c] = largest[c].max(terms.term(upper.get(k, c)).upper()).max(terms.term(lower.get(k, c)).upper());
        });
    });
    if lanes == BLOCK {
        // The windows are this thread's own. They are stored for later readers.
        return per_column(|c| {
            let exponent = window_of_column::<Float<K>>(largest[c].to_bits());
            exponents.store(c * BLOCK + thread, exponent as u32);
            K::Grid::window(exponent)
        });
    }
    each::<COLUMNS>(|c| exponents.store(c * BLOCK + thread, largest[c].to_bits()));
    thread::sync_threads();
    let mut c = row;
    while c < COLUMNS {
        let own = c * BLOCK + lane;
        let mut largest = 0;
        each_of_column(own, lanes, (c + 1) * BLOCK, |i, _| {
            let of_row = exponents.load(i);
            largest = if of_row > largest { of_row } else { largest };
        });
        exponents.store(own, window_of_column::<Float<K>>(largest) as u32);
        c += BLOCK >> lanes.trailing_zeros();
    }
    thread::sync_threads();
    per_column(|c| window_in::<K>(exponents, c * BLOCK + lane))
}

#[cfg(test)]
mod tests {
    use super::compute_wide_now;

    #[test]
    fn indices_may_exceed_32_bits() {
        for index in [0, 5, 1 << 32, (7 << 40) | 9, usize::MAX] {
            assert_eq!(compute_wide_now(index), index);
        }
    }
}
