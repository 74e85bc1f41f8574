//! What of a row is in none of its tiles: behind the last whole one, and before the first aligned element.

use cuda_std::prelude::*;

use super::gather::skim_vectors;
use crate::ops::{Operator, anew};

/// Some elements of a row that a block folds after its tiles.
#[derive(Clone, Copy)]
pub(super) struct Remainder {
    /// The element at which vectors begin.
    pub start: usize,
    /// How many elements of the row lie before it, less than a vector's.
    pub lead: usize,
    /// The first and the last that are not in a tile, counted from `start`; fewer than a tile's.
    pub from: usize,
    pub to: usize,
}

/// What a thread has loaded of a [`Remainder`].
#[derive(Clone, Copy)]
pub(super) struct Loaded<T: Element, const VECTORS: usize> {
    vectors: [T::Vector; VECTORS],
    behind: T,
    before: T,
}

impl Remainder {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.from == self.to && self.lead == 0
    }

    /// Loads this thread's elements. They are not [on their way](cuda_std::global::issue_loads) before anything else.
    ///
    /// # Safety
    /// All are inside of the view. If `is_aligned`, the one at `start` is at a multiple of 16 bytes.
    #[inline(always)]
    pub unsafe fn load<T: Element, const VECTORS: usize>(
        &self,
        input: &Global<T>,
        is_aligned: bool,
    ) -> Loaded<T, VECTORS> {
        let Self { start, lead, .. } = *self;
        let (own, single) = (thread::thread_idx_x() as usize, self.single::<T>());
        let (first, end) = (start + self.vector::<T>(), start + self.end_of_vectors::<T>());
        // SAFETY: as promised by the caller; a vector that begins before the end of whole ones is whole.
        unsafe {
            Loaded {
                vectors: if is_aligned {
                    input.load_aligned_vectors_before::<VECTORS>(first, stride::<T>(), end)
                } else {
                    input.load_vectors_before::<VECTORS>(first, stride::<T>(), end)
                },
                behind: if single < self.to { input.load_unchecked(start + single) } else { T::default() },
                before: if own < lead { input.load_unchecked(start - lead + own) } else { T::default() },
            }
        }
    }

    /// Adds what was loaded to this thread's state.
    #[inline(always)]
    pub fn fold<O: Operator<T>, T: Element, const VECTORS: usize>(
        &self,
        operator: O,
        state: O::State,
        loaded: Loaded<T, VECTORS>,
    ) -> O::State {
        let operator = anew::<O, T>(operator);
        let Loaded { mut vectors, behind, before } = loaded;
        let (own, single, lead) = (thread::thread_idx_x() as usize, self.single::<T>(), self.lead);
        let mut state = state;
        let mut i = self.vector::<T>();
        // Not unrolled, since short elements of so many vectors would take more registers than there are.
        while i < self.end_of_vectors::<T>() {
            state = O::combine(state, skim_vectors::<O, T, 1>(operator, [vectors[0]], lead + i, 0));
            let mut k = 1;
            while k < VECTORS {
                vectors[k - 1] = vectors[k];
                k += 1;
            }
            i += stride::<T>();
        }
        if single < self.to {
            state = O::combine(state, operator.lift(behind, (lead + single) as u64));
        }
        if own < lead {
            state = O::combine(state, operator.lift(before, own as u64));
        }
        state
    }

    /// Where this thread's first vector begins.
    #[inline(always)]
    fn vector<T: Element>(&self) -> usize {
        self.from + thread::thread_idx_x() as usize * T::Vector::LEN
    }

    #[inline(always)]
    fn end_of_vectors<T: Element>(&self) -> usize {
        self.to / T::Vector::LEN * T::Vector::LEN
    }

    /// This thread's element behind the last whole vector.
    #[inline(always)]
    fn single<T: Element>(&self) -> usize {
        self.end_of_vectors::<T>() + thread::thread_idx_x() as usize
    }
}

/// From a thread's vector to its next one.
#[inline(always)]
pub(super) fn stride<T: Element>() -> usize {
    vectors_of_block::<T>(1)
}

/// Elements of so many vectors of each thread. Multiplied as 32 bits, which takes a quarter of the instructions.
#[inline(always)]
pub(super) fn vectors_of_block<T: Element>(vectors: u32) -> usize {
    (thread::block_dim_x() * vectors * T::Vector::LEN as u32) as usize
}
