//! Indices of the minimum and the maximum.
//!
//! Of equal elements the first wins; -0.0 equals 0.0. NaN ranks before every number, and the first NaN wins, as in
//! NumPy. An empty segment gives `u64::MAX`.

use cuda_std::element::VectorVisitor;
use cuda_std::prelude::*;

use super::scalar::{Ordered, Scalar};
use super::vectors::{Highest, ReduceVector, flip_vector};
use super::{Fixed, Operator, lanes, tree};

/// The index of the smallest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMin;

/// The index of the largest element.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMax;

/// [`ArgMin`] or [`ArgMax`]: the index of the largest element after some bits are flipped, as in
/// [`MinOrMax`](super::MinOrMax).
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgMinOrMax {
    /// The bits to flip.
    pub flip: u64,
}

/// [`ArgMin`] of floats: [`ArgMinOrMax`] that flips the sign.
pub type ArgMinOfFloats = Fixed<ArgMinOrMax, { u64::MAX }>;

/// [`ArgMax`] of floats: [`ArgMinOrMax`] that flips no bits.
pub type ArgMaxOfFloats = Fixed<ArgMinOrMax, 0>;

/// An element's key (lower is better) and its index. The best is the lowest pair.
type Candidate = [u64; 2];

/// The index in the state of no elements.
const NO_INDEX: u64 = u64::MAX;

/// The neutral state: no element's pair is greater.
const NO_CANDIDATE: Candidate = [u64::MAX, NO_INDEX];

/// The lower of two pairs, without a divergent branch. Each word is selected by itself: selecting one of two arrays
/// selects an address, which puts both arrays in local memory.
#[inline(always)]
fn better([key_a, index_a]: Candidate, [key_b, index_b]: Candidate) -> Candidate {
    let takes_b = (key_b < key_a) | ((key_b == key_a) & (index_b < index_a));
    [if takes_b { key_b } else { key_a }, if takes_b { index_b } else { index_a }]
}

/// Resolves a partial index: the first element with the candidate's key, from the candidate's index on. The search ends
/// because such an element exists.
#[inline(always)]
fn first_of_key(found: Candidate, key: impl Fn(u64) -> u64) -> Candidate {
    let [best, mut index] = found;
    if index != NO_INDEX {
        while key(index) != best {
            index += 1;
        }
    }
    [best, index]
}

/// The highest of `LEN` elements in order of their indices. The tree carries 32-bit positions instead of indices, and
/// does not compare them: of equal elements, the left one is the first.
#[inline(always)]
fn highest_of<O: Ordered, const LEN: usize>(
    candidate: impl Fn(usize) -> O,
    index_of: impl Fn(usize) -> u64,
) -> Candidate {
    let (best, position) = highest_and_position::<_, LEN>(candidate);
    [best.descending_key(), index_of(position as usize)]
}

/// The highest of `LEN` elements, and its position; of equal ones, the first.
#[inline(always)]
fn highest_and_position<O: Ordered, const LEN: usize>(candidate: impl Fn(usize) -> O) -> (O, u32) {
    tree::<_, LEN>(|i| (candidate(i), i as u32), first_highest)
}

/// The higher of two elements and its position; of equal ones, the first.
#[inline(always)]
fn first_highest<O: Ordered>(a: (O, u32), b: (O, u32)) -> (O, u32) {
    if b.0.is_above(a.0) { b } else { a }
}

/// Returns the highest element of a vector and its position.
struct HighestAndPosition {
    /// The argument of [`Scalar::ordered`].
    flip: u64,
}

impl<T: Scalar> VectorVisitor<T> for HighestAndPosition {
    type Result = (T::Ordered, u32);

    #[inline(always)]
    fn elements<const LEN: usize>(self, elements: [T; LEN]) -> (T::Ordered, u32) {
        highest_and_position::<_, LEN>(|i| elements[i].ordered(self.flip))
    }
}

/// The key of an element: the higher the flipped element, the lower the key.
#[inline(always)]
fn key<T: Scalar>(element: T, flip: u64) -> u64 {
    element.flipped(flip).ordered(flip).descending_key()
}

impl<T: Scalar> Operator<T> for ArgMinOrMax {
    type State = Candidate;
    type Output = u64;
    const NEUTRAL: Candidate = NO_CANDIDATE;
    const ANY_ORDER: bool = true;
    const HAS_EMPTY_RESULT: bool = false;

    fn to_word(self) -> u64 {
        self.flip
    }
    #[inline(always)]
    fn from_word(flip: u64) -> Self {
        Self { flip }
    }
    #[inline(always)]
    fn lift(self, element: T, index: u64) -> Candidate {
        [key(element, self.flip), index]
    }
    #[inline(always)]
    fn combine(a: Candidate, b: Candidate) -> Candidate {
        better(a, b)
    }
    #[inline(always)]
    fn finish(self, state: Candidate, _count: u64) -> u64 {
        state[1]
    }
    #[inline(always)]
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], index_of: impl Fn(usize) -> u64) -> Candidate {
        highest_of::<_, LEN>(|i| elements[i].flipped(self.flip).ordered(self.flip), index_of)
    }
    #[inline(always)]
    fn reduce_vector(self, vector: T::Vector, first: u64) -> Candidate {
        let operator = Self { flip: self.flip & !T::FLIPPABLE };
        flip_vector::<T>(vector, self.flip).visit(ReduceVector { first, operator })
    }
    #[inline(always)]
    fn reduce_vectors<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> Candidate {
        let leaf = |k: usize| {
            let (highest, position) =
                flip_vector::<T>(vectors[k], self.flip).visit(HighestAndPosition { flip: self.flip });
            (highest, (k * T::Vector::LEN) as u32 + position)
        };
        let (highest, position) = tree::<_, VECTORS>(leaf, first_highest);
        let (k, i) = (position as usize / T::Vector::LEN, position as usize % T::Vector::LEN);
        [highest.descending_key(), index_of(k) + i as u64]
    }
    #[inline(always)]
    fn reduce_to_partial_index<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> Candidate {
        highest_of::<_, VECTORS>(
            |k| flip_vector::<T>(vectors[k], self.flip).visit(Highest { flip: self.flip }),
            index_of,
        )
    }
    /// Finds the highest element first, and its index only if it is better than what was found before.
    #[inline(always)]
    fn fold_slice(self, state: Candidate, elements: &[T], index_of: impl Fn(usize) -> u64) -> Candidate {
        if elements.is_empty() {
            return state;
        }
        let value = |x: T| x.flipped(self.flip).ordered(self.flip);
        let highest = T::Ordered::highest_of(elements, value);
        let best = highest.descending_key();
        let [found, index] = state;
        if best > found || best == found && index < index_of(0) {
            return state;
        }
        lanes::position(elements, |x| value(x).is_level(highest)).map_or(state, |i| better(state, [best, index_of(i)]))
    }
    #[inline(always)]
    fn resolve_index(self, state: Candidate, element: impl Fn(u64) -> T) -> Candidate {
        first_of_key(state, |i| key(element(i), self.flip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of the best element of a lane's four vectors. The first begins at index 4, and each other one 16
    /// elements after the previous.
    fn index_in(elements: [f32; 16], flip: u64) -> u64 {
        let vector = |k: usize| {
            let of_vector = |i: usize| elements[4 * k + i].to_bits();
            <f32 as Element>::Vector::from_words([of_vector(0), of_vector(1), of_vector(2), of_vector(3)])
        };
        let vectors = [vector(0), vector(1), vector(2), vector(3)];
        let operator = ArgMinOrMax { flip };
        let found = Operator::<f32>::reduce_vectors(operator, vectors, |k| 4 + 16 * k as u64);
        let each = (0..16_usize).map(|i| {
            let index = 4 + 16 * (i / 4) + i % 4;
            Operator::<f32>::lift(operator, elements[i], index as u64)
        });
        let one_by_one = each.reduce(<ArgMinOrMax as Operator<f32>>::combine).unwrap();
        assert_eq!(found, one_by_one, "{elements:?}");
        Operator::<f32>::finish(operator, found, 16)
    }

    #[test]
    fn the_first_of_equal_elements_in_several_vectors_is_found() {
        let mut elements = [0.0_f32; 16];
        elements[0] = -0.0;
        assert_eq!(index_in(elements, 0), 4);
        (elements[6], elements[13]) = (3.0, 3.0);
        assert_eq!(index_in(elements, 0), 4 + 16 + 2);
        assert_eq!(index_in(elements, 1 << 31), 4);
        elements[9] = -1.0;
        assert_eq!(index_in(elements, 1 << 31), 4 + 2 * 16 + 1);
        (elements[11], elements[12]) = (f32::NAN, -f32::NAN);
        assert_eq!(index_in(elements, 0), 4 + 2 * 16 + 3);
        assert_eq!(index_in(elements, 1 << 31), 4 + 2 * 16 + 3);
    }
}
