//! The exact sum of any elements, by a warp.

use cuda_std::hint::compute_anew;
use cuda_std::thread;
use cuda_std::warp::{FULL_MASK, WarpReduceValue, warp_vote_any};
use exact_sum::{Accumulator, Bins, Window};

use super::format::{Format, Value, largest_of};
use super::grid::Grid;
use super::lane_superaccumulators::LaneSuperaccumulators;
use super::partial::{OfLanes, add_lanes_to_superacc};
use super::superaccumulator::{IN_LIMBS, Superaccumulator};
use super::superaccumulator_words::Special;
use super::terms::{Float, Inputs, OutOfRange, Terms, all_have_exact_low};
use super::unrolled::each;
use crate::reduce::tuning::exact_long_rows::MAX_EXPONENTS_IN_WINDOWS;

/// The exact sum of the terms that a warp's lanes have taken.
///
/// A lane adds its terms as two integers, in a [window](Window) that all lanes of the warp share. Bits that do not fit
/// in the integers go to the warp's [`Superaccumulator`], which the functions take. All lanes of the warp must call
/// each function, with equally many terms.
#[derive(Clone, Copy)]
pub struct WarpSum<G: Grid> {
    /// The terms taken since the accumulator was last full.
    own: Accumulator<G::Format>,
    /// All earlier terms, in units of the window.
    value: ValueOf<G>,
    /// The second terms, if any, in a window one bin lower: taken since the accumulator was last full, and all earlier.
    own_low: Accumulator<G::Format>,
    low: ValueOf<G>,
    /// See [`WarpSum::in_superacc`].
    in_superacc: u32,
}

/// The integers in which lanes sum.
type ValueOf<G> = <<G as Grid>::Format as Format>::Value;

/// The [high word](Format::high_word) of the largest term of a warp's vectors, without those that [`largest`] ignores.
#[inline(always)]
pub fn largest_of_warp<K: Terms, I: Inputs<K>, const N: usize>(terms: K, vectors: &[I::Vectors; N]) -> u32 {
    let mut of_vectors = [f32::NAN; 4];
    each::<N>(|k| of_vectors[k % 4] = of_vectors[k % 4].max(largest::<K, I>(terms, vectors[k])));
    let [a, b, c, d] = of_vectors;
    u32::reduce_max(FULL_MASK, a.max(b).max(c.max(d)).max(0.0).to_bits())
}

/// The [`upper`](Format::upper) of the largest of a vector's terms, without NaN and the largest `f64`; NaN if there are
/// no others. A window for it may be too low for these, and then does not take them.
#[inline(always)]
pub fn largest<K: Terms, I: Inputs<K>>(terms: K, vectors: I::Vectors) -> f32 {
    // The maximum of NaN and a number is the number.
    let mut of_pairs = [f32::NAN; 4];
    I::each(vectors, |i, item| {
        let of_pair = &mut of_pairs[i / 2 % 4];
        *of_pair = of_pair.max(terms.term(item).upper());
    });
    let [a, b, c, d] = of_pairs;
    a.max(b).max(c.max(d))
}

/// The exponent of a window for magnitudes with this high word. It is a multiple of `STEP`, so that warps with similar
/// magnitudes usually have the same window, and their sums can be added without shifts.
#[inline(always)]
pub fn window_above<F: Format>(high_word: u32) -> i32 {
    const STEP: i32 = 4;
    (F::exponent_above(high_word) + STEP - 1) & !(STEP - 1)
}

/// Adds the terms of an item to `bins`.
#[inline(always)]
pub fn extract<K: Terms>(terms: K, window: Window<Float<K>>, bins: Bins<Float<K>>, item: K::Item) -> Bins<Float<K>> {
    let term = terms.term(item);
    if K::WINDOW.is_some() {
        return window.extract_without_residual(bins, term);
    }
    let bins = window.extract(bins, term);
    if K::HAS_LOW { window.extract(bins, terms.low(item, term)) } else { bins }
}

/// Adds the terms of an item to both bins. If the grid's terms come in pairs, the second ones have their own window.
#[inline(always)]
pub fn extract_both<K: Terms>(
    terms: K,
    [window, window_of_low]: [Window<Float<K>>; 2],
    [bins, low]: [Bins<Float<K>>; 2],
    item: K::Item,
) -> (Bins<Float<K>>, Bins<Float<K>>) {
    if !K::Grid::HAS_LOW {
        return (extract(terms, window, bins, item), low);
    }
    let term = terms.term(item);
    (window.extract(bins, term), window_of_low.extract(low, terms.low(item, term)))
}

/// The number of terms of `items` items.
#[inline(always)]
pub const fn term_count<K: Terms>(items: usize) -> u32 {
    items as u32 * if K::HAS_LOW { 2 } else { 1 }
}

impl<G: Grid> WarpSum<G> {
    /// The sum 0, in the window of terms below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        let window = G::window(exponent);
        let own = Accumulator::in_window(window.exponent());
        let own_low = Accumulator::in_window(G::window_of_low(window).exponent());
        Self { own, value: Value::ZERO, own_low, low: Value::ZERO, in_superacc: 0 }
    }

    /// The same sum, with empty bins.
    #[inline(always)]
    fn drained(self) -> Self {
        let (own, own_low) = (self.own.cleared(), self.own_low.cleared());
        Self { value: self.end(), own, low: self.end_of_low(), own_low, ..self }
    }

    /// Adds the terms of `vectors` if all of them are exact in the window. Returns whether they are; if not, nothing is
    /// added.
    #[inline(always)]
    pub fn take<K: Terms<Grid = G>, I: Inputs<K>, const N: usize>(
        &mut self,
        terms: K,
        vectors: [I::Vectors; N],
    ) -> bool {
        let items = N * items_of_vector::<K>();
        let count = if G::HAS_LOW { items as u32 } else { term_count::<K>(items) };
        let mut can_take = true;
        if !self.own.has_capacity(count) {
            *self = self.drained();
            can_take = !(self.value.is_full() | self.low.is_full());
        }
        if G::HAS_LOW {
            can_take &= all_have_exact_low::<K, I, N>(&vectors);
        }
        let (window, mut bins) = (self.own.window(), Bins::EMPTY);
        let (window_of_low, mut low) = (self.own_low.window(), Bins::EMPTY);
        each::<N>(|k| {
            I::each(vectors[k], |_, item| {
                if cfg!(debug_assertions) && !G::HAS_LOW {
                    // `low` stays as it is. Without optimization it would be copied for each item.
                    bins = extract(terms, window, bins, item);
                } else {
                    (bins, low) = extract_both(terms, [window, window_of_low], [bins, low], item);
                }
            });
        });
        // Computed now, because elements stay in registers until they are added.
        self.own = self.own.with(bins, count).map_words(G::Format::compute_now);
        if G::HAS_LOW {
            self.own_low = self.own_low.with(low, count).map_words(G::Format::compute_now);
        }
        if warp_vote_any(FULL_MASK, !(bins.is_exact() & low.is_exact() & can_take)) {
            self.own = self.own.without(bins, count);
            if G::HAS_LOW {
                self.own_low = self.own_low.without(low, count);
            }
            return false;
        }
        true
    }

    /// Which parts of the superaccumulator hold some of the sum: [`IN_LIMBS`],
    /// [`IN_BELOW`](super::superaccumulator::IN_BELOW).
    #[inline(always)]
    pub fn in_superacc(&self) -> u32 {
        self.in_superacc
    }

    /// Adds any terms of `vectors`, `TERMS` in total. Returns whether [`WarpSum::take`] would have added them.
    ///
    /// Terms with a wide range of exponents, which would take many windows, go to `lanes`, if these have
    /// [memory](LaneSuperaccumulators::slot).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_any<K: Terms<Grid = G>, I: Inputs<K>, const N: usize, const TERMS: usize>(
        &mut self,
        terms: K,
        vectors: [I::Vectors; N],
        lanes: &mut LaneSuperaccumulators<G>,
        superacc: &Superaccumulator<G>,
    ) -> bool {
        let mut all = [Float::<K>::default(); TERMS];
        let (mut is_in_range, items) = (true, items_of_vector::<K>());
        each::<N>(|k| {
            I::each(vectors[k], |i, item| {
                is_in_range &= self.split::<K, TERMS>(terms, item, k * items + i, &mut all, superacc)
            });
        });
        // Opaque, so that LLVM does not compute the addresses of all digits before the first loop.
        let threads = compute_anew(thread::block_dim_x() as usize);
        if let Some(slot) = LaneSuperaccumulators::<G>::slot(threads) {
            let is_wide = || {
                let (largest, smallest) = exponents_of_warp(&all);
                let is_above = largest > Window::<G::Format>::HIGHEST;
                is_above | (largest - smallest > MAX_EXPONENTS_IN_WINDOWS)
            };
            if lanes.is_chosen(is_wide) {
                lanes.add(slot, all);
                return false;
            }
        }
        self.take_terms(all, K::WINDOW.is_some(), superacc) & is_in_range
    }

    /// Adds any items, with at most `TERMS` terms.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_items<K: Terms<Grid = G>, const N: usize, const TERMS: usize>(
        &mut self,
        terms: K,
        items: [K::Item; N],
        superacc: &Superaccumulator<G>,
    ) {
        let mut all = [Float::<K>::default(); TERMS];
        each::<N>(|k| {
            self.split::<K, TERMS>(terms, items[k], k, &mut all, superacc);
        });
        self.take_terms(all, K::WINDOW.is_some(), superacc);
    }

    /// Writes the terms of item `i` to `all`. If they are out of range, writes zeros, and adds the product to limbs.
    /// Returns whether no lane's terms were out of range.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn split<K: Terms<Grid = G>, const TERMS: usize>(
        &mut self,
        terms: K,
        item: K::Item,
        i: usize,
        all: &mut [Float<K>; TERMS],
        superacc: &Superaccumulator<G>,
    ) -> bool {
        if !K::HAS_LOW {
            all[i] = terms.term(item);
            return true;
        }
        let out_of_range = K::out_of_range(item);
        let is_out_of_range = out_of_range.is_some();
        let term = terms.term(item);
        let zero = Float::<K>::default();
        (all[2 * i], all[2 * i + 1]) = if is_out_of_range { (zero, zero) } else { (term, terms.low(item, term)) };
        if !warp_vote_any(FULL_MASK, is_out_of_range) {
            return true;
        }
        let (mut integer, mut special) = ((0, 0), None);
        match out_of_range {
            Some(OutOfRange::Integer(value, position)) => integer = (value, position),
            Some(OutOfRange::Special(found)) => special = Some(found),
            None => {}
        }
        add_lanes_to_superacc(integer.0, integer.1, *superacc);
        for of in [Special::Nan, Special::Infinity, Special::NegativeInfinity] {
            superacc.add_special(of, special == Some(of));
        }
        self.in_superacc |= IN_LIMBS;
        false
    }

    /// Adds any terms, in the window of the largest. Residuals are added in the window below, and so on until no term
    /// has one: in two windows for `f32` within `2^40` of each other, in at most seven for any. Returns whether all
    /// terms were in the current window and left no residual.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_terms<const N: usize>(
        &mut self,
        mut left: [G::Format; N],
        keeps_window: bool,
        superacc: &Superaccumulator<G>,
    ) -> bool {
        *self = self.drained();
        let mut largest = largest_of(&left);
        let mut is_exact = true;
        let highest = Window::<G::Format>::HIGHEST;
        if warp_vote_any(FULL_MASK, G::Format::exponent_above(largest) > highest) {
            take_large(&mut left, superacc);
            self.in_superacc |= IN_LIMBS;
            largest = largest_of(&left);
            is_exact = false;
        }
        let before = self.own.window();
        let (needed, mut exponent) =
            (window_above::<G::Format>(u32::reduce_max(FULL_MASK, largest)), before.exponent());
        // The distance below the window at which too many elements have residuals.
        const NEAR: i32 = 8;
        if !keeps_window && ((needed > exponent) | (needed + NEAR < exponent)) {
            exponent = G::window(needed).exponent();
        }
        let is_full = warp_vote_any(FULL_MASK, self.value.is_full() | self.low.is_full());
        if is_full || exponent != before.exponent() {
            self.end_in_limbs(superacc);
            *self = Self { in_superacc: IN_LIMBS, ..Self::in_window(exponent) };
            is_exact = false;
        }

        let mut window = self.own.window();
        let (value, mut has_residual) = extract_terms::<G, N>(window, &mut left);
        self.value = self.value.plus(value);
        if has_residual && G::Format::HAS_BELOW {
            is_exact = false;
            window = G::below(window);
            let value;
            (value, has_residual) = extract_terms::<G, N>(window, &mut left);
            self.in_superacc |= superacc.add_below(value.sum_of_lanes().wide() as i64, G::position(window));
        }
        // Second terms are always below the window here. `take` has a window for them.
        let mut is_expected = G::HAS_LOW;
        while has_residual {
            is_exact &= is_expected;
            is_expected = false;
            window = G::below(window);
            let value;
            (value, has_residual) = extract_terms::<G, N>(window, &mut left);
            let (sum, position) = (value.sum_of_lanes(), G::position(window));
            superacc.add(|k| sum.digit(position, k));
            self.in_superacc |= IN_LIMBS;
        }
        is_exact
    }

    /// Adds the sums of `lanes` to limbs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_lanes(&mut self, lanes: LaneSuperaccumulators<G>, superacc: &Superaccumulator<G>) {
        let threads = thread::block_dim_x() as usize;
        if lanes.end(LaneSuperaccumulators::<G>::slot(threads), superacc) {
            self.in_superacc |= IN_LIMBS;
        }
    }

    /// Adds the lanes' sums to limbs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn end_in_limbs(self, superacc: &Superaccumulator<G>) {
        self.with_low_in_limbs(superacc);
        let sum = self.end().sum_of_lanes();
        superacc.add(|k| sum.digit(self.position(), k));
        superacc.add_below_to_limbs(G::position(G::below(self.own.window())));
    }

    /// The same sum without that of second terms, which goes to limbs.
    #[inline(always)]
    pub fn with_low_in_limbs(self, superacc: &Superaccumulator<G>) -> Self {
        if !G::HAS_LOW {
            return self;
        }
        let low = self.end_of_low().sum_of_lanes();
        let position = G::position(self.own_low.window());
        superacc.add(|k| low.digit(position, k));
        let (own_low, in_superacc) = (self.own_low.cleared(), self.in_superacc | IN_LIMBS);
        Self { own_low, low: Value::ZERO, in_superacc, ..self }
    }

    /// The lanes' sums of first terms.
    #[inline(always)]
    pub fn of_lanes(self) -> OfLanes<G> {
        OfLanes { value: self.end(), position: self.position(), in_superacc: self.in_superacc }
    }

    /// The lanes' sums of first and of second terms. The lowest bits of the first sum are moved to the second, because
    /// sums of many squares would have too many bits for a [`Partial`](super::partial::Partial).
    #[inline(always)]
    pub fn of_both(self) -> [OfLanes<G>; 2] {
        const MOVED: u32 = 32;
        let first = self.of_lanes();
        if !G::HAS_LOW {
            return [first; 2];
        }
        let (value, position) = (first.value.wide(), G::position(self.own_low.window()));
        let moved = (value & ((1 << MOVED) - 1)) << (first.position - position);
        let low = OfLanes { value: self.end_of_low().plus(Value::of(moved)), position, in_superacc: 0 };
        [OfLanes { value: Value::of(value >> MOVED), position: first.position + MOVED, ..first }, low]
    }

    /// The lanes' sums of second terms, in units of their window.
    #[inline(always)]
    fn end_of_low(self) -> ValueOf<G> {
        if G::HAS_LOW { self.low.plus(Value::of(self.own_low.value())) } else { self.low }
    }

    /// The lanes' sums, in units of the window at [`WarpSum::position`].
    #[inline(always)]
    pub fn end(self) -> ValueOf<G> {
        self.value.plus(Value::of(self.own.value()))
    }

    /// The position of the window.
    #[inline(always)]
    pub fn position(&self) -> u32 {
        G::position(self.own.window())
    }
}

/// The number of items of a vector.
#[inline(always)]
pub const fn items_of_vector<K: Terms>() -> usize {
    16 / size_of::<K::Element>()
}

/// Extracts terms in a window. Returns this lane's sum, in the window's units, and whether any of the warp's terms left
/// a residual. Residuals replace the terms.
#[inline(always)]
pub(super) fn extract_terms<G: Grid, const N: usize>(
    window: Window<G::Format>,
    left: &mut [G::Format; N],
) -> (ValueOf<G>, bool) {
    let mut bins = Bins::EMPTY;
    each::<N>(|i| left[i] = window.extract_with_residual(&mut bins, left[i]));
    let value = Value::of(window.drain(bins.upper, bins.lower, N as u32));
    (value, warp_vote_any(FULL_MASK, bins.has_residual()))
}

/// Exponents above the largest magnitude of a warp's terms, NaN included, and above the smallest that is not 0.
#[inline(always)]
fn exponents_of_warp<F: Format, const N: usize>(terms: &[F; N]) -> (i32, i32) {
    let mut smallest = u32::MAX;
    each::<N>(|i| {
        let word = if terms[i].is_zero() { u32::MAX } else { terms[i].high_word() };
        smallest = if word < smallest { word } else { smallest };
    });
    let largest = u32::reduce_max(FULL_MASK, largest_of(terms));
    let smallest = u32::reduce_min(FULL_MASK, smallest);
    // If all terms are 0, the range is empty.
    let smallest = if smallest == u32::MAX { largest } else { smallest };
    (F::exponent_above(largest), F::exponent_above(smallest))
}

/// The terms of a lane above all windows.
#[derive(Clone, Copy)]
pub(super) struct Large {
    /// The sum of the finite ones, in units of `2^LARGE`.
    pub units: i64,
    pub has_nan: bool,
    pub has_infinity: bool,
    pub has_negative_infinity: bool,
}

/// Replaces the terms above all windows with zeros.
#[inline(always)]
pub(super) fn split_large<F: Format, const N: usize>(terms: &mut [F; N]) -> Large {
    let (mut units, mut has_nan, mut has_infinity, mut has_negative_infinity) = (0_i64, false, false, false);
    each::<N>(|i| {
        let term = terms[i];
        let is_large = term.exponent_bound() > Window::<F>::HIGHEST;
        let is_finite = term.is_finite();
        has_nan |= term.is_nan();
        has_infinity |= !is_finite & !term.is_nan() & !term.is_negative();
        has_negative_infinity |= !is_finite & !term.is_nan() & term.is_negative();
        let of_term = term.large_units();
        units += if is_large & is_finite { of_term } else { 0 };
        terms[i] = if is_large { F::default() } else { term };
    });
    Large { units, has_nan, has_infinity, has_negative_infinity }
}

/// Adds terms above all windows to limbs, records non-finite terms, and replaces both with zeros.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn take_large<G: Grid, const N: usize>(terms: &mut [G::Format; N], superacc: &Superaccumulator<G>) {
    let Large { units, has_nan, has_infinity, has_negative_infinity } = split_large(terms);
    // Below 2^58 in magnitude, so that the warp's sum fits.
    let sum: i64 = units.sum_of_lanes();
    superacc.add(|k| sum.digit((G::Format::LARGE - G::UNIT) as u32, k));
    superacc.add_special(Special::Nan, has_nan);
    superacc.add_special(Special::Infinity, has_infinity);
    superacc.add_special(Special::NegativeInfinity, has_negative_infinity);
}
