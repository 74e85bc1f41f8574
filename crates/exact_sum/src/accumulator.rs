//! What one thread sums in.

use crate::binary::Binary;
use crate::compact::{Compact, Residue, Specials};
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

    /// Extracts elements, `LEN` at once.
    #[inline(always)]
    pub fn extract<const LEN: usize>(&self, elements: [F; LEN]) -> Bins<F> {
        let mut bins = Bins::EMPTY;
        let mut i = 0;
        while i < LEN {
            bins = self.window.extract(bins, elements[i]);
            i += 1;
        }
        bins
    }

    /// Takes the bins of `count` elements that were [extracted](Accumulator::extract) here, if they [are
    /// exact](Bins::is_exact). `COUNT` is the most that are taken at once.
    #[inline(always)]
    pub fn take<const COUNT: u32>(&mut self, bins: Bins<F>) {
        const { assert!(COUNT <= Window::<F>::CAPACITY) };
        self.upper = F::add_words(self.upper, bins.upper);
        self.lower = F::add_words(self.lower, bins.lower);
        self.count += COUNT;
    }

    /// Makes room for `COUNT` elements in the bins.
    #[inline(always)]
    pub fn make_room<const COUNT: u32, const N: usize>(self, residue: &mut Residue<N>) -> Self {
        if self.count + COUNT > Window::<F>::CAPACITY { self.drained(residue) } else { self }
    }

    /// The same sum with empty bins.
    #[inline(always)]
    pub fn drained<const N: usize>(self, residue: &mut Residue<N>) -> Self {
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
    fn add<const N: usize>(&mut self, value: i128, position: u32, residue: &mut Residue<N>) {
        if position == self.position {
            let sum = self.total.wrapping_add(value);
            let wraps = (self.total ^ sum) & (value ^ sum) < 0;
            if !wraps {
                self.total = sum;
                return;
            }
        }
        *self = self.with_shifted(value, position, residue);
    }

    /// [`Accumulator::add`] where positions differ.
    #[inline(never)]
    fn with_shifted<const N: usize>(self, value: i128, position: u32, residue: &mut Residue<N>) -> Self {
        let of = |value, position| Compact::<128> { value, position, ..Compact::ZERO };
        let (sum, left) = of(self.total, self.position).combine(of(value, position));
        if let Some((value, position)) = left {
            residue.limbs_mut().add(value, position);
        }
        Self { total: sum.value, position: sum.position, ..self }
    }

    /// Takes elements one by one, of which some are not in the window, or leave something: what does not go into the bins goes
    /// to the residue. If elements like these come twice running, the window moves to where they are.
    #[inline(never)]
    pub fn take_refused<const LEN: usize, const N: usize>(self, elements: &[F; LEN], residue: &mut Residue<N>) -> Self {
        const { assert!(LEN as u32 <= Window::<F>::CAPACITY) };
        let is_second = residue.refused_at == self.count;
        let mut this = self.drained(residue);
        let is_new = this.total == 0;
        if is_new || is_second {
            this = this.moved(largest(elements), residue);
        }
        let mut i = 0;
        while i < LEN {
            this.take_one(elements[i], residue);
            i += 1;
        }
        residue.refused_at = this.count;
        this
    }

    /// The same sum in a window for elements below `2^magnitude`.
    fn moved<const N: usize>(self, magnitude: i32, residue: &mut Residue<N>) -> Self {
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

    /// Takes one element, wherever it goes. There is room in the bins.
    fn take_one<const N: usize>(&mut self, element: F, residue: &mut Residue<N>) {
        let bins = self.window.extract(Bins::EMPTY, element);
        if bins.is_outside() {
            take_out(element, residue);
            return;
        }
        self.upper = F::add_words(self.upper, bins.upper);
        self.lower = F::add_words(self.lower, bins.lower);
        self.count += 1;
        if bins.has_residual() {
            take_out(self.window.residual(element), residue);
        }
    }

    /// The exact sum: the state, and what is in the residue.
    #[inline(always)]
    pub fn finish<const BITS: u32, const N: usize>(self, residue: &mut Residue<N>) -> Compact<BITS> {
        let this = self.drained(residue);
        let mut value = this.total;
        if !Compact::<BITS>::fits(value) {
            residue.limbs_mut().add(value, this.position);
            value = 0;
        }
        Compact { value, position: this.position, specials: residue.specials, has_limbs: residue.limbs().is_some() }
    }
}

/// Adds one element to the residue.
fn take_out<F: Binary, const N: usize>(element: F, residue: &mut Residue<N>) {
    match element.decompose() {
        Some((mantissa, position)) => residue.limbs_mut().add(mantissa as i128, position),
        None if element.is_nan() => residue.specials = residue.specials.or(Specials::nan()),
        None => residue.specials = residue.specials.or(Specials::infinity(element.is_negative())),
    }
}

/// The magnitude of the largest element for which there is a window, at least the lowest window's.
fn largest<F: Binary, const LEN: usize>(elements: &[F; LEN]) -> i32 {
    let mut largest = Window::<F>::LOWEST;
    let mut i = 0;
    while i < LEN {
        let magnitude = elements[i].magnitude();
        if magnitude > largest && magnitude <= Window::<F>::HIGHEST {
            largest = magnitude;
        }
        i += 1;
    }
    largest
}
