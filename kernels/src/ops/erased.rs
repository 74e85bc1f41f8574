//! An operator known only at run time: see [`cuda_std::erase`].

use core::marker::PhantomData;

use cuda_std::erase::{self, Erase, Sizes, same_bits};
use cuda_std::prelude::*;

use super::{Operator, tree};

/// The operator whose table the thread has entered. Its elements, its states `S` and its outputs `U` are unsigned
/// integers of the real types' sizes.
pub struct Erased<S = (), U = ()> {
    word: u64,
    types: PhantomData<fn() -> (S, U)>,
}

// By hand: derives would require the same traits of `S` and `U`.
impl<S, U> Clone for Erased<S, U> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S, U> Copy for Erased<S, U> {}
impl<S, U> Default for Erased<S, U> {
    fn default() -> Self {
        Self { word: 0, types: PhantomData }
    }
}

/// Maps a position to the index of the element, or of the vector's first element.
type IndexOf<'a> = &'a dyn Fn(usize) -> u64;

/// An operator's functions, on bits. Those that take `self` take the operator's word first.
struct Table<T: Element, S, U> {
    is_any_order: bool,
    neutral: fn() -> S,
    lift: fn(u64, T, u64) -> S,
    combine: fn(S, S) -> S,
    finish: fn(u64, S, u64) -> U,
    reduce_elements: fn(u64, &[T], IndexOf<'_>) -> S,
    reduce_vectors: fn(u64, &[T::Vector], IndexOf<'_>) -> S,
    reduce_to_partial_index: fn(u64, &[T::Vector], IndexOf<'_>) -> S,
    resolve_index: fn(u64, S, &dyn Fn(u64) -> T) -> S,
}

// SAFETY: the sizes are the types' own.
unsafe impl<O: Operator<T>, T: Element> Erase<O, T> for Erased {
    const SIZES: Sizes =
        Sizes { element: size_of::<T>(), state: size_of::<O::State>(), output: size_of::<O::Output>() };

    fn enter<B: Element, S: Plain, U: Plain>() {
        erase::enter(const { &table_of::<O, T, B, S, U>() });
    }
}

/// The functions of `O`, with `B`, `S` and `U` for its elements, states and outputs.
const fn table_of<O: Operator<T>, T: Element, B: Element, S: Plain, U: Plain>() -> Table<B, S, U> {
    Table {
        is_any_order: O::ANY_ORDER,
        neutral: neutral::<O, T, S>,
        lift: lift::<O, T, B, S>,
        combine: combine::<O, T, S>,
        finish: finish::<O, T, S, U>,
        reduce_elements: reduce_elements::<O, T, B, S>,
        reduce_vectors: reduce_vectors::<O, T, B, S>,
        reduce_to_partial_index: reduce_to_partial_index::<O, T, B, S>,
        resolve_index: resolve_index::<O, T, B, S>,
    }
}

// Functions, not closures: the compiler makes two functions of each closure.

fn neutral<O: Operator<T>, T: Element, S: Plain>() -> S {
    same_bits(O::NEUTRAL)
}

fn lift<O: Operator<T>, T: Element, B: Element, S: Plain>(word: u64, element: B, index: u64) -> S {
    same_bits(O::from_word(word).lift(same_bits(element), index))
}

fn combine<O: Operator<T>, T: Element, S: Plain>(a: S, b: S) -> S {
    same_bits(O::combine(same_bits(a), same_bits(b)))
}

fn finish<O: Operator<T>, T: Element, S: Plain, U: Plain>(word: u64, state: S, count: u64) -> U {
    same_bits(O::from_word(word).finish(same_bits(state), count))
}

fn reduce_elements<O: Operator<T>, T: Element, B: Element, S: Plain>(
    word: u64,
    elements: &[B],
    index_of: IndexOf<'_>,
) -> S {
    let operator = O::from_word(word);
    same_bits(match elements.len() {
        2 => operator.reduce_elements(elements_of::<T, B, 2>(elements), index_of),
        4 => operator.reduce_elements(elements_of::<T, B, 4>(elements), index_of),
        8 => operator.reduce_elements(elements_of::<T, B, 8>(elements), index_of),
        16 if T::Vector::LEN == 16 => operator.reduce_elements(elements_of::<T, B, 16>(elements), index_of),
        len => unreachable!("{len} elements are neither a vector nor rows of columns"),
    })
}

fn reduce_vectors<O: Operator<T>, T: Element, B: Element, S: Plain>(
    word: u64,
    vectors: &[B::Vector],
    index_of: IndexOf<'_>,
) -> S {
    let operator = O::from_word(word);
    same_bits(match vectors.len() {
        1 => operator.reduce_vectors(vectors_of::<T, B, 1>(vectors), index_of),
        4 => operator.reduce_vectors(vectors_of::<T, B, 4>(vectors), index_of),
        len => unreachable!("no kernel reduces {len} vectors through the table"),
    })
}

fn reduce_to_partial_index<O: Operator<T>, T: Element, B: Element, S: Plain>(
    word: u64,
    vectors: &[B::Vector],
    index_of: IndexOf<'_>,
) -> S {
    let operator = O::from_word(word);
    same_bits(match vectors.len() {
        1 => operator.reduce_to_partial_index(vectors_of::<T, B, 1>(vectors), index_of),
        4 => operator.reduce_to_partial_index(vectors_of::<T, B, 4>(vectors), index_of),
        len => unreachable!("no kernel reduces {len} vectors through the table"),
    })
}

fn resolve_index<O: Operator<T>, T: Element, B: Element, S: Plain>(
    word: u64,
    state: S,
    element: &dyn Fn(u64) -> B,
) -> S {
    same_bits(O::from_word(word).resolve_index(same_bits(state), |index| same_bits(element(index))))
}

// Loops, because `array::from_fn` is slow without optimization.

fn elements_of<T: Element, B: Element, const LEN: usize>(elements: &[B]) -> [T; LEN] {
    let (mut all, mut i) = ([T::default(); LEN], 0);
    while i < LEN {
        all[i] = same_bits(elements[i]);
        i += 1;
    }
    all
}

fn vectors_of<T: Element, B: Element, const LEN: usize>(vectors: &[B::Vector]) -> [T::Vector; LEN] {
    let (mut all, mut i) = ([T::Vector::splat(T::default()); LEN], 0);
    while i < LEN {
        all[i] = same_bits(vectors[i]);
        i += 1;
    }
    all
}

impl<T: Element, S: Plain, U: Plain> Operator<T> for Erased<S, U> {
    type State = S;
    type Output = U;
    const NEUTRAL: S = panic!("an erased operator has no constants: kernels call `neutral`");
    const ANY_ORDER: bool = panic!("an erased operator has no constants: kernels call `is_any_order`");

    fn neutral() -> S {
        (table::<T, S, U>().neutral)()
    }
    fn is_any_order() -> bool {
        table::<T, S, U>().is_any_order
    }
    fn to_word(self) -> u64 {
        self.word
    }
    fn from_word(word: u64) -> Self {
        Self { word, types: PhantomData }
    }
    fn lift(self, element: T, index: u64) -> S {
        (table::<T, S, U>().lift)(self.word, element, index)
    }
    fn combine(a: S, b: S) -> S {
        (table::<T, S, U>().combine)(a, b)
    }
    fn finish(self, state: S, count: u64) -> U {
        (table::<T, S, U>().finish)(self.word, state, count)
    }
    fn reduce_elements<const LEN: usize>(self, elements: [T; LEN], index_of: impl Fn(usize) -> u64) -> S {
        match LEN {
            1 => self.lift(elements[0], index_of(0)),
            _ => (table::<T, S, U>().reduce_elements)(self.word, &elements, &index_of),
        }
    }
    fn reduce_vectors<const VECTORS: usize>(self, vectors: [T::Vector; VECTORS], index_of: impl Fn(usize) -> u64) -> S {
        match VECTORS {
            1 | 4 => (table::<T, S, U>().reduce_vectors)(self.word, &vectors, &index_of),
            _ => tree::<_, VECTORS>(
                |k| Operator::<T>::reduce_vector(self, vectors[k], index_of(k)),
                <Self as Operator<T>>::combine,
            ),
        }
    }
    fn reduce_to_partial_index<const VECTORS: usize>(
        self,
        vectors: [T::Vector; VECTORS],
        index_of: impl Fn(usize) -> u64,
    ) -> S {
        match VECTORS {
            1 | 4 => (table::<T, S, U>().reduce_to_partial_index)(self.word, &vectors, &index_of),
            _ => Operator::<T>::reduce_vectors(self, vectors, index_of),
        }
    }
    fn resolve_index(self, state: S, element: impl Fn(u64) -> T) -> S {
        (table::<T, S, U>().resolve_index)(self.word, state, &element)
    }
}

#[inline(always)]
fn table<T: Element, S: Plain, U: Plain>() -> &'static Table<T, S, U> {
    erase::table()
}

#[cfg(test)]
mod tests {
    use super::super::{ArgMinOrMax, Norm};
    use super::*;

    type ErasedNorm = Erased<u128, u64>;

    #[test]
    fn an_erased_operator_gives_the_bits_of_the_operator() {
        <Erased as Erase<Norm, i32>>::enter::<u32, u128, u64>();
        let numbers = [100_000_000, 1, -7, 35];
        let erased = ErasedNorm::default();
        let of_bits = erased.reduce_elements(numbers.map(|x| x as u32), |_| 0);
        let own = Operator::<i32>::reduce_elements(Norm, numbers, |_| 0);
        assert_eq!(of_bits, same_bits::<_, u128>(own));
        let twice = <ErasedNorm as Operator<u32>>::combine(of_bits, <ErasedNorm as Operator<u32>>::neutral());
        let norm = Operator::<i32>::finish(Norm, own, 4);
        assert_eq!(Operator::<u32>::finish(erased, twice, 4), norm.to_bits());
        assert!(<ErasedNorm as Operator<u32>>::is_any_order());
    }

    #[test]
    fn the_operators_value_and_indices_reach_its_functions() {
        <Erased as Erase<ArgMinOrMax, u8>>::enter::<u8, u128, u64>();
        for (flip, index) in [(0, 11), (0x80, 12), (0xFF, 10), (0x7F, 11)] {
            let erased = <Erased<u128, u64> as Operator<u8>>::from_word(flip);
            let found = erased.reduce_elements([1_u8, 255, 7, 3], |i| 10 + i as u64);
            assert_eq!(Operator::<u8>::finish(erased, found, 4), index, "bits {flip} flipped");
        }
    }

    #[test]
    #[should_panic(expected = "has not entered its operator's table")]
    fn the_table_of_other_sizes_is_not_taken() {
        <Erased as Erase<Norm, i32>>::enter::<u32, u128, u64>();
        <Erased<u64, u32> as Operator<u32>>::combine(1, 2);
    }
}
