//! Products.

use super::scalar::{Arithmetic, Ordered, Scalar};
use super::{Operator, tree};

/// The product: of integers in 64 bits, wrapping; of `f16` and `bf16` in `f32`.
///
/// The relative error of the product of `n` floats is at most `1.01 n u`, `u` being half the distance from 1 to the
/// next float, unless an intermediate product overflows or is subnormal: each multiplication rounds once. The order is
/// a function of `n`, the type, and whether the floats are contiguous, a column, or a segment by offsets.
///
/// If some intermediate products overflow and others are rounded to 0, the product of finite floats is NaN: that of
/// 1e200, 1e200, 1e-200 and 1e-200 is infinity times 0. Exponents that are carried apart would avoid that, but make
/// products of `f32` 1.25 times as long, and of `bf16` 1.76 times (`docs/notes/operators.md`). For floats of a
/// wide range, sum their logarithms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Product;

impl<T: Scalar> Operator<T> for Product {
    type State = T::Wide;
    type Output = T::Wide;
    const NEUTRAL: T::Wide = T::Wide::ONE;
    const ANY_ORDER: bool = T::IS_EXACT;
    const USES_INDEX: bool = false;

    #[inline(always)]
    fn lift(self, element: T, _index: u64) -> T::Wide {
        T::wide(element.partial())
    }
    #[inline(always)]
    fn combine(a: T::Wide, b: T::Wide) -> T::Wide {
        a.times(b)
    }
    #[inline(always)]
    fn finish(self, state: T::Wide, _count: u64) -> T::Wide {
        state.with_canonical_nan()
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], _index_of: impl Fn(usize) -> u64) -> T::Wide {
        tree::<_, LEN>(|i| T::wide(elements[i].partial()), T::Wide::times)
    }
}
