//! Sums of squares and norms.

use super::scalar::{Arithmetic, Integer};
use super::totals::{Squares, Total};
use super::{Operator, tree};

/// The sum of squares.
///
/// Integers are summed in 64 bits, wrapping. Floats give the exact sum of the exact squares, rounded once; `f16`,
/// `bf16` and `f32` give `f32`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOfSquares;

#[inline(always)]
fn square<T: Arithmetic>(number: T) -> T {
    number.times(number)
}

impl<T: Integer> Operator<T> for SumOfSquares {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::WIDE_ZERO;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> Self::State {
        square(T::wide(element.partial()))
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Wide, _count: u64) -> T::Wide {
        state
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| square(T::wide(elements[i].partial())), T::Wide::plus)
    }
}

/// The Euclidean norm: the root of the exact sum of squares, rounded once to nearest even; `f64` for integers.
///
/// Squares of floats neither overflow nor underflow; only the norm can.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norm;

impl<T: Integer> Operator<T> for Norm {
    type State = T::Squares;
    type Output = f64;
    const NEUTRAL: T::Squares = T::Squares::ZERO;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Squares {
        T::squares([element])
    }
    #[inline(always)]
    fn combine(a: T::Squares, b: T::Squares) -> T::Squares {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Squares, _count: u64) -> f64 {
        state.sqrt()
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Squares {
        T::squares(elements)
    }
}

/// [`SumOfSquares`] or [`Norm`] of 8-bit integers, whose squares' sum fits in 64 bits. Returns the result's bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SquaresOrNorm {
    /// Whether it is [`Norm`].
    pub is_norm: bool,
}

impl<T: Integer<Squares = u64>> Operator<T> for SquaresOrNorm {
    type State = u64;
    type Output = u64;
    const NEUTRAL: u64 = 0;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    fn to_word(self) -> u64 {
        self.is_norm.into()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self { is_norm: word != 0 }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> u64 {
        T::squares([element])
    }
    #[inline(always)]
    fn combine(a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn finish(self, state: u64, _count: u64) -> u64 {
        if self.is_norm { state.sqrt().to_bits() } else { state }
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> u64 {
        T::squares(elements)
    }
}
