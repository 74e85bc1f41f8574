//! Where the minimum and the maximum are.
//!
//! Of equal elements the first counts, and -0.0 is equal to 0.0; NaN comes before everything, the first of them: as in
//! NumPy. An empty segment gives `u64::MAX`.

use super::scalar::{Ordered, Scalar};
use super::{Operator, tree};

/// The index of the smallest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMin;

/// The index of the largest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMax;

/// The element's bits and its index; the index of no element is [`NONE`].
type Found = [u64; 2];

const NONE: u64 = u64::MAX;

/// Which of two has the better element, and of equal ones the lower index.
#[inline(always)]
fn better<O: Ordered>(a: Found, b: Found, is_before: impl Fn(O, O) -> bool) -> Found {
    let (of_a, of_b) = (O::from_word(a[0]), O::from_word(b[0]));
    let b_is_first = b[1] < a[1];
    let takes_b = if a[1] == NONE || b[1] == NONE {
        b_is_first
    } else {
        is_before(of_b, of_a) || (b_is_first && !is_before(of_a, of_b))
    };
    if takes_b { b } else { a }
}

/// What is found from an index on: the first element that is as good as the one that was found. The search ends, since it
/// is among them.
#[inline(always)]
fn first_as_good<T: Scalar>(
    found: Found,
    element: impl Fn(u64) -> T,
    is_before: impl Fn(T::Ordered, T::Ordered) -> bool,
) -> Found {
    let [word, mut index] = found;
    if index != NONE {
        let best = T::Ordered::from_word(word);
        while is_before(best, element(index).ordered()) {
            index += 1;
        }
    }
    [word, index]
}

/// The best of elements in order of their index. While they are in registers their index is their place: 32 bits, and no
/// comparison, since the left one of two is the first.
#[inline(always)]
fn best_of<T: Scalar, const LEN: usize>(
    elements: [T; LEN],
    at: impl Fn(usize) -> u64,
    is_before: impl Fn(T::Ordered, T::Ordered) -> bool,
) -> Found {
    let candidate = |i: usize| (elements[i].ordered(), i as u32);
    let (element, place) = tree::<_, LEN>(candidate, |a, b| if is_before(b.0, a.0) { b } else { a });
    [element.to_word(), at(place as usize)]
}

impl<T: Scalar> Operator<T> for ArgMin {
    type State = Found;
    type Output = u64;
    const NEUTRAL: Found = [0, NONE];
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, index: u64) -> Found {
        [element.ordered().to_word(), index]
    }
    #[inline(always)]
    fn combine(a: Found, b: Found) -> Found {
        better(a, b, T::Ordered::is_below)
    }
    #[inline(always)]
    fn finish(state: Found, _count: u64) -> u64 {
        state[1]
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], at: impl Fn(usize) -> u64) -> Found {
        best_of(elements, at, T::Ordered::is_below)
    }
    #[inline(always)]
    fn skim<const LEN: usize>(elements: [T; LEN], first: u64) -> Found {
        [T::lowest(elements).to_word(), first]
    }
    #[inline(always)]
    fn settle(state: Found, element: impl Fn(u64) -> T) -> Found {
        first_as_good(state, element, T::Ordered::is_below)
    }
}

impl<T: Scalar> Operator<T> for ArgMax {
    type State = Found;
    type Output = u64;
    const NEUTRAL: Found = [0, NONE];
    const ANY_ORDER: bool = true;
    const HAS_EMPTY: bool = false;

    #[inline(always)]
    fn lift(element: T, index: u64) -> Found {
        [element.ordered().to_word(), index]
    }
    #[inline(always)]
    fn combine(a: Found, b: Found) -> Found {
        better(a, b, T::Ordered::is_above)
    }
    #[inline(always)]
    fn finish(state: Found, _count: u64) -> u64 {
        state[1]
    }
    #[inline(always)]
    fn gather<const LEN: usize>(elements: [T; LEN], at: impl Fn(usize) -> u64) -> Found {
        best_of(elements, at, T::Ordered::is_above)
    }
    #[inline(always)]
    fn skim<const LEN: usize>(elements: [T; LEN], first: u64) -> Found {
        [T::highest(elements).to_word(), first]
    }
    #[inline(always)]
    fn settle(state: Found, element: impl Fn(u64) -> T) -> Found {
        first_as_good(state, element, T::Ordered::is_above)
    }
}
