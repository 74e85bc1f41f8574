//! The state of what a thread has loaded at once.

use core::marker::PhantomData;

use cuda_std::element::PackVisitor;
use cuda_std::prelude::*;

use crate::ops::{Operator, tree};

/// The state of packs, the first of which begins at index `first` and each further one `stride` behind the one before.
#[inline(always)]
pub fn gather_packs<O: Operator<T>, T: Element, const PACKS: usize>(
    packs: [T::Pack; PACKS],
    first: usize,
    stride: usize,
) -> O::State {
    let of_pack = |k: usize| packs[k].visit(Gather::<O> { first: (first + k * stride) as u64, operator: PhantomData });
    tree::<_, PACKS>(of_pack, O::combine)
}

/// [`gather_packs`] of a state that [`Operator::settle`] has still to settle.
#[inline(always)]
pub fn skim_packs<O: Operator<T>, T: Element, const PACKS: usize>(
    packs: [T::Pack; PACKS],
    first: usize,
    stride: usize,
) -> O::State {
    let of_pack = |k: usize| packs[k].visit(Skim::<O> { first: (first + k * stride) as u64, operator: PhantomData });
    tree::<_, PACKS>(of_pack, O::combine)
}

/// Gathers a pack whose first element has the index `first`.
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

/// Skims a pack whose first element has the index `first`.
struct Skim<O> {
    first: u64,
    operator: PhantomData<O>,
}

impl<O: Operator<T>, T: Element> PackVisitor<T> for Skim<O> {
    type Result = O::State;

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> O::State {
        O::skim(elements, self.first)
    }
}
