//! An operator whose value is compiled into its kernels.

use core::marker::PhantomData;

use cuda_std::prelude::*;

use super::Operator;

/// The operator `O` with the value whose [word](Operator::to_word) is `WORD`.
///
/// Its kernels do not read the value, and the compiler removes what this value does not need.
pub struct Fixed<O, const WORD: u64>(PhantomData<fn() -> O>);

// By hand: derives would require the same traits of `O`.
impl<O, const WORD: u64> Clone for Fixed<O, WORD> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O, const WORD: u64> Copy for Fixed<O, WORD> {}
impl<O, const WORD: u64> Default for Fixed<O, WORD> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Element, O: Operator<T>, const WORD: u64> Operator<T> for Fixed<O, WORD> {
    type State = O::State;
    type Output = O::Output;
    const NEUTRAL: O::State = O::NEUTRAL;
    const ANY_ORDER: bool = O::ANY_ORDER;
    const USES_INDEX: bool = O::USES_INDEX;
    const HAS_EMPTY_RESULT: bool = O::HAS_EMPTY_RESULT;

    #[inline(always)]
    fn lift(self, element: T, index: u64) -> O::State {
        O::from_word(WORD).lift(element, index)
    }
    #[inline(always)]
    fn combine(a: O::State, b: O::State) -> O::State {
        O::combine(a, b)
    }
    #[inline(always)]
    fn finish(self, state: O::State, count: u64) -> O::Output {
        O::from_word(WORD).finish(state, count)
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], index_of: impl Fn(usize) -> u64) -> O::State {
        O::from_word(WORD).reduce_elements(elements, index_of)
    }
    #[inline(always)]
    fn reduce_vector(self, vector: T::Vector, first: u64) -> O::State {
        O::from_word(WORD).reduce_vector(vector, first)
    }
    #[inline(always)]
    fn reduce_vectors<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> O::State {
        O::from_word(WORD).reduce_vectors(vectors, index_of)
    }
    #[inline(always)]
    fn reduce_to_partial_index<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> O::State {
        O::from_word(WORD).reduce_to_partial_index(vectors, index_of)
    }
    #[inline(always)]
    fn fold_slice(self, state: O::State, elements: &[T], index_of: impl Fn(usize) -> u64) -> O::State {
        O::from_word(WORD).fold_slice(state, elements, index_of)
    }
    #[inline(always)]
    fn is_settled(self, state: O::State) -> bool {
        O::from_word(WORD).is_settled(state)
    }
    #[inline(always)]
    fn resolve_index(self, state: O::State, element: impl Fn(u64) -> T) -> O::State {
        O::from_word(WORD).resolve_index(state, element)
    }
}
