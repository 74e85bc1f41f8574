//! Sums of squares.

use super::scalar::{Arithmetic, Integer};
use super::totals::{Squares, Total};
use super::{Operator, tree};

/// The sum of squares: of integers in 64 bits, wrapping past those; of floats the exact sum of the exact squares,
/// rounded once, to `f32` of `f16`, `bf16` and `f32`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOfSquares;

#[inline(always)]
fn square<T: Arithmetic>(number: T) -> T {
    number.times(number)
}

impl<T: Integer> Operator<T> for SumOfSquares {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::NOTHING;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        square(T::wide(element.partial()))
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(state: T::Wide, _count: u64) -> T::Wide {
        state
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| square(T::wide(elements[i].partial())), T::Wide::plus)
    }
}

/// The Euclidean norm: the root of the exact sum of squares, rounded once to nearest even; of integers to `f64`.
///
/// No square of a float overflows or is too small, only the norm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norm;

impl<T: Integer> Operator<T> for Norm {
    type State = T::Squares;
    type Output = f64;
    const NEUTRAL: T::Squares = T::Squares::ZERO;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> T::Squares {
        T::squares([element])
    }
    #[inline(always)]
    fn combine(a: T::Squares, b: T::Squares) -> T::Squares {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(state: T::Squares, _count: u64) -> f64 {
        state.root()
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> T::Squares {
        T::squares(elements)
    }
}
