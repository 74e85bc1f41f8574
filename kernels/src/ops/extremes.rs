//! Minimum and maximum.
//!
//! NaN among the elements gives NaN, as in NumPy. Of zeros of both signs the minimum is -0.0 and the maximum 0.0, so
//! the result does not depend on the order. The minimum of an empty segment is the type's largest value (infinity for a
//! float), the maximum its smallest.

use cuda_std::prelude::*;

use super::scalar::{Ordered, Scalar};
use super::vectors::{Highest, Lowest, flip_vector};
use super::{Fixed, Operator};

/// The smallest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min;

/// The largest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max;

/// The smallest and the largest element, in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinMax;

/// [`Min`] or [`Max`]: flips bits of each element, takes the largest and flips it back.
///
/// Of integers, one kernel serves both, with and without a sign.
///
/// | | unsigned | signed | float |
/// |---|---|---|---|
/// | [`Max`] | none | the sign | none |
/// | [`Min`] | all | all but the sign | the sign |
///
/// Flipping the sign of a signed integer makes it an unsigned one in the same order. Flipping all bits of an unsigned
/// integer, or the sign of a float, reverses the order.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinOrMax {
    /// The bits to flip.
    pub flip: u64,
}

/// [`Min`] of floats: [`MinOrMax`] that flips the sign. Reading the bits to flip takes up to 0.07 us of 2^10
/// elements (`docs/notes/operators.md`), so floats have a kernel for each of the two.
pub type MinOfFloats = Fixed<MinOrMax, { u64::MAX }>;

/// [`Max`] of floats: [`MinOrMax`] that flips no bits.
pub type MaxOfFloats = Fixed<MinOrMax, 0>;

/// [`MinMax`] of integers: flips the sign of signed ones, and flips it back.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinAndMax {
    /// The bits to flip.
    pub flip: u64,
}

/// [`MinMax`] of floats: [`MinAndMax`] that flips no bits.
pub type MinMaxOfFloats = Fixed<MinAndMax, 0>;

impl<T: Scalar> Operator<T> for MinOrMax {
    type State = T::Ordered;
    type Output = T;
    const NEUTRAL: T::Ordered = T::Ordered::LOWEST;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;
    const HAS_EMPTY_RESULT: bool = false;

    fn to_word(self) -> u64 {
        self.flip
    }
    #[inline(always)]
    fn from_word(flip: u64) -> Self {
        Self { flip }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Ordered {
        element.flipped(self.flip).ordered(self.flip)
    }
    #[inline(always)]
    fn combine(a: T::Ordered, b: T::Ordered) -> T::Ordered {
        a.maximum(b)
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Ordered {
        T::highest(elements.map(|element| element.flipped(self.flip)), self.flip)
    }
    #[inline(always)]
    fn reduce_vector(self, vector: T::Vector, _first: u64) -> T::Ordered {
        flip_vector::<T>(vector, self.flip).visit(Highest { flip: self.flip })
    }
    #[inline(always)]
    fn fold_slice(self, state: T::Ordered, elements: &[T], _index_of: impl Fn(usize) -> u64) -> T::Ordered {
        state.maximum(T::Ordered::highest_of(elements, |x: T| x.flipped(self.flip).ordered(self.flip)))
    }
    #[inline(always)]
    fn finish(self, state: T::Ordered, _count: u64) -> T {
        T::from_ordered(state, self.flip)
    }
}

impl<T: Scalar> Operator<T> for MinAndMax {
    type State = <T::Ordered as Ordered>::Pair;
    type Output = T::Pair;
    const NEUTRAL: Self::State = <T::Ordered as Ordered>::NEUTRAL_PAIR;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;
    const HAS_EMPTY_RESULT: bool = false;

    fn to_word(self) -> u64 {
        self.flip
    }
    #[inline(always)]
    fn from_word(flip: u64) -> Self {
        Self { flip }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> Self::State {
        let element = element.flipped(self.flip).ordered(self.flip);
        T::Ordered::pair(element, element)
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        let ([min_of_a, max_of_a], [min_of_b, max_of_b]) = (T::Ordered::split(a), T::Ordered::split(b));
        T::Ordered::pair(min_of_a.minimum(min_of_b), max_of_a.maximum(max_of_b))
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> Self::State {
        let elements = elements.map(|element| element.flipped(self.flip));
        T::Ordered::pair(T::lowest(elements, self.flip), T::highest(elements, self.flip))
    }
    #[inline(always)]
    fn reduce_vector(self, vector: T::Vector, _first: u64) -> Self::State {
        let vector = flip_vector::<T>(vector, self.flip);
        T::Ordered::pair(vector.visit(Lowest { flip: self.flip }), vector.visit(Highest { flip: self.flip }))
    }
    #[inline(always)]
    fn fold_slice(self, state: Self::State, elements: &[T], _index_of: impl Fn(usize) -> u64) -> Self::State {
        let value = |x: T| x.flipped(self.flip).ordered(self.flip);
        let lowest = T::Ordered::lowest_of(elements, value);
        <Self as Operator<T>>::combine(state, T::Ordered::pair(lowest, T::Ordered::highest_of(elements, value)))
    }
    #[inline(always)]
    fn finish(self, state: Self::State, _count: u64) -> T::Pair {
        let [min, max] = T::Ordered::split(state);
        T::pair(T::from_ordered(min, self.flip), T::from_ordered(max, self.flip))
    }
}
