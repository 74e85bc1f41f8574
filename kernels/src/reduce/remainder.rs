//! The elements of a row outside its whole tiles: after the last one, and before the first aligned element.

use cuda_std::prelude::*;

use super::thread_reduce::reduce_vectors_to_partial_index;
use crate::ops::{Operator, opaque};

/// Elements of a row that a block folds after its tiles.
#[derive(Clone, Copy)]
pub(super) struct Remainder {
    /// The first element of the first vector.
    pub start: usize,
    /// The elements of the row before `start`, fewer than in a vector.
    pub head: usize,
    /// The range of elements that are in no tile, counted from `start`; shorter than a tile.
    pub from: usize,
    pub to: usize,
}

/// The elements of a [`Remainder`] that a thread has loaded.
#[derive(Clone, Copy)]
pub(super) struct Loaded<T: Element, const VECTORS: usize> {
    vectors: [T::Vector; VECTORS],
    tail_element: T,
    head_element: T,
}

impl Remainder {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.from == self.to && self.head == 0
    }

    /// Loads this thread's elements. The caller [issues](cuda_std::global::issue_loads) the loads.
    ///
    /// # Safety
    /// All elements are inside the view. If `is_aligned`, the one at `start` is at a multiple of 16 bytes.
    #[inline(always)]
    pub unsafe fn load<T: Element, const VECTORS: usize>(
        &self,
        input: &Global<T>,
        is_aligned: bool,
    ) -> Loaded<T, VECTORS> {
        let Self { start, head, .. } = *self;
        let (own, single) = (thread::thread_idx_x() as usize, self.single::<T>());
        let (first, end) = (start + self.vector::<T>(), start + self.end_of_vectors::<T>());
        // SAFETY: as promised by the caller; a vector that begins before `end_of_vectors` is whole.
        unsafe {
            Loaded {
                vectors: if is_aligned {
                    input.load_aligned_vectors_before::<VECTORS>(first, stride::<T>(), end)
                } else {
                    input.load_vectors_before::<VECTORS>(first, stride::<T>(), end)
                },
                tail_element: if single < self.to { input.load_unchecked(start + single) } else { T::default() },
                head_element: if own < head { input.load_unchecked(start - head + own) } else { T::default() },
            }
        }
    }

    /// Folds what was loaded into this thread's state.
    #[inline(always)]
    pub fn fold<O: Operator<T>, T: Element, const VECTORS: usize>(
        &self,
        operator: O,
        state: O::State,
        loaded: Loaded<T, VECTORS>,
    ) -> O::State {
        let operator = opaque::<O, T>(operator);
        let Loaded { mut vectors, tail_element, head_element } = loaded;
        let (own, single, head) = (thread::thread_idx_x() as usize, self.single::<T>(), self.head);
        let mut state = state;
        let mut i = self.vector::<T>();
        // Not unrolled: short elements of several vectors would need too many registers.
        while i < self.end_of_vectors::<T>() {
            state = O::combine(state, reduce_vectors_to_partial_index::<O, T, 1>(operator, [vectors[0]], head + i, 0));
            let mut k = 1;
            while k < VECTORS {
                vectors[k - 1] = vectors[k];
                k += 1;
            }
            i += stride::<T>();
        }
        if single < self.to {
            state = O::combine(state, operator.lift(tail_element, (head + single) as u64));
        }
        if own < head {
            state = O::combine(state, operator.lift(head_element, own as u64));
        }
        state
    }

    /// The first element of this thread's first vector.
    #[inline(always)]
    fn vector<T: Element>(&self) -> usize {
        self.from + thread::thread_idx_x() as usize * T::Vector::LEN
    }

    #[inline(always)]
    fn end_of_vectors<T: Element>(&self) -> usize {
        self.to / T::Vector::LEN * T::Vector::LEN
    }

    /// This thread's element after the last whole vector.
    #[inline(always)]
    fn single<T: Element>(&self) -> usize {
        self.end_of_vectors::<T>() + thread::thread_idx_x() as usize
    }
}

/// Elements from one vector of a thread to its next.
#[inline(always)]
pub(super) fn stride<T: Element>() -> usize {
    elements_per_block::<T>(1)
}

/// The elements of a block with `vectors` vectors in each thread. The 32-bit product takes a quarter of the
/// instructions of a 64-bit one.
#[inline(always)]
pub(super) fn elements_per_block<T: Element>(vectors: u32) -> usize {
    (thread::block_dim_x() * vectors * T::Vector::LEN as u32) as usize
}
