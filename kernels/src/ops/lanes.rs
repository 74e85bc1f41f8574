//! Loops over elements in a host's memory, which the compiler divides among the lanes of vectors: without an exit in
//! the middle, and, where states are integers, in any order.

/// Reduces the states of `len` leaves, in any order.
#[inline(always)]
pub fn reduce<S: Copy>(len: usize, leaf: impl Fn(usize) -> S, neutral: S, combine: impl Fn(S, S) -> S) -> S {
    (0..len).fold(neutral, |state, i| combine(state, leaf(i)))
}

/// The first of `len` positions that satisfies a predicate.
#[inline(always)]
pub fn position(len: usize, predicate: impl Fn(usize) -> bool) -> Option<usize> {
    const TOGETHER: usize = 64;
    let mut first = 0;
    while first + TOGETHER < len && !(first..first + TOGETHER).fold(false, |any, i| any | predicate(i)) {
        first += TOGETHER;
    }
    (first..len).find(|&i| predicate(i))
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_leaf_is_reduced_once() {
        for len in [0, 1, 31, 32, 33, 64, 100] {
            let sum = super::reduce(len, |i| (1, i), (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            assert_eq!(sum, (len, (0..len).sum()));
        }
    }

    #[test]
    fn the_first_position_is_found() {
        for len in [0, 1, 63, 64, 65, 200] {
            assert_eq!(super::position(len, |_| false), None);
            for at in 0..len {
                assert_eq!(super::position(len, |i| i >= at), Some(at));
                assert_eq!(super::position(len, |i| i == at), Some(at));
            }
        }
    }
}
