//! The sums of a lane's share of its rows.

use cuda_std::global::issue_loads;
use cuda_std::hint::keep_rolled;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, lane_id, warp_vote_ballot};
use exact_sum::Window;

use super::format::Value;
use super::full_range_rows::VECTORS_LOG;
use super::grid::Grid;
use super::loaded::Loaded;
use super::result::ExactOperator;
use super::rows::{GridOf, Rows, VECTORS, ValueOf};
use super::terms::{Float, Terms};
use super::unrolled::each;
use super::warp_sum::{items_of_vector, term_count, window_above};

/// The sums of a lane's vectors of each of its rows.
pub(super) struct OfRows<O: ExactOperator<T>, T: Element> {
    /// The sums of first terms, and of second terms.
    pub sums: [ValueOf<O, T>; VECTORS],
    pub lows: [ValueOf<O, T>; VECTORS],
    pub exponents: Exponents,
    /// A bit for each row: whether it must be summed again.
    pub again: u32,
}

/// The exponents of the windows of a lane's rows, of 16 bits each.
#[derive(Clone, Copy)]
pub(super) struct Exponents(u64);

impl Exponents {
    /// That of row `k`.
    #[inline(always)]
    pub fn get(self, k: usize) -> i32 {
        i32::from((self.0 >> (16 * k)) as i16)
    }

    /// With another one after the last, and without the first.
    #[inline(always)]
    fn rotated(self, exponent: i32) -> Self {
        Self(self.0 >> 16 | u64::from(exponent as u16) << 48)
    }
}

impl<O: ExactOperator<T>, T: Element> OfRows<O, T> {
    /// The rows of vectors that are each of another row. They share a window.
    #[inline(always)]
    pub fn of_single_vectors<const SINGLES: bool>(input: &Global<T>, rows: &Rows, terms: O::Terms) -> Self {
        let group = lane_id() >> rows.lanes_log;
        let load = |k: usize| {
            let (start, len) = rows.place_of(rows.row(k, group));
            // SAFETY: the row is inside the input, as the kernel's caller has promised.
            unsafe { Loaded::<T>::load::<SINGLES>(input, start, len, rows.vector(0), rows.lanes()) }
        };
        let of_lane = [load(0), load(1), load(2), load(3)];
        issue_loads();
        let exponent = exponent_of::<O, T, SINGLES>(terms, &of_lane);
        let windows = Self::windows(exponent);
        let bins_of = |k: usize| of_lane[k].bins::<O::Terms, SINGLES>(terms, windows);
        let [(a, x), (b, y), (c, z), (d, w)] = [bins_of(0), bins_of(1), bins_of(2), bins_of(3)];
        let (bins, low_bins, count) = ([a, b, c, d], [x, y, z, w], terms_of_vector::<O, T, SINGLES>());
        let (mut sums, mut lows, mut again) = (Self::ZEROS, Self::ZEROS, 0);
        each::<VECTORS>(|k| {
            sums[k] = Value::of(windows[0].drain(bins[k].upper, bins[k].lower, count));
            let mut is_exact = bins[k].is_exact();
            if GridOf::<O, T>::HAS_LOW {
                lows[k] = Value::of(windows[1].drain(low_bins[k].upper, low_bins[k].lower, count));
                is_exact &= low_bins[k].is_exact();
                is_exact &= Loaded::all_have_exact_low::<O::Terms, SINGLES, 1>(&[of_lane[k]]);
            }
            let is_again = warp_vote_ballot(FULL_MASK, !is_exact) & rows.mask(group) != 0;
            again |= if is_again { 1 << k } else { 0 };
        });
        let exponents = Exponents(u64::from(exponent as u16) * 0x0001_0001_0001_0001);
        Self { sums, lows, exponents, again }
    }

    /// The rows of vectors that are all of one row in each step. The window is that of the step before, if the row fits
    /// it.
    #[inline(always)]
    pub fn of_all_vectors<const SINGLES: bool>(input: &Global<T>, rows: &Rows, terms: O::Terms) -> Self {
        let group = lane_id() >> rows.lanes_log;
        let (mut sums, mut lows, mut again) = (Self::ZEROS, Self::ZEROS, 0);
        let (mut exponents, mut exponent, mut is_new) = (Exponents(0), 0, true);
        let (mut row, mut step) = (rows.row(0, group), 0);
        // Used only if the row exists.
        let mut start = row.wrapping_mul(rows.pitch);
        loop {
            step = keep_rolled(step);
            let (start_of_row, len) = if row < rows.rows { (start, rows.len) } else { (0, 0) };
            // SAFETY: the row is inside the input, as the kernel's caller has promised.
            let load = |k: u32| unsafe {
                Loaded::<T>::load::<SINGLES>(input, start_of_row, len, rows.vector(k), rows.lanes())
            };
            let of_lane = [load(0), load(1), load(2), load(3)];
            issue_loads();
            if is_new {
                exponent = exponent_of::<O, T, SINGLES>(terms, &of_lane);
            }
            let windows = Self::windows(exponent);
            let bins_of = |k: usize| of_lane[k].bins::<O::Terms, SINGLES>(terms, windows);
            let [(a, x), (b, y), (c, z), (d, w)] = [bins_of(0), bins_of(1), bins_of(2), bins_of(3)];
            let (bins, low_bins) = (a.merge(b).merge(c.merge(d)), x.merge(y).merge(z.merge(w)));
            let mut is_exact = bins.is_exact();
            if GridOf::<O, T>::HAS_LOW {
                is_exact &= low_bins.is_exact() & Loaded::all_have_exact_low::<O::Terms, SINGLES, VECTORS>(&of_lane);
            }
            let not_exact = warp_vote_ballot(FULL_MASK, !is_exact);
            if not_exact != 0 && !is_new && O::Terms::WINDOW.is_none() {
                // The step is loaded again, since its elements would take registers until here.
                is_new = true;
                continue;
            }
            is_new = false;
            again |= if not_exact & rows.mask(group) != 0 { 1 << step } else { 0 };
            let count = terms_of_vector::<O, T, SINGLES>() << VECTORS_LOG;
            // Rotated, because an index would keep the arrays in local memory.
            let sum = Value::of(windows[0].drain(bins.upper, bins.lower, count));
            sums = [sums[1], sums[2], sums[3], sum];
            if GridOf::<O, T>::HAS_LOW {
                let low = Value::of(windows[1].drain(low_bins.upper, low_bins.lower, count));
                lows = [lows[1], lows[2], lows[3], low];
            }
            exponents = exponents.rotated(exponent);
            step += 1;
            if step >> rows.rows_log != 0 {
                break;
            }
            let groups = 32 >> rows.lanes_log;
            (row, start) = (row + groups, start.wrapping_add(rows.pitch.wrapping_mul(groups)));
        }
        if rows.rows_log == 0 {
            (sums[0], lows[0], exponents) = (sums[3], lows[3], exponents.rotated(0).rotated(0).rotated(0));
        }
        Self { sums, lows, exponents, again }
    }

    const ZEROS: [ValueOf<O, T>; VECTORS] = [ValueOf::<O, T>::ZERO; VECTORS];

    /// The windows of first and second terms.
    #[inline(always)]
    fn windows(exponent: i32) -> [Window<<GridOf<O, T> as Grid>::Format>; 2] {
        let window = GridOf::<O, T>::window(exponent);
        [window, GridOf::<O, T>::window_of_low(window)]
    }
}

/// The number of terms of a vector in each bin.
#[inline(always)]
fn terms_of_vector<O: ExactOperator<T>, T: Element, const SINGLES: bool>() -> u32 {
    let items = items_of_vector::<O::Terms>() + if SINGLES { 2 } else { 0 };
    if GridOf::<O, T>::HAS_LOW { items as u32 } else { term_count::<O::Terms>(items) }
}

/// The exponent of a window for all vectors of a warp.
#[inline(always)]
fn exponent_of<O: ExactOperator<T>, T: Element, const SINGLES: bool>(
    terms: O::Terms,
    of_lane: &[Loaded<T>; VECTORS],
) -> i32 {
    if let Some(exponent) = O::Terms::WINDOW {
        return exponent;
    }
    let mut largest = 0.0_f32;
    each::<VECTORS>(|k| largest = largest.max(of_lane[k].largest::<O::Factors, SINGLES>(O::factors(terms))));
    let largest = u32::reduce_max(FULL_MASK, largest.to_bits());
    window_above::<Float<O::Factors>>(largest) * O::Terms::DEGREE
}
