//! A thread's sums of its columns.

use cuda_std::prelude::*;
use exact_sum::{Binary, Bins, Window};

use super::column_tile::Tile;
use super::format::Format;
use super::grid::Grid;
use super::terms::{Float, Terms};
use super::unrolled::each;
use super::warp_sum::{extract, term_count};
use crate::reduce::columns::{BLOCK, COLUMNS};

/// A slot for each column of each thread of a block: a sum, as an integer of two words.
pub type Slots = SharedArray<[u64; 2], { BLOCK * COLUMNS }>;

/// Marks a column that has no sum: an integer that no sum equals.
pub const NOT_SUMMED: i128 = i128::MIN;

/// The integer in a slot.
#[inline(always)]
pub fn load_slot(slots: Slots, i: usize) -> i128 {
    let [low, high] = slots.load(i);
    (u128::from(low) | u128::from(high) << 64) as i128
}

/// Writes an integer to a slot.
#[inline(always)]
pub fn store_slot(slots: Slots, i: usize, value: i128) {
    slots.store(i, [value as u64, (value >> 64) as u64]);
}

/// The position of the unit of slots' integers for a window. For `f32` it is 46 bits below that of the window, so that
/// residuals fit.
#[inline(always)]
fn position_of_slots<G: Grid>(window: Window<G::Format>) -> u32 {
    let position = G::position(window);
    position - bits_below::<G>(position)
}

/// The number of bits by which a slot's unit is below that of the window at `position`.
#[inline(always)]
fn bits_below<G: Grid>(position: u32) -> u32 {
    let most = if G::Format::HAS_BELOW { 2 * <G::Format as Binary>::MANTISSA } else { 0 };
    if position < most { position } else { most }
}

/// The exponent of a column's window, from the [high word](Format::high_word) of the largest of its first terms.
///
/// Later terms may be larger, so the window is a few bits higher. If the first terms are all 0, as in sparse data, the
/// others are assumed to be near 1.
#[inline(always)]
pub fn window_of_column<F: Format>(high_word: u32) -> i32 {
    let margin = if size_of::<F>() == 4 { 3 } else { 16 };
    margin + if high_word == 0 { 1 } else { F::exponent_above(high_word) }
}

/// A thread's sums of its columns: integers of bins, in a window for each column.
#[derive(Clone, Copy)]
pub struct ColumnSums<F: Format> {
    windows: [Window<F>; COLUMNS],
    upper: [F::Word; COLUMNS],
    lower: [F::Word; COLUMNS],
    terms: u32,
}

impl<F: Format> ColumnSums<F> {
    /// Sums of 0, in these windows.
    #[inline(always)]
    pub fn in_windows(windows: [Window<F>; COLUMNS]) -> Self {
        Self { windows, upper: [F::ZERO; COLUMNS], lower: [F::ZERO; COLUMNS], terms: 0 }
    }

    /// Whether another tile of `rows` rows fits.
    #[inline(always)]
    pub fn has_capacity<K: Terms>(&self, rows: usize) -> bool {
        self.terms + term_count::<K>(rows) <= Window::<F>::CAPACITY
    }

    /// Adds the terms of `ROWS` rows, and returns whether the sums are exact. If not, each term must be
    /// [completed](ColumnSums::complete).
    #[inline(always)]
    pub fn take<K: Terms<Item = <K as Terms>::Element, Grid: Grid<Format = F>>, const ROWS: usize>(
        &mut self,
        terms: K,
        tile: &Tile<K::Element, ROWS>,
    ) -> bool {
        let mut all = Bins::<F>::EMPTY;
        each::<COLUMNS>(|c| {
            let mut bins = Bins::of_exact(self.upper[c], self.lower[c]);
            each::<ROWS>(|k| bins = extract(terms, self.windows[c], bins, tile.get(k, c)));
            // Computed now, because elements stay in registers until they are added.
            (self.upper[c], self.lower[c]) = (F::compute_now(bins.upper), F::compute_now(bins.lower));
            all = all.merge(bins);
        });
        self.terms += term_count::<K>(ROWS);
        all.is_exact()
    }

    /// Completes a taken term of column `c`: adds its residual, or replaces it if it is outside the window. Returns
    /// whether either was necessary.
    #[inline(always)]
    pub fn complete<K: Terms<Grid: Grid<Format = F>>>(
        &mut self,
        terms: K,
        c: usize,
        item: K::Item,
        outside: &mut OutsideBins,
    ) -> bool {
        let (window, term, mut bins) = (self.windows[c], terms.term(item), Bins::EMPTY);
        let mut left = window.extract_with_residual(&mut bins, term);
        if bins.is_outside() {
            let zero = window.extract(Bins::EMPTY, F::default());
            let less = |sum, bins, zero| F::subtract_words(F::add_words(sum, zero), bins);
            self.upper[c] = less(self.upper[c], bins.upper, zero.upper);
            self.lower[c] = less(self.lower[c], bins.lower, zero.lower);
            left = term;
        } else if !bins.has_residual() {
            return false;
        }
        outside.add_term::<K>(c, window, left);
        true
    }

    /// The sum of the bins of column `c`, in a slot's units.
    #[inline(always)]
    pub fn value<G: Grid<Format = F>>(&self, c: usize) -> i128 {
        let window = self.windows[c];
        let sum = window.drain(self.upper[c], self.lower[c], self.terms);
        // The sum of two bins of `f32` has 64 bits, whose shift is shorter.
        let sum = if F::HAS_BELOW { i128::from(sum as i64) } else { sum };
        sum << bits_below::<G>(G::position(window))
    }

    /// Sums of 0, in the same windows.
    #[inline(always)]
    pub fn cleared(&self) -> Self {
        Self::in_windows(self.windows)
    }
}

/// A sum as an integer and its position. It has 64 bits if no bits are below the window, as in most data.
#[inline(always)]
pub fn integer_and_position<G: Grid>(sum: i128, window: Window<G::Format>) -> (i128, u32) {
    let position = G::position(window);
    let below = bits_below::<G>(position);
    if sum & ((1 << below) - 1) == 0 { (sum >> below, position) } else { (sum, position - below) }
}

/// The part of a thread's sums that is not in its bins, in its slots: 0 for most data. The slots are initialized by the
/// first addition.
#[derive(Clone, Copy)]
pub struct OutsideBins {
    slots: Slots,
    thread: usize,
    is_used: bool,
}

impl OutsideBins {
    /// 0, for a thread.
    #[inline(always)]
    pub fn new(slots: Slots, thread: usize) -> Self {
        Self { slots, thread, is_used: false }
    }

    /// Adds an integer of at most 120 bits. If another one might not fit, the column becomes [`NOT_SUMMED`].
    #[inline(always)]
    pub fn add(&mut self, c: usize, value: i128) {
        self.begin();
        let sum = self.sum(c, value);
        store_slot(self.slots, c * BLOCK + self.thread, sum);
    }

    /// Adds a term of any exponent. If it does not fit in 112 bits, the column becomes [`NOT_SUMMED`].
    #[inline(always)]
    pub fn add_term<K: Terms>(&mut self, c: usize, window: Window<Float<K>>, term: Float<K>) {
        let unit = K::Grid::UNIT + position_of_slots::<K::Grid>(window) as i32;
        let (integer, has_capacity) = integer_of(term, unit);
        if has_capacity {
            self.add(c, integer);
        } else {
            self.begin();
            store_slot(self.slots, c * BLOCK + self.thread, NOT_SUMMED);
        }
    }

    /// The sum of a column's slot and an integer.
    #[inline(always)]
    pub fn sum(&self, c: usize, value: i128) -> i128 {
        if !self.is_used {
            return value;
        }
        let before = load_slot(self.slots, c * BLOCK + self.thread);
        let sum = before.wrapping_add(value);
        let high = (sum >> 64) as i64;
        let is_summed = before != NOT_SUMMED && (-(1 << 53)..1 << 53).contains(&high);
        if is_summed { sum } else { NOT_SUMMED }
    }

    #[inline(always)]
    fn begin(&mut self) {
        if !self.is_used {
            each::<COLUMNS>(|c| store_slot(self.slots, c * BLOCK + self.thread, 0));
            self.is_used = true;
        }
    }
}

/// A float as an integer in units of a power of two, and whether 112 bits hold it.
#[inline(always)]
fn integer_of<F: Format>(float: F, unit: i32) -> (i128, bool) {
    const MOST: i32 = 112;
    let Some((mantissa, position)) = float.decompose() else { return (0, false) };
    let places = position as i32 + F::MIN_EXPONENT - F::MANTISSA as i32 - unit;
    if mantissa == 0 {
        return (0, true);
    }
    if places >= 0 {
        let fits = places < MOST - F::MANTISSA as i32;
        return (if fits { i128::from(mantissa) << places } else { 0 }, fits);
    }
    let right = if places > -63 { -places } else { 63 };
    let integer = mantissa >> right;
    (integer.into(), integer << right == mantissa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_the_floats() {
        assert_eq!(integer_of(1.5_f32, -1), (3, true));
        assert_eq!(integer_of(-1.5_f32, -2), (-6, true));
        assert_eq!(integer_of(1.5_f32, 0), (1, false));
        assert_eq!(integer_of(f32::from_bits(1), -149), (1, true));
        assert_eq!(integer_of(f32::from_bits(1), -148), (0, false));
        assert_eq!(integer_of(0.0_f32, 120), (0, true));
        assert!(!integer_of(f64::MAX, -1074).1);
        assert_eq!(integer_of(-(2.0_f64.powi(58)), -52), (-(1 << 110), true));
        assert!(!integer_of(f64::NAN, 0).1 && !integer_of(f32::INFINITY, 0).1);
        for places in 1..100 {
            let (integer, is_all) = integer_of(-3.0_f64, places);
            assert!(!is_all && integer <= 0);
        }
    }

    #[test]
    fn slots_begin_below_windows() {
        use crate::reduce::exact::grid::{Doubles, Singles};
        let of = |exponent| position_of_slots::<Singles>(Singles::window(exponent));
        assert_eq!(
            [of(Singles::LOWEST), of(Singles::LOWEST + 50), of(100)],
            [0, 4, (100 - Singles::LOWEST - 46) as u32]
        );
        assert_eq!(position_of_slots::<Doubles>(Doubles::window(0)), (0 - Doubles::LOWEST) as u32);
    }
}
