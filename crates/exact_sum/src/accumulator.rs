//! What one thread sums in.

use crate::binary::Binary;
use crate::compact::{Compact, Specials};
use crate::residue::Residue;
use crate::window::{Bins, Window};

/// The exact sum of the elements that one thread has taken, in few registers: a window that moves with the elements, bins that
/// are [drained](Window::drain) in time, and the total of what was.
///
/// What has no room here goes to a [`Residue`], which the caller keeps: it lies in memory, and most threads never touch it.
#[derive(Clone, Copy, Debug)]
pub struct Accumulator<F: Binary> {
    window: Window<F>,
    upper: F::Word,
    lower: F::Word,
    /// Elements in the bins.
    count: u32,
    /// What was drained, in units of `2^position`.
    total: i128,
    position: u32,
}

/// Further powers of two that a window has room for when it is moved: so that an element a little larger does not move it again.
const MARGIN: i32 = 1;

impl<F: Binary> Default for Accumulator<F> {
    /// In the lowest window, which the first elements move.
    #[inline(always)]
    fn default() -> Self {
        Self::in_window(Window::<F>::LOWEST)
    }
}

impl<F: Binary> Accumulator<F> {
    /// The sum of nothing, in a window for elements below `2^exponent`.
    #[inline(always)]
    pub fn in_window(exponent: i32) -> Self {
        let window = Window::new(exponent);
        Self { window, upper: F::ZERO, lower: F::ZERO, count: 0, total: 0, position: window.position() }
    }

    /// The same, in a window for elements below `2^exponent` if nothing is summed yet.
    #[inline(always)]
    pub fn in_window_if_new(self, exponent: i32) -> Self {
        if self.count == 0 && self.total == 0 { Self::in_window(exponent) } else { self }
    }

    /// The window.
    #[inline(always)]
    pub fn window(&self) -> Window<F> {
        self.window
    }

    /// The same sum with room for `count` elements in the bins, at most [`Window::CAPACITY`].
    #[inline(always)]
    pub fn with_room<const N: usize>(self, count: u32, residue: &mut Residue<F, N>) -> Self {
        if self.count + count > Window::<F>::CAPACITY { residue.changed(self, drain_parked) } else { self }
    }

    /// With the bins of `count` elements that were extracted in this [window](Accumulator::window), which [are
    /// exact](Bins::is_exact), and for which there is [room](Accumulator::with_room).
    #[inline(always)]
    pub fn with(self, bins: Bins<F>, count: u32) -> Self {
        Self {
            upper: F::add_words(self.upper, bins.upper),
            lower: F::add_words(self.lower, bins.lower),
            count: self.count + count,
            ..self
        }
    }

    /// Without the bins of `count` elements that were taken and should not have been.
    #[inline(always)]
    pub fn without(self, bins: Bins<F>, count: u32) -> Self {
        Self {
            upper: F::subtract_words(self.upper, bins.upper),
            lower: F::subtract_words(self.lower, bins.lower),
            count: self.count - count,
            ..self
        }
    }

    /// The same sum with empty bins.
    #[inline(always)]
    fn drained<const N: usize>(self, residue: &mut Residue<F, N>) -> Self {
        let mut this = self;
        let value = self.window.drain(self.upper, self.lower, self.count);
        this.upper = F::ZERO;
        this.lower = F::ZERO;
        this.count = 0;
        this.add(value, self.window.position(), residue);
        this
    }

    /// Adds to the total, or to the residue what has no room there.
    #[inline(always)]
    fn add<const N: usize>(&mut self, value: i128, position: u32, residue: &mut Residue<F, N>) {
        if position == self.position {
            let sum = self.total.wrapping_add(value);
            let wraps = (self.total ^ sum) & (value ^ sum) < 0;
            if !wraps {
                self.total = sum;
                return;
            }
        }
        let of = |value, position| Compact::<128> { value, position, ..Compact::ZERO };
        let (sum, left) = of(self.total, self.position).combine(of(value, position));
        if let Some((value, position)) = left {
            residue.add(value, position);
        }
        (self.total, self.position) = (sum.value, sum.position);
    }

    /// Takes `len` elements one by one, of which some are not in the window, or leave something: what does not go into the bins goes
    /// to the residue. If elements like these come twice running, the window moves to where they are.
    pub fn with_refused<const N: usize>(
        self,
        len: usize,
        element: impl Fn(usize) -> F,
        residue: &mut Residue<F, N>,
    ) -> Self {
        let is_second = residue.refused_at == self.count;
        let mut this = self.drained(residue);
        let is_new = this.total == 0;
        if is_new || is_second {
            this = this.moved(largest(len, &element), residue);
        }
        let mut i = 0;
        while i < len {
            this = if this.count == Window::<F>::CAPACITY { this.drained(residue) } else { this };
            this = this.with_one(element(i), residue);
            i += 1;
        }
        residue.refused_at = this.count;
        this
    }

    /// The same sum in a window for elements below `2^magnitude`.
    #[inline(always)]
    fn moved<const N: usize>(self, magnitude: i32, residue: &mut Residue<F, N>) -> Self {
        let exponent = Window::<F>::nearest(magnitude + MARGIN);
        if exponent == self.window.exponent() {
            return self;
        }
        let mut this = self.drained(residue);
        this.window = Window::new(exponent);
        if this.total == 0 {
            this.position = this.window.position();
        }
        this
    }

    /// With one element, wherever it goes. There is room in the bins.
    #[inline(always)]
    fn with_one<const N: usize>(self, element: F, residue: &mut Residue<F, N>) -> Self {
        let bins = self.window.extract(Bins::EMPTY, element);
        if bins.is_outside() {
            take_out(element, residue);
            return self;
        }
        if bins.has_residual() {
            take_out(self.window.residual(element), residue);
        }
        self.with(bins, 1)
    }

    /// The exact sum: the state, and what is in the residue.
    #[inline(always)]
    pub fn finish<const BITS: u32, const N: usize>(self, residue: &mut Residue<F, N>) -> Compact<BITS> {
        let of = |value, position, residue: &Residue<F, N>| Compact {
            value,
            position,
            specials: residue.specials,
            has_limbs: residue.limbs().is_some(),
        };
        if self.total == 0 {
            // A few hundred elements in bins fit in any state.
            let value = self.window.drain(self.upper, self.lower, self.count);
            return of(value, self.window.position(), residue);
        }
        let this = residue.changed(self, drain_parked);
        let mut value = this.total;
        if !Compact::<BITS>::fits(value) {
            residue.add(value, this.position);
            value = 0;
        }
        of(value, this.position, residue)
    }
}

/// [`Accumulator::drained`], out of line: it is needed once for hundreds of elements.
#[inline(never)]
fn drain_parked<F: Binary, const N: usize>(residue: &mut Residue<F, N>) {
    residue.change_parked(|accumulator, residue| accumulator.drained(residue));
}

/// Adds one element to the residue.
fn take_out<F: Binary, const N: usize>(element: F, residue: &mut Residue<F, N>) {
    match element.decompose() {
        Some((mantissa, position)) => residue.add(mantissa as i128, position),
        None if element.is_nan() => residue.specials = residue.specials.or(Specials::nan()),
        None => residue.specials = residue.specials.or(Specials::infinity(element.is_negative())),
    }
}

/// The magnitude of the largest element for which there is a window, at least the lowest window's.
#[inline(always)]
fn largest<F: Binary>(len: usize, element: impl Fn(usize) -> F) -> i32 {
    let mut largest = Window::<F>::LOWEST;
    let mut i = 0;
    while i < len {
        let magnitude = element(i).magnitude();
        if magnitude > largest && magnitude <= Window::<F>::HIGHEST {
            largest = magnitude;
        }
        i += 1;
    }
    largest
}
