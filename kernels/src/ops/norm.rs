//! Sums of squares.

use cuda_std::float::Float;

use super::compensated::Accumulator;
use super::scalar::{Arithmetic, Ordered, Scalar};
use super::{Operator, tree};

/// The sum of squares: of integers in 64 bits, wrapping past those; of `f16` and `bf16` in `f32`.
///
/// A float's square is rounded once; they are summed with what rounding takes (see [`Accumulator`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOfSquares;

#[inline(always)]
fn square<T: Arithmetic>(number: T) -> T {
    number.times(number)
}

impl<T: Scalar> Operator<T> for SumOfSquares {
    type State = <T::Wide as Accumulator>::State;
    type Output = T::Wide;
    const NEUTRAL: Self::State = <T::Wide as Accumulator>::NEUTRAL;
    const ANY_ORDER: bool = T::IS_EXACT;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        square(T::wide(element.partial())).held()
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        T::Wide::add(a, b)
    }
    #[inline(always)]
    fn finish(state: Self::State, count: u64) -> T::Wide {
        T::Wide::total_of(state, count)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| square(T::wide(elements[i].partial())), T::Wide::plus).held()
    }
}

/// The Euclidean norm: the root of the sum of squares, of integers in `f64`.
///
/// Squares that overflow make it infinite: nothing is scaled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norm;

impl<T: Scalar> Operator<T> for Norm {
    type State = <T::Real as Accumulator>::State;
    type Output = T::Real;
    const NEUTRAL: Self::State = <T::Real as Accumulator>::NEUTRAL;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        square(element.real()).held()
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        T::Real::add(a, b)
    }
    #[inline(always)]
    fn finish(state: Self::State, count: u64) -> T::Real {
        T::Real::total_of(state, count).sqrt().with_one_nan()
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| square(elements[i].real()), T::Real::plus).held()
    }
}
