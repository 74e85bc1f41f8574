//! What becomes of a vector of elements.

use cuda_std::element::VectorVisitor;
use cuda_std::prelude::*;

use super::Operator;
use super::scalar::Scalar;

/// The state of a vector whose first element has the index `first`.
#[inline(always)]
pub fn gather_vector<O: Operator<T>, T: Element>(operator: O, vector: T::Vector, first: u64) -> O::State {
    vector.visit(Gather { first, operator })
}

struct Gather<O> {
    first: u64,
    operator: O,
}

impl<O: Operator<T>, T: Element> VectorVisitor<T> for Gather<O> {
    type Result = O::State;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> O::State {
        self.operator.gather(elements, |place| self.first + place as u64)
    }
}

/// Shows the highest element of a vector, all of them flipped: [`Scalar::highest`].
pub(super) struct Highest {
    pub flip: u64,
}

impl<T: Scalar> VectorVisitor<T> for Highest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::highest(elements, self.flip)
    }
}
