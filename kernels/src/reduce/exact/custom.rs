//! Exact sums of custom terms: the engine that a kernel of another crate calls.

use core::marker::PhantomData;

use cuda_std::prelude::*;

use super::format::Format;
use super::formula::ResultFormat;
use super::grid::{Doubles, Grid, Singles};
use super::long_rows::{Shared, VECTORS_IN_FLIGHT, sum_part};
use super::result::Results;
use super::superaccumulator::words;
use super::terms::{Float, One, Terms};
use super::warp_sum::{items_of_vector, terms};
use crate::reduce::long_rows::Part;

/// What is summed of each element, exactly: `|x|`, `x` if a condition holds, a product.
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
///     fn term(x: f32) -> f64 {
///         f64::from(x) * f64::from(x)
///     }
/// }
/// assert_eq!(Square::term(3.0), 9.0);
/// ```
///
/// The sum of any terms is exact and rounded once, so no order changes it. A term is a function of its element alone.
/// It is the same on every device if it uses only operations that are (not `sin`, say).
pub trait ExactTerm: 'static {
    /// The input's elements, of at least 16 bits; of at least 32 bits if there are two terms.
    type Element: Element;
    /// `f32`, or `f64`, which takes longer.
    type Term: TermFormat;
    /// Whether an element has a second term.
    const HAS_LOW: bool = false;

    /// The term. It must be 0 for 0, which threads without an element take.
    fn term(element: Self::Element) -> Self::Term;

    /// The second term, if any: the rounding error of the first, say. It is summed as the first one is.
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
struct Custom<E>(PhantomData<E>);

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

/// Words of the residue that a row's blocks share.
pub const fn words_of_residue<E: ExactTerm>() -> usize {
    words::<<E::Term as TermFormat>::Grid>() as usize
}

/// The arguments of a kernel that calls [`sum_terms`].
#[arguments]
pub struct TermArgs<T: Plain, R: Plain> {
    /// The elements.
    pub input: Global<T>,
    /// Elements of a row.
    pub len: usize,
    /// Elements from the start of a row to that of the next one.
    pub pitch: usize,
    /// Blocks that share a row: its splits.
    pub parts: u32,
    /// Tiles of a split; the longer splits have one more. A tile has a vector for each thread of the block.
    pub tiles: u32,
    /// Longer splits, which come first.
    pub longer: u32,
    /// The tile states of the rows' splits; all 0 before and after the launch.
    pub tile_states: GlobalMut<[u64; 2]>,
    /// Residues to which the blocks of a row add; all 0 before and after the launch.
    pub residues: GlobalMut<i64>,
    /// A result for each row.
    pub output: GlobalMut<R>,
}

/// The body of a custom kernel that sums the terms of whole inputs and long rows.
///
/// # Safety
/// As for [`exact_long_rows`](fn@super::long_rows::exact_long_rows), with [`words_of_residue`].
#[inline(always)]
pub unsafe fn sum_terms<E: ExactTerm, R: ResultFormat>(
    TermArgs { input, len, pitch, parts, tiles, longer, tile_states, residues, output }: TermArgs<E::Element, R>,
) {
    const {
        assert!(terms::<Custom<E>>(items_of_vector::<Custom<E>>()) <= 8, "elements of fewer bits than a term allows");
    }
    let part = Part::of_block(parts, tiles, longer);
    let shared = Shared { tile_states: &tile_states, residues: &residues };
    let results = Results::sums(output);
    sum_part::<Custom<E>, _, _, VECTORS_IN_FLIGHT>(One(&input), part, len, pitch, parts, shared, results);
}
