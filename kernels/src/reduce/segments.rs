//! Segments of any lengths, by an array of offsets. A segment's length determines how many lanes fold it.

use cuda_std::atomic::{self, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, warp_shuffle_idx, warp_shuffle_up, warp_vote_ballot};

use super::fold::{fold_lanes, fold_warps, is_last_block};
use super::long_rows::{VECTORS_IN_FLIGHT, fold_partials, tile};
use super::thread_reduce::reduce_vectors;
use super::tile_range::{TileRange, fold_tiles};
pub use super::tuning::segments::{BLOCK, MAX_WARP_SEGMENT_VECTORS, MIN_CHUNK_TILES, min_blocks};
use super::tuning::segments::{MAX_CHUNKS, MAX_SHORT_SEGMENT_VECTORS, SEGMENT_VECTORS_IN_FLIGHT, SHORT_SEGMENT_LANES};
use crate::ops::builtin::*;
use crate::ops::{Operator, constant, opaque};

/// Entries of a chunk in the queue: segment and chunk number, then the segment's first element and length.
///
/// The offsets are not read again, since their owner may have changed them by then.
pub const ENTRIES_PER_CHUNK: usize = 2;

/// 16-byte entries that a chunk's state takes.
pub const fn entries_per_partial(size_of_state: usize) -> usize {
    size_of_state.div_ceil(16)
}

/// The index in `status` of the number of queued chunks.
pub const CHUNK_COUNT: usize = 0;

/// The index in `status` of the first segment with invalid offsets, stored as `!segment`, or 0 if there is none. The
/// first such segment has the greatest `!segment`.
pub const INVALID_SEGMENT: usize = 1;

/// The number of chunks of a long segment of `len` elements of `size` bytes. All but the last have the same number of
/// whole tiles, at least `min_tiles`.
pub const fn chunks(len: usize, size: usize, min_tiles: usize) -> usize {
    let tiles = len / tile(BLOCK, size);
    if tiles == 0 { 1 } else { tiles.div_ceil(tiles_of_chunk(tiles, min_tiles)) }
}

/// The tiles of each chunk of a segment of `tiles` tiles.
pub(super) const fn tiles_of_chunk(tiles: usize, min_tiles: usize) -> usize {
    let most = tiles.div_ceil(MAX_CHUNKS);
    if most < min_tiles { min_tiles } else { most }
}

/// The maximum number of chunks of long segments that have `len` elements in total.
pub const fn max_chunks(len: usize, size: usize) -> usize {
    len / (tile(BLOCK, size) * MIN_CHUNK_TILES) + len / (MAX_WARP_SEGMENT_VECTORS * (16 / size)) + 1
}

/// The arguments of [`segments`](fn@segments).
#[arguments]
pub struct SegmentArgs<T: Plain, R: Plain> {
    /// The operator's value: [`Operator::to_word`].
    pub operator: u64,
    /// The elements.
    pub input: Global<T>,
    /// Where each segment begins, and where the last one ends.
    pub offsets: Global<u64>,
    /// Segments of a warp.
    pub segments_per_warp: u32,
    /// The chunks of long segments, for the next kernel.
    pub chunks: GlobalMut<[u64; 2]>,
    /// The number of queued chunks and the first invalid segment, at [`CHUNK_COUNT`] and [`INVALID_SEGMENT`].
    pub status: GlobalMut<u64>,
    /// A result for each segment.
    pub output: GlobalMut<R>,
}

/// Reduces segments to one output each: segment `i` is elements `offsets[i]..offsets[i + 1]` of `input`. `output` has
/// one element for each segment. A segment whose offsets are not in order, or beyond the input, counts as empty and is
/// reported in `status`.
///
/// Each warp takes `segments_per_warp` segments (up to 32), and a lane the offsets of one. How a segment is folded
/// depends on its own length alone:
///
/// - *up to a vector*: by one lane, which loads single elements. Neighbouring lanes load neighbouring segments.
/// - *short*: by four lanes, eight segments at once; *longer*: by the warp. A lane has all of a short segment's vectors
///   in flight at once.
/// - *long*: not by this kernel. Its chunks are written to `chunks`, for [`long_segments`](fn@long_segments).
///
/// So a few long segments among many short ones, as in a graph with power-law degrees, delay no warp.
///
/// Source: the split by length is that of Bell and Garland, "Implementing Sparse Matrix-Vector Multiplication on
/// Throughput-Oriented Processors", SC 2009, and of CSR-Adaptive by Greathouse and Daga, SC 2014.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = builtin_operators!,
    block = BLOCK,
    min_blocks = min_blocks(size_of::<T>()),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn segments<O: Operator<T>, T: Element>(
    SegmentArgs { operator, input, offsets, segments_per_warp, chunks, status, output }: SegmentArgs<
        T,
        <O as Operator<T>>::Output,
    >,
) {
    let operator = O::from_word(operator);
    let (thread, lane) = (thread::index_in_block::<BLOCK>(), warp::lane_id() as usize);
    let warp = thread::block_idx_x() as usize * (BLOCK / 32) + thread / 32;
    let first = warp * segments_per_warp as usize;
    let own = first + lane;
    let is_valid = lane < segments_per_warp as usize && own < output.len();
    let mut segment = Segment { start: 0, len: 0 };
    if is_valid {
        match Segment::from_offsets(&offsets, own, input.len()) {
            Some(good) => segment = good,
            None => {
                atomic::Atomic::fetch_max(&status, INVALID_SEGMENT, !(own as u64), Scope::Device);
            }
        }
    }

    let vector = T::Vector::LEN;
    let Segment { start, len } = segment;
    if is_valid && len <= vector {
        output.store(own, operator.finish(fold_tiny::<O, T>(operator, &input, start, len), len as u64));
    }
    let mut lanes = SHORT_SEGMENT_LANES;
    while lanes <= 32 {
        let uses_these_lanes = if lanes == SHORT_SEGMENT_LANES {
            len > vector && len <= MAX_SHORT_SEGMENT_VECTORS * vector
        } else {
            len > MAX_SHORT_SEGMENT_VECTORS * vector && len <= MAX_WARP_SEGMENT_VECTORS * vector
        };
        let mut left = warp_vote_ballot(FULL_MASK, uses_these_lanes);
        while left != 0 {
            let from = nth_set_bit(left, lane / lanes);
            // A group without a segment takes part, since all lanes shuffle together.
            let start = warp_shuffle_idx(FULL_MASK, start as u64, from & 31, 32).0 as usize;
            let len = warp_shuffle_idx(FULL_MASK, len as u64, from & 31, 32).0 as usize;
            let of_group = || fold_segment::<O, T>(operator, &input, start, len, lane % lanes, lanes);
            let state = if from < 32 { of_group() } else { constant!(O::NEUTRAL) };
            let state = fold_lanes::<O, T>(state, lanes as u32);
            if lane.is_multiple_of(lanes) && from < 32 {
                output.store(first + from as usize, operator.finish(state, len as u64));
            }
            let mut groups = 32 / lanes;
            while groups > 0 {
                left &= left.wrapping_sub(1);
                groups -= 1;
            }
        }
        lanes *= 32 / SHORT_SEGMENT_LANES;
    }
    queue_long_segments::<T>(Segment { start, len }, first, MIN_CHUNK_TILES, &chunks, &status);
}

/// The index of the `n`-th set bit of `mask`, counted from 0; 32 if there is none.
#[inline(always)]
fn nth_set_bit(mask: u32, n: usize) -> u32 {
    let (mut mask, mut n) = (mask, n);
    while n > 0 {
        mask &= mask.wrapping_sub(1);
        n -= 1;
    }
    mask.trailing_zeros()
}

/// Queues the chunks of the warp's long segments, of which this lane's may be one.
#[inline(always)]
pub(super) fn queue_long_segments<T: Element>(
    own: Segment,
    first: usize,
    min_tiles: usize,
    chunks: &GlobalMut<[u64; 2]>,
    status: &GlobalMut<u64>,
) {
    let lane = warp::lane_id();
    let Segment { start, len } = own;
    let is_long = len > MAX_WARP_SEGMENT_VECTORS * T::Vector::LEN;
    let mut left = warp_vote_ballot(FULL_MASK, is_long);
    if left == 0 {
        return;
    }
    let own = if is_long { self::chunks(len, size_of::<T>(), min_tiles) as u64 } else { 0 };
    let mut up_to_own = own;
    let mut delta = 1;
    while delta < 32 {
        let (below, is_valid) = warp_shuffle_up(FULL_MASK, up_to_own, delta, 32);
        up_to_own += if is_valid { below } else { 0 };
        delta *= 2;
    }
    let (all, _) = warp_shuffle_idx(FULL_MASK, up_to_own, 31, 32);
    let before = if lane == 0 { atomic::Atomic::fetch_add(status, CHUNK_COUNT, all, Scope::Device) } else { 0 };
    let (before, _) = warp_shuffle_idx(FULL_MASK, before, 0, 32);
    let own_first = before + up_to_own - own;
    while left != 0 {
        let from = left.trailing_zeros();
        let (count, _) = warp_shuffle_idx(FULL_MASK, own, from, 32);
        let (first_chunk, _) = warp_shuffle_idx(FULL_MASK, own_first, from, 32);
        let (start, _) = warp_shuffle_idx(FULL_MASK, start as u64, from, 32);
        let (len, _) = warp_shuffle_idx(FULL_MASK, len as u64, from, 32);
        let mut chunk = u64::from(lane);
        // Up to the capacity, which is exceeded only if offsets are not in order.
        while chunk < count && first_chunk + chunk < (chunks.len() / ENTRIES_PER_CHUNK) as u64 {
            let at = (first_chunk + chunk) as usize * ENTRIES_PER_CHUNK;
            chunks.store(at, [first as u64 + u64::from(from), chunk]);
            chunks.store(at + 1, [start, len]);
            chunk += 32;
        }
        left &= left - 1;
    }
}

/// The arguments of [`long_segments`](fn@long_segments).
#[arguments]
pub struct LongSegmentArgs<T: Plain, R: Plain> {
    /// The operator's value: [`Operator::to_word`].
    pub operator: u64,
    /// The elements.
    pub input: Global<T>,
    /// The chunks of long segments.
    pub chunks: Global<[u64; 2]>,
    /// The number of queued chunks and the first invalid segment, at [`CHUNK_COUNT`] and [`INVALID_SEGMENT`].
    pub status: GlobalMut<u64>,
    /// The states that blocks of one segment exchange.
    pub partials: GlobalMut<[u64; 2]>,
    /// Counts of finished blocks; all 0 before and after the launch.
    pub tickets: GlobalMut<u32>,
    /// A result for each segment.
    pub output: GlobalMut<R>,
}

/// Reduces the segments that [`segments`](fn@segments) queued in `chunks` to one output each. Blocks take chunks
/// round-robin. The last block to finish a chunk of a segment folds the states of all its chunks, in order.
///
/// `partials` has [entries](entries_per_partial) for each chunk, and `tickets` one for each chunk and one more, all 0.
///
/// # Safety
/// The arguments are as described above, and the views have all elements that they name: accesses are not checked.
#[kernel(
    instances = builtin_operators!,
    block = BLOCK,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS, erase = crate::ops::Erased
)]
pub unsafe fn long_segments<O: Operator<T>, T: Element>(
    LongSegmentArgs { operator, input, chunks, status, partials, tickets, output }: LongSegmentArgs<
        T,
        <O as Operator<T>>::Output,
    >,
) {
    let operator = O::from_word(operator);
    let warp_states = shared_array![O::State; 32];
    let shared_ticket = shared_array![u32; 1];
    let thread = thread::index_in_block::<BLOCK>();
    let entries = entries_per_partial(size_of::<O::State>());
    let queued = status.load_volatile(CHUNK_COUNT) as usize;
    // More chunks than the capacity: the offsets were not in order, which was reported.
    let queued = if queued <= chunks.len() / ENTRIES_PER_CHUNK { queued } else { 0 };

    let mut at = thread::block_idx_x() as usize;
    while at < queued {
        let ([segment, chunk], [start, len]) =
            (chunks.load(at * ENTRIES_PER_CHUNK), chunks.load(at * ENTRIES_PER_CHUNK + 1));
        let (segment, chunk, start, len) = (segment as usize, chunk as usize, start as usize, len as usize);
        // If two launches of one reducer overlap, this may be a chunk of the other launch's input, with elements that
        // this input does not have. The output is then unspecified, and the chunk counts as empty. Clearing `start`,
        // too, would take registers, and with them one of four resident blocks.
        let is_inside = start <= input.len() && len <= input.len() - start;
        let len = if is_inside { len } else { 0 };
        let (tiles, chunk_count) =
            (len / tile(BLOCK, size_of::<T>()), self::chunks(len, size_of::<T>(), MIN_CHUNK_TILES));
        let of_chunk = tiles_of_chunk(tiles, MIN_CHUNK_TILES);
        let (is_last, end) = (chunk + 1 == chunk_count, (chunk + 1) * of_chunk);
        let range = TileRange { tiles: chunk * of_chunk..if is_last { tiles } else { end }, is_last };
        let is_aligned = constant!(O::ANY_ORDER) || input.elements_past(start, 16) == 0;
        let state = fold_tiles::<O, T, VECTORS_IN_FLIGHT, false>(operator, &input, start, len, range, is_aligned);
        let state = fold_warps::<O, T>(state, (BLOCK / 32) as u32, &warp_states, false);
        // Checked, since a custom operator may ask for any element.
        let resolved = |state| operator.resolve_index(state, |i| input.load(start.wrapping_add(i as usize)));
        if chunk_count == 1 {
            if thread == 0 {
                output.store(segment, operator.finish(resolved(state), len as u64));
            }
        } else {
            let first = at - chunk;
            if thread == 0 {
                let [first, second, third, fourth] = resolved(state).to_four_words();
                partials.store_volatile(at * entries, [first, second]);
                if entries > 1 {
                    partials.store_volatile(at * entries + 1, [third, fourth]);
                }
            }
            if is_last_block(&tickets, 1 + first, chunk_count as u32, &shared_ticket) {
                // The other blocks wrote these during this launch: L1 may be stale.
                let partial = |i: usize, _| {
                    let at = (first + i) * entries;
                    let [[first, second], [third, fourth]] =
                        [partials.load_volatile(at), if entries > 1 { partials.load_volatile(at + 1) } else { [0; 2] }];
                    O::State::from_four_words([first, second, third, fourth])
                };
                let state = fold_partials::<O, T>(chunk_count as u32, &warp_states, partial);
                if thread == 0 {
                    output.store(segment, operator.finish(state, len as u64));
                }
            }
        }
        // Before `warp_states` is overwritten.
        thread::sync_threads();
        at += thread::grid_dim_x() as usize;
    }
    if is_last_block(&tickets, 0, thread::grid_dim_x(), &shared_ticket) && thread == 0 {
        status.store(CHUNK_COUNT, 0);
    }
}

/// A segment's elements in the input.
pub(super) struct Segment {
    pub start: usize,
    pub len: usize,
}

impl Segment {
    /// Segment `i`, if its offsets are in order and within `elements` elements.
    #[inline(always)]
    pub fn from_offsets(offsets: &Global<u64>, i: usize, elements: usize) -> Option<Self> {
        let (start, end) = (offsets.load(i), offsets.load(i + 1));
        if start <= end && end <= elements as u64 {
            Some(Self { start: start as usize, len: (end - start) as usize })
        } else {
            None
        }
    }
}

/// Folds a segment of at most a vector's length, with four loads in flight.
#[inline(always)]
fn fold_tiny<O: Operator<T>, T: Element>(operator: O, input: &Global<T>, start: usize, len: usize) -> O::State {
    let mut state = constant!(O::NEUTRAL);
    let mut i = 0;
    while i < len {
        let load = |k: usize| {
            // SAFETY: `i + k` was just compared with `len`.
            if i + k < len { unsafe { input.load_unchecked(start + i + k) } } else { T::default() }
        };
        let loaded = [load(0), load(1), load(2), load(3)];
        let with = |state: O::State, k: usize| {
            if i + k < len { O::combine(state, operator.lift(loaded[k], (i + k) as u64)) } else { state }
        };
        state = with(with(with(with(state, 0), 1), 2), 3);
        i += 4;
    }
    state
}

/// The state of lane `lane` of `lanes`, of the segment of `len` elements from `start`. The lane takes every `lanes`-th
/// vector, then elements after the last whole vector.
#[inline(always)]
fn fold_segment<O: Operator<T>, T: Element>(
    operator: O,
    input: &Global<T>,
    start: usize,
    len: usize,
    lane: usize,
    lanes: usize,
) -> O::State {
    let vector = T::Vector::LEN;
    let (stride, whole) = (lanes * vector, len / vector * vector);
    // The rest has fewer elements than a vector: at most four for each of four lanes.
    let rest = |k: usize| whole + lane + k * lanes;
    let has_rest = |k: usize| k * SHORT_SEGMENT_LANES < vector && rest(k) < len;
    let load_rest = |k: usize| {
        // SAFETY: just compared with `len`.
        if has_rest(k) { unsafe { input.load_unchecked(start + rest(k)) } } else { T::default() }
    };
    let rests = [load_rest(0), load_rest(1), load_rest(2), load_rest(3)];

    let mut state = constant!(O::NEUTRAL);
    let mut i = lane * vector;
    while i < whole {
        let at = |k: usize| i + k * stride;
        // SAFETY: a vector that begins before `whole` is inside the segment.
        let vectors =
            unsafe { input.load_few_vectors_before::<SEGMENT_VECTORS_IN_FLIGHT>(start + i, stride, start + whole) };
        let with = |state: O::State, k: usize| {
            if at(k) < whole {
                O::combine(state, reduce_vectors::<O, T, 1>(operator, [vectors[k]], at(k), 0))
            } else {
                state
            }
        };
        state = with(with(with(with(state, 0), 1), 2), 3);
        i += SEGMENT_VECTORS_IN_FLIGHT * stride;
    }
    let operator = opaque::<O, T>(operator);
    let with = |state: O::State, k: usize| {
        if has_rest(k) { O::combine(state, operator.lift(rests[k], rest(k) as u64)) } else { state }
    };
    with(with(with(with(state, 0), 1), 2), 3)
}
