//! Where the minimum and the maximum are.
//!
//! Of equal elements the first counts, and -0.0 is equal to 0.0; NaN comes before everything, the first of them: as in
//! NumPy. An empty segment gives `u64::MAX`.

use cuda_std::prelude::*;

use super::scalar::{Ordered, Scalar};
use super::vectors::{Highest, Lowest};
use super::{Operator, tree};

/// The index of the smallest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMin;

/// The index of the largest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMax;

/// An element's key, the lower the better, and its index: so the best is the lowest pair.
type Found = [u64; 2];

/// The index of no element.
const NO_INDEX: u64 = u64::MAX;

/// What comes behind every element.
const NONE: Found = [u64::MAX, NO_INDEX];

/// The lower of two pairs. In no branch: lanes would go different ways.
#[inline(always)]
fn better(a: Found, b: Found) -> Found {
    let takes_b = (b[0] < a[0]) | ((b[0] == a[0]) & (b[1] < a[1]));
    if takes_b { b } else { a }
}

/// What is found from an index on: the first element with the key that was found. The search ends, since it is among
/// them.
#[inline(always)]
fn first_of_key(found: Found, key: impl Fn(u64) -> u64) -> Found {
    let [best, mut index] = found;
    if index != NO_INDEX {
        while key(index) != best {
            index += 1;
        }
    }
    [best, index]
}

/// The best of candidates in order of their index. While they are in registers their index is their place: 32 bits, and
/// no comparison, since the left one of two is the first.
#[inline(always)]
fn best_of<O: Ordered, const LEN: usize>(
    candidate: impl Fn(usize) -> O,
    at: impl Fn(usize) -> u64,
    is_before: impl Fn(O, O) -> bool,
    key: impl Fn(O) -> u64,
) -> Found {
    let leaf = |i: usize| (candidate(i), i as u32);
    let (best, place) = tree::<_, LEN>(leaf, |a, b| if is_before(b.0, a.0) { b } else { a });
    [key(best), at(place as usize)]
}

impl<T: Scalar> Operator<T> for ArgMin {
    type State = Found;
    type Output = u64;
    const NEUTRAL: Found = NONE;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, index: u64) -> Found {
        [element.ordered().key_from_lowest(), index]
    }
    #[inline(always)]
    fn combine(a: Found, b: Found) -> Found {
        better(a, b)
    }
    #[inline(always)]
    fn finish(state: Found, _count: u64) -> u64 {
        state[1]
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], at: impl Fn(usize) -> u64) -> Found {
        best_of::<_, LEN>(|i| elements[i].ordered(), at, T::Ordered::is_below, T::Ordered::key_from_lowest)
    }
    #[inline(always)]
    fn skim<const VECTORS: usize>(vectors: [T::Vector; VECTORS], at: impl Fn(usize) -> u64) -> Found {
        best_of::<_, VECTORS>(|k| vectors[k].visit(Lowest), at, T::Ordered::is_below, T::Ordered::key_from_lowest)
    }
    #[inline(always)]
    fn settle(state: Found, element: impl Fn(u64) -> T) -> Found {
        first_of_key(state, |i| element(i).ordered().key_from_lowest())
    }
}

impl<T: Scalar> Operator<T> for ArgMax {
    type State = Found;
    type Output = u64;
    const NEUTRAL: Found = NONE;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, index: u64) -> Found {
        [element.ordered().key_from_highest(), index]
    }
    #[inline(always)]
    fn combine(a: Found, b: Found) -> Found {
        better(a, b)
    }
    #[inline(always)]
    fn finish(state: Found, _count: u64) -> u64 {
        state[1]
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], at: impl Fn(usize) -> u64) -> Found {
        best_of::<_, LEN>(|i| elements[i].ordered(), at, T::Ordered::is_above, T::Ordered::key_from_highest)
    }
    #[inline(always)]
    fn skim<const VECTORS: usize>(vectors: [T::Vector; VECTORS], at: impl Fn(usize) -> u64) -> Found {
        best_of::<_, VECTORS>(|k| vectors[k].visit(Highest), at, T::Ordered::is_above, T::Ordered::key_from_highest)
    }
    #[inline(always)]
    fn settle(state: Found, element: impl Fn(u64) -> T) -> Found {
        first_of_key(state, |i| element(i).ordered().key_from_highest())
    }
}
