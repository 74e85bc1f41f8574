//! The state of the vectors in a thread's registers.

use cuda_std::prelude::*;

use crate::ops::Operator;

/// The state of `VECTORS` vectors; the first begins at index `first`, each other one `stride` elements after the
/// previous.
#[inline(always)]
pub fn reduce_vectors<O: Operator<T>, T: Element, const VECTORS: usize>(
    operator: O,
    vectors: [T::Vector; VECTORS],
    first: usize,
    stride: usize,
) -> O::State {
    operator.reduce_vectors(vectors, |k| (first + k * stride) as u64)
}

/// [`reduce_vectors`] with a partial index, which [`Operator::resolve_index`] resolves.
#[inline(always)]
pub fn reduce_vectors_to_partial_index<O: Operator<T>, T: Element, const VECTORS: usize>(
    operator: O,
    vectors: [T::Vector; VECTORS],
    first: usize,
    stride: usize,
) -> O::State {
    operator.reduce_to_partial_index(vectors, |k| (first + k * stride) as u64)
}
