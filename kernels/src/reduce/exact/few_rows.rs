//! Exact sums of columns of few rows: each thread sums four of them in one or two `f64`.

use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use exact_sum::{Binary, HighestBits, Leading, Outcome, Specials, digit};
use half::{bf16, f16};

use super::column_share::Matrix;
use super::columns::ExactColumnArgs;
use super::few_terms::{DoublePair, FewTerms, Single};
use super::format::Format;
use super::grid::Grid;
use super::result::{ExactOperator, Finish, Results, result_of_limbs};
use super::terms::{Float, Terms};
use super::unrolled::each;
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::columns::thread_columns::{load_vectorized, per_column};
use crate::reduce::columns::{BLOCK, COLUMNS, DEPENDENT_LAUNCH_BLOCKS};
use crate::reduce::tuning::few_rows::IN_FLIGHT;
pub use crate::reduce::tuning::few_rows::{MAX_ROWS, MAX_SINGLE_ROWS, MIN_COLUMNS};

/// [`exact_columns`](fn@super::columns::exact_columns) for matrices of up to [`MAX_ROWS`] rows, on devices whose `f64`
/// is fast.
///
/// With few rows, what is done once for each column counts: here it is one rounding of an `f64`, or of two. Columns
/// whose sums do not fit in one are summed again in two, and those that do not fit in two, or are not finite, by the
/// digits of their elements. None of this takes shared memory: a block has registers alone, so that many blocks load at
/// once.
///
/// # Safety
/// As for [`exact_columns`](fn@super::columns::exact_columns), of matrices with one split, no folded rows, and tiles of
/// `BLOCK` lanes.
#[kernel(
    instances = [Sum] x [f32, f64, f16, bf16] + [SumOfSquares] x [f32, f16, bf16],
    block = BLOCK,
    min_blocks = crate::reduce::tuning::few_rows::min_blocks(is_short::<O, T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_few_rows<O: ExactOperator<T>, T: Element>(
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
        finish,
        output,
        term,
        ..
    }: ExactColumnArgs<T>,
) {
    let matrix = Matrix { rows, columns, pitch, batch_pitch, folded_rows, lanes, tiles, splits, rows_of_split };
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(finish, output) };
    let terms = O::Terms::of_word(term);
    let share = matrix.share(&input);
    let place = share.place::<T>(thread::index_in_block::<BLOCK>());
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS {
        thread::launch_dependents();
    }

    let at = per_column(|c| place.offset(c, pitch));
    let first = share.start + at[0];
    // The distances of the thread's columns from its first.
    let at = per_column(|c| at[c].wrapping_sub(at[0]));
    let columns = Columns { input: &input, is_vectorized: share.is_vectorized, rows, pitch, first, at };
    let sums = if is_short::<O, T>() {
        per_column_of(columns.sums::<_, Single>(terms), FewTerms::exact)
    } else {
        per_column_of(columns.sums::<_, DoublePair>(terms), FewTerms::exact)
    };
    let bits = per_column(|c| sums[c].and_then(|sum| results.finish.of_pair(sum, rows as u64)));
    results.store_columns(per_column(|c| bits[c].unwrap_or(0)), share.output(0), &place);
    let again = per_column(|c| u32::from(bits[c].is_none() && place.has(c)) << c);
    let again = again[0] | again[1] | again[2] | again[3];
    if again != 0 {
        sum_again::<O, T>(input, matrix, terms, results, again);
    }
}

/// Whether nearly all sums of a few terms fit in one `f64`: terms have at most 24 bits.
const fn is_short<O: ExactOperator<T>, T: Element>() -> bool {
    size_of::<T>() * O::Terms::DEGREE as usize <= size_of::<f32>()
}

#[inline(always)]
fn per_column_of<S: Copy, R>(of: [S; COLUMNS], map: impl Fn(S) -> R) -> [R; COLUMNS] {
    per_column(|c| map(of[c]))
}

/// The columns of a thread: `rows` rows, `pitch` elements apart, from `first` on, and the columns' distances `at` from
/// there.
#[derive(Clone, Copy)]
struct Columns<'a, T> {
    input: &'a Global<'a, T>,
    is_vectorized: bool,
    rows: usize,
    pitch: usize,
    first: usize,
    at: [usize; COLUMNS],
}

impl<T: Element> Columns<'_, T> {
    /// The sums of the columns.
    #[inline(always)]
    fn sums<K: Terms<Element = T, Item = T>, S: FewTerms>(self, terms: K) -> [S; COLUMNS] {
        let Self { input, rows, pitch, first, at, .. } = self;
        // A function for each kind of loads, because with a branch around each load, loads would wait for each other.
        if self.is_vectorized {
            // SAFETY: all rows are aligned. Accesses are inside the view, even if they extend into the next row.
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
            let item = items[k][c];
            // A sum with NaN is not exact, and so is summed again.
            sums[c].add(if K::out_of_range(item).is_some() { f64::NAN } else { terms.term(item).to_f64() });
        });
    });
}

/// Sums those columns of this thread again that have a bit in `again`, and writes their results. Out of line, since few
/// do, and last, so that the caller has to keep nothing.
#[cold]
#[inline(never)]
fn sum_again<O: ExactOperator<T>, T: Element>(
    input: Global<'_, T>,
    matrix: Matrix,
    terms: O::Terms,
    results: Results<'_, O::Terms>,
    again: u32,
) {
    let share = matrix.share(&input);
    let place = share.place::<T>(thread::index_in_block::<BLOCK>());
    let (rows, mut c) = (matrix.rows, 0);
    while c < COLUMNS {
        c = keep_rolled(c as u32) as usize;
        if again >> c & 1 == 1 {
            // SAFETY: the kernel has loaded the same elements.
            let term = |row: usize| terms.term(unsafe { input.load_unchecked(share.element(&place, c, row)) });
            let (mut pair, mut row) = (DoublePair::ZERO, 0);
            while row < rows {
                pair.add(term(row).to_f64());
                row += 1;
            }
            let fast = pair.exact().and_then(|sum| results.finish.of_pair(sum, rows as u64));
            let bits = fast.unwrap_or_else(|| sum_by_digits(term, results.finish, rows));
            results.store(share.output(place.column(c)), bits);
        }
        c += 1;
    }
}

/// The result of `rows` terms: the sum of their digits of 32 bits, from the highest one downwards, as far as the
/// rounding needs them.
fn sum_by_digits<K: Terms>(term: impl Fn(usize) -> Float<K>, finish: Finish<K>, rows: usize) -> u64 {
    debug_assert!(!finish.is_long_root(), "more bits decide a root in `f64`");
    // The position of the smallest number above the grid's unit.
    let smallest = {
        let of_format = <<K::Grid as Grid>::Format as Binary>::MIN_EXPONENT;
        of_format - <<K::Grid as Grid>::Format as Binary>::MANTISSA as i32 - K::Grid::UNIT
    };
    let place = |row: usize| {
        let (integer, position) = term(row).integer_and_position();
        let position = position as i32 + smallest;
        // Bits below the unit are 0.
        if position < 0 { (integer >> position.unsigned_abs().min(63), 0) } else { (integer, position as u32) }
    };

    let (mut specials, mut highest, mut row) = (Specials::EMPTY, 0, 0);
    while row < rows {
        let term = term(row);
        let special = match (term.is_finite(), term.is_nan()) {
            (true, _) => Specials::EMPTY,
            (_, true) => Specials::nan(),
            _ => Specials::infinity(term.is_negative()),
        };
        specials = specials.union(special);
        highest = place(row).1.max(highest);
        row += 1;
    }
    if !matches!(specials.outcome(), Outcome::Finite) {
        return result_of_limbs::<K, K::Grid>(finish, specials, Leading::ZERO, rows as u64);
    }
    // One past the highest digit of any term.
    let mut limb = (highest / 32 + 3).min(K::Grid::LIMBS);
    let mut sum = HighestBits::new(32 * limb as i32);
    while limb > 0 && !sum.is_decided() {
        limb -= 1;
        let (mut part, mut row) = (0, 0);
        while row < rows {
            let (integer, position) = place(row);
            part += digit(integer, position, limb);
            row += 1;
        }
        sum.push(part.into(), 32);
    }
    result_of_limbs::<K, K::Grid>(finish, specials, sum.leading(), rows as u64)
}
