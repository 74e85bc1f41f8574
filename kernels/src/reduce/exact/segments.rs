//! Exact sums of segments of any lengths, by an array of offsets.

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::element::VectorType;
use cuda_std::global::issue_loads;
use cuda_std::hint::compute_now;
use cuda_std::prelude::*;
use cuda_std::warp::{
    FULL_MASK, WarpReduceValue, lane_id, sync_warp, warp_shuffle_idx, warp_shuffle_up, warp_vote_any, warp_vote_ballot,
};
use exact_sum::{Bins, Window};
use half::{bf16, f16};

use super::format::{Format, Value};
use super::full_range_rows::{MAX_VECTORS, RowPlace, VECTORS_LOG, sum_full_range, takes_rows_of};
use super::grid::Grid;
use super::result::{ExactOperator, Results};
use super::rows::{GridOf, min_lanes, sum_by_warp};
use super::superaccumulator::{Superaccumulator, declare_superaccumulator};
use super::terms::{Float, Inputs, One, Terms, all_have_exact_low};
use super::unrolled::each;
use super::warp_sum::{extract, items_of_vector, largest_of_warp, term_count, window_above};
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::segments::{BLOCK, INVALID_SEGMENT, MAX_WARP_SEGMENT_VECTORS, Segment, queue_long_segments};

/// The number of 16-byte vectors of one segment that a lane sums together.
const VECTORS: usize = 4;

/// The integers in which lanes sum.
type ValueOf<O, T> = <Float<<O as ExactOperator<T>>::Terms> as Format>::Value;

/// The arguments of [`exact_segments`](fn@exact_segments).
#[arguments]
pub struct ExactSegmentArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// The start of each segment, and the end of the last.
    pub offsets: Global<u64>,
    /// Segments of each warp.
    pub segments_per_warp: u32,
    /// [`log2_min_tiles`](super::long_segments::log2_min_tiles) of the input.
    pub log2_min_tiles: u32,
    /// The queue of long segments' chunks.
    pub chunks: GlobalMut<[u64; 2]>,
    /// The number of queued chunks, and the first invalid segment.
    pub status: GlobalMut<u64>,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// [`segments`](fn@crate::reduce::segments::segments) with exact sums.
///
/// Each warp takes `segments_per_warp` segments (up to 32), of which each lane *owns* one. A segment's 16-byte vectors
/// are divided among *workers* with up to four vectors each. The workers of all of the warp's segments, in order, are
/// assigned to its lanes in batches of 32. So lanes have work for any lengths, and their loads are coalesced.
///
/// A worker ignores elements of other segments in its vectors. The sums of a segment's workers are added by shuffles,
/// and go to the segment's owner, which rounds. Consecutive batches are summed in one window while their elements fit
/// in it. A segment whose sum is not exact, or whose vectors are not all inside the view, is summed again by the whole
/// warp.
///
/// Segments of more than [`MAX_WARP_SEGMENT_VECTORS`] vectors are queued in `chunks`, for
/// [`exact_long_segments`](fn@super::long_segments::exact_long_segments).
///
/// # Safety
/// As for [`segments`](fn@crate::reduce::segments::segments). The output is aligned for results in the format that
/// `finish` selects, and has one for each segment.
#[kernel(
    instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16],
    block = BLOCK,
    min_blocks = 3,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_segments<O: ExactOperator<T>, T: Element>(
    ExactSegmentArgs {
        input,
        offsets,
        segments_per_warp,
        log2_min_tiles,
        chunks,
        status,
        finish,
        output,
        term,
    }: ExactSegmentArgs<T>,
) {
    let superacc: Superaccumulator<GridOf<O, T>> = declare_superaccumulator!();
    let terms = O::Terms::of_word(term);
    // SAFETY: the caller promises a result for each segment, and that the output is aligned for them.
    let results = unsafe { Results::new(finish, output) };
    let (thread, lane) = (thread::index_in_block::<BLOCK>(), lane_id());
    let warp = thread::block_idx_x() as usize * (BLOCK / 32) + thread / 32;
    let first = warp * segments_per_warp as usize;
    let own = first + lane as usize;
    let has_segment = lane < segments_per_warp && own < offsets.len().saturating_sub(1);
    let mut segment = Segment { start: 0, len: 0 };
    if has_segment {
        match Segment::from_offsets(&offsets, own, input.len()) {
            Some(valid) => segment = valid,
            None => {
                u64::fetch_max(&status, INVALID_SEGMENT, !(own as u64), Scope::Device);
            }
        }
    }
    let Segment { start, len } = segment;
    if has_segment && len == 0 {
        results.store(own, results.finish.of_empty());
    }
    let owned = Owned::of::<T>(&input, start, if len > MAX_WARP_SEGMENT_VECTORS * T::Vector::LEN { 0 } else { len });
    let again = sum_segments::<O, T>(&input, owned, own, terms, results);
    let again = warp_vote_ballot(FULL_MASK, again);
    if again != 0 {
        resum_segments::<O, T>(input, start, owned.len, again, first, terms, superacc, results);
    }
    queue_long_segments::<T>(Segment { start, len }, first, 1 << log2_min_tiles, &chunks, &status);
}

/// The segment that a lane owns.
#[derive(Clone, Copy)]
struct Owned {
    start: usize,
    len: u32,
    /// The number of workers of the segment, and of the segments of earlier lanes.
    workers: u32,
    before: u32,
    /// The number of workers of all lanes.
    of_warp: u32,
}

impl Owned {
    /// The segment of `len` elements from `start` on. It has no workers if it is empty, or if its first or last vector
    /// is not inside the view.
    #[inline(always)]
    fn of<T: Element>(input: &Global<T>, start: usize, len: usize) -> Self {
        let past = input.elements_past(start, 16);
        let end = start.wrapping_sub(past).wrapping_add((past + len).next_multiple_of(T::Vector::LEN));
        let is_inside = past <= start && end <= input.len();
        let workers = ((past + len) as u32).div_ceil((VECTORS * T::Vector::LEN) as u32);
        let workers = if len > 0 && is_inside { workers } else { 0 };
        let (mut up_to_own, mut distance) = (workers, 1);
        while distance < 32 {
            let (below, has_one) = warp_shuffle_up(FULL_MASK, up_to_own, distance, 32);
            up_to_own += if has_one { below } else { 0 };
            distance *= 2;
        }
        let of_warp = warp_shuffle_idx(FULL_MASK, up_to_own, 31, 32).0;
        Self { start, len: len as u32, workers, before: up_to_own - workers, of_warp }
    }

    /// One past the index of the segment's last worker.
    #[inline(always)]
    fn end(&self) -> u32 {
        self.before + self.workers
    }
}

/// Writes the results of the segments that have workers, except those to sum again. Returns whether this lane's segment
/// is one of these.
#[inline(always)]
fn sum_segments<O: ExactOperator<T>, T: Element>(
    input: &Global<T>,
    owned: Owned,
    own: usize,
    terms: O::Terms,
    results: Results<'_, O::Terms>,
) -> bool {
    let mut again = owned.len > 0 && owned.workers == 0;
    if owned.of_warp == 0 {
        return again;
    }
    let mut from = 0;
    // Each iteration sums the batches of one window. The inner loop is separate, so that it can use all registers.
    while from < owned.of_warp {
        let begin = from;
        let mut exponent = <O::Terms as Terms>::WINDOW.unwrap_or(GridOf::<O, T>::LOWEST);
        let mut value = ValueOf::<O, T>::ZERO;
        let mut loaded = Loaded::<T>::load(input, owned, from);
        issue_loads();
        loop {
            // The next batch is in flight while this one is summed.
            let mut next = loaded;
            if from + 32 < owned.of_warp {
                next = Loaded::load(input, owned, from + 32);
            }
            issue_loads();
            let mut vectors = loaded.of_segment();
            if <O::Terms as Terms>::WINDOW.is_none() {
                let largest = largest_of_warp::<O::Factors, One<'_, T>, VECTORS>(O::factors(terms), &vectors);
                let needed = window_above::<Float<O::Factors>>(largest) * <O::Terms as Terms>::DEGREE;
                /// The distance below the window at which too many elements have residuals.
                const NEAR: i32 = 8;
                if from == begin {
                    exponent = needed;
                } else if largest > 0 && (needed > exponent || needed + NEAR < exponent) {
                    break;
                }
                vectors = vectors.map(opaque::<T>);
            }
            let (sum, exact) = sum_of_lane::<O::Terms, T>(terms, &vectors, GridOf::<O, T>::window(exponent));
            let sum = add_followers(sum, loaded.followers);
            // The workers of this lane's segment in this batch.
            let (first, end) = (owned.before.saturating_sub(from), owned.end().saturating_sub(from));
            let sum = sum.of_lane(first);
            if first < 32 && first < end {
                value = value.plus(sum);
                again |= !exact >> first << (32 - if end - first < 32 { end - first } else { 32 }) != 0;
            }
            from += 32;
            if from >= owned.of_warp {
                break;
            }
            loaded = next;
        }
        let is_done = owned.workers > 0 && owned.end() > begin && owned.end() <= from;
        // Some of its workers' sums are in another window.
        again |= owned.before < from && owned.end() > from;
        if is_done && !again {
            let window = GridOf::<O, T>::window(exponent);
            let exponent = GridOf::<O, T>::UNIT + GridOf::<O, T>::position(window) as i32;
            results.store(own, results.finish.of_integer::<GridOf<O, T>>(value.wide(), exponent, owned.len.into()));
        }
    }
    again
}

/// The same elements, opaque to the compiler, so that it does not keep converted elements: short elements as loaded
/// take half the registers.
#[inline(always)]
fn opaque<T: Element>(vector: T::Vector) -> T::Vector {
    if size_of::<T>() == 2 { T::Vector::from_words(vector.to_words().map(compute_now)) } else { vector }
}

/// The vectors that a worker has loaded.
#[derive(Clone, Copy)]
struct Loaded<T: Element> {
    vectors: [T::Vector; VECTORS],
    /// The index in the segment at which the first vector begins (negative for the segment's first vector), and the
    /// distance between vectors.
    place: u32,
    stride: u32,
    /// The segment's length.
    len: u32,
    /// The number of lanes after this one that work on the same segment.
    followers: u32,
}

impl<T: Element> Loaded<T> {
    /// Loads the vectors of this lane's worker, counted from `from`.
    #[inline(always)]
    fn load(input: &Global<T>, owned: Owned, from: u32) -> Self {
        const WORKERS: u32 = 16;
        let (lane, vector) = (lane_id(), T::Vector::LEN as u32);
        // Lanes past the last worker repeat it and ignore what they load, so that the loads need no predicate.
        let worker = if from + lane < owned.of_warp { from + lane } else { owned.of_warp - 1 };
        let has_work = worker == from + lane;
        // The last lane whose workers do not begin after this worker.
        let (mut owner, mut before) = (0, 0);
        each::<5>(|k| {
            let next = owner + (16 >> k);
            let begin = warp_shuffle_idx(FULL_MASK, owned.before, next, 32).0;
            (owner, before) = if begin <= worker { (next, begin) } else { (owner, before) };
        });
        let start = warp_shuffle_idx(FULL_MASK, owned.start as u64, owner, 32).0 as usize;
        // There are at most 4,096 elements and 129 workers.
        let both = warp_shuffle_idx(FULL_MASK, owned.len | owned.workers << WORKERS, owner, 32).0;
        let (len, workers) = (both & ((1 << WORKERS) - 1), both >> WORKERS);
        let number = worker - before;
        let past = input.elements_past(start, 16) as u32;
        // The segment's vectors.
        let (first, last) = (start - past as usize, (past + len - 1) / vector);
        let mut vectors = [T::Vector::splat(T::default()); VECTORS];
        each::<VECTORS>(|k| {
            let own = number + k as u32 * workers;
            let i = first + (if own < last { own } else { last } * vector) as usize;
            // SAFETY: the vectors of a segment that has workers are inside the view (`Owned::of`), and begin at
            // multiples of 16 bytes.
            [vectors[k]] = unsafe { input.load_aligned_vectors_unchecked::<1>(i, 0) };
        });
        let (of_segment, of_batch) = (workers - (number + 1), 31 - lane);
        let followers = if of_segment < of_batch { of_segment } else { of_batch };
        Self {
            vectors,
            place: (number * vector).wrapping_sub(past),
            stride: workers * vector,
            len: if has_work { len } else { 0 },
            followers: if has_work { followers } else { 0 },
        }
    }

    /// The segment's elements, with zeros in place of others.
    #[inline(always)]
    fn of_segment(&self) -> [T::Vector; VECTORS] {
        let mut vectors = self.vectors;
        each::<VECTORS>(|k| {
            let place = self.place.wrapping_add(k as u32 * self.stride);
            let remaining = self.len as i32 - place as i32;
            vectors[k] = masked::<T>(vectors[k], |i| {
                // Only the first vector may begin before the segment.
                if k == 0 { place.wrapping_add(i) < self.len } else { (i as i32) < remaining }
            });
        });
        vectors
    }
}

/// A lane's sum, in units of the window, and the lanes for whose vectors it is exact.
#[inline(always)]
fn sum_of_lane<K: Terms<Element = T, Item = T>, T: Element>(
    terms: K,
    vectors: &[T::Vector; VECTORS],
    window: Window<Float<K>>,
) -> (<Float<K> as Format>::Value, u32) {
    let mut bins = Bins::EMPTY;
    each::<VECTORS>(|k| {
        <One<'_, T> as Inputs<K>>::each(vectors[k], |i, item| {
            bins = extract(terms, window, bins, item);
            // Four at a time, because the terms of all elements would take too many registers.
            if i % 4 == 3 || i + 1 == T::Vector::LEN {
                (bins.upper, bins.lower) = (Float::<K>::compute_now(bins.upper), Float::<K>::compute_now(bins.lower));
            }
        });
    });
    let value = window.drain(bins.upper, bins.lower, term_count::<K>(VECTORS * items_of_vector::<K>()));
    let is_exact = bins.is_exact() & all_have_exact_low::<K, One<'_, T>, VECTORS>(vectors);
    (Value::of(value), warp_vote_ballot(FULL_MASK, is_exact))
}

/// The sum over this lane and the `followers` lanes after it.
#[inline(always)]
fn add_followers<V: Value>(sum: V, followers: u32) -> V {
    let (mut sum, mut distance) = (sum, 1);
    while warp_vote_any(FULL_MASK, distance <= followers) {
        let other = sum.of_lane(lane_id() + distance);
        sum = sum.plus(if distance <= followers { other } else { V::ZERO });
        distance *= 2;
    }
    sum
}

/// A vector with zeros in place of the elements that are not `kept`.
#[inline(always)]
fn masked<T: Element>(vector: T::Vector, kept: impl Fn(u32) -> bool) -> T::Vector {
    let mut words = vector.to_words();
    each::<4>(|k| {
        let i = 4 * k as u32 / size_of::<T>() as u32;
        let mask = |i: u32, ones: u32| if kept(i) { ones } else { 0 };
        words[k] &= if size_of::<T>() == 2 { mask(i, 0xffff) | mask(i + 1, 0xffff_0000) } else { mask(i, u32::MAX) };
    });
    T::Vector::from_words(words)
}

/// Sums the segments of the lanes in `again` once more, of any elements: short ones by a few lanes each, several at a
/// time, others one after the other by all lanes. Out of line.
#[cold]
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "a struct argument would lie in local memory")]
fn resum_segments<O: ExactOperator<T>, T: Element>(
    input: Global<T>,
    start: usize,
    len: u32,
    again: u32,
    first: usize,
    terms: O::Terms,
    superacc: Superaccumulator<GridOf<O, T>>,
    results: Results<'_, O::Terms>,
) {
    let of_lane = |owner: u32| {
        let start = warp_shuffle_idx(FULL_MASK, start as u64, owner, 32).0 as usize;
        (start, warp_shuffle_idx(FULL_MASK, len, owner, 32).0 as usize)
    };
    let mut left = again;
    let by_warp = !takes_rows_of::<O::Terms>() || results.finish.is_long_root();
    if !by_warp {
        let is_short = len as usize <= MAX_VECTORS * T::Vector::LEN;
        let mut short = again & warp_vote_ballot(FULL_MASK, is_short);
        left &= !short;
        let longest = u32::reduce_max(FULL_MASK, if short >> lane_id() & 1 == 1 { len } else { 0 });
        let (needed, least) = (longest.div_ceil((T::Vector::LEN as u32) << VECTORS_LOG), min_lanes(size_of::<T>()));
        let lanes_log = (if needed < least { least } else { needed }).next_power_of_two().trailing_zeros();
        let group = lane_id() >> lanes_log;
        while short != 0 {
            // Each group of lanes takes the segment of another lane.
            let (mut owner, mut taken) = (None, 0);
            while taken < 32 >> lanes_log && short != 0 {
                owner = if taken == group { Some(short.trailing_zeros()) } else { owner };
                short &= short - 1;
                taken += 1;
            }
            let (start, len) = of_lane(owner.unwrap_or(0));
            let result = owner.map(|owner| first + owner as usize);
            let place = RowPlace { start, len: if result.is_some() { len } else { 0 }, result };
            // SAFETY: segments that lanes own are inside the input.
            unsafe {
                match size_of::<T>() {
                    2 => sum_full_range::<O::Terms, T, 8>(&input, place, lanes_log, VECTORS_LOG, terms, &results),
                    4 => sum_full_range::<O::Terms, T, 4>(&input, place, lanes_log, VECTORS_LOG, terms, &results),
                    8 => sum_full_range::<O::Terms, T, 2>(&input, place, lanes_log, VECTORS_LOG, terms, &results),
                    _ => unreachable!(),
                }
            }
        }
    }
    while left != 0 {
        let owner = left.trailing_zeros();
        left &= left - 1;
        let (start, len) = of_lane(owner);
        let result = sum_by_warp::<O, T>(&input, start, len, terms, superacc, results.finish);
        if lane_id() == 0 {
            results.store(first + owner as usize, result);
        }
        // Before another segment overwrites the words.
        sync_warp(FULL_MASK);
    }
}
