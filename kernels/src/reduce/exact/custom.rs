//! Exact sums of custom terms.

use core::marker::PhantomData;

use cuda_std::prelude::*;

use super::format::Format;
use super::formula::ResultFormat;
use super::grid::{Doubles, Grid, Singles};
use super::result::ExactOperator;
use super::terms::{Float, Terms};

/// The term of each element in an exact sum: `|x|`, `x` if a condition holds, a product.
///
/// ```
/// use kernels::reduce::exact::custom::ExactTerm;
///
/// /// Squares of `f32`, which are exact in `f64`.
/// struct Square;
///
/// impl ExactTerm for Square {
///     type Element = f32;
///     type Term = f64;
///     type Sum = f64;
///     fn term(x: f32) -> f64 {
///         f64::from(x) * f64::from(x)
///     }
/// }
/// assert_eq!(Square::term(3.0), 9.0);
/// ```
///
/// The sum of the terms is exact and rounded once, so it does not depend on their order. A term depends only on its
/// element. It has the same bits on every device if all of its operations do (unlike `sin`).
///
/// [`exact_reductions!`](crate::exact_reductions) defines the kernels of a term.
pub trait ExactTerm: 'static {
    /// The type of the input's elements: at least 16 bits, or 32 bits if an element has two terms.
    type Element: Element;
    /// The type of the terms: `f32`, or `f64`, which takes more time.
    type Term: TermFormat;
    /// The type of the sum: `f32`, `f64`, `f16` or `bf16`.
    type Sum: ResultFormat;
    /// Whether an element has a second term.
    const HAS_LOW: bool = false;

    /// The term. The term of 0 must be 0, because threads without an element add it.
    fn term(element: Self::Element) -> Self::Term;

    /// The second term, if any, such as the rounding error of the first. It is summed in the same way.
    #[inline(always)]
    fn low(element: Self::Element, term: Self::Term) -> Self::Term {
        let _ = element;
        term
    }
}

/// A format of terms: `f32` or `f64`.
pub trait TermFormat: Format {
    /// The unit of which terms are multiples.
    type Grid: Grid<Format = Self>;
}

impl TermFormat for f32 {
    type Grid = Singles;
}

impl TermFormat for f64 {
    type Grid = Doubles;
}

/// The terms of an [`ExactTerm`].
pub struct Custom<E>(PhantomData<E>);

// By hand: a derive would ask for `E: Copy`.
impl<E> Clone for Custom<E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Custom<E> {}

impl<E: ExactTerm> Terms for Custom<E> {
    type Grid = <E::Term as TermFormat>::Grid;
    type Element = E::Element;
    type Item = E::Element;
    type Sum = E::Sum;
    type Other = E::Sum;
    const WINDOW: Option<i32> = None;
    const HAS_LOW: bool = E::HAS_LOW;

    #[inline(always)]
    fn term(item: E::Element) -> Float<Self> {
        E::term(item)
    }
    #[inline(always)]
    fn low(item: E::Element, term: Float<Self>) -> Float<Self> {
        E::low(item, term)
    }
}

impl<E: ExactTerm> ExactOperator<E::Element> for E {
    type Terms = Custom<E>;
    type Factors = Custom<E>;
}
