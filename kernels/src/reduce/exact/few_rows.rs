//! Exact sums of columns of few rows: each thread sums four of them in one or two `f64`.

use cuda_std::prelude::*;
use half::{bf16, f16};

use super::few_sums::{each_bit, is_short, number_of, result_of_terms, results_of};
use super::few_terms::{DoublePair, FewTerms, Single};
use super::result::{ExactOperator, Results};
use super::terms::Terms;
use super::unrolled::each;
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::columns::thread_columns::{ThreadColumns, load_vectorized, per_column};
use crate::reduce::columns::{BLOCK, COLUMNS, DEPENDENT_LAUNCH_BLOCKS};
use crate::reduce::tuning::few_rows::IN_FLIGHT;
pub use crate::reduce::tuning::few_rows::{MAX_ROWS, MAX_SINGLE_ROWS, MIN_COLUMNS};

/// Columns of a tile.
pub const COLUMNS_OF_TILE: usize = BLOCK * COLUMNS;

/// The arguments of [`exact_few_rows`](fn@exact_few_rows).
#[arguments]
pub struct FewRowArgs<T: Plain> {
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
    /// Tiles across a row, of [`COLUMNS_OF_TILE`] columns each.
    pub tiles: u32,
    /// Whether columns are groups of four, whose elements in each row, and whose results, are aligned to their size, or
    /// to 16 bytes if that is less: 0 or 1.
    pub has_fours: u32,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// [`exact_columns`](fn@super::columns::exact_columns) for matrices of up to [`MAX_ROWS`] rows, on devices whose `f64`
/// is fast.
///
/// With few rows, what is done once for each column counts: here it is one rounding of an `f64`, or of two. Columns
/// whose sums do not fit in one are summed again in two, and those that do not fit in two, or are not finite, by the
/// digits of their elements. None of this takes shared memory: a block has registers alone, so that many blocks load at
/// once.
///
/// # Safety
/// The views have all elements that the arguments describe, because accesses are not checked, and the grid has a block
/// for each tile.
#[kernel(
    instances = [Sum] x [f32, f64, f16, bf16] + [SumOfSquares] x [f32, f16, bf16],
    block = BLOCK,
    min_blocks = crate::reduce::tuning::few_rows::min_blocks(is_short::<O, T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_few_rows<O: ExactOperator<T>, T: Element>(args: FewRowArgs<T>) {
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(args.finish, args.output) };
    let terms = O::Terms::of_word(args.term);
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS {
        thread::launch_dependents();
    }
    // Two functions, because places are a few additions if columns are groups of four.
    let again = if args.has_fours != 0 {
        sum_tile::<O, T, true>(&args, terms, results)
    } else {
        sum_tile::<O, T, false>(&args, terms, results)
    };
    if again != 0 {
        let FewRowArgs { input, rows, columns, pitch, batch_pitch, tiles, has_fours, finish, output, term } = args;
        sum_again::<O, T>(input, rows, columns, pitch, batch_pitch, tiles, has_fours, finish, output, term, again);
    }
}

/// Writes the results of this thread's columns. Returns a bit for each one that is to be summed again.
#[inline(always)]
fn sum_tile<O: ExactOperator<T>, T: Element, const HAS_FOURS: bool>(
    args: &FewRowArgs<'_, T>,
    terms: O::Terms,
    results: Results<'_, O::Terms>,
) -> u32 {
    let FewRowArgs { ref input, rows, pitch, .. } = *args;
    let Tile { place, start, output } = Tile::of_block::<T>(args.columns, args.batch_pitch, args.tiles, HAS_FOURS);
    if !place.has_any() {
        return 0;
    }
    let at = per_column(|c| place.offset(c, pitch));
    let first = start + at[0];
    // The distances of the thread's columns from its first.
    let at = per_column(|c| at[c].wrapping_sub(at[0]));
    let columns = Columns::<T, HAS_FOURS> { input, rows, pitch, first, at };
    let (bits, again) = if is_short::<O, T>() {
        results_of(columns.sums::<_, Single>(terms), results.finish, rows as u64)
    } else {
        results_of(columns.sums::<_, DoublePair>(terms), results.finish, rows as u64)
    };
    if HAS_FOURS {
        let (places, has_second) = ([output + place.column(0), output + place.column(2)], place.has(2));
        // SAFETY: the thread has its first column. As the number of columns is a multiple of four, it also has the
        // columns that are next to it, and places are multiples of their number after the output's begin, which is
        // aligned.
        unsafe { results.store_fours(bits, size_of::<T>(), places, has_second) };
        let has = if size_of::<T>() < 8 || has_second { 0b1111 } else { 0b11 };
        return again & has;
    }
    results.store_columns(bits, output, &place);
    let has = per_column(|c| u32::from(place.has(c)) << c);
    again & (has[0] | has[1] | has[2] | has[3])
}

/// The tile of a block.
struct Tile {
    /// The thread's columns.
    place: ThreadColumns,
    /// The matrix's first element.
    start: usize,
    /// The matrix's first result.
    output: usize,
}

impl Tile {
    /// The tile of this block.
    #[inline(always)]
    fn of_block<T: Element>(columns: usize, batch_pitch: usize, tiles: u32, has_fours: bool) -> Self {
        // Divide only if needed: a division takes about as long as a row of a thread.
        let block = thread::block_idx_x();
        let (tile, batch) = if block < tiles { (block, 0) } else { (block % tiles, block / tiles) };
        let (thread, size) = (thread::index_in_block::<BLOCK>(), size_of::<T>());
        let place = ThreadColumns::of_thread(thread, tile as usize, BLOCK, columns, 1, size, has_fours);
        Self { place, start: batch as usize * batch_pitch, output: batch as usize * columns }
    }
}

/// The columns of a thread: `rows` rows, `pitch` elements apart, from `first` on, and the columns' distances `at` from
/// there.
#[derive(Clone, Copy)]
struct Columns<'a, T, const HAS_FOURS: bool> {
    input: &'a Global<'a, T>,
    rows: usize,
    pitch: usize,
    first: usize,
    at: [usize; COLUMNS],
}

impl<T: Element, const HAS_FOURS: bool> Columns<'_, T, HAS_FOURS> {
    /// The sums of the columns.
    #[inline(always)]
    fn sums<K: Terms<Element = T, Item = T>, S: FewTerms>(self, terms: K) -> [S; COLUMNS] {
        let Self { input, rows, pitch, first, at, .. } = self;
        if HAS_FOURS {
            // SAFETY: all rows have these four elements, which are aligned.
            sum_rows(terms, rows, |row| unsafe { load_vectorized(input, first + row * pitch, at) })
        } else {
            // SAFETY: the column is in the row.
            let load =
                |row: usize, c: usize| unsafe { input.load_unchecked((first + row * pitch).wrapping_add(at[c])) };
            sum_rows(terms, rows, |row| per_column(|c| load(row, c)))
        }
    }
}

/// The sums of columns. `load` loads their elements of a row.
#[inline(always)]
fn sum_rows<K: Terms<Element = T, Item = T>, T: Element, S: FewTerms>(
    terms: K,
    rows: usize,
    load: impl Fn(usize) -> [T; COLUMNS],
) -> [S; COLUMNS] {
    let mut sums = [S::ZERO; COLUMNS];
    const { assert!(IN_FLIGHT == 4, "the remaining rows are written out") };
    let mut row = 0;
    while row + IN_FLIGHT <= rows {
        add_rows::<K, T, S, IN_FLIGHT>(&mut sums, terms, row, &load);
        row += IN_FLIGHT;
    }
    match rows - row {
        1 => add_rows::<K, T, S, 1>(&mut sums, terms, row, &load),
        2 => add_rows::<K, T, S, 2>(&mut sums, terms, row, &load),
        3 => add_rows::<K, T, S, 3>(&mut sums, terms, row, &load),
        _ => {}
    }
    sums
}

/// Adds rows whose elements are in flight together.
#[inline(always)]
fn add_rows<K: Terms<Element = T, Item = T>, T: Element, S: FewTerms, const ROWS: usize>(
    sums: &mut [S; COLUMNS],
    terms: K,
    first: usize,
    load: &impl Fn(usize) -> [T; COLUMNS],
) {
    let mut items = [[T::default(); COLUMNS]; ROWS];
    each::<ROWS>(|k| items[k] = load(first + k));
    cuda_std::global::issue_loads();
    each::<ROWS>(|k| {
        each::<COLUMNS>(|c| {
            sums[c].add(number_of(terms, items[k][c]));
        });
    });
}

/// Sums those columns of this thread again that have a bit in `again`, and writes their results. Out of line, since few
/// do, and last, so that the caller has to keep nothing. Its arguments are single words, because a structure would be
/// in local memory, to which every thread would write it first.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "a struct argument would lie in local memory")]
fn sum_again<O: ExactOperator<T>, T: Element>(
    input: Global<'_, T>,
    rows: usize,
    columns: usize,
    pitch: usize,
    batch_pitch: usize,
    tiles: u32,
    has_fours: u32,
    finish: u32,
    output: GlobalMut<'_, u8>,
    term: u64,
    again: u32,
) {
    // SAFETY: as in the kernel.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let terms = O::Terms::of_word(term);
    let Tile { place, start, output } = Tile::of_block::<T>(columns, batch_pitch, tiles, has_fours != 0);
    each_bit(again, |c| {
        let first = start + place.offset(c as usize, pitch);
        // SAFETY: the kernel has loaded the same elements.
        let term = |row: usize| terms.term(unsafe { input.load_unchecked(first + row * pitch) });
        results.store(output + place.column(c as usize), result_of_terms(term, results.finish, rows));
    });
}
