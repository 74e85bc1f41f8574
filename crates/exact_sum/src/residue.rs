//! What the fast way could not take.

use crate::binary::Binary;
use crate::compact::Specials;
use crate::limbs::{Leading, Limbs};
use crate::window::{Bins, Window};

/// The sum of what has no room in an [`Accumulator`](crate::Accumulator) or in a [`Compact`](crate::Compact) state. It
/// lies in memory; each thread has one, which most never touch.
#[derive(Clone, Copy, Debug)]
pub struct Residue<F: Binary, const N: usize> {
    // Limbs are made when something goes there: nothing is written for most threads.
    limbs: Option<Limbs<N>>,
    /// What was not finite.
    pub specials: Specials,
    format: core::marker::PhantomData<F>,
}

impl<F: Binary, const N: usize> Default for Residue<F, N> {
    #[inline(always)]
    fn default() -> Self {
        Self { limbs: None, specials: Specials::NONE, format: core::marker::PhantomData }
    }
}

impl<F: Binary, const N: usize> Residue<F, N> {
    /// The limbs, if something is in them.
    #[inline(always)]
    pub fn limbs(&self) -> Option<&Limbs<N>> {
        self.limbs.as_ref()
    }

    /// The limbs, which are there from now on. Out of line.
    #[inline(never)]
    pub fn limbs_mut(&mut self) -> &mut Limbs<N> {
        self.limbs.get_or_insert(Limbs::ZERO)
    }

    /// Adds `value * 2^position`. Out of line: it is hardly ever needed.
    #[inline(never)]
    pub fn add(&mut self, value: i128, position: u32) {
        self.limbs_mut().add(value, position);
    }

    /// Adds elements, up to [`Window::CAPACITY`] of any values, and leaves zeros of either sign in their place. Out of
    /// line.
    ///
    /// They are extracted in the window of the largest; what they leave is extracted in the window below, until nothing
    /// is left: of elements that are within `2^40` of each other that is twice, of any `f32` at most six times.
    ///
    /// Gives the exponent of the first window.
    #[inline(never)]
    pub fn take(&mut self, elements: &mut [F]) -> i32 {
        let largest = self.take_out(elements);
        let mut window = Window::<F>::new(largest);
        loop {
            let (mut bins, mut i) = (Bins::EMPTY, 0);
            while i < elements.len() {
                elements[i] = window.extract_from(&mut bins, elements[i]);
                i += 1;
            }
            let sum = window.drain(bins.upper, bins.lower, elements.len() as u32);
            if sum != 0 {
                self.add(sum, window.position());
            }
            if !bins.has_residual() {
                return largest;
            }
            window = window.below();
        }
    }

    /// [`Residue::add`] and [`Residue::take`] at once.
    #[inline(never)]
    pub fn add_and_take(&mut self, value: i128, position: u32, elements: &mut [F]) -> i32 {
        if value != 0 {
            self.add(value, position);
        }
        self.take(elements)
    }

    /// Takes the elements that no window has, and gives the magnitude of the largest of the others.
    #[inline]
    fn take_out(&mut self, elements: &mut [F]) -> i32 {
        let (mut largest, mut i) = (Window::<F>::LOWEST, 0);
        while i < elements.len() {
            let magnitude = elements[i].magnitude();
            if magnitude > Window::<F>::HIGHEST {
                self.take_one(elements[i]);
                elements[i] = F::default();
            } else if magnitude > largest {
                largest = magnitude;
            }
            i += 1;
        }
        largest
    }

    /// Adds one element, whatever it is.
    #[inline]
    fn take_one(&mut self, element: F) {
        match element.decompose() {
            Some((mantissa, position)) => self.add(mantissa as i128, position),
            None if element.is_nan() => self.specials = self.specials.or(Specials::nan()),
            None => self.specials = self.specials.or(Specials::infinity(element.is_negative())),
        }
    }

    /// The highest bits of what is in the limbs and a value in units of `2^position`.
    #[inline(never)]
    pub fn leading_with(&self, value: i128, position: u32) -> Leading {
        let mut limbs = self.limbs.unwrap_or(Limbs::ZERO);
        limbs.add(value, position);
        limbs.leading()
    }
}
