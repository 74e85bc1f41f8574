//! Exact sums of short rows and segments of any elements, each by a few lanes.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, warp_vote_any, warp_vote_ballot};
use exact_sum::{Binary, Bins, HighestBits, Specials, Window};

use super::format::{Format, Value, largest_of};
use super::grid::Grid;
use super::loaded::Loaded;
use super::result::{Results, result_of_limbs};
use super::terms::{Float, Inputs, One, Terms};
use super::unrolled::each;
use super::warp_sum::{Large, split_large, window_above};
use crate::reduce::tuning::exact_rows::VECTORS;

/// Groups of a lane's terms: its vectors, and two elements outside whole vectors.
const GROUPS: usize = VECTORS + 1;

/// The base-2 logarithm of the maximum number of vectors of a lane.
pub(super) const VECTORS_LOG: u32 = VECTORS.ilog2();

/// The maximum number of vectors of a row.
pub(super) const MAX_VECTORS: usize = 32 * VECTORS;

/// A row or a segment, the same in all of its lanes.
#[derive(Clone, Copy)]
pub(super) struct RowPlace {
    /// The index of its first element.
    pub start: usize,
    /// The number of its elements. The vectors of its lanes cover them, and if they are not whole vectors, the row has
    /// at least [`min_lanes`](super::rows::min_lanes).
    pub len: usize,
    /// The index of its result, if it is to be written.
    pub result: Option<usize>,
}

/// Whether a lane's sum of `i64` holds its terms above all windows, and a [`Value`] those of any row: few elements have
/// such terms in `f64`, unless a custom term makes them of shorter elements. An element has one term.
pub(super) const fn takes_rows_of<K: Terms>() -> bool {
    let is_single = size_of::<Float<K>>() == 4;
    !K::HAS_LOW && (is_single || size_of::<K::Element>() == 8 || K::DEGREE == 2)
}

/// Writes the results of rows of any elements, with `2^lanes_log` lanes per row and `2^vectors_log` vectors per lane;
/// `N` is the number of elements of a vector. All lanes of the warp must call this.
///
/// Windows go downwards from the warp's largest term, the same for all its rows. In each, a row's lanes add up the
/// row's integers, until no term of the row has a residual, or its [`HighestBits`] are decided: usually after three
/// windows, for any range of exponents. Terms above all windows are integers of one unit.
///
/// # Safety
/// The rows are inside the input, and [`takes_rows_of`] is true.
#[inline(always)]
pub(super) unsafe fn sum_full_range<K: Terms<Element = T, Item = T>, T: Element, const N: usize>(
    input: &Global<T>,
    place: RowPlace,
    lanes_log: u32,
    vectors_log: u32,
    terms: K,
    results: &Results<'_, K>,
) {
    let lanes = 1 << lanes_log;
    let mask = (u32::MAX >> (32 - lanes)) << (lane_id() >> lanes_log << lanes_log);
    // SAFETY: as promised by the caller.
    let mut left = unsafe { terms_of_lane::<K, T, N>(input, place, lanes_log, vectors_log, terms) };

    let (mut large, mut specials, mut has_large) = (0, Specials::EMPTY, false);
    // Whether a group has terms in some lane: the same in all lanes. The high word of a small `f64` is 0.
    let mut has_own_singles = false;
    each::<N>(|i| has_own_singles |= !left[VECTORS][i].is_zero());
    let has_singles = warp_vote_any(FULL_MASK, has_own_singles);
    let is_used = |j: usize| if j < VECTORS { j < 1 << vectors_log } else { has_singles };
    let count = ((1 << vectors_log) + if has_singles { 1 } else { 0 }) * N as u32;
    let largest_of_all = |left: &[[Float<K>; N]; GROUPS]| {
        let mut largest = 0;
        each::<GROUPS>(|j| {
            let of_group = largest_of(&left[j]);
            largest = if of_group > largest { of_group } else { largest };
        });
        largest
    };
    let mut largest = largest_of_all(&left);
    if warp_vote_any(FULL_MASK, Float::<K>::exponent_above(largest) > Window::<Float<K>>::HIGHEST) {
        let mut of_lane = Large { units: 0, has_nan: false, has_infinity: false, has_negative_infinity: false };
        each::<GROUPS>(|j| {
            let of_group = split_large(&mut left[j]);
            of_lane.units += of_group.units;
            of_lane.has_nan |= of_group.has_nan;
            of_lane.has_infinity |= of_group.has_infinity;
            of_lane.has_negative_infinity |= of_group.has_negative_infinity;
        });
        let mut record = |is_found: bool, special: Specials| {
            let is_in_row = warp_vote_ballot(FULL_MASK, is_found) & mask != 0;
            specials = if is_in_row { specials.union(special) } else { specials };
        };
        record(of_lane.has_nan, Specials::nan());
        record(of_lane.has_infinity, Specials::infinity(false));
        record(of_lane.has_negative_infinity, Specials::infinity(true));
        // In the format's integer: an `f64` has up to 2^55 units, and a row up to 257 elements.
        large = sum_of_lanes(<Float<K> as Format>::Value::of(of_lane.units.into()), lanes).wide();
        has_large = warp_vote_any(FULL_MASK, of_lane.units != 0);
        largest = largest_of_all(&left);
    }
    let exponent = window_above::<Float<K>>(u32::reduce_max(FULL_MASK, largest));
    let mut window = K::Grid::window(if has_large { Window::<Float<K>>::HIGHEST } else { exponent });

    let bits_of_window = 2 * Float::<K>::MANTISSA;
    let mut above = K::Grid::position(window) + bits_of_window;
    let mut sum = HighestBits::new(above as i32);
    loop {
        let mut bins = Bins::EMPTY;
        each::<GROUPS>(|j| {
            if is_used(j) {
                each::<N>(|i| left[j][i] = window.extract_with_residual(&mut bins, left[j][i]));
            }
        });
        let value: <Float<K> as Format>::Value = Value::of(window.drain(bins.upper, bins.lower, count));
        let position = K::Grid::position(window);
        let mut value = sum_of_lanes(value, lanes).wide();
        if large != 0 {
            value += large << ((Float::<K>::LARGE - K::Grid::UNIT) as u32 - position);
            large = 0;
        }
        push(&mut sum, value, above - position);
        above = position;
        let is_left = warp_vote_ballot(FULL_MASK, bins.has_residual()) & mask != 0;
        if !warp_vote_any(FULL_MASK, is_left & !sum.is_decided()) {
            break;
        }
        window = K::Grid::below(window);
    }
    if let Some(index) = place.result.filter(|_| lane_id() & (lanes - 1) == 0) {
        let result = result_of_limbs::<K, K::Grid>(results.finish, specials, sum.leading(), place.len as u64);
        results.store(index, result);
    }
}

/// This lane's terms of a row.
///
/// # Safety
/// The row is inside the input.
#[inline(always)]
unsafe fn terms_of_lane<K: Terms<Element = T, Item = T>, T: Element, const N: usize>(
    input: &Global<T>,
    RowPlace { start, len, .. }: RowPlace,
    lanes_log: u32,
    vectors_log: u32,
    terms: K,
) -> [[Float<K>; N]; GROUPS] {
    let mut own = [[Float::<K>::default(); N]; GROUPS];
    let lane = lane_id() & ((1 << lanes_log) - 1);
    each::<VECTORS>(|j| {
        // Vectors that the lane does not have count as empty.
        let len = if j < 1 << vectors_log { len } else { 0 };
        let vector = lane + ((j as u32) << lanes_log);
        // SAFETY: as promised by the caller.
        let loaded = unsafe { Loaded::<T>::load::<true>(input, start, len, vector, 1 << lanes_log) };
        <One<'_, T> as Inputs<K>>::each(loaded.vector, |i, item| own[j][i] = terms.term(item));
        if j == 0 {
            each::<2>(|i| own[VECTORS][i] = terms.term(loaded.singles[i]));
        }
    });
    own
}

/// The sum over a row's lanes, in each of them.
#[inline(always)]
fn sum_of_lanes<V: Value>(mut value: V, lanes: u32) -> V {
    let mut distance = 1;
    while distance < lanes {
        value = value.plus(value.of_lane_xor(distance));
        distance *= 2;
    }
    value
}

/// Adds a window's integer, whose unit is `places` below that of the previous integer, as one part or two.
#[inline(always)]
fn push(sum: &mut HighestBits, value: i128, places: u32) {
    const MAX: u32 = HighestBits::MAX_PLACES;
    if places > MAX {
        sum.push(value >> MAX, places - MAX);
        sum.push(value & ((1 << MAX) - 1), MAX);
    } else {
        sum.push(value, places);
    }
}
