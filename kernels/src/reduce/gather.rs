//! The state of what a thread has loaded at once.

use cuda_std::prelude::*;

use crate::ops::{Operator, tree};

/// The state of vectors, the first of which begins at index `first` and each further one `stride` behind the one
/// before.
#[inline(always)]
pub fn gather_vectors<O: Operator<T>, T: Element, const VECTORS: usize>(
    operator: O,
    vectors: [T::Vector; VECTORS],
    first: usize,
    stride: usize,
) -> O::State {
    tree::<_, VECTORS>(|k| operator.gather_vector(vectors[k], (first + k * stride) as u64), O::combine)
}

/// [`gather_vectors`] of a state that [`Operator::settle`] has still to settle.
#[inline(always)]
pub fn skim_vectors<O: Operator<T>, T: Element, const VECTORS: usize>(
    operator: O,
    vectors: [T::Vector; VECTORS],
    first: usize,
    stride: usize,
) -> O::State {
    operator.skim(vectors, |k| (first + k * stride) as u64)
}
