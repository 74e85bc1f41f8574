//! Exact sums of custom terms.

use cuda_std::prelude::*;

use super::format::Format;
use super::formula::ResultFormat;
use super::grid::{Doubles, Grid, Singles};
use super::result::ExactOperator;
use super::terms::{Float, Terms};
use crate::ops::Fields;

/// The term of each element in an exact sum: `|x|`, `x` if a condition holds, a product.
///
/// ```
/// use kernels::reduce::exact::custom::ExactTerm;
///
/// /// Squares of `f32`, which are exact in `f64`.
/// #[derive(Clone, Copy, Default)]
/// struct Square;
///
/// impl ExactTerm for Square {
///     type Element = f32;
///     type Term = f64;
///     type Sum = f64;
///     fn term(self, x: f32) -> f64 {
///         f64::from(x) * f64::from(x)
///     }
/// }
/// assert_eq!(Square.term(3.0), 9.0);
/// ```
///
/// A term may have fields, whose values are known only at run time:
///
/// ```
/// use kernels::ops::Fields;
/// use kernels::reduce::exact::custom::ExactTerm;
///
/// /// Elements above a limit.
/// #[derive(Clone, Copy, Default, cuda_std::Plain)]
/// #[repr(C)]
/// struct Over {
///     limit: f32,
/// }
///
/// impl ExactTerm for Over {
///     type Element = f32;
///     type Term = f32;
///     type Sum = f32;
///     const FIELDS: Fields<Self> = Fields::plain();
///     fn term(self, x: f32) -> f32 {
///         if x > self.limit { x } else { 0.0 }
///     }
/// }
/// let over = Over { limit: 2.5 };
/// assert_eq!([2.0, 3.0].map(|x| over.term(x)), [0.0, 3.0]);
/// ```
///
/// A product of `f64` is not exact in `f64`, so an element has a second term:
///
/// ```
/// use cuda_std::float::multiply_add;
/// use kernels::reduce::exact::custom::{ExactTerm, LowTerm};
///
/// /// Thirds, which do not underflow.
/// #[derive(Clone, Copy, Default)]
/// struct Third;
///
/// impl ExactTerm for Third {
///     type Element = f64;
///     type Term = f64;
///     type Sum = f64;
///     const LOW: Option<LowTerm<Self>> = Some(|_, x, term| multiply_add(x, 1.0 / 3.0, -term));
///     fn term(self, x: f64) -> f64 {
///         x * (1.0 / 3.0)
///     }
/// }
/// ```
///
/// The sum of the terms is exact and rounded once, so it does not depend on their order. A term depends only on its
/// element and the fields. It has the same bits on every device if all of its operations do (unlike `sin`).
///
/// [`exact_reductions!`](crate::exact_reductions) defines the kernels of a term.
pub trait ExactTerm: Copy + Default + 'static {
    /// The type of the input's elements: of 16, 32 or 64 bits, or of 32 or 64 if an element has two terms.
    type Element: Element;
    /// The type of the terms: `f32`, or `f64`, which takes more time.
    type Term: TermFormat;
    /// The type of the sum: `f32`, `f64`, `f16` or `bf16`.
    type Sum: ResultFormat;
    /// The second term of an element and its first term, if elements have one: `Some(|own, element, term| ...)`, where
    /// `own` is what [`ExactTerm::term`] calls `self`. It is summed in the same way, such as the rounding error of a
    /// first term that is a product.
    const LOW: Option<LowTerm<Self>> = None;
    /// How the fields reach the kernels: [`Fields::plain`], if there are fields. A type with fields does not compile
    /// without it.
    const FIELDS: Fields<Self> = Fields::none();

    /// The term. The term of 0 must be 0, because threads without an element add it. If it is not, with the fields of a
    /// reduction, the reduction is an error.
    fn term(self, element: Self::Element) -> Self::Term;
}

/// The second term of an element and its first term: see [`ExactTerm::LOW`].
pub type LowTerm<E> = fn(E, <E as ExactTerm>::Element, <E as ExactTerm>::Term) -> <E as ExactTerm>::Term;

/// Refuses a term that kernels cannot sum, while it is compiled. [`exact_reductions!`](crate::exact_reductions) calls
/// this in a constant.
#[doc(hidden)]
pub const fn check<E: ExactTerm>() {
    // Its default refuses fields.
    let _fields = E::FIELDS;
    let size = size_of::<E::Element>();
    assert!(size == 2 || size == 4 || size == 8, "the elements of an exact sum have 16, 32 or 64 bits");
    assert!(
        size > 2 || E::LOW.is_none(),
        "elements of 16 bits have one term: remove `LOW`, or sum elements of 32 bits"
    );
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
#[derive(Clone, Copy)]
pub struct Custom<E>(E);

impl<E: ExactTerm> Terms for Custom<E> {
    type Grid = <E::Term as TermFormat>::Grid;
    type Element = E::Element;
    type Item = E::Element;
    type Sum = E::Sum;
    type Other = E::Sum;
    const WINDOW: Option<i32> = None;
    const HAS_LOW: bool = E::LOW.is_some();

    #[inline(always)]
    fn of_word(word: u64) -> Self {
        Self(E::FIELDS.of_word(word))
    }
    #[inline(always)]
    fn term(self, item: E::Element) -> Float<Self> {
        self.0.term(item)
    }
    #[inline(always)]
    fn low(self, item: E::Element, term: Float<Self>) -> Float<Self> {
        match E::LOW {
            Some(low) => low(self.0, item, term),
            None => term,
        }
    }
}

impl<E: ExactTerm> ExactOperator<E::Element> for E {
    type Terms = Custom<E>;
    type Factors = Custom<E>;

    #[inline(always)]
    fn factors(terms: Custom<E>) -> Custom<E> {
        terms
    }
}
