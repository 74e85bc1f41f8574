//! What is reduced, and how: one operator each.
//!
//! | operator | of | gives |
//! |---|---|---|
//! | [`Sum`] | all | `f32` of `f16`, `bf16` and `f32`; `f64`; 64 bits of integers |
//! | [`WrappingSum`] | integers | the integers' own type |
//! | [`SumInF64`] | `f32` | `f64` |
//! | [`InElementType`] | `f16` and `bf16` | the elements' own type |
//! | [`Product`] | all | as [`Sum`] |
//! | [`Mean`] | all | `f32` of `f16`, `bf16` and `f32`; else `f64` |
//! | [`SumOfSquares`] | all | as [`Sum`] |
//! | [`Norm`] | all | as [`Mean`] |
//! | [`Min`], [`Max`] | all | an element |
//! | [`MinMax`] | all | two elements |
//! | [`ArgMin`], [`ArgMax`] | all | an index |
//! | [`Any`], [`All`] | all | 1 or 0 |
//! | [`CountNonzero`] | all | a number |
//! | [`CountNan`], [`CountFinite`] | floats | a number |
//! | [`Dot`] | two inputs | as [`Sum`] |
//!
//! Sums of floats, and what is made of them (`Sum`, `SumInF64`, `Mean`, `SumOfSquares`, `Norm`, `Dot`), are exact and
//! rounded once: [`crate::reduce::exact`]. All others, and those of integers, are an [`Operator`]; means and norms of
//! integers are exact and rounded once, too.
//!
//! A custom operator is a type that implements [`Operator`]: the engines in [`crate::reduce`] take any.

mod arg;
pub(crate) mod builtin;
mod bytes;
mod dot;
mod erased;
mod extremes;
mod norm;
mod number;
mod predicates;
mod product;
mod scalar;
mod sum;
mod totals;
mod vectors;

use cuda_std::hint::compute_anew;
use cuda_std::prelude::*;

pub use arg::{ArgMax, ArgMin, IndexOfExtreme};
pub use dot::Dot;
pub use erased::Erased;
pub use extremes::{BothExtremes, Extreme, Max, Min, MinMax};
pub use norm::{Norm, SquaresOrNorm, SumOfSquares};
pub use number::Number;
pub use predicates::{All, Any, AnyOrAll, Count, CountFinite, CountNan, CountNonzero};
pub use product::Product;
pub use scalar::{Integer, Ordered, Scalar};
pub use sum::{InElementType, Mean, Sum, SumInF64, SumOrMean, WrappingSum};
pub use totals::{Squares, Total};

/// A reduction of elements of type `T`: what becomes of one, how two results become one, and what is given out.
///
/// The engines give each thread some of the elements and fold the threads' states in a tree, so `combine` must be
/// associative and commutative up to rounding. The order of all this is a function of the number of elements that are
/// reduced to a result, of the sizes of elements and states, and of whether the elements are neighbours, a column, or
/// a segment by offsets; for an operator with [`Operator::ANY_ORDER`] also of what else is reduced.
///
/// ```
/// use cuda_std::prelude::*;
/// use kernels::ops::Operator;
///
/// /// The largest absolute value.
/// #[derive(Clone, Copy, Default)]
/// pub struct AbsMax;
///
/// impl Operator<f32> for AbsMax {
///     type State = f32;
///     type Output = f32;
///     const NEUTRAL: f32 = 0.0;
///
///     fn lift(self, element: f32, _index: u64) -> f32 {
///         element.abs()
///     }
///     fn combine(a: f32, b: f32) -> f32 {
///         if a > b { a } else { b }
///     }
///     fn finish(self, state: f32, _count: u64) -> f32 {
///         state
///     }
/// }
/// ```
pub trait Operator<T: Element>: Copy + Default + 'static {
    /// What is carried while elements are folded: a number, or an array of two or four.
    type State: Plain;

    /// What is given out.
    type Output: Plain;

    /// The state of no elements: combined with any other it gives that one, to the last bit of what is given out.
    const NEUTRAL: Self::State;

    /// The operator's value as a kernel's argument. An operator without fields needs neither this nor
    /// [`Operator::from_word`].
    fn to_word(self) -> u64 {
        0
    }

    /// The operator of which [`Operator::to_word`] gave `word`.
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        let _ = word;
        Self::default()
    }

    /// The state of the one element at `index`, counted from the first that is reduced.
    fn lift(self, element: T, index: u64) -> Self::State;

    /// The state of the elements of both.
    fn combine(a: Self::State, b: Self::State) -> Self::State;

    /// Whether a reduction of no elements has a result. Without one it is an error, but for an empty segment among
    /// others, which has to have some result and gets `finish(NEUTRAL, 0)`.
    const HAS_EMPTY: bool = true;

    /// Whether what is given out is the same to the last bit in whatever order elements are combined. Then the engines
    /// choose the order that is fastest for a shape and an address. In the order that is otherwise kept, they cut each
    /// unaligned load out of two, and a block may have fewer rows or columns than it could fold.
    const ANY_ORDER: bool = false;

    /// [`Operator::NEUTRAL`] of an operator that may be [`Erased`].
    #[doc(hidden)]
    #[inline(always)]
    fn neutral() -> Self::State {
        Self::NEUTRAL
    }

    /// [`Operator::ANY_ORDER`] of an operator that may be [`Erased`].
    #[doc(hidden)]
    #[inline(always)]
    fn is_any_order() -> bool {
        Self::ANY_ORDER
    }

    /// What is given out for a state of `count` elements. Runs once for each result.
    fn finish(self, state: Self::State, count: u64) -> Self::Output;

    /// The state of `LEN` elements, a power of two, which a thread has in registers at once; `at` says the index of
    /// each. An operator overrides this where it has something cheaper for many elements than lifting each.
    #[inline(always)]
    fn gather<const LEN: usize>(self, elements: [T; LEN], at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|place| self.lift(elements[place], at(place)), Self::combine)
    }

    /// The state of a vector whose first element has the index `first`: [`Operator::gather`] of its elements.
    #[inline(always)]
    fn gather_vector(self, vector: T::Vector, first: u64) -> Self::State {
        vector.visit(vectors::Gather { first, operator: self })
    }

    /// The state of the vectors that a thread has loaded at once; `at` says the index of each one's first element, and
    /// rises. It may leave open where in a vector an element is: [`Operator::settle`] finds out, for the one state
    /// that is left of a block. An operator that gives an index overrides both, since to carry the index of each
    /// element costs more than to compare it.
    #[inline(always)]
    fn skim<const VECTORS: usize>(self, vectors: [T::Vector; VECTORS], at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, VECTORS>(|k| self.gather_vector(vectors[k], at(k)), Self::combine)
    }

    /// The same state with nothing left open; `element` loads one by its index.
    #[inline(always)]
    fn settle(self, state: Self::State, element: impl Fn(u64) -> T) -> Self::State {
        let _ = element;
        state
    }
}

/// A constant of an operator, for the engines: an [erased](Erased) one has a function in its place.
macro_rules! constant {
    ($operator:ident::NEUTRAL) => {
        ::cuda_std::erase::on_gpu_or_cpu!($operator::NEUTRAL, $operator::neutral())
    };
    ($operator:ident::ANY_ORDER) => {
        ::cuda_std::erase::on_gpu_or_cpu!($operator::ANY_ORDER, $operator::is_any_order())
    };
}
pub(crate) use constant;

/// The same operator. What its value is combined with after this is not combined before: with a single element, where
/// it was loaded, so that the loads after it would wait. Makes no instruction.
#[inline(always)]
pub(crate) fn anew<O: Operator<T>, T: Element>(operator: O) -> O {
    O::from_word(compute_anew(operator.to_word() as usize) as u64)
}

/// A reduction of pairs, of one element from each of two inputs. As an [`Operator`] it is that of an input with itself.
pub trait PairOperator<T: Element>: Operator<T> {
    /// The state of one pair.
    fn lift_pair(a: T, b: T) -> Self::State;

    /// The state of the pairs of two vectors.
    fn gather_pairs(a: T::Vector, b: T::Vector) -> Self::State;
}

/// Combines `LEN` leaves, a power of two up to 16: neighbours, then neighbours among the results, until one is left; so
/// every leaf has as many roundings on its way as `LEN` has halvings.
#[inline(always)]
pub fn tree<S: Copy, const LEN: usize>(leaf: impl Fn(usize) -> S, combine: impl Fn(S, S) -> S) -> S {
    // Without loops or arrays: what a compiler does not unroll here goes to memory.
    const { assert!(LEN.is_power_of_two() && LEN <= 16) };
    match LEN {
        1 => leaf(0),
        2 => two(&leaf, &combine, 0),
        4 => four(&leaf, &combine, 0),
        8 => eight(&leaf, &combine, 0),
        _ => combine(eight(&leaf, &combine, 0), eight(&leaf, &combine, 8)),
    }
}

#[inline(always)]
fn two<S>(leaf: &impl Fn(usize) -> S, combine: &impl Fn(S, S) -> S, first: usize) -> S {
    combine(leaf(first), leaf(first + 1))
}

#[inline(always)]
fn four<S>(leaf: &impl Fn(usize) -> S, combine: &impl Fn(S, S) -> S, first: usize) -> S {
    combine(two(leaf, combine, first), two(leaf, combine, first + 2))
}

#[inline(always)]
fn eight<S>(leaf: &impl Fn(usize) -> S, combine: &impl Fn(S, S) -> S, first: usize) -> S {
    combine(four(leaf, combine, first), four(leaf, combine, first + 4))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::{String, ToString};

    use super::tree;

    /// Shows the tree's shape: the combination of two is a pair of brackets.
    #[derive(Clone, Copy)]
    struct Leaves(usize, usize, usize);

    fn combine(a: Leaves, b: Leaves) -> Leaves {
        assert_eq!(a.1, b.0, "neighbours only");
        assert_eq!(a.2, b.2, "of the same height");
        Leaves(a.0, b.1, a.2 + 1)
    }

    #[test]
    fn a_tree_of_neighbours_has_one_height() {
        fn height<const LEN: usize>() -> String {
            let all = tree::<_, LEN>(|i| Leaves(i, i + 1, 0), combine);
            assert_eq!((all.0, all.1), (0, LEN));
            all.2.to_string()
        }
        assert_eq!([height::<1>(), height::<2>(), height::<8>(), height::<16>()], ["0", "1", "3", "4"]);
    }
}
