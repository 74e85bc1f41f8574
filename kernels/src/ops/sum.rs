//! Sums and means.

use super::compensated::Accumulator;
use super::scalar::{Arithmetic, Integer};
use super::{Operator, tree};

/// The sum: of integers in 64 bits, wrapping past those; of floats the exact sum, rounded once to nearest even, to
/// `f32` of `f16`, `bf16` and `f32`.
///
/// An exact sum of floats does not depend on their order. It is infinite only if it is beyond the largest number, or an
/// element is infinite; NaN if an element is, or infinities of both signs are there; and +0.0 if it is 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl<T: Integer> Operator<T> for Sum {
    type State = <T::Wide as Accumulator>::State;
    type Output = T::Wide;
    const NEUTRAL: Self::State = <T::Wide as Accumulator>::NEUTRAL;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        T::wide(element.partial()).held()
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
        T::wide(T::sum(elements)).held()
    }
}

/// The sum in the integers' own type, wrapping.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrappingSum;

impl<T: Integer> Operator<T> for WrappingSum {
    type State = T;
    type Output = T;
    const NEUTRAL: T = T::ZERO;
    const ANY_ORDER: bool = true;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> T {
        element
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.plus_wrapping(b)
    }
    #[inline(always)]
    fn finish(state: T, _count: u64) -> T {
        state
    }
}

/// The exact sum of `f32`, rounded once to `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumInF64;

/// The mean: of floats the exact sum over the number of elements, rounded once; of integers the sum, exact up to 32
/// bits and in `f64` beyond, over the number of elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean;

impl<T: Integer> Operator<T> for Mean {
    type State = <T::MeanSum as Accumulator>::State;
    type Output = f64;
    const NEUTRAL: Self::State = <T::MeanSum as Accumulator>::NEUTRAL;

    #[inline(always)]
    fn lift(element: T, _index: u64) -> Self::State {
        element.for_mean().held()
    }
    #[inline(always)]
    fn combine(a: Self::State, b: Self::State) -> Self::State {
        T::MeanSum::add(a, b)
    }
    #[inline(always)]
    fn finish(state: Self::State, count: u64) -> f64 {
        T::mean(T::MeanSum::total_of(state, count), count)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| T::for_mean(elements[i]), T::MeanSum::plus).held()
    }
}
