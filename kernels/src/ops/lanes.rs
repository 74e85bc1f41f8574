//! Loops over elements in a host's memory, which the compiler divides among the lanes of vectors: over iterators, whose
//! bounds are not checked, without an exit in the middle, and, where states are integers, in any order.

/// Reduces the states of elements, in any order. `leaf` gets an element's position and the element.
#[inline(always)]
pub fn reduce<T: Copy, S: Copy>(
    elements: &[T],
    leaf: impl Fn(usize, T) -> S,
    neutral: S,
    combine: impl Fn(S, S) -> S,
) -> S {
    elements.iter().enumerate().fold(neutral, |state, (i, &element)| combine(state, leaf(i, element)))
}

/// The position of the first element that satisfies a predicate.
#[inline(always)]
pub fn position<T: Copy>(elements: &[T], predicate: impl Fn(T) -> bool) -> Option<usize> {
    const TOGETHER: usize = 64;
    let is_among = |chunk: &[T]| chunk.iter().fold(false, |any, &element| any | predicate(element));
    let chunks = elements.chunks_exact(TOGETHER).take_while(|chunk| !is_among(chunk)).count();
    let first = chunks * TOGETHER;
    elements[first..].iter().position(|&element| predicate(element)).map(|i| first + i)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    #[test]
    fn each_element_is_reduced_once() {
        for len in [0, 1, 31, 32, 33, 64, 100] {
            let elements: Vec<usize> = (5..5 + len).collect();
            let combine = |a: (usize, usize), b: (usize, usize)| (a.0 + b.0, a.1 + b.1);
            let sum = super::reduce(&elements, |i, element| (1, element - i), (0, 0), combine);
            assert_eq!(sum, (len, 5 * len));
        }
    }

    #[test]
    fn the_first_position_is_found() {
        for len in [0, 1, 63, 64, 65, 200] {
            let elements: Vec<usize> = (0..len).collect();
            assert_eq!(super::position(&elements, |_| false), None);
            for at in 0..len {
                assert_eq!(super::position(&elements, |i| i >= at), Some(at));
                assert_eq!(super::position(&elements, |i| i == at), Some(at));
            }
        }
    }
}
