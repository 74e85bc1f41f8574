//! The state of what a thread has loaded at once.

use cuda_std::prelude::*;

use crate::ops::{Operator, gather_pack, tree};

/// The state of packs, the first of which begins at index `first` and each further one `stride` behind the one before.
#[inline(always)]
pub fn gather_packs<O: Operator<T>, T: Element, const PACKS: usize>(
    packs: [T::Pack; PACKS],
    first: usize,
    stride: usize,
) -> O::State {
    tree::<_, PACKS>(|k| gather_pack::<O, T>(packs[k], (first + k * stride) as u64), O::combine)
}

/// [`gather_packs`] of a state that [`Operator::settle`] has still to settle.
#[inline(always)]
pub fn skim_packs<O: Operator<T>, T: Element, const PACKS: usize>(
    packs: [T::Pack; PACKS],
    first: usize,
    stride: usize,
) -> O::State {
    O::skim(packs, |k| (first + k * stride) as u64)
}
