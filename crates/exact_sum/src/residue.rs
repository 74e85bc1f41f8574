//! What of a thread's sum lies in memory.

use crate::accumulator::Accumulator;
use crate::binary::Binary;
use crate::compact::Specials;
use crate::limbs::{Leading, Limbs};

/// What of a sum has no room in a [`Compact`](crate::Compact) state. Each thread has one, which most never touch.
#[derive(Clone, Copy, Debug)]
pub struct Residue<F: Binary, const N: usize> {
    // Limbs are made when something goes there: nothing is written for most threads.
    limbs: Option<Limbs<N>>,
    /// What was not finite.
    pub specials: Specials,
    /// The elements in the bins behind the last tile that was refused.
    pub(crate) refused_at: u32,
    /// An accumulator, while a function that is not inlined changes it: so that it lies in memory there alone, and in
    /// registers everywhere else.
    parked: Option<Accumulator<F>>,
}

impl<F: Binary, const N: usize> Default for Residue<F, N> {
    #[inline(always)]
    fn default() -> Self {
        Self { limbs: None, specials: Specials::NONE, refused_at: u32::MAX, parked: None }
    }
}

impl<F: Binary, const N: usize> Residue<F, N> {
    /// The limbs, if something is in them.
    #[inline(always)]
    pub fn limbs(&self) -> Option<&Limbs<N>> {
        self.limbs.as_ref()
    }

    /// The limbs, which are there from now on.
    #[inline]
    pub fn limbs_mut(&mut self) -> &mut Limbs<N> {
        self.limbs.get_or_insert(Limbs::ZERO)
    }

    /// Adds `value * 2^position`. Out of line: it is hardly ever needed.
    #[inline(never)]
    pub fn add(&mut self, value: i128, position: u32) {
        self.limbs_mut().add(value, position);
    }

    /// The highest bits of what is in the limbs and a value in units of `2^position`.
    #[inline(never)]
    pub fn leading_with(&self, value: i128, position: u32) -> Leading {
        let mut limbs = self.limbs.unwrap_or(Limbs::ZERO);
        limbs.add(value, position);
        limbs.leading()
    }

    /// What becomes of an accumulator by `change`, a function that is not inlined and changes it [in place](Self::change_parked).
    #[inline(always)]
    pub fn changed(&mut self, accumulator: Accumulator<F>, change: impl FnOnce(&mut Self)) -> Accumulator<F> {
        self.parked = Some(accumulator);
        change(self);
        self.parked.unwrap_or_default()
    }

    /// Changes the accumulator that is parked here.
    #[inline(always)]
    pub fn change_parked(&mut self, change: impl FnOnce(Accumulator<F>, &mut Self) -> Accumulator<F>) {
        let parked = self.parked.unwrap_or_default();
        self.parked = Some(change(parked, self));
    }
}
