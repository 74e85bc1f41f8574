//! Sums and means.

use super::compensated::Accumulator;
use super::scalar::{Arithmetic, Integer, Scalar};
use super::{Operator, tree};

/// The sum: of integers in 64 bits, wrapping past those; of `f16` and `bf16` in `f32`.
///
/// Floats are summed with what rounding takes (see [`Accumulator`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl<T: Scalar> Operator<T> for Sum {
    type State = <T::Wide as Accumulator>::State;
    type Output = T::Wide;
    const NEUTRAL: Self::State = <T::Wide as Accumulator>::NEUTRAL;
    const ANY_ORDER: bool = T::IS_EXACT;

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

/// The sum of `f32` in `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumInF64;

impl Operator<f32> for SumInF64 {
    type State = [f64; 2];
    type Output = f64;
    const NEUTRAL: [f64; 2] = <f64 as Accumulator>::NEUTRAL;

    #[inline(always)]
    fn lift(element: f32, _index: u64) -> [f64; 2] {
        f64::from(element).held()
    }
    #[inline(always)]
    fn combine(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        f64::add(a, b)
    }
    #[inline(always)]
    fn finish(state: [f64; 2], count: u64) -> f64 {
        f64::total_of(state, count)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [f32; LEN], _at: impl Fn(usize) -> u64) -> [f64; 2] {
        tree::<_, LEN>(|i| f64::from(elements[i]), f64::plus).held()
    }
}

/// The mean: the sum, of integers an exact one up to 32 bits and one in `f64` beyond, over the number of elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean;

impl<T: Scalar> Operator<T> for Mean {
    type State = <T::MeanSum as Accumulator>::State;
    type Output = T::Real;
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
    fn finish(state: Self::State, count: u64) -> T::Real {
        T::mean(T::MeanSum::total_of(state, count), count)
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], _at: impl Fn(usize) -> u64) -> Self::State {
        tree::<_, LEN>(|i| T::for_mean(elements[i]), T::MeanSum::plus).held()
    }
}
