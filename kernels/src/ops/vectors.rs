//! What becomes of a vector of elements.

use core::marker::PhantomData;

use cuda_std::element::VectorVisitor;
use cuda_std::prelude::*;

use super::Operator;
use super::scalar::Scalar;

/// The state of a vector whose first element has the index `first`.
#[inline(always)]
pub fn gather_vector<O: Operator<T>, T: Element>(vector: T::Vector, first: u64) -> O::State {
    vector.visit(Gather::<O> { first, operator: PhantomData })
}

struct Gather<O> {
    first: u64,
    operator: PhantomData<O>,
}

impl<O: Operator<T>, T: Element> VectorVisitor<T> for Gather<O> {
    type Result = O::State;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> O::State {
        O::gather(elements, |place| self.first + place as u64)
    }
}

/// Shows the lowest element of a vector: [`Scalar::lowest`].
pub(super) struct Lowest;

impl<T: Scalar> VectorVisitor<T> for Lowest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::lowest(elements)
    }
}

/// Shows the highest element of a vector: [`Scalar::highest`].
pub(super) struct Highest;

impl<T: Scalar> VectorVisitor<T> for Highest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::highest(elements)
    }
}
