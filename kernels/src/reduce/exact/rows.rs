//! Exact sums of short rows, each by a few lanes.

use cuda_std::hint::{compute_anew, keep_rolled};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_vote_any, warp_vote_ballot};
use exact_sum::Leading;
use half::{bf16, f16};

use super::format::{Format, Value};
use super::full_range_rows::{RowPlace, VECTORS_LOG, sum_full_range, takes_rows_of};
use super::grid::Grid;
use super::lane_rows::OfRows;
use super::partial::fold_warp;
use super::result::{ExactOperator, Finish, Results, result_of};
use super::superaccumulator::{Superaccumulator, declare_superaccumulator};
use super::terms::{Float, Terms};
use super::unrolled::each;
use super::warp_sum::{WarpSum, items_of_vector};
use crate::ops::{Sum, SumOfSquares};
pub use crate::reduce::tuning::exact_rows::{BLOCK, VECTORS};

/// The minimum number of lanes for a row with elements outside whole vectors: each lane takes two such elements.
pub const fn min_lanes(size: usize) -> u32 {
    (16 / size) as u32
}

/// The arguments of [`exact_rows`](fn@exact_rows).
#[arguments]
pub struct ExactRowArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// Rows.
    pub rows: usize,
    /// Elements of a row.
    pub len: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// The base-2 logarithm of the lanes of a row.
    pub lanes_log: u32,
    /// The base-2 logarithm of the vectors of a row that a lane has: 0, or that of [`VECTORS`].
    pub vectors_log: u32,
    /// The base-2 logarithm of the rows of a lane: that of [`VECTORS`] if each vector is of another row, and otherwise
    /// that or 0.
    pub rows_log: u32,
    /// Whether some row begins or ends within a vector: 0 or 1.
    pub has_singles: u32,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// Reduces rows of `len` elements, `pitch` elements apart, to one output each.
///
/// `2^lanes_log` lanes of a warp take a row, up to all 32, and the warp's groups of lanes take different rows. A lane
/// loads [`VECTORS`] vectors in a step, each of another row, or all of one row; then it may have several steps. Rows of
/// a step share a window: that of the step before, if they fit. A row that does not fit is summed again.
///
/// A lane has up to four rows, because rounding takes as long for one row of a warp as for one row of each lane.
///
/// # Safety
/// The views have all elements that the arguments describe, because accesses are not checked. The vectors of a row's
/// lanes cover the row. If a row may have elements outside whole vectors, or may not begin at a multiple of 16 bytes,
/// `has_singles` is not 0, and a row has at least [`min_lanes`] lanes.
#[kernel(
    instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16],
    block = BLOCK,
    min_blocks = min_blocks::<O, T>(),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_rows<O: ExactOperator<T>, T: Element>(args: ExactRowArgs<T>) {
    let ExactRowArgs { input, rows, len, pitch, lanes_log, vectors_log, rows_log, has_singles, finish, output, term } =
        args;
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let rows = Rows::of_warp(rows, len, pitch, lanes_log, vectors_log, rows_log);
    let terms = O::Terms::of_word(term);
    sum_rows_of_warp::<O, T>(&input, rows, has_singles != 0, terms, declare_superaccumulator!(), results);
}

/// The value of `min_blocks`: as many as leave a thread the registers that its elements and sums need.
pub const fn min_blocks<O: ExactOperator<T>, T: Element>() -> usize {
    let has_long_terms = size_of::<Float<O::Terms>>() == 8;
    let has_many_terms = items_of_vector::<O::Terms>() == 8 && <O::Terms as Terms>::WINDOW.is_none();
    match (has_long_terms, has_many_terms) {
        _ if GridOf::<O, T>::HAS_LOW => 4,
        (true, true) => 5,
        (true, false) | (false, true) => 7,
        (false, false) => 8,
    }
}

/// Writes the results of a warp's rows.
#[inline(always)]
fn sum_rows_of_warp<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    rows: Rows,
    has_singles: bool,
    terms: O::Terms,
    superacc: Superaccumulator<GridOf<O, T>>,
    results: Results<'_, O::Terms>,
) {
    let put = |row: usize, [first, low]: [(i128, u32); 2]| {
        let (finish, unit, count) = (results.finish, GridOf::<O, T>::UNIT, rows.len as u64);
        let result = if GridOf::<O, T>::HAS_LOW {
            result_of_two::<O, T>(finish, first, low, count)
        } else {
            finish.of_integer::<GridOf<O, T>>(first.0, unit + first.1 as i32, count)
        };
        results.store(row, result);
    };
    // Separate functions, since code that only one of them needs would slow the others. If all vectors of a lane are of
    // one row, a warp executes a third fewer instructions.
    let again = match (has_singles, rows.vectors_log) {
        (false, 0) => sum_rows::<O, T, false>(input, &rows.with_single_vectors(), terms, &put),
        (true, 0) => sum_rows::<O, T, true>(input, &rows.computed_anew().with_single_vectors(), terms, &put),
        (false, _) => sum_rows::<O, T, false>(input, &rows.computed_anew().with_all_vectors(), terms, &put),
        (true, _) => sum_rows::<O, T, true>(input, &rows.computed_anew().with_all_vectors(), terms, &put),
    };
    if warp_vote_any(FULL_MASK, again != 0) {
        let Rows { rows, len, pitch, lanes_log, vectors_log, rows_log, .. } = rows;
        resum_rows::<O, T>(*input, rows, len, pitch, lanes_log, vectors_log, rows_log, again, terms, superacc, results);
    }
}

/// The result of a row whose sum is two integers. Out of line, since it is long.
#[inline(never)]
fn result_of_two<O: ExactOperator<T>, T: Element>(
    finish: Finish<O::Terms>,
    first: (i128, u32),
    low: (i128, u32),
    count: u64,
) -> u64 {
    // `of_two` succeeds, because the windows are at most a mantissa apart.
    finish.of_leading(Leading::of_two(first, low).unwrap_or(Leading::ZERO), GridOf::<O, T>::UNIT, count)
}

/// The grid of the terms.
pub(super) type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;

/// The integers in which a lane sums.
pub(super) type ValueOf<O, T> = <<GridOf<O, T> as Grid>::Format as Format>::Value;

/// The rows of a warp.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub rows: usize,
    pub len: usize,
    pub pitch: usize,
    pub lanes_log: u32,
    pub vectors_log: u32,
    pub rows_log: u32,
    first: usize,
}

impl Rows {
    /// The rows of this warp; the parameters are the kernel's.
    #[inline(always)]
    pub fn of_warp(rows: usize, len: usize, pitch: usize, lanes_log: u32, vectors_log: u32, rows_log: u32) -> Self {
        let warp = thread::block_idx_x() as usize * (BLOCK / 32) + thread::thread_idx_x() as usize / 32;
        Self { rows, len, pitch, lanes_log, vectors_log, rows_log, first: warp << (5 - lanes_log + rows_log) }
    }

    /// The same rows, opaque to the compiler, which then recomputes derived values.
    #[inline(always)]
    fn computed_anew(self) -> Self {
        let lanes_log = compute_anew(self.lanes_log as usize) as u32;
        Self { lanes_log, first: compute_anew(self.first), ..self }
    }

    /// The same rows, with a lane's vectors each of another row, as a constant.
    #[inline(always)]
    fn with_single_vectors(self) -> Self {
        Self { vectors_log: 0, rows_log: VECTORS_LOG, ..self }
    }

    /// The same rows, with all vectors of a lane of one row, as a constant.
    #[inline(always)]
    fn with_all_vectors(self) -> Self {
        Self { vectors_log: VECTORS_LOG, ..self }
    }

    /// Row `k` of group `group` of lanes.
    #[inline(always)]
    pub fn row(&self, k: usize, group: u32) -> usize {
        self.first + (((k as u32) << (5 - self.lanes_log)) + group) as usize
    }

    /// The index in its row of vector `k` of this lane in a step.
    #[inline(always)]
    pub fn vector(&self, k: u32) -> u32 {
        (lane_id() & (self.lanes() - 1)) + (k << self.lanes_log)
    }

    #[inline(always)]
    pub fn lanes(&self) -> u32 {
        1 << self.lanes_log
    }

    /// The first element and the length of a row. The length is 0 past the last row.
    #[inline(always)]
    pub fn place_of(&self, row: usize) -> (usize, usize) {
        if row < self.rows { (row * self.pitch, self.len) } else { (0, 0) }
    }

    /// The number of lanes that round different rows: one for each row of a lane, if the group has enough lanes.
    #[inline(always)]
    fn distance(&self) -> u32 {
        let rows = 1 << self.rows_log;
        if rows < self.lanes() { rows } else { self.lanes() }
    }

    /// Sums each row over a group's lanes. While a lane has several rows, it gives half of them to another lane and
    /// takes the other half of that lane's. In the end each row belongs to one lane, so that the rows are rounded in
    /// parallel. The first of the returned sums are those of the lane's rows.
    #[inline(always)]
    fn distribute_rows<V: Value>(&self, mut sums: [V; VECTORS]) -> [V; VECTORS] {
        let (lane, mut distance) = (lane_id(), self.distance());
        if distance > 1 {
            let is_upper = lane & 1 != 0;
            sums[0] = of_two(sums[0], sums[2], is_upper, 1);
            sums[1] = of_two(sums[1], sums[3], is_upper, 1);
        }
        if distance > 2 {
            sums[0] = of_two(sums[0], sums[1], lane & 2 != 0, 2);
        }
        while distance < self.lanes() {
            sums[0] = sums[0].plus(sums[0].of_lane_xor(distance));
            distance *= 2;
        }
        sums
    }

    /// The mask of a group's lanes.
    #[inline(always)]
    pub fn mask(&self, group: u32) -> u32 {
        (u32::MAX >> (32 - self.lanes())) << (group << self.lanes_log)
    }
}

/// Sums a warp's rows. Calls `put` with a row's index and its sum: two integers, of first and second terms, each with
/// the position of its unit. Returns a bit for each of the lane's rows: whether it must be summed again.
#[inline(always)]
pub(super) fn sum_rows<O: ExactOperator<T>, T: Element, const SINGLES: bool>(
    input: &Global<T>,
    rows: &Rows,
    terms: O::Terms,
    put: &impl Fn(usize, [(i128, u32); 2]),
) -> u32 {
    let of_rows = match rows.vectors_log {
        0 => OfRows::of_single_vectors::<SINGLES>(input, rows, terms),
        _ => OfRows::of_all_vectors::<SINGLES>(input, rows, terms),
    };
    let OfRows::<O, T> { sums, lows, exponents, again } = of_rows;
    let mut sums = rows.distribute_rows(sums);
    let mut lows = if GridOf::<O, T>::HAS_LOW { rows.distribute_rows(lows) } else { lows };
    let (group, lane, distance) = (lane_id() >> rows.lanes_log, lane_id(), rows.distance());
    // The first row that this lane rounds.
    let own = if distance > 1 && lane & 1 != 0 { 2 } else { 0 } + if distance > 2 && lane & 2 != 0 { 1 } else { 0 };
    let window = GridOf::<O, T>::window(exponents.get(own));
    let is_first = lane & (rows.lanes() - 1) < distance;
    let of_lane = (1 << rows.rows_log) / distance;
    let mut k = 0;
    loop {
        k = keep_rolled(k);
        let row = rows.row(own + k as usize, group);
        if is_first && row < rows.rows && again >> (own as u32 + k) & 1 == 0 {
            let of = |sum: ValueOf<O, T>, window| (sum.wide(), GridOf::<O, T>::position(window));
            put(row, [of(sums[0], window), of(lows[0], GridOf::<O, T>::window_of_low(window))]);
        }
        k += 1;
        // If a lane's vectors are of one row, the group has a lane for each of its rows.
        if rows.vectors_log > 0 || k >= of_lane {
            return again;
        }
        // Rotated, because if an entry stayed unchanged, LLVM would unroll the loop and the code before it.
        (sums, lows) = ([sums[1], sums[2], sums[3], sums[0]], [lows[1], lows[2], lows[3], lows[0]]);
    }
}

/// The sum of one of two values over this lane and the one `distance` away: the first value in the lower lane, the
/// second in the upper.
#[inline(always)]
fn of_two<V: Value>(first: V, second: V, is_upper: bool, distance: u32) -> V {
    let (own, given) = if is_upper { (second, first) } else { (first, second) };
    own.plus(given.of_lane_xor(distance))
}

/// Sums rows again that do not fit in a window, with any elements: each by its own lanes or, if they cannot, by all
/// lanes of the warp. Out of line. Rows are passed as numbers, since a struct argument lies in local memory from the
/// start.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
fn resum_rows<O: ExactOperator<T>, T: Element>(
    input: Global<T>,
    rows: usize,
    len: usize,
    pitch: usize,
    lanes_log: u32,
    vectors_log: u32,
    rows_log: u32,
    again: u32,
    terms: O::Terms,
    superacc: Superaccumulator<GridOf<O, T>>,
    results: Results<'_, O::Terms>,
) {
    let rows = Rows::of_warp(rows, len, pitch, lanes_log, vectors_log, rows_log);
    let by_warp = !takes_rows_of::<O::Terms>() || results.finish.is_long_root();
    let mut k = 0;
    while k < VECTORS {
        // The lanes of the rows to sum again.
        let mut not_exact = warp_vote_ballot(FULL_MASK, again >> k & 1 == 1);
        if not_exact != 0 && !by_warp {
            let group = lane_id() >> rows.lanes_log;
            let row = rows.row(k, group);
            let (start, len) = rows.place_of(row);
            let is_again = row < rows.rows && not_exact & rows.mask(group) != 0;
            let place = RowPlace { start, len, result: if is_again { Some(row) } else { None } };
            // SAFETY: the rows are inside the input, as the kernel's caller has promised.
            unsafe {
                match size_of::<T>() {
                    2 => sum_full_range::<O::Terms, T, 8>(&input, place, lanes_log, vectors_log, terms, &results),
                    4 => sum_full_range::<O::Terms, T, 4>(&input, place, lanes_log, vectors_log, terms, &results),
                    8 => sum_full_range::<O::Terms, T, 2>(&input, place, lanes_log, vectors_log, terms, &results),
                    _ => unreachable!(),
                }
            }
            not_exact = 0;
        }
        while not_exact != 0 {
            let group = not_exact.trailing_zeros() >> rows.lanes_log;
            let row = rows.row(k, group);
            let (start, len) = rows.place_of(row);
            let result = sum_by_warp::<O, T>(&input, start, len, terms, superacc, results.finish);
            // A custom term may be other than 0 for the elements of rows that do not exist, which are 0.
            if lane_id() == 0 && row < rows.rows {
                results.store(row, result);
            }
            // Before another row overwrites the words.
            sync_warp(FULL_MASK);
            not_exact &= !rows.mask(group);
        }
        k += 1;
    }
}

/// The result of any `len` elements from `start` on, by all lanes of a warp. Two uses of a warp's superaccumulator need
/// a barrier of the warp between them.
#[inline(always)]
pub(super) fn sum_by_warp<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    start: usize,
    len: usize,
    terms: O::Terms,
    superacc: Superaccumulator<GridOf<O, T>>,
    finish: Finish<O::Terms>,
) -> u64 {
    // Each lane adds four terms at a time.
    let sum = if <O::Terms as Terms>::HAS_LOW {
        sum_items::<O, T, 2>(input, start, len, terms, &superacc.begin())
    } else {
        sum_items::<O, T, 4>(input, start, len, terms, &superacc.begin())
    };
    let partial = fold_warp(sum.of_lanes(), &superacc);
    result_of(finish, partial, superacc, len as u64)
}

/// The sum of `len` elements from `start` on. Each lane takes `N` at a time, with at most four terms.
#[inline(always)]
pub(super) fn sum_items<O: ExactOperator<T>, T: Element, const N: usize>(
    input: &Global<T>,
    start: usize,
    len: usize,
    terms: O::Terms,
    superacc: &Superaccumulator<GridOf<O, T>>,
) -> WarpSum<GridOf<O, T>> {
    let mut sum = WarpSum::in_window(<O::Terms as Terms>::WINDOW.unwrap_or(GridOf::<O, T>::LOWEST));
    let mut first = 0;
    while first < len {
        let mut items = [T::default(); N];
        each::<N>(|k| {
            let i = first + 32 * k + lane_id() as usize;
            if i < len {
                // SAFETY: the element is one of them, and the caller's are inside the input.
                items[k] = unsafe { input.load_unchecked(start + i) };
            }
        });
        sum.take_items::<O::Terms, N, 4>(terms, items, superacc);
        first += 32 * N;
    }
    sum
}
