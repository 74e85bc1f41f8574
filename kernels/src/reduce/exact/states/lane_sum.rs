//! Exact sums by a single lane.

use exact_sum::{Binary, Bins, Window};

use crate::reduce::exact::format::{Format, Value, largest_of};
use crate::reduce::exact::grid::Grid;
use crate::reduce::exact::superaccumulator_words::Special;
use crate::reduce::exact::unrolled::each;
use crate::reduce::exact::warp_sum::window_above;

/// A lane's sum of any terms, in its own window.
#[derive(Clone, Copy)]
pub struct LaneSum<G: Grid> {
    window: Window<G::Format>,
    value: <G::Format as Format>::Value,
}

/// Receives the parts of a sum that do not fit in a lane's integer.
pub trait Sink {
    /// Adds `value * 2^position`.
    fn add(&self, value: i128, position: u32);
    /// Counts a non-finite term.
    fn add_special(&self, special: Special);
}

impl<G: Grid> LaneSum<G> {
    /// The sum 0, in the window of terms below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        Self { window: G::window(exponent), value: Value::ZERO }
    }

    /// Adds any terms.
    #[inline(always)]
    pub fn take<const N: usize>(&mut self, terms: [G::Format; N], sink: &impl Sink) {
        let mut bins = Bins::EMPTY;
        each::<N>(|i| bins = self.window.extract(bins, terms[i]));
        if bins.is_exact() && !self.value.is_full() {
            self.value = self.value.plus(Value::of(self.window.drain(bins.upper, bins.lower, N as u32)));
        } else {
            self.take_any(terms, sink);
        }
    }

    /// Adds terms in the window of the largest. Residuals are summed in the windows below, whose sums go to the sink.
    #[inline(always)]
    fn take_any<const N: usize>(&mut self, mut left: [G::Format; N], sink: &impl Sink) {
        /// The distance below the window at which too many terms have residuals.
        const NEAR: i32 = 8;
        if G::Format::exponent_above(largest_of(&left)) > Window::<G::Format>::HIGHEST {
            take_large::<G, N>(&mut left, sink);
        }
        let (needed, exponent) = (window_above::<G::Format>(largest_of(&left)), self.window.exponent());
        if (needed > exponent) | (needed + NEAR < exponent) | self.value.is_full() {
            self.end(sink);
            *self = Self::in_window(needed);
        }
        let mut window = self.window;
        let (value, mut has_residual) = extract_terms::<G, N>(window, &mut left);
        self.value = self.value.plus(value);
        while has_residual {
            window = G::below(window);
            let value;
            (value, has_residual) = extract_terms::<G, N>(window, &mut left);
            sink.add(value.wide(), G::position(window));
        }
    }

    /// Adds the sum to the sink.
    #[inline(always)]
    pub fn end(&self, sink: &impl Sink) {
        sink.add(self.value.wide(), G::position(self.window));
    }
}

/// Extracts terms in a window. Returns their sum, in the window's units, and whether any left a residual. Residuals
/// replace the terms.
#[inline(always)]
fn extract_terms<G: Grid, const N: usize>(
    window: Window<G::Format>,
    left: &mut [G::Format; N],
) -> (<G::Format as Format>::Value, bool) {
    let mut bins = Bins::EMPTY;
    each::<N>(|i| left[i] = window.extract_with_residual(&mut bins, left[i]));
    (Value::of(window.drain(bins.upper, bins.lower, N as u32)), bins.has_residual())
}

/// Adds terms above all windows and non-finite terms to the sink, and replaces both with zeros.
#[inline(always)]
fn take_large<G: Grid, const N: usize>(terms: &mut [G::Format; N], sink: &impl Sink) {
    let mut sum = 0_i64;
    let (mut has_nan, mut has_infinity, mut has_negative_infinity) = (false, false, false);
    each::<N>(|i| {
        let term = terms[i];
        let (is_large, is_finite) = (term.exponent_bound() > Window::<G::Format>::HIGHEST, term.is_finite());
        has_nan |= term.is_nan();
        has_infinity |= !is_finite & !term.is_nan() & !term.is_negative();
        has_negative_infinity |= !is_finite & !term.is_nan() & term.is_negative();
        let units = term.large_units();
        sum += if is_large & is_finite { units } else { 0 };
        terms[i] = if is_large { G::Format::default() } else { term };
    });
    sink.add(sum.into(), (G::Format::LARGE - G::UNIT) as u32);
    for (special, exists) in
        [(Special::Nan, has_nan), (Special::Infinity, has_infinity), (Special::NegativeInfinity, has_negative_infinity)]
    {
        if exists {
            sink.add_special(special);
        }
    }
}
