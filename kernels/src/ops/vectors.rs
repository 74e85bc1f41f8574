//! Functions and visitors of vectors of elements.

use cuda_std::element::VectorVisitor;
use cuda_std::prelude::*;

use super::Operator;
use super::scalar::Scalar;

/// [`Operator::reduce_elements`] of a vector whose first element has the index `first`.
pub(super) struct ReduceVector<O> {
    pub first: u64,
    pub operator: O,
}

impl<O: Operator<T>, T: Element> VectorVisitor<T> for ReduceVector<O> {
    type Result = O::State;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> O::State {
        self.operator.reduce_elements(elements, |i| self.first + i as u64)
    }
}

/// The vector with each element [flipped](Scalar::flipped), in four operations for all of them.
#[inline(always)]
pub(super) fn flip_vector<T: Scalar>(vector: T::Vector, flip: u64) -> T::Vector {
    let flip = flip & T::FLIPPABLE;
    let [low, high] = match size_of::<T>() {
        1 => [flip as u8 as u32 * 0x0101_0101; 2],
        2 => [flip as u16 as u32 * 0x0001_0001; 2],
        4 => [flip as u32; 2],
        _ => [flip as u32, (flip >> 32) as u32],
    };
    let [a, b, c, d] = vector.to_words();
    T::Vector::from_words([a ^ low, b ^ high, c ^ low, d ^ high])
}

/// Returns the lowest element of a vector: [`Scalar::lowest`].
pub(super) struct Lowest {
    /// The argument of [`Scalar::ordered`].
    pub flip: u64,
}

impl<T: Scalar> VectorVisitor<T> for Lowest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::lowest(elements, self.flip)
    }
}

/// Returns the highest element of a vector: [`Scalar::highest`].
pub(super) struct Highest {
    /// The argument of [`Scalar::ordered`].
    pub flip: u64,
}

impl<T: Scalar> VectorVisitor<T> for Highest {
    type Result = T::Ordered;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> T::Ordered {
        T::highest(elements, self.flip)
    }
}
