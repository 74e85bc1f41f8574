//! What becomes of a pack of elements.

use core::marker::PhantomData;

use cuda_std::element::PackVisitor;
use cuda_std::prelude::*;

use super::Operator;
use super::scalar::Scalar;

/// The state of a pack whose first element has the index `first`.
#[inline(always)]
pub fn gather_pack<O: Operator<T>, T: Element>(pack: T::Pack, first: u64) -> O::State {
    pack.visit(Gather::<O> { first, operator: PhantomData })
}

struct Gather<O> {
    first: u64,
    operator: PhantomData<O>,
}

impl<O: Operator<T>, T: Element> PackVisitor<T> for Gather<O> {
    type Result = O::State;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> O::State {
        O::gather(elements, |place| self.first + place as u64)
    }
}

/// Shows the lowest element of a pack: [`Scalar::lowest`].
pub(super) struct Lowest;

impl<T: Scalar> PackVisitor<T> for Lowest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::lowest(elements)
    }
}

/// Shows the highest element of a pack: [`Scalar::highest`].
pub(super) struct Highest;

impl<T: Scalar> PackVisitor<T> for Highest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::highest(elements)
    }
}
