//! An operator that is known at run time alone: see [`cuda_std::erase`].

use core::array;
use core::marker::PhantomData;

use cuda_std::erase::{self, Erase, Sizes, same_bits};
use cuda_std::prelude::*;

use super::{Operator, gather_pack, tree};

/// The operator whose table was entered, with states and outputs of the types `S` and `U`: unsigned integers of the real
/// ones' sizes. Elements are unsigned integers, too.
pub struct Erased<S = (), U = ()>(PhantomData<(S, U)>);

/// An operator's functions, of bits.
struct Table<T: Element, S, U> {
    is_any_order: bool,
    neutral: fn() -> S,
    lift: fn(T, u64) -> S,
    combine: fn(S, S) -> S,
    finish: fn(S, u64) -> U,
    gather: fn(&[T], &dyn Fn(usize) -> u64) -> S,
    skim: fn(&[T::Pack], &dyn Fn(usize) -> u64) -> S,
    settle: fn(S, &dyn Fn(u64) -> T) -> S,
}

impl<O: Operator<T>, T: Element> Erase<O, T> for Erased {
    const SIZES: Sizes =
        Sizes { element: size_of::<T>(), state: size_of::<O::State>(), output: size_of::<O::Output>() };

    fn enter<B: Element, S: Plain, U: Plain>() {
        erase::enter(const { &table_of::<O, T, B, S, U>() });
    }
}

/// The functions of `O`, of elements, states and outputs as `B`, `S` and `U`.
const fn table_of<O: Operator<T>, T: Element, B: Element, S: Plain, U: Plain>() -> Table<B, S, U> {
    Table {
        is_any_order: O::ANY_ORDER,
        neutral: || same_bits(O::NEUTRAL),
        lift: |element, index| same_bits(O::lift(same_bits(element), index)),
        combine: |a, b| same_bits(O::combine(same_bits(a), same_bits(b))),
        finish: |state, count| same_bits(O::finish(same_bits(state), count)),
        gather: |elements, at| {
            same_bits(match elements.len() {
                2 => O::gather(elements_of::<T, B, 2>(elements), at),
                4 => O::gather(elements_of::<T, B, 4>(elements), at),
                8 => O::gather(elements_of::<T, B, 8>(elements), at),
                16 if T::Pack::LEN == 16 => O::gather(elements_of::<T, B, 16>(elements), at),
                len => unreachable!("{len} elements are neither a pack nor rows of columns"),
            })
        },
        skim: |packs, at| {
            same_bits(match packs.len() {
                1 => O::skim(packs_of::<T, B, 1>(packs), at),
                4 => O::skim(packs_of::<T, B, 4>(packs), at),
                len => unreachable!("no engine skims {len} packs by the table"),
            })
        },
        settle: |state, element| same_bits(O::settle(same_bits(state), |index| same_bits(element(index)))),
    }
}

fn elements_of<T: Element, B: Element, const LEN: usize>(elements: &[B]) -> [T; LEN] {
    array::from_fn(|i| same_bits(elements[i]))
}

fn packs_of<T: Element, B: Element, const LEN: usize>(packs: &[B::Pack]) -> [T::Pack; LEN] {
    array::from_fn(|i| same_bits(packs[i]))
}

impl<T: Element, S: Plain, U: Plain> Operator<T> for Erased<S, U> {
    type State = S;
    type Output = U;
    const NEUTRAL: S = panic!("an erased operator has no constants: engines call `neutral`");
    const ANY_ORDER: bool = panic!("an erased operator has no constants: engines call `is_any_order`");

    fn neutral() -> S {
        (table::<T, S, U>().neutral)()
    }
    fn is_any_order() -> bool {
        table::<T, S, U>().is_any_order
    }
    fn lift(element: T, index: u64) -> S {
        (table::<T, S, U>().lift)(element, index)
    }
    fn combine(a: S, b: S) -> S {
        (table::<T, S, U>().combine)(a, b)
    }
    fn finish(state: S, count: u64) -> U {
        (table::<T, S, U>().finish)(state, count)
    }
    fn gather<const LEN: usize>(elements: [T; LEN], at: impl Fn(usize) -> u64) -> S {
        match LEN {
            1 => Self::lift(elements[0], at(0)),
            _ => (table::<T, S, U>().gather)(&elements, &at),
        }
    }
    fn skim<const PACKS: usize>(packs: [T::Pack; PACKS], at: impl Fn(usize) -> u64) -> S {
        match PACKS {
            1 | 4 => (table::<T, S, U>().skim)(&packs, &at),
            _ => tree::<_, PACKS>(|k| gather_pack::<Self, T>(packs[k], at(k)), <Self as Operator<T>>::combine),
        }
    }
    fn settle(state: S, element: impl Fn(u64) -> T) -> S {
        (table::<T, S, U>().settle)(state, &element)
    }
}

#[inline(always)]
fn table<T: Element, S: Plain, U: Plain>() -> &'static Table<T, S, U> {
    erase::table()
}
