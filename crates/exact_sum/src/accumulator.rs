//! A thread's accumulator: the fast path of a sum.

use crate::binary::Binary;
use crate::window::{Bins, Window};

/// The sum of up to [`Window::CAPACITY`] elements in one window: four values, which stay in registers.
///
/// An element outside the window, or with bits below it, must be added elsewhere; a full accumulator must be drained.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator<F: Binary> {
    window: Window<F>,
    upper: F::Word,
    lower: F::Word,
    count: u32,
}

impl<F: Binary> Default for Accumulator<F> {
    #[inline(always)]
    fn default() -> Self {
        Self::in_window(Window::<F>::LOWEST)
    }
}

impl<F: Binary> Accumulator<F> {
    /// The empty sum in a window for elements below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        Self { window: Window::new(exponent), upper: F::ZERO, lower: F::ZERO, count: 0 }
    }

    /// The empty sum in the same window.
    #[inline(always)]
    pub fn cleared(self) -> Self {
        Self { upper: F::ZERO, lower: F::ZERO, count: 0, ..self }
    }

    /// The window.
    #[inline(always)]
    pub fn window(&self) -> Window<F> {
        self.window
    }

    /// Whether `count` more elements may be added.
    #[inline(always)]
    pub fn has_capacity(&self, count: u32) -> bool {
        self.count + count <= Window::<F>::CAPACITY
    }

    /// Adds the bins of `count` elements. The bins must be [exact](Bins::is_exact) and of this
    /// [window](Accumulator::window), and the accumulator must have [capacity](Accumulator::has_capacity) for `count`.
    #[inline(always)]
    pub fn with(self, bins: Bins<F>, count: u32) -> Self {
        Self {
            upper: F::add_words(self.upper, bins.upper),
            lower: F::add_words(self.lower, bins.lower),
            count: self.count + count,
            ..self
        }
    }

    /// Subtracts the bins of `count` elements that were added and should not have been.
    #[inline(always)]
    pub fn without(self, bins: Bins<F>, count: u32) -> Self {
        Self {
            upper: F::subtract_words(self.upper, bins.upper),
            lower: F::subtract_words(self.lower, bins.lower),
            count: self.count - count,
            ..self
        }
    }

    /// The same sum, with `map` applied to its words. An opaque `map` keeps the compiler from delaying the additions.
    #[inline(always)]
    pub fn map_words(self, map: impl Fn(F::Word) -> F::Word) -> Self {
        Self { upper: map(self.upper), lower: map(self.lower), ..self }
    }

    /// The sum, in units of `2^position`.
    #[inline(always)]
    pub fn value(&self) -> i128 {
        self.window.drain(self.upper, self.lower, self.count)
    }

    /// The window's [position](Window::position).
    #[inline(always)]
    pub fn position(&self) -> u32 {
        self.window.position()
    }
}
