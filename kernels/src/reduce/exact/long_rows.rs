//! Exact sums of whole inputs and long rows, by one block or several.

use cuda_std::atomic::{self, Atomic, Scope};
use cuda_std::global::issue_loads;
use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::tile_state;
use cuda_std::warp::{FULL_MASK, lane_id, sync_warp, warp_vote_any};
use half::{bf16, f16};

use super::format::Format;
use super::grid::Grid;
use super::lane_memory::LaneMemory;
use super::lane_superaccumulators::LaneSuperaccumulators;
use super::partial::{Partial, WarpPartials, add, fold_block, fold_partials};
use super::result::{ExactOperator, ExactPairOperator, Results, result_of_both};
use super::superaccumulator::{Superaccumulator, declare_superaccumulator, warp_id, words};
use super::superaccumulator_words::{MAX_WARPS, OTHER_WORDS};
use super::terms::{Float, Inputs, One, Terms, Two};
use super::warp_sum::{WarpSum, items_of_vector, largest_of_warp, term_count, window_above};
use crate::ops::{Dot, Sum, SumOfSquares};
use crate::reduce::long_rows::Split;
use crate::reduce::pairs::PairRows;
use crate::reduce::remainder::elements_per_block;
use crate::reduce::tile_range::TileRange;
pub use crate::reduce::tuning::exact_long_rows::{MAX_THREADS, PAIRS_IN_FLIGHT, VECTORS_IN_FLIGHT};

/// The number of tile states of a split of a row.
pub const fn states_per_split<O: ExactOperator<T>, T: Element>() -> usize {
    states_of_split::<O::Terms>()
}

/// [`states_per_split`] for two inputs.
pub const fn states_per_split_of_pairs<O: ExactPairOperator<T>, T: Element>() -> usize {
    states_of_split::<O::Terms>()
}

/// The number of words of a row's superaccumulator: limbs, and counts of non-finite terms.
pub const fn words_of_superaccumulator<O: ExactOperator<T>, T: Element>() -> usize {
    words::<<O::Terms as Terms>::Grid>() as usize
}

/// [`words_of_superaccumulator`] for two inputs.
pub const fn words_of_pairs_superaccumulator<O: ExactPairOperator<T>, T: Element>() -> usize {
    words::<<O::Terms as Terms>::Grid>() as usize
}

/// The dynamic shared memory of a block that sums terms `K`. A launch without it sums wide data more slowly.
pub const fn lane_memory<K: Terms>() -> LaneMemory {
    // Partials of the warps' own sums and of other blocks', each of up to two terms; and superaccumulators.
    let terms = if K::Grid::HAS_LOW { 2 } else { 1 };
    let partials = 2 * terms * size_of::<[u64; 2]>() * 2 * MAX_WARPS;
    let superaccumulators = size_of::<i64>() * (K::Grid::LIMBS as usize + OTHER_WORDS) * MAX_WARPS;
    LaneMemory::of::<K>(partials + superaccumulators, 1)
}

/// The arguments of [`exact_long_rows`](fn@exact_long_rows).
#[arguments]
pub struct ExactLongRowArgs<T: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// Elements of a row.
    pub len: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Blocks that share a row: its splits.
    pub splits: u32,
    /// Tiles of a split; the longer splits have one more. A tile has a vector for each thread of the block.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer_splits: u32,
    /// The tile states of the rows' splits; all 0 before and after the launch.
    pub tile_states: GlobalMut<[u64; 2]>,
    /// Superaccumulators to which the blocks of a row add; all 0 before and after the launch.
    pub superaccumulators: GlobalMut<i64>,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
    /// The fields of a custom term as a word; 0 for other terms.
    pub term: u64,
}

/// [`long_rows`](fn@crate::reduce::long_rows::long_rows) with exact sums.
///
/// Blocks exchange sums in tile states. They add bits that do not fit there to `superaccumulators`, limb by limb; the
/// order of these integer additions does not matter. Both are 0 before and after the launch.
///
/// A block loads several tiles in one step, but may have any number of tiles, so that the numbers of tiles of two
/// blocks differ by at most one. If blocks had only whole steps, 2^22 `f32` would be two steps for some and three for
/// others.
///
/// # Safety
/// As for [`long_rows`](fn@crate::reduce::long_rows::long_rows), with [`states_per_split`] tile states for each split,
/// and [`words_of_superaccumulator`] words of `superaccumulators` for each row, if there is more than one split. The
/// block has whole warps.
#[kernel(
    instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16],
    max_threads = MAX_THREADS,
    min_blocks = 1,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_long_rows<O: ExactOperator<T>, T: Element>(
    ExactLongRowArgs {
        input,
        len,
        pitch,
        splits,
        tiles,
        longer_splits,
        tile_states,
        superaccumulators,
        finish,
        output,
        term,
    }: ExactLongRowArgs<T>,
) {
    let split = Split::of_block(splits, tiles, longer_splits);
    let shared = Shared { tile_states: &tile_states, superaccumulators: &superaccumulators };
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(finish, output) };
    let terms = O::Terms::of_word(term);
    sum_split::<O::Terms, _, VECTORS_IN_FLIGHT>((One(&input), terms), split, len, pitch, splits, shared, results);
}

/// The arguments of [`exact_pairs`](fn@exact_pairs).
#[arguments]
pub struct ExactPairArgs<T: Plain> {
    /// The elements of one input.
    pub first: Global<T>,
    /// The elements of the other.
    pub second: Global<T>,
    /// Rows of a group.
    pub rows: u32,
    /// Elements of a row.
    pub len: usize,
    /// Elements of the first input from the start of a row to that of the next one of its group.
    pub pitch: usize,
    /// Likewise, of the second input.
    pub second_pitch: usize,
    /// Elements of the first input from the start of a group of rows to that of the next one.
    pub group_pitch: usize,
    /// Likewise, of the second input.
    pub second_group_pitch: usize,
    /// Blocks that share a row: its splits.
    pub splits: u32,
    /// Tiles of a split; the longer splits have one more. A tile has a vector for each thread of the block.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer_splits: u32,
    /// The tile states of the rows' splits; all 0 before and after the launch.
    pub tile_states: GlobalMut<[u64; 2]>,
    /// Superaccumulators to which the blocks of a row add; all 0 before and after the launch.
    pub superaccumulators: GlobalMut<i64>,
    /// How results are computed from sums: see [`result`](super::result).
    pub finish: u32,
    /// The results, in the format that `finish` selects, and aligned for it.
    pub output: GlobalMut<u8>,
}

/// [`pairs`](fn@crate::reduce::pairs::pairs) with exact sums.
///
/// # Safety
/// As for [`pairs`](fn@crate::reduce::pairs::pairs), and for [`exact_long_rows`](fn@exact_long_rows) with
/// [`words_of_pairs_superaccumulator`]. The block has whole warps.
#[kernel(
    instances = [Dot] x [f32, f64, f16, bf16],
    max_threads = MAX_THREADS,
    min_blocks = 1,
    dependent_launch, prefetch_blocks = crate::PREFETCH_BLOCKS
)]
pub unsafe fn exact_pairs<O: ExactPairOperator<T>, T: Element>(args: ExactPairArgs<T>) {
    let ExactPairArgs { first, second, rows, len, pitch, second_pitch, group_pitch, second_group_pitch, .. } = args;
    let ExactPairArgs { splits, tiles, longer_splits, tile_states, superaccumulators, finish, output, .. } = args;
    let split = Split::of_block(splits, tiles, longer_splits);
    let shared = Shared { tile_states: &tile_states, superaccumulators: &superaccumulators };
    let place = PairRows { rows, pitches: [pitch, second_pitch], group_pitches: [group_pitch, second_group_pitch] };
    // SAFETY: the row is inside both inputs, as promised by the caller.
    let (first, second) = unsafe { place.of_row(&first, &second, split.row) };
    let inputs = (Two(&first, &second), O::Terms::of_word(0));
    // SAFETY: the caller promises that the output has all results, and is aligned for them.
    let results = unsafe { Results::new(finish, output) };
    // The inputs begin at the row.
    sum_split::<O::Terms, _, PAIRS_IN_FLIGHT>(inputs, split, len, 0, splits, shared, results);
}

/// The memory that the blocks of a row share.
pub(super) struct Shared<'a> {
    pub tile_states: &'a GlobalMut<'a, [u64; 2]>,
    pub superaccumulators: &'a GlobalMut<'a, i64>,
}

/// Sums a split of a row. The last split's block also adds the other splits' sums.
#[inline(always)]
pub(super) fn sum_split<K: Terms, I: Inputs<K>, const VECTORS: usize>(
    (inputs, terms): (I, K),
    split: Split,
    len: usize,
    pitch: usize,
    splits: u32,
    shared: Shared<'_>,
    results: Results<'_, K>,
) {
    let Shared { tile_states, superaccumulators } = shared;
    let partials = shared_array!([u64; 2]; 2 * MAX_WARPS);
    let superacc: Superaccumulator<K::Grid> = declare_superaccumulator!();
    let superacc = superacc.begin();
    let split = split.with_tiles_per_round(VECTORS as u32);
    split.launch_dependents();
    let start = split.row * pitch;
    let run = split.tile_range();
    let sum = sum_tiles::<K, I, VECTORS>(inputs, terms, start, len, run, &superacc);
    split.launch_dependents_late();
    let [of_first, of_low] = sum.of_both();
    // Only the last split's block needs its other warps once more.
    let is_done = split.index + 1 < splits || splits == 1;
    let mut partial = fold_block(of_first, partials, &superacc, is_done && !K::Grid::HAS_LOW);
    let mut low = Partial::ZERO;
    if K::Grid::HAS_LOW {
        low = fold_block(of_low, shared_array!([u64; 2]; 2 * MAX_WARPS), &superacc, is_done);
        partial.has_limbs |= low.has_limbs;
    }
    let (warp, warps) = (warp_id(), thread::block_dim_x() / 32);
    let mut others_have_limbs = false;
    let first_word = split.row * words::<K::Grid>() as usize;
    if splits > 1 {
        let states_per_split =
            SplitStates { tile_states, first: split.row * splits as usize, step: states_of_split::<K>() };
        // The last split's block waits for the others, which started before it.
        if split.index + 1 < splits {
            if warp == 0 {
                if partial.has_limbs {
                    Superaccumulator::<K::Grid>::each_word(|k| {
                        let word = superacc.sum(warps, k);
                        if word != 0 {
                            i64::fetch_add(superaccumulators, first_word + k as usize, word, Scope::Device);
                        }
                    });
                    sync_warp(FULL_MASK);
                    atomic::fence(Scope::Device);
                }
                if lane_id() == 0 {
                    states_per_split.publish(split.index, 0, partial);
                    if K::Grid::HAS_LOW {
                        states_per_split.publish(split.index, 1, low);
                    }
                }
            }
            return;
        }
        // This block's own limbs stay in shared memory.
        let keeps_limbs = partial.has_limbs;
        let own = |partial| Partial { has_limbs: false, ..partial };
        partial = sum_splits(
            own(partial),
            splits - 1,
            &states_per_split,
            0,
            shared_array!([u64; 2]; 2 * MAX_WARPS),
            &superacc,
        );
        if K::Grid::HAS_LOW {
            low = sum_splits(
                own(low),
                splits - 1,
                &states_per_split,
                1,
                shared_array!([u64; 2]; 2 * MAX_WARPS),
                &superacc,
            );
        }
        others_have_limbs = partial.has_limbs | low.has_limbs;
        partial.has_limbs = others_have_limbs | keeps_limbs;
    }
    if warp == 0 {
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
        let result = result_of_both(results.finish, partial, low, superacc, len as u64);
        if lane_id() == 0 {
            results.store(split.row, result);
        }
    }
}

/// The number of tile states of each split of a row: one for each partial.
const fn states_of_split<K: Terms>() -> usize {
    if K::Grid::HAS_LOW { 2 } else { 1 }
}

/// The tile states of a row's splits.
struct SplitStates<'a> {
    tile_states: &'a GlobalMut<'a, [u64; 2]>,
    /// The index of the first split, counted over all rows.
    first: usize,
    /// The number of tile states of a split.
    step: usize,
}

impl SplitStates<'_> {
    /// Publishes a partial of a split in one of the split's tile states.
    #[inline(always)]
    fn publish(&self, split: u32, which: usize, partial: Partial) {
        let (bits, place) = (partial.to_bits(), (self.first + split as usize) * self.step + which);
        tile_state::publish_tagged(self.tile_states, place, (bits >> 64) as u64, bits as u64 | PUBLISHED);
    }
}

/// A bit that is 1 in every published partial. It is the bit for NaN, which partials do not use: limbs record NaN.
const PUBLISHED: u64 = 1 << 12;

/// The sum of consecutive tiles of the row of `len` elements from `start`. A tile has a vector for each thread; a step
/// takes `VECTORS` tiles.
#[inline(always)]
pub(super) fn sum_tiles<K: Terms, I: Inputs<K>, const VECTORS: usize>(
    inputs: I,
    terms: K,
    start: usize,
    len: usize,
    run: TileRange,
    superacc: &Superaccumulator<K::Grid>,
) -> WarpSum<K::Grid> {
    // `FEW` is the number of vectors whose terms fit in registers.
    if const { term_count::<K>(items_of_vector::<K>()) == 8 } {
        sum_tile_range::<K, I, VECTORS, 2, 16>(inputs, terms, start, len, run, superacc)
    } else if const { term_count::<K>(items_of_vector::<K>()) == 2 } {
        sum_tile_range::<K, I, VECTORS, 4, 8>(inputs, terms, start, len, run, superacc)
    } else if const { size_of::<Float<K>>() == 4 } {
        sum_tile_range::<K, I, VECTORS, 4, 16>(inputs, terms, start, len, run, superacc)
    } else {
        sum_tile_range::<K, I, VECTORS, 2, 8>(inputs, terms, start, len, run, superacc)
    }
}

/// The number of bits by which the first window exceeds the first elements. Later elements may be larger, especially
/// products, and a step with such an element takes long. Windows of `f64` have unused bits for this.
const fn headroom_of<K: Terms>() -> i32 {
    if <Float<K> as Format>::HAS_BELOW { 0 } else { 4 }
}

/// Whether the next step is prefetched to L2 instead of loaded. Squares of `f64` leave no registers for its elements.
/// Dot products of `f64` gain nothing (`docs/notes/exact-sums.md`).
const fn prefetches<K: Terms, I: Inputs<K>>() -> bool {
    K::Grid::HAS_LOW && I::COUNT == 1
}

/// Prefetches the part before `end` of a warp's step. `i` is the index of this lane's first element in the step.
#[inline(always)]
fn prefetch_step<K: Terms, I: Inputs<K>, const VECTORS: usize>(inputs: I, i: usize, end: usize) {
    const LINE: usize = 128;
    const { assert!(VECTORS * 32 * 16 <= 32 * LINE, "a line for each lane") };
    let (lane, lines) = (lane_id() as usize, VECTORS * 32 * 16 / LINE);
    let own = i - lane * items_of_vector::<K>() + lane * (LINE / size_of::<K::Element>());
    if lane < lines && own < end {
        inputs.prefetch_line(own);
    }
}

/// [`sum_tiles`]. Steps that do not fit in the window are added `FEW` vectors at a time, which have `TERMS` terms.
#[inline(always)]
fn sum_tile_range<K: Terms, I: Inputs<K>, const VECTORS: usize, const FEW: usize, const TERMS: usize>(
    inputs: I,
    terms: K,
    start: usize,
    len: usize,
    run: TileRange,
    superacc: &Superaccumulator<K::Grid>,
) -> WarpSum<K::Grid> {
    let vector = items_of_vector::<K>();
    // A warp's vectors are contiguous, so that the compiler knows the distances between a lane's vectors.
    let (stride, tile) = (32 * vector, elements_per_block::<K::Element>(1));
    let step = elements_per_block::<K::Element>(VECTORS as u32);
    // Vectors begin after the head, at a multiple of 16 bytes. The head and the elements after the last whole vector
    // are singles, which are added last.
    let head = inputs.head(start, len);
    let (start, len) = (start + head, len - head);
    let whole = len / vector * vector;
    let (first, last) = (run.tiles.start * tile, run.tiles.end * tile);
    let last = if last < whole { last } else { whole };
    let end = start + last;
    let mut left = (run.tiles.end - run.tiles.start).div_ceil(VECTORS) as u32;
    // Without the elements before the first aligned one, the last step may not exist.
    left -= u32::from(left > 1 && first + (left - 1) as usize * step >= whole);
    let is_last_whole = first + left as usize * step <= last;
    let mut i = start + first + (warp_id() * VECTORS * 32 + lane_id() as usize) * vector;

    const MOST: usize = 8;
    let own = thread::thread_idx_x() as usize;
    let has_singles = run.is_last && (head > 0 || whole < len);
    let (is_single, single) = match own < MOST {
        true => (own < head, start.wrapping_sub(head) + own),
        false => (own < MOST + (len - whole), start + whole + own - MOST),
    };
    // SAFETY: the item is inside the row.
    let single = if has_singles && is_single { unsafe { inputs.item(single) } } else { K::Item::default() };
    // SAFETY: whole vectors before `end` are inside the row, and begin after the head.
    let load_step = |i| unsafe { inputs.load_before::<VECTORS>(i, stride, end) };
    let mut vectors = load_step(i);
    issue_loads();
    let mut sum = WarpSum::in_window(match K::WINDOW {
        Some(exponent) => exponent,
        None => window_above::<Float<K>>(largest_of_warp::<K, I, VECTORS>(terms, &vectors)) + headroom_of::<K>(),
    });
    let mut lanes = LaneSuperaccumulators::begin();
    loop {
        // Adds steps whose elements are in the window. The next step is in flight, or prefetched to L2. A step that the
        // first loop does not take is tried again in the second one, which adds at most 4,095 terms to a full value.
        while const { prefetches::<K, I>() } && left > 1 {
            prefetch_step::<K, I, VECTORS>(inputs, i + step, end);
            if !sum.take::<K, I, VECTORS>(terms, vectors) {
                break;
            }
            left -= 1;
            i += step;
            vectors = load_step(i);
            issue_loads();
        }
        let is_taken = loop {
            let next = if left <= 1 {
                vectors
            } else if left > 2 || is_last_whole {
                // SAFETY: a whole step is inside the row.
                unsafe { inputs.load::<VECTORS>(i + step, stride) }
            } else {
                load_step(i + step)
            };
            issue_loads();
            let is_taken = sum.take::<K, I, VECTORS>(terms, vectors);
            if !is_taken || left <= 1 {
                break is_taken;
            }
            vectors = next;
            left -= 1;
            i += step;
        };
        if is_taken {
            // Most inputs end here. Tests after the loop would be two more jumps, to instructions that are in no cache.
            if !(has_singles | lanes.have_terms()) {
                return sum;
            }
            break;
        }
        // Other steps, until one is in the window again. A separate loop, so that the first loop can use all registers.
        let mut is_taken = false;
        // SAFETY: as above.
        let load_few = |i| unsafe { inputs.load_before::<FEW>(i, stride, end) };
        let mut next = load_few(i);
        while left > 0 && !is_taken {
            is_taken = true;
            let mut k = 0;
            while k < (VECTORS / FEW) as u32 {
                k = keep_rolled(k);
                let few = next;
                let is_last = k + 1 == (VECTORS / FEW) as u32;
                let following = if is_last { i + step } else { i + (k as usize + 1) * FEW * stride };
                // Pairs of terms need all registers.
                if !K::Grid::HAS_LOW {
                    next = load_few(following);
                    issue_loads();
                }
                is_taken &= sum.take_any::<K, I, FEW, TERMS>(terms, few, &mut lanes, superacc);
                if K::Grid::HAS_LOW {
                    next = load_few(following);
                }
                k += 1;
            }
            left -= 1;
            i += step;
        }
        if left == 0 {
            break;
        }
        vectors = load_step(i);
    }
    sum.take_lanes(lanes, superacc);
    if has_singles {
        sum.take_items::<K, 1, 2>(terms, [single], superacc);
    }
    sum
}

/// The sum of the first warp's partial and of the other blocks' partials of the row, in the first warp. It has limbs if
/// one of the partials has, or if some of it went to the superaccumulator. All threads must call this.
///
/// The other warps wait for the blocks while the first one still computes its partial.
#[cfg_attr(not(debug_assertions), inline(always))]
fn sum_splits<G: Grid>(
    own: Partial,
    others: u32,
    states_per_split: &SplitStates<'_>,
    which: usize,
    partials: WarpPartials,
    superacc: &Superaccumulator<G>,
) -> Partial {
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut sum = if thread == 0 { own } else { Partial::ZERO };
    let waiting = if threads > 32 { threads - 32 } else { threads };
    let mut i = thread.wrapping_sub(threads - waiting);
    while warp_vote_any(FULL_MASK, i < others) {
        let has_one = i < others;
        let place = (states_per_split.first + if has_one { i as usize } else { 0 }) * states_per_split.step + which;
        let (high, low) = tile_state::wait_tagged_by_warp(states_per_split.tile_states, place, has_one);
        let bits = u128::from(high) << 64 | u128::from(low & !PUBLISHED);
        let of_split = if has_one { Partial::from_bits(bits) } else { Partial::ZERO };
        sum = add(sum, of_split, superacc);
        i += waiting;
    }
    if warp_vote_any(FULL_MASK, sum.has_limbs) {
        // By each lane that has received a partial, so that all threads see the superaccumulator after the next
        // barrier.
        atomic::fence(Scope::Device);
        sync_warp(FULL_MASK);
    }
    fold_partials(sum, partials, superacc)
}
