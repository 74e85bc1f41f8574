//! The dot product.

use cuda_std::prelude::*;

use super::scalar::{Arithmetic, Integer};
use super::{Operator, PairOperator, tree};

/// The dot product of two inputs.
///
/// Integers are summed in 64 bits, wrapping. Floats give the exact sum of the exact products, rounded once; `f16`,
/// `bf16` and `f32` give `f32`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dot;

#[inline(always)]
fn product<T: Integer>(a: T, b: T) -> T::Wide {
    T::wide(a.partial()).times(T::wide(b.partial()))
}

impl<T: Integer> Operator<T> for Dot {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::WIDE_ZERO;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> Self::State {
        product(element, element)
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.plus(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Wide, _count: u64) -> T::Wide {
        state
    }
}

impl<T: Integer> PairOperator<T> for Dot {
    #[inline(always)]
    fn lift_pair(a: T, b: T) -> Self::State {
        product(a, b)
    }
    #[inline(always)]
    fn reduce_pairs(a: T::Vector, b: T::Vector) -> Self::State {
        let of = |i: usize| product(a.get(i), b.get(i));
        match T::Vector::LEN {
            2 => tree::<_, 2>(of, T::Wide::plus),
            4 => tree::<_, 4>(of, T::Wide::plus),
            8 => tree::<_, 8>(of, T::Wide::plus),
            _ => tree::<_, 16>(of, T::Wide::plus),
        }
    }
}
