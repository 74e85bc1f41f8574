//! Sums of squares.

use cuda_std::float::Float;

use super::compensated::Accumulator;
use super::scalar::{Arithmetic, Integer};
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
    type State = <T::Wide as Accumulator>::State;
    type Output = T::Wide;
    const NEUTRAL: Self::State = <T::Wide as Accumulator>::NEUTRAL;
    const ANY_ORDER: bool = true;

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

/// The Euclidean norm: the root of the sum of squares, of floats the exact one, rounded once; of integers in `f64`.
///
/// No square of a float overflows or is too small, only the norm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Norm;

impl<T: Integer> Operator<T> for Norm {
    type State = <f64 as Accumulator>::State;
    type Output = f64;
    const NEUTRAL: Self::State = <f64 as Accumulator>::NEUTRAL;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        square(element.real()).held()
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        f64::add(a, b)
    }
    #[inline(always)]
    fn finish(state: Self::State, count: u64) -> f64 {
        Float::sqrt(f64::total_of(state, count))
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| square(elements[i].real()), f64::plus).held()
    }
}
