//! Exact sums of long segments, in chunks that blocks take from a queue.

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, lane_id, warp_vote_any};
use half::{bf16, f16};

use super::grid::Grid;
use super::long_rows::{VECTORS_IN_FLIGHT, sum_tiles};
use super::partial::{Partial, WarpPartials, add, fold_block, fold_partials};
use super::result::{ExactOperator, Results, result_of};
use super::rows::GridOf;
use super::superaccumulator::{Superaccumulator, declare_superaccumulator, warp_id, words};
use super::superaccumulator_words::MAX_WARPS;
use super::terms::{One, Terms};
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::fold::is_last_block;
use crate::reduce::long_rows::tile;
use crate::reduce::remainder::elements_per_block;
use crate::reduce::segments::{self, BLOCK, CHUNK_COUNT, ENTRIES_PER_CHUNK, MIN_CHUNK_TILES, tiles_of_chunk};
use crate::reduce::tile_range::TileRange;
use crate::reduce::tuning::exact_long_segments::MIN_CHUNKS;
pub use crate::reduce::tuning::exact_long_segments::{block, resident_threads};

/// The binary logarithm of the minimum number of tiles of a chunk, for an input of `len` elements.
pub const fn log2_min_tiles(len: usize, size: usize) -> u32 {
    match len / tile(BLOCK, size) / MIN_CHUNKS {
        0 => 0,
        tiles if tiles < MIN_CHUNK_TILES => tiles.ilog2(),
        _ => MIN_CHUNK_TILES.ilog2(),
    }
}

/// The maximum number of chunks of long segments that have up to `len` elements in total.
pub const fn max_chunks(len: usize, size: usize) -> usize {
    max_short_chunks(len, size) + segments::max_chunks(len, size)
}

/// The maximum number of superaccumulators that segments of up to `len` elements in total need: one for each chunk of
/// the minimum length, since a segment with several chunks is longer than that.
pub const fn max_superaccumulators(len: usize, size: usize) -> usize {
    let tiles = len / tile(BLOCK, size);
    if tiles < 2 { 0 } else { max_short_chunks(len, size) + tiles / MIN_CHUNK_TILES + 1 }
}

/// The maximum number of chunks of fewer than [`MIN_CHUNK_TILES`] tiles.
const fn max_short_chunks(len: usize, size: usize) -> usize {
    let tiles = len / tile(BLOCK, size);
    if tiles < 2 * MIN_CHUNKS { tiles } else { 2 * MIN_CHUNKS }
}

/// Blocks for each multiprocessor, for `min_blocks`. With a third fewer, sums of elements with two terms take 5 to 15 %
/// less time, others up to 10 % more.
pub const fn min_blocks<O: ExactOperator<T>, T: Element>() -> usize {
    let threads = resident_threads(size_of::<T>());
    let threads = if GridOf::<O, T>::HAS_LOW { threads / 3 * 2 } else { threads };
    threads / block(size_of::<T>())
}

/// The arguments of [`exact_long_segments`](fn@exact_long_segments).
#[arguments]
pub struct ExactLongSegmentArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// [`log2_min_tiles`] of the input.
    pub log2_min_tiles: u32,
    /// The queue of chunks.
    pub chunks: Global<[u64; 2]>,
    /// The number of queued chunks, and the first invalid segment.
    pub status: GlobalMut<u64>,
    /// A sum for each chunk.
    pub partials: GlobalMut<[u64; 2]>,
    /// Counts of finished chunks of each segment, and of blocks; all 0 before and after the launch.
    pub tickets: GlobalMut<u32>,
    /// Superaccumulators to which the blocks of a segment add; all 0 before and after the launch.
    pub superaccumulators: GlobalMut<i64>,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// [`long_segments`](fn@crate::reduce::segments::long_segments) with exact sums, of the chunks that
/// [`exact_segments`](fn@super::segments::exact_segments) has queued.
///
/// A block stores a chunk's sum in `partials`, and adds bits that do not fit there to the segment's superaccumulator,
/// limb by limb. There are [`max_superaccumulators`] of
/// [`words_of_superaccumulator`](super::long_rows::words_of_superaccumulator) words, 0 before and after.
///
/// # Safety
/// As for [`long_segments`](fn@crate::reduce::segments::long_segments).
#[kernel(
    instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16],
    block = block(size_of::<T>()),
    min_blocks = min_blocks::<O, T>(),
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_long_segments<O: ExactOperator<T>, T: Element>(
    ExactLongSegmentArgs {
        input,
        log2_min_tiles,
        chunks,
        status,
        partials,
        tickets,
        superaccumulators,
        finish,
        output,
        term,
    }: ExactLongSegmentArgs<T>,
) {
    let warp_partials = shared_array!([u64; 2]; 2 * MAX_WARPS);
    let shared_ticket = shared_array![u32; 1];
    // SAFETY: `capacity` checks the alignment, and each index is below it.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let terms = O::Terms::of_word(term);
    let superacc: Superaccumulator<GridOf<O, T>> = declare_superaccumulator!();
    let (thread, warp, warps) = (thread::thread_idx_x(), warp_id(), thread::block_dim_x() / 32);
    let queued = status.load_volatile(CHUNK_COUNT) as usize;
    // More chunks than the capacity: the offsets were not in order, which was reported.
    let queued = if queued <= chunks.len() / ENTRIES_PER_CHUNK { queued } else { 0 };

    let mut at = thread::block_idx_x() as usize;
    while at < queued {
        let ([segment, chunk], [start, len]) =
            (chunks.load(at * ENTRIES_PER_CHUNK), chunks.load(at * ENTRIES_PER_CHUNK + 1));
        let (segment, chunk, start, len) = (segment as usize, chunk as usize, start as usize, len as usize);
        let chunk_count = segments::chunks(len, size_of::<T>(), 1 << log2_min_tiles);
        // A chunk of another launch, if two launches overlap: its elements or its result may not exist here, and its
        // segment may have been divided into other chunks.
        let is_inside = start <= input.len() && len <= input.len() - start && chunk < chunk_count;
        let (chunk, chunk_count) = if is_inside { (chunk, chunk_count) } else { (0, 1) };
        let (start, len) = if is_inside { (start, len) } else { (0, 0) };
        let run = run_of_chunk::<T>(chunk, chunk_count, len, 1 << log2_min_tiles);

        let superacc = superacc.begin();
        let sum = sum_tiles::<O::Terms, _, VECTORS_IN_FLIGHT>(One(&input), terms, start, len, run, &superacc);
        let mut partial = fold_block(sum.with_low_in_limbs(&superacc).of_lanes(), warp_partials, &superacc, false);
        let mut is_whole = chunk_count == 1;
        let mut others_have_limbs = false;
        let first_word =
            (start >> (tile(BLOCK, size_of::<T>()).ilog2() + log2_min_tiles)) * words::<GridOf<O, T>>() as usize;
        if !is_whole {
            if warp == 0 && partial.has_limbs {
                Superaccumulator::<GridOf<O, T>>::each_word(|k| {
                    let word = superacc.sum(warps, k);
                    if word != 0 {
                        i64::fetch_add(&superaccumulators, first_word + k as usize, word, Scope::Device);
                    }
                });
            }
            if thread == 0 {
                let bits = partial.to_bits();
                partials.store_volatile(at, [bits as u64, (bits >> 64) as u64]);
            }
            let first = at - chunk;
            if is_last_block(&tickets, 1 + first, chunk_count as u32, &shared_ticket) {
                partial = sum_chunks(chunk_count as u32, first, &partials, warp_partials, &superacc.begin());
                others_have_limbs = partial.has_limbs;
                is_whole = true;
            }
        }
        if is_whole && warp == 0 {
            if partial.has_limbs {
                superacc.gather(warps, |k| {
                    let place = first_word + k as usize;
                    let word = if others_have_limbs { superaccumulators.load_volatile(place) } else { 0 };
                    if others_have_limbs {
                        superaccumulators.store_volatile(place, 0);
                    }
                    word
                });
            }
            let result = result_of(results.finish, partial, superacc, len as u64);
            if lane_id() == 0 && segment < results.capacity() {
                results.store(segment, result);
            }
        }
        // Before the warps' partials are overwritten.
        thread::sync_threads();
        at += thread::grid_dim_x() as usize;
    }
    if is_last_block(&tickets, 0, thread::grid_dim_x(), &shared_ticket) && thread == 0 {
        status.store(CHUNK_COUNT, 0);
    }
}

/// The tiles of chunk `chunk`, of the `chunk_count` chunks of a segment of `len` elements, with one vector for each
/// thread. The last chunk also has the elements after the last whole tile.
#[inline(always)]
fn run_of_chunk<T: Element>(chunk: usize, chunk_count: usize, len: usize, min_tiles: usize) -> TileRange {
    let is_last = chunk + 1 == chunk_count;
    // A chunk consists of tiles of all vectors in flight of a larger block.
    let tiles = tiles_of_chunk(len / tile(BLOCK, size_of::<T>()), min_tiles)
        * VECTORS_IN_FLIGHT
        * (BLOCK / block(size_of::<T>()));
    let end = if is_last { len.div_ceil(elements_per_block::<T>(1)) } else { (chunk + 1) * tiles };
    TileRange { tiles: chunk * tiles..end, is_last }
}

/// The sum of the blocks' sums of a segment's chunks, in the first warp. It has limbs if one of the sums has, or if
/// some of it went to the superaccumulator. All threads must call this.
#[inline(always)]
fn sum_chunks<G: Grid>(
    chunk_count: u32,
    first: usize,
    partials: &GlobalMut<[u64; 2]>,
    warp_partials: WarpPartials,
    superacc: &Superaccumulator<G>,
) -> Partial {
    let (mut sum, mut i) = (Partial::ZERO, thread::thread_idx_x());
    while warp_vote_any(FULL_MASK, i < chunk_count) {
        // The other blocks wrote these during this launch: L1 may be stale.
        let [low, high] = if i < chunk_count { partials.load_volatile(first + i as usize) } else { [0; 2] };
        sum = add(sum, Partial::from_bits(u128::from(low) | u128::from(high) << 64), superacc);
        i += thread::block_dim_x();
    }
    fold_partials(sum, warp_partials, superacc)
}
