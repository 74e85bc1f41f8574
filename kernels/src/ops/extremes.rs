//! Minimum and maximum.
//!
//! NaN among the elements gives NaN, as in NumPy. Of zeros of both signs the minimum is -0.0 and the maximum 0.0, so
//! that the result does not depend on an order. An empty segment gives what no element is beyond: as a minimum the
//! largest value of the type (infinity, of a float), as a maximum the smallest.

use super::Operator;
use super::scalar::{Ordered, Scalar};

/// The smallest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;

/// The largest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

/// The smallest and the largest element, in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinMax;

impl<T: Scalar> Operator<T> for Min {
    type State = T::Ordered;
    type Output = T;
    const NEUTRAL: T::Ordered = T::Ordered::HIGHEST;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> T::Ordered {
        element.ordered()
    }
    #[inline(always)]
    fn combine(a: T::Ordered, b: T::Ordered) -> T::Ordered {
        a.minimum(b)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> T::Ordered {
        T::lowest(elements)
    }
    #[inline(always)]
    fn finish(state: T::Ordered, _count: u64) -> T {
        T::from_ordered(state)
    }
}

impl<T: Scalar> Operator<T> for Max {
    type State = T::Ordered;
    type Output = T;
    const NEUTRAL: T::Ordered = T::Ordered::LOWEST;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> T::Ordered {
        element.ordered()
    }
    #[inline(always)]
    fn combine(a: T::Ordered, b: T::Ordered) -> T::Ordered {
        a.maximum(b)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> T::Ordered {
        T::highest(elements)
    }
    #[inline(always)]
    fn finish(state: T::Ordered, _count: u64) -> T {
        T::from_ordered(state)
    }
}

impl<T: Scalar> Operator<T> for MinMax {
    type State = <T::Ordered as Ordered>::Pair;
    type Output = T::Pair;
    const NEUTRAL: Self::State = <T::Ordered as Ordered>::WIDEST;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        T::Ordered::pair(element.ordered(), element.ordered())
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        let ([min_of_a, max_of_a], [min_of_b, max_of_b]) = (T::Ordered::split(a), T::Ordered::split(b));
        T::Ordered::pair(min_of_a.minimum(min_of_b), max_of_a.maximum(max_of_b))
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        T::Ordered::pair(T::lowest(elements), T::highest(elements))
    }
    #[inline(always)]
    fn finish(state: Self::State, _count: u64) -> T::Pair {
        let [min, max] = T::Ordered::split(state);
        T::pair(T::from_ordered(min), T::from_ordered(max))
    }
}
