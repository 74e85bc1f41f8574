//! Exact sums of rows of few elements: each thread sums four rows in one or two `f64` each.

use cuda_std::prelude::*;
use half::{bf16, f16};

use super::few_sums::{each_bit, is_short, number_of, result_of_terms, results_of};
use super::few_terms::{DoublePair, FewTerms, Single};
use super::result::{ExactOperator, Results};
use super::terms::Terms;
use super::unrolled::each;
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::columns::thread_columns::per_column;
use crate::reduce::columns::{BLOCK, COLUMNS, DEPENDENT_LAUNCH_BLOCKS};
pub use crate::reduce::tuning::few_columns::{max_len, min_rows};
use crate::reduce::tuning::few_rows::IN_FLIGHT;

/// Rows of a thread.
const ROWS: usize = COLUMNS;
/// Rows of a block.
pub const ROWS_OF_BLOCK: usize = BLOCK * ROWS;

/// The arguments of [`exact_few_columns`](fn@exact_few_columns).
#[arguments]
pub struct FewColumnArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// Rows; at least one.
    pub rows: usize,
    /// Elements of a row.
    pub len: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Whether rows are groups of four elements, each aligned to its size or to 16 bytes if that is less: 0 or 1.
    pub has_fours: u32,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// [`exact_rows`](fn@super::rows::exact_rows) for rows of few elements, on devices whose `f64` is fast: see
/// [`exact_few_rows`](fn@super::few_rows::exact_few_rows).
///
/// Neighbouring threads have neighbouring rows, so that a warp's loads, one by one, are of the same cache lines.
///
/// # Safety
/// The views have all elements that the arguments describe, because accesses are not checked, and the grid has a block
/// for each [`ROWS_OF_BLOCK`] rows.
#[kernel(
    instances = [Sum] x [f32, f64, f16, bf16] + [SumOfSquares] x [f32, f16, bf16],
    block = BLOCK,
    min_blocks = crate::reduce::tuning::few_columns::min_blocks(is_short::<O, T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_few_columns<O: ExactOperator<T>, T: Element>(args: FewColumnArgs<T>) {
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(args.finish, args.output) };
    let terms = O::Terms::of_word(args.term);
    if thread::grid_dim_x() <= DEPENDENT_LAUNCH_BLOCKS {
        thread::launch_dependents();
    }
    // Two functions, because with a branch around each load, loads would wait for each other.
    let again = if args.has_fours != 0 {
        sum_rows::<O, T, true>(&args, terms, results)
    } else {
        sum_rows::<O, T, false>(&args, terms, results)
    };
    if again != 0 {
        let FewColumnArgs { input, len, pitch, finish, output, term, .. } = args;
        sum_again::<O, T>(input, len, pitch, finish, output, term, again);
    }
}

/// Writes the results of this thread's rows. Returns a bit for each one that is to be summed again.
#[inline(always)]
fn sum_rows<O: ExactOperator<T>, T: Element, const HAS_FOURS: bool>(
    &FewColumnArgs { ref input, rows, len, pitch, .. }: &FewColumnArgs<'_, T>,
    terms: O::Terms,
    results: Results<'_, O::Terms>,
) -> u32 {
    let first = first_row();
    if first >= rows {
        return 0;
    }
    let start = first * pitch;
    // A row that is not there is the first one, since a conditional load would be a branch.
    let at = per_column(|r| if first + r * BLOCK < rows { start + r * (BLOCK * pitch) } else { start });
    let few = Rows::<T, HAS_FOURS> { input, len, at };
    let (bits, again) = if is_short::<O, T>() {
        results_of(few.sums::<_, Single>(terms), results.finish, len as u64)
    } else {
        results_of(few.sums::<_, DoublePair>(terms), results.finish, len as u64)
    };
    let mut has = 0;
    each::<ROWS>(|r| {
        let row = first + r * BLOCK;
        if row < rows {
            results.store(row, bits[r]);
            has |= 1 << r;
        }
    });
    again & has
}

/// The first row of this thread.
#[inline(always)]
fn first_row() -> usize {
    thread::block_idx_x() as usize * ROWS_OF_BLOCK + thread::index_in_block::<BLOCK>()
}

/// The rows of a thread: `len` elements, from `at` on.
#[derive(Clone, Copy)]
struct Rows<'a, T, const HAS_FOURS: bool> {
    input: &'a Global<'a, T>,
    len: usize,
    at: [usize; ROWS],
}

impl<T: Element, const HAS_FOURS: bool> Rows<'_, T, HAS_FOURS> {
    /// The sums of the rows.
    #[inline(always)]
    fn sums<K: Terms<Element = T, Item = T>, S: FewTerms>(self, terms: K) -> [S; ROWS] {
        const { assert!(IN_FLIGHT == 4, "the remaining elements are written out") };
        let (mut sums, mut i) = ([S::ZERO; ROWS], 0);
        if HAS_FOURS {
            while i < self.len {
                // SAFETY: the row has these four elements, which are aligned.
                let four = |r: usize| unsafe { self.input.load_four_unchecked(self.at[r] + i) };
                add::<K, S, IN_FLIGHT>(&mut sums, terms, four);
                i += IN_FLIGHT;
            }
            return sums;
        }
        while i + IN_FLIGHT <= self.len {
            add::<K, S, IN_FLIGHT>(&mut sums, terms, self.singles(i));
            i += IN_FLIGHT;
        }
        match self.len - i {
            1 => add::<K, S, 1>(&mut sums, terms, self.singles(i)),
            2 => add::<K, S, 2>(&mut sums, terms, self.singles(i)),
            3 => add::<K, S, 3>(&mut sums, terms, self.singles(i)),
            _ => {}
        }
        sums
    }

    /// Loads `N` elements of a row from element `i` on, one by one.
    #[inline(always)]
    fn singles<const N: usize>(&self, i: usize) -> impl Fn(usize) -> [T; N] {
        move |r| {
            let mut items = [T::default(); N];
            // SAFETY: the row has these elements.
            each::<N>(|k| items[k] = unsafe { self.input.load_unchecked(self.at[r] + i + k) });
            items
        }
    }
}

/// Adds `N` elements of each row, which are in flight together.
#[inline(always)]
fn add<K: Terms, S: FewTerms, const N: usize>(sums: &mut [S; ROWS], terms: K, load: impl Fn(usize) -> [K::Item; N]) {
    let items = per_column(load);
    cuda_std::global::issue_loads();
    each::<ROWS>(|r| each::<N>(|k| sums[r].add(number_of(terms, items[r][k]))));
}

/// Sums those rows of this thread again that have a bit in `again`, and writes their results. Out of line, since few
/// do, and last, so that the caller has to keep nothing. Its arguments are single words: see
/// [`exact_few_rows`](super::few_rows).
#[cold]
#[inline(never)]
fn sum_again<O: ExactOperator<T>, T: Element>(
    input: Global<'_, T>,
    len: usize,
    pitch: usize,
    finish: u32,
    output: GlobalMut<'_, u8>,
    term: u64,
    again: u32,
) {
    // SAFETY: as in the kernel.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let terms = O::Terms::of_word(term);
    each_bit(again, |r| {
        let row = first_row() + r as usize * BLOCK;
        // SAFETY: the kernel has loaded the same elements.
        let term = |i: usize| terms.term(unsafe { input.load_unchecked(row * pitch + i) });
        results.store(row, result_of_terms(term, results.finish, len));
    });
}
