//! Sums and means of floats in a fixed order.

use super::scalar::{Arithmetic, Ordered, Scalar};
use super::{Operator, tree};

/// The sum of floats by ordinary additions, in a fixed order; `f16` and `bf16` are added in `f32`.
///
/// Take [`Sum`](super::Sum), which is exact, unless its time matters: for short inputs and for data of a wide range,
/// this one takes less (`docs/benchmarks`).
///
/// It has the same bits on every device. Its order is a function of the number of elements, their type, and whether
/// they are contiguous, a column, or a segment by offsets; not of the address, the pitch, or what is reduced beside
/// them. No element passes through more than [`order::depth`](crate::reduce::tuning::order::depth) additions, so the
/// error is at most `1.01 d u` times the sum of the magnitudes, `d` being that depth and `u` half the distance from 1
/// to the next float, unless a partial sum overflows.
///
/// A sum of 0 is +0.0, also of only -0.0 and of no elements. A sum is NaN if an element is, or if infinities of both
/// signs meet; and a partial sum that overflows is infinite.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairwiseSum;

/// [`PairwiseSum`] divided by the number of elements, in `f64`, and rounded to the sum's type; NaN for no elements.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairwiseMean;

/// [`PairwiseSum`] or [`PairwiseMean`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PairwiseSumOrMean {
    /// Whether it is [`PairwiseMean`].
    pub is_mean: bool,
}

/// The type of a sum of floats.
pub trait Quotient: Arithmetic + Ordered {
    /// The neutral element of addition, up to the sign of zero.
    const ZERO: Self;
    /// The quotient of a sum and the number of its terms, in `f64`.
    fn over(self, count: u64) -> Self;
}

impl Quotient for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn over(self, count: u64) -> Self {
        (f64::from(self) / count as f64) as Self
    }
}

impl Quotient for f64 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn over(self, count: u64) -> Self {
        self / count as Self
    }
}

impl<T: Scalar<Wide: Quotient>> Operator<T> for PairwiseSumOrMean {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::Wide::ZERO;
    const USES_INDEX: bool = false;

    fn to_word(self) -> u64 {
        self.is_mean.into()
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self { is_mean: word != 0 }
    }
    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Wide {
        T::wide(element.partial())
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Wide, count: u64) -> T::Wide {
        // Adding 0.0 makes +0.0 of -0.0, so that the neutral state changes no bit.
        let sum = state.plus(T::Wide::ZERO);
        (if self.is_mean { sum.over(count) } else { sum }).with_canonical_nan()
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Wide {
        tree::<_, LEN>(|i| T::wide(elements[i].partial()), T::Wide::plus)
    }
}
