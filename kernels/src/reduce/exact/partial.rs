//! Combines the sums of lanes, warps and blocks: integers, each with its position.

use cuda_std::prelude::*;
use cuda_std::warp::{
    FULL_MASK, WarpReduceValue, lane_id, sync_warp, warp_shuffle_idx, warp_vote_all, warp_vote_any, warp_vote_ballot,
};
use exact_sum::{Binary, Compact, digit_of_i128};

use super::format::{Format, MAX_PARTS, Value};
use super::grid::Grid;
use super::superaccumulator::{IN_BELOW, IN_LIMBS, Superaccumulator, warp_id};
use super::superaccumulator_words::MAX_WARPS;
use super::unrolled::each;

/// A sum as an integer and its position, in two words, which hold most sums.
pub type Partial = Compact<112>;

/// Twice two words for each warp.
pub type WarpPartials = SharedArray<[u64; 2], { 2 * MAX_WARPS }>;

/// The integers in which lanes sum.
type ValueOf<G> = <<G as Grid>::Format as Format>::Value;

/// The sum of a lane: an integer in a unit that all lanes of the warp share.
#[derive(Clone, Copy)]
pub struct OfLanes<G: Grid> {
    /// This lane's sum.
    pub value: ValueOf<G>,
    /// The unit is the grid's times `2^position`.
    pub position: u32,
    /// See [`WarpSum::in_superacc`](super::warp_sum::WarpSum::in_superacc).
    pub in_superacc: u32,
}

/// Whether sums of lanes may have more bits than a partial.
const fn is_long<G: Grid>() -> bool {
    size_of::<ValueOf<G>>() > 8
}

/// The sum over a block's threads, in the first warp. All threads must call this. With `others_leave`, those of other
/// warps then do nothing more: see [`thread::sync_threads_or_leave`].
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn fold_block<G: Grid>(
    sum: OfLanes<G>,
    partials: WarpPartials,
    superacc: &Superaccumulator<G>,
    others_leave: bool,
) -> Partial {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, warp_id(), lane_id());
    if warps == 1 {
        return fold_warp(sum, superacc);
    }
    let mut words = add_lanes::<ValueOf<G>>(split(sum.value));
    if lane == 0 {
        let tag = tag_of(sum);
        if is_long::<G>() {
            let [a, b, c, d, e, f] = words;
            partials.store(2 * warp, [two(a, b), two(c, d)]);
            partials.store(2 * warp + 1, [two(e, f), tag.into()]);
        } else {
            let [low, middle, high, ..] = words;
            partials.store(warp, [two(low, middle), two(high, tag)]);
        }
    }
    thread::sync_threads_or_leave(warp == 0 || !others_leave);
    if warp > 0 {
        return Partial::ZERO;
    }
    let position = sum.position;
    let mut tag = position;
    words = [0; MAX_PARTS];
    if lane < warps {
        if is_long::<G>() {
            let ([a, b], [c, of_warp]) = (partials.load(2 * lane as usize), partials.load(2 * lane as usize + 1));
            words = [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32, c as u32, (c >> 32) as u32];
            tag = of_warp as u32;
        } else {
            let [first, second] = partials.load(lane as usize);
            words = [first as u32, (first >> 32) as u32, second as u32, 0, 0, 0];
            tag = (second >> 32) as u32;
        }
    }
    fold_parts(words, tag, lane as usize, position, superacc)
}

#[inline(always)]
fn two(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The sum over the lanes of a warp.
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn fold_warp<G: Grid>(sum: OfLanes<G>, superacc: &Superaccumulator<G>) -> Partial {
    let (parts, position) = (add_lanes::<ValueOf<G>>(split(sum.value)), sum.position);
    // Only lane 0 keeps the sum, so that it is added once.
    let (parts, tag) = if lane_id() == 0 { (parts, tag_of(sum)) } else { ([0; MAX_PARTS], position) };
    fold_parts(parts, tag, warp_id(), position, superacc)
}

/// The 12-bit position of a sum, and bits for the parts of the superaccumulator that hold some of it.
#[inline(always)]
fn tag_of<G: Grid>(sum: OfLanes<G>) -> u32 {
    sum.position | sum.in_superacc << IN_SUPERACC
}

const IN_SUPERACC: u32 = 16;

/// The sum of warps' sums. Each lane has one of them, with its tag and its warp's index. Usually all have the same
/// position, and none uses the superaccumulator.
#[cfg_attr(not(debug_assertions), inline(always))]
fn fold_parts<G: Grid>(
    parts: [u32; MAX_PARTS],
    tag: u32,
    of_warp: usize,
    position: u32,
    superacc: &Superaccumulator<G>,
) -> Partial {
    if warp_vote_all(FULL_MASK, tag == position) {
        let value = ValueOf::<G>::join(add_lanes::<ValueOf<G>>(parts));
        return compact(value, position, false, lane_id() == 0, superacc);
    }
    sync_warp(FULL_MASK);
    let in_superacc = tag >> IN_SUPERACC;
    let below = if in_superacc & IN_BELOW != 0 { superacc.below(of_warp) } else { 0 };
    let position = tag & ((1 << IN_SUPERACC) - 1);
    let partial = compact(ValueOf::<G>::join(parts), position, in_superacc & IN_LIMBS != 0, true, superacc);
    fold_lanes(with_below(partial, below, superacc), superacc)
}

/// A partial of a value. Bits that do not fit go to the superaccumulator; only lanes with `adds` add them.
#[inline(always)]
fn compact<G: Grid>(
    value: i128,
    position: u32,
    has_limbs: bool,
    adds: bool,
    superacc: &Superaccumulator<G>,
) -> Partial {
    let of = |value, position| Partial { value, position, has_limbs, ..Partial::ZERO };
    if !is_long::<G>() {
        return of(value, position);
    }
    // Drops trailing zeros until the sum over many blocks fits. Shifts are multiples of 16, so that they are usually
    // the same in all blocks, whose partials then have one position.
    const STEP: u32 = 16;
    const ENOUGH: u32 = 98;
    let (bits, zeros) = (128 - (value ^ (value >> 127)).leading_zeros(), value.trailing_zeros());
    let needed = bits.saturating_sub(ENOUGH).next_multiple_of(STEP);
    let needed = if needed < STEP { STEP } else { needed };
    let places = if needed <= zeros { needed } else { zeros & !(STEP - 1) };
    let (value, position) = (value >> places, position + places);
    if warp_vote_all(FULL_MASK, Partial::fits(value)) {
        return of(value, position);
    }
    Partial::from_bits(compact_slow([value as u64, (value >> 64) as u64], position, has_limbs, adds, *superacc))
}

/// [`compact`] of a value with too many bits. Out of line, since it is rarely needed.
#[cold]
#[inline(never)]
fn compact_slow<G: Grid>(
    value: [u64; 2],
    position: u32,
    has_limbs: bool,
    adds: bool,
    superacc: Superaccumulator<G>,
) -> u128 {
    let value = (u128::from(value[0]) | u128::from(value[1]) << 64) as i128;
    let bits = 129 - (value ^ (value >> 127)).leading_zeros();
    let excess = bits.saturating_sub(112);
    let low = value & ((1 << excess) - 1);
    let is_split = warp_vote_any(FULL_MASK, low != 0);
    if is_split {
        add_lanes_to_superacc(if adds { low } else { 0 }, position, superacc);
    }
    let (value, position) = (value >> excess, position + excess);
    Partial { value, position, has_limbs: has_limbs | is_split, ..Partial::ZERO }.to_bits()
}

/// The sum of a warp's partial and of its sum in the window below.
#[inline(always)]
fn with_below<G: Grid>(partial: Partial, below: i64, superacc: &Superaccumulator<G>) -> Partial {
    /// The distance to the window below, unless that is the lowest.
    const BELOW: u32 = 2 * <f32 as Binary>::MANTISSA;
    if !G::Format::HAS_BELOW || !warp_vote_any(FULL_MASK, below != 0) {
        return partial;
    }
    add(
        partial,
        Partial { value: below.into(), position: partial.position.saturating_sub(BELOW), ..Partial::ZERO },
        superacc,
    )
}

#[inline(always)]
fn split<V: Value>(value: V) -> [u32; MAX_PARTS] {
    let mut parts = [0; MAX_PARTS];
    each::<MAX_PARTS>(|k| parts[k] = if k < V::PARTS { value.part(k) } else { 0 });
    parts
}

#[inline(always)]
fn add_lanes<V: Value>(mut parts: [u32; MAX_PARTS]) -> [u32; MAX_PARTS] {
    each::<MAX_PARTS>(|k| {
        if k < V::PARTS {
            parts[k] = u32::reduce_add(FULL_MASK, parts[k]);
        }
    });
    parts
}

/// The sum of the partials of a block's lanes, in the first warp. All threads must call this, with a barrier between
/// two uses of `partials`.
#[cfg_attr(not(debug_assertions), inline(always))]
pub fn fold_partials<G: Grid>(partial: Partial, partials: WarpPartials, superacc: &Superaccumulator<G>) -> Partial {
    let (warps, warp, lane) = (thread::block_dim_x() / 32, warp_id(), lane_id());
    let partial = fold_lanes(partial, superacc);
    if warps == 1 {
        return partial;
    }
    if lane == 0 {
        let bits = partial.to_bits();
        partials.store(warp, [bits as u64, (bits >> 64) as u64]);
    }
    thread::sync_threads();
    if warp > 0 {
        return Partial::ZERO;
    }
    let [low, high] = if lane < warps { partials.load(lane as usize) } else { [0; 2] };
    fold_lanes(Partial::from_bits(u128::from(low) | u128::from(high) << 64), superacc)
}

/// The sum of the lanes' partials, in all lanes. Bits that do not fit in a partial go to the superaccumulator.
#[cfg_attr(not(debug_assertions), inline(always))]
fn fold_lanes<G: Grid>(partial: Partial, superacc: &Superaccumulator<G>) -> Partial {
    let is_zero = partial.value == 0;
    let highest = u32::reduce_max(FULL_MASK, if is_zero { 0 } else { partial.position });
    let is_at = partial.position == highest;
    let all = |has_capacity: bool| warp_vote_all(FULL_MASK, (is_zero | (is_at & has_capacity)) & !partial.has_limbs);
    let of = |value| Partial { value, position: highest, ..Partial::ZERO };
    if is_long::<G>() {
        // The sum over 32 lanes has five more bits.
        if all(Compact::<106>::fits(partial.value)) {
            return of(partial.value.sum_of_lanes());
        }
    } else {
        let word = partial.value as i64;
        if all(i128::from(word) == partial.value) {
            return of(i64::join(add_lanes::<i64>(split(word))));
        }
    }
    Partial::from_bits(fold_lanes_slow(partial.to_bits(), *superacc))
}

/// [`fold_lanes`] of any partials. Out of line, since sums of most warps are in units of one window.
#[cold]
#[inline(never)]
fn fold_lanes_slow<G: Grid>(bits: u128, superacc: Superaccumulator<G>) -> u128 {
    let partial = Partial::from_bits(bits);
    let is_zero = partial.value == 0;
    let has_limbs = warp_vote_any(FULL_MASK, partial.has_limbs);
    let lowest = u32::reduce_min(FULL_MASK, if is_zero { u32::MAX } else { partial.position });
    // The sum over 32 lanes has five more bits.
    let shifted = Compact::<106>::shifted(partial.value, if is_zero { 0 } else { partial.position - lowest });
    let of = |value, position, has_limbs| Partial { value, position, has_limbs, ..Partial::ZERO };
    if warp_vote_all(FULL_MASK, shifted.is_some()) {
        let position = if lowest == u32::MAX { 0 } else { lowest };
        return of(shifted.unwrap_or(0).sum_of_lanes(), position, has_limbs).to_bits();
    }
    add_lanes_to_superacc(partial.value, partial.position, superacc);
    of(0, 0, true).to_bits()
}

/// The sum of two partials of a lane. Bits that do not fit go to the superaccumulator. All lanes of the warp must call
/// this.
#[inline(always)]
pub fn add<G: Grid>(a: Partial, b: Partial, superacc: &Superaccumulator<G>) -> Partial {
    if !warp_vote_any(FULL_MASK, a != Partial::ZERO) {
        return b;
    }
    Partial::from_bits(add_slow(a.to_bits(), b.to_bits(), *superacc))
}

/// [`add`] of any two partials. Out of line, since a lane rarely has two.
#[cold]
#[inline(never)]
fn add_slow<G: Grid>(a: u128, b: u128, superacc: Superaccumulator<G>) -> u128 {
    let (sum, left) = Partial::from_bits(a).combine(Partial::from_bits(b));
    if !warp_vote_any(FULL_MASK, left.is_some()) {
        return sum.to_bits();
    }
    let (value, position) = left.unwrap_or((0, 0));
    add_lanes_to_superacc(value, position, superacc);
    Partial { has_limbs: true, ..sum }.to_bits()
}

/// Adds the lanes' integers to the superaccumulator, by a call, since it is rarely needed.
#[inline(always)]
pub fn add_lanes_to_superacc<G: Grid>(value: i128, position: u32, superacc: Superaccumulator<G>) {
    add_words_to_superacc([value as u64, (value >> 64) as u64], position, superacc);
}

#[cold]
#[inline(never)]
fn add_words_to_superacc<G: Grid>(words: [u64; 2], position: u32, superacc: Superaccumulator<G>) {
    // Usually few lanes have a nonzero integer.
    let mut left = warp_vote_ballot(FULL_MASK, words[0] | words[1] != 0);
    while left != 0 {
        let lane = left.trailing_zeros();
        left &= left - 1;
        let [low, high] = words.map(|word| warp_shuffle_idx(FULL_MASK, word, lane, 32).0);
        let position = warp_shuffle_idx(FULL_MASK, position, lane, 32).0;
        let value = (u128::from(low) | u128::from(high) << 64) as i128;
        superacc.add(|k| digit_of_i128(value, position, k));
    }
}
