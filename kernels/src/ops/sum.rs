//! Sums and means.

use exact_sum::integers::mean;

use super::Operator;
use super::scalar::{Arithmetic, Integer};
use super::totals::Total;

/// The sum.
///
/// Integers are summed in 64 bits, wrapping. Floats give the exact sum, rounded once to nearest even; `f16`, `bf16` and
/// `f32` give `f32`.
///
/// An exact sum of floats does not depend on their order. It is infinite only if it exceeds the largest number or if an
/// element is infinite. It is NaN if an element is NaN, or if infinities of both signs occur. A sum of 0 is +0.0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl<T: Integer> Operator<T> for Sum {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::WIDE_ZERO;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> Self::State {
        T::wide(element.partial())
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
        T::wide(T::sum(elements))
    }
}

/// Not inlined: it is long, and a kernel for columns calls it four times.
#[inline(never)]
fn mean_of_long(sum: i128, count: u64) -> f64 {
    mean(sum, count)
}

/// [`Sum`] or [`Mean`] of 8-bit and 16-bit integers, whose exact sum fits in 64 bits. Returns the result's bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumOrMean {
    /// Whether it is [`Mean`].
    pub is_mean: bool,
}

impl<T: Integer<Total = i64>> Operator<T> for SumOrMean {
    type State = i64;
    type Output = u64;
    const NEUTRAL: i64 = 0;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    fn to_word(self) -> u64 {
        self.is_mean.into()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self { is_mean: word != 0 }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> i64 {
        T::total([element])
    }
    #[inline(always)]
    fn combine(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn finish(self, state: i64, count: u64) -> u64 {
        if self.is_mean { mean_of_long(state.into(), count).to_bits() } else { state as u64 }
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> i64 {
        T::total(elements)
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
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T {
        element
    }
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.wrapping_plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T, _count: u64) -> T {
        state
    }
}

/// The exact sum of `f32`, rounded once to `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumInF64;

/// The result of an exact operator, rounded once to the elements' own type.
///
/// For [`Sum`], [`Mean`], `SumOfSquares`, `Norm` and `Dot` of `f16` or `bf16`, which otherwise give `f32`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InElementType<O>(pub O);

/// The mean: the exact sum divided by the number of elements, rounded once to nearest even; `f64` for integers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mean;

impl<T: Integer> Operator<T> for Mean {
    type State = T::Total;
    type Output = f64;
    const NEUTRAL: T::Total = T::Total::ZERO;
    const ANY_ORDER: bool = true;
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Total {
        T::total([element])
    }
    #[inline(always)]
    fn combine(a: T::Total, b: T::Total) -> T::Total {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Total, count: u64) -> f64 {
        mean_of_long(state.into(), count)
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Total {
        T::total(elements)
    }
}
