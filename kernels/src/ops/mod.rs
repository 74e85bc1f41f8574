//! The reduction operators.
//!
//! | operator | input | output |
//! |---|---|---|
//! | [`Sum`] | all | `f32` of `f16`, `bf16` and `f32`; `f64`; 64 bits of integers |
//! | [`WrappingSum`] | integers | the integers' own type |
//! | [`SumInF64`] | `f32` | `f64` |
//! | [`InElementType`] | `f16` and `bf16` | the elements' own type |
//! | [`Product`] | all | as [`Sum`] |
//! | [`PairwiseSum`], [`PairwiseMean`] | floats | as [`Sum`] |
//! | [`Mean`] | all | `f32` of `f16`, `bf16` and `f32`; else `f64` |
//! | [`SumOfSquares`] | all | as [`Sum`] |
//! | [`Norm`] | all | as [`Mean`] |
//! | [`Min`], [`Max`] | all | an element |
//! | [`MinMax`] | all | two elements |
//! | [`ArgMin`], [`ArgMax`] | all | an index |
//! | [`Any`], [`All`] | all | 1 or 0 |
//! | [`CountNonzero`] | all | a count |
//! | [`CountNan`], [`CountFinite`] | floats | a count |
//! | [`Dot`] | two inputs | as [`Sum`] |
//!
//! Sums of floats and the operators built on them (`Sum`, `SumInF64`, `Mean`, `SumOfSquares`, `Norm`, `Dot`) are exact
//! and rounded once: see [`crate::reduce::exact`]. All other operators, and all of integers, implement [`Operator`].
//! Means and norms of integers are exact and rounded once, too.
//!
//! A custom operator is a type that implements [`Operator`] and gets its kernels from
//! [`reductions!`](crate::reductions).

// How to add a built-in operator: the end of `docs/notes/operators.md`.

mod arg;
pub(crate) mod builtin;
mod bytes;
mod dot;
mod erased;
mod extremes;
mod fields;
mod fixed;
mod lanes;
mod norm;
mod number;
mod pairwise;
mod predicates;
mod product;
mod scalar;
mod sum;
mod totals;
mod vectors;

use cuda_std::hint::compute_anew;
use cuda_std::prelude::*;

pub use arg::{ArgMax, ArgMin};
pub use dot::Dot;
pub use extremes::{Max, Min, MinMax};
pub use fields::Fields;
pub use norm::{Norm, SumOfSquares};
pub use pairwise::{PairwiseMean, PairwiseSum};
pub use predicates::{All, Any, CountFinite, CountNan, CountNonzero};
pub use product::Product;
pub use sum::{InElementType, Mean, Sum, SumInF64, WrappingSum};

// The operators whose kernels several of the above share, and what they need of a type. They are public for the list
// of entries and for the tests.
#[doc(hidden)]
pub use arg::{ArgMaxOfFloats, ArgMinOfFloats, ArgMinOrMax};
#[doc(hidden)]
pub use erased::Erased;
#[doc(hidden)]
pub use extremes::{MaxOfFloats, MinAndMax, MinMaxOfFloats, MinOfFloats, MinOrMax};
#[doc(hidden)]
pub use fixed::Fixed;
#[doc(hidden)]
pub use norm::SquaresOrNorm;
#[doc(hidden)]
pub use number::Number;
#[doc(hidden)]
pub use pairwise::PairwiseSumOrMean;
#[doc(hidden)]
pub use predicates::{AnyOrAll, Count, CountNonzeroFloats};
#[doc(hidden)]
pub use scalar::{Integer, Ordered, Scalar};
#[doc(hidden)]
pub use sum::SumOrMean;
#[doc(hidden)]
pub use totals::{Squares, Total};

/// A reduction of elements of type `T`: lift an element, combine two states, finish.
///
/// The kernels give each thread some of the elements and fold the threads' states in a tree, so `combine` must be
/// associative and commutative up to rounding. The order is a function of the number of elements reduced to a result,
/// of the sizes of elements and states, and of whether the elements are contiguous, a column, or a segment by offsets;
/// for an operator with [`Operator::ANY_ORDER`], it may also depend on the rest of the input.
///
/// ```
/// use cuda_std::prelude::*;
/// use kernels::ops::Operator;
///
/// /// The largest absolute value. It ignores NaN.
/// #[derive(Clone, Copy, Default)]
/// pub struct AbsMax;
///
/// impl Operator<f32> for AbsMax {
///     type State = f32;
///     type Output = f32;
///     const NEUTRAL: f32 = 0.0;
///
///     fn lift(self, element: f32, _index: u64) -> f32 {
///         // No comparison with NaN is true: `combine` would return its second operand.
///         if element.is_nan() { 0.0 } else { element.abs() }
///     }
///     fn combine(a: f32, b: f32) -> f32 {
///         if a > b { a } else { b }
///     }
///     fn finish(self, state: f32, _count: u64) -> f32 {
///         state
///     }
/// }
/// ```
///
/// An operator may have fields:
///
/// ```
/// use kernels::ops::{Fields, Operator};
///
/// /// The number of elements above a limit.
/// #[derive(Clone, Copy, Default, cuda_std::Plain)]
/// #[repr(C)]
/// pub struct CountAbove {
///     pub limit: f32,
/// }
///
/// impl Operator<f32> for CountAbove {
///     type State = u64;
///     type Output = u64;
///     const NEUTRAL: u64 = 0;
///     const ANY_ORDER: bool = true;
///     const USES_INDEX: bool = false;
///     const FIELDS: Fields<Self> = Fields::plain();
///
///     fn lift(self, element: f32, _index: u64) -> u64 {
///         u64::from(element > self.limit)
///     }
///     fn combine(a: u64, b: u64) -> u64 {
///         a + b
///     }
///     fn finish(self, state: u64, _count: u64) -> u64 {
///         state
///     }
/// }
/// ```
pub trait Operator<T: Element>: Copy + Default + 'static {
    /// What threads and blocks exchange: a number, or an array of two or four. It has 1, 2, 4, 8, 16 or 32 bytes.
    type State: Plain;

    /// The result's type.
    type Output: Plain;

    /// The state of no elements. Combining a state with it does not change a bit of the output.
    const NEUTRAL: Self::State;

    /// How the operator's fields reach its kernels: [`Fields::plain`], if it has fields. An operator with fields does
    /// not compile without it.
    const FIELDS: Fields<Self> = Fields::none();

    /// The operator's value as a kernel argument. Only operators of this crate override it, for fields that are not
    /// plain.
    #[doc(hidden)]
    #[inline(always)]
    fn to_word(self) -> u64 {
        Self::FIELDS.word_of(self)
    }

    /// Restores the operator from [`Operator::to_word`]'s `word`. An operator overrides both or neither.
    #[doc(hidden)]
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self::FIELDS.of_word(word)
    }

    /// The state of one element; `index` counts from the first element reduced.
    fn lift(self, element: T, index: u64) -> Self::State;

    /// The state of the elements of both operands.
    fn combine(a: Self::State, b: Self::State) -> Self::State;

    /// Whether a reduction of no elements has a result.
    ///
    /// | | `true` | `false` |
    /// |---|---|---|
    /// | an empty input, or rows or columns of no elements | `finish(NEUTRAL, 0)` | an error |
    /// | an empty segment | `finish(NEUTRAL, 0)` | `finish(NEUTRAL, 0)` |
    /// | no rows, columns or segments | no results | no results |
    ///
    /// An empty segment always has a result, because only the GPU knows the offsets: the minimum of an empty segment is
    /// the type's largest value.
    const HAS_EMPTY_RESULT: bool = true;

    /// Whether the output has the same bits in any order of combination.
    ///
    /// If so, the order is the fastest one for the shape and the address. If not, it is fixed: a kernel combines two
    /// aligned vectors for each unaligned one, and a block may take fewer rows or columns than it has threads for.
    const ANY_ORDER: bool = false;

    /// Whether [`Operator::lift`] uses the index.
    ///
    /// If so, the elements are taken in C order of the array, and only one axis or all of them can be reduced, because
    /// an index counts along one axis. If not, several axes can be; and if the operator also allows
    /// [any order](Operator::ANY_ORDER), the axes are taken as they lie in memory.
    const USES_INDEX: bool = true;

    /// [`Operator::NEUTRAL`], also of an [`Erased`] operator.
    #[doc(hidden)]
    #[inline(always)]
    fn neutral() -> Self::State {
        Self::NEUTRAL
    }

    /// [`Operator::ANY_ORDER`], also of an [`Erased`] operator.
    #[doc(hidden)]
    #[inline(always)]
    fn is_any_order() -> bool {
        Self::ANY_ORDER
    }

    /// The output for a state of `count` elements. Runs once for each result.
    fn finish(self, state: Self::State, count: u64) -> Self::Output;

    /// The state of `LEN` elements, a power of two, in a thread's registers. `index_of` maps a position to the
    /// element's index. An operator overrides this if there is a cheaper way than to lift each element.
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], index_of: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| self.lift(elements[i], index_of(i)), Self::combine)
    }

    /// The state of a vector whose first element has the index `first`: [`Operator::reduce_elements`] of its elements.
    #[inline(always)]
    fn reduce_vector(self, vector: T::Vector, first: u64) -> Self::State {
        vector.visit(vectors::ReduceVector { first, operator: self })
    }

    /// The state of several vectors in a thread's registers. `index_of` gives the index of each vector's first element,
    /// in rising order.
    #[inline(always)]
    fn reduce_vectors<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> Self::State {
        tree::<_, VECTORS>(|k| self.reduce_vector(vectors[k], index_of(k)), Self::combine)
    }

    /// [`Operator::reduce_vectors`], but the state's index may be partial: the first of the right vector, not yet the
    /// right element. [`Operator::resolve_index`] resolves the index of a block's final state. An operator of this
    /// crate that returns an index overrides this and `resolve_index`, since carrying each element's index costs more
    /// than comparing it. One without the other would be wrong, so other crates' operators have neither.
    #[doc(hidden)]
    #[inline(always)]
    fn reduce_to_partial_index<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> Self::State {
        self.reduce_vectors(vectors, index_of)
    }

    /// The state of further elements, which are in a host's memory. `index_of` maps a position to the element's index,
    /// which rises. An operator overrides this if there is a faster way than to lift each element, in any order.
    #[doc(hidden)]
    #[inline(always)]
    fn fold_slice(self, state: Self::State, elements: &[T], index_of: impl Fn(usize) -> u64) -> Self::State {
        let leaf = |i: usize, element: T| self.lift(element, index_of(i));
        Self::combine(state, lanes::reduce(elements, leaf, Self::NEUTRAL, Self::combine))
    }

    /// Whether no further element can change the output for this state.
    #[doc(hidden)]
    #[inline(always)]
    fn is_settled(self, state: Self::State) -> bool {
        let _ = state;
        false
    }

    /// Resolves the state's partial index; `element` loads an element by its index.
    #[doc(hidden)]
    #[inline(always)]
    fn resolve_index(self, state: Self::State, element: impl Fn(u64) -> T) -> Self::State {
        let _ = element;
        state
    }
}

/// Refuses an operator that kernels cannot reduce with, while it is compiled. [`reductions!`](crate::reductions) calls
/// this in a constant.
#[doc(hidden)]
pub const fn check<O: Operator<T>, T: Element>() {
    // Its default refuses fields.
    let _fields = O::FIELDS;
    let size = size_of::<O::State>();
    assert!(
        size.is_power_of_two() && size <= 32,
        "the state of an operator has 1, 2, 4, 8, 16 or 32 bytes: add a field of zeros, or keep less in it"
    );
}

/// A constant of an operator, for the kernels. An [erased](Erased) operator has a function instead.
macro_rules! constant {
    ($operator:ident::NEUTRAL) => {
        ::cuda_std::erase::on_gpu_or_cpu!($operator::NEUTRAL, $operator::neutral())
    };
    ($operator:ident::ANY_ORDER) => {
        ::cuda_std::erase::on_gpu_or_cpu!($operator::ANY_ORDER, $operator::is_any_order())
    };
}
pub(crate) use constant;

/// The same operator, opaque to the compiler; costs no instruction.
///
/// Without this, the compiler combines the operator's value with each element where it is loaded, so that later loads
/// wait.
#[inline(always)]
pub(crate) fn opaque<O: Operator<T>, T: Element>(operator: O) -> O {
    O::from_word(compute_anew(operator.to_word() as usize) as u64)
}

/// A reduction of pairs: one element from each of two inputs. As an [`Operator`] it pairs an input with itself.
pub trait PairOperator<T: Element>: Operator<T> {
    /// The state of one pair.
    fn lift_pair(a: T, b: T) -> Self::State;

    /// The state of the pairs of two vectors.
    fn reduce_pairs(a: T::Vector, b: T::Vector) -> Self::State;
}

/// Combines `LEN` leaves, a power of two up to 16, in a balanced tree.
///
/// Neighbours are combined first, so every leaf is rounded log2(`LEN`) times.
#[inline(always)]
pub fn tree<S: Copy, const LEN: usize>(leaf: impl Fn(usize) -> S, combine: impl Fn(S, S) -> S) -> S {
    // No loops over arrays: an array whose loop is not unrolled goes to local memory.
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

    /// The first leaf of a subtree, the one after its last, and the subtree's height.
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
