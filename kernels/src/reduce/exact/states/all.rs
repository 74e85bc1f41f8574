//! Adds states to states, carries between their limbs, and rounds them.

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;
use exact_sum::Outcome;
use half::{bf16, f16};

use super::{add_to_limb, words_of_state};
use crate::ops::{Sum, SumOfSquares};
use crate::reduce::exact::global_superaccumulators::{WordRange, leading_of_words};
use crate::reduce::exact::result::{ExactOperator, Finish, Results, result_of_limbs};
use crate::reduce::exact::superaccumulator::words;
use crate::reduce::exact::terms::Terms;

/// Threads of a block.
pub const BLOCK: usize = 256;

/// Adds each state of `from` to the state of the same index. A state has `words` words, the first `limbs` of them
/// limbs.
#[kernel(block = BLOCK)]
pub fn exact_states_merge(words: u32, limbs: u32, from: Global<i64>, states: GlobalMut<i64>) {
    let place = thread::index_1d_wide();
    if place >= from.len() {
        return;
    }
    let (word, k) = (from.load(place), (place % words as usize) as u32);
    if k < limbs {
        add_to_limb(&states, place - k as usize, limbs, k, word);
    } else if word != 0 {
        i64::fetch_add(&states, place, word, Scope::Device);
    }
}

/// Carries between the limbs of each state, whose words are the sums of those of several states: a limb is less than
/// `2^62`. A state has `words` words, the first `limbs` of them limbs. Afterwards all limbs but the last are in
/// `0..2^32`.
#[kernel(block = BLOCK)]
pub fn exact_states_carry(words: u32, limbs: u32, states: GlobalMut<i64>) {
    let first = thread::index_1d_wide() * words as usize;
    if first >= states.len() {
        return;
    }
    let (mut carry, mut k) = (0, 0);
    while k < limbs as usize {
        // Wraps only if the words were not those of states.
        let sum = states.load(first + k).wrapping_add(carry);
        let is_last = k + 1 == limbs as usize;
        states.store(first + k, if is_last { sum } else { sum & 0xffff_ffff });
        carry = sum >> 32;
        k += 1;
    }
}

/// Rounds each state once: its sum, or its mean or root.
#[kernel(instances = [Sum, SumOfSquares] x [f32, f64, f16, bf16], block = BLOCK)]
pub fn exact_state_values<O: ExactOperator<T>, T: Element>(states: Global<i64>, finish: u32, output: GlobalMut<u8>) {
    // SAFETY: `capacity` checks the alignment before anything is written, and the index is below it.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let state = thread::index_1d_wide();
    if state < results.capacity() {
        results.store(state, value_of::<O, T>(&states, state, results.finish));
    }
}

#[inline(always)]
fn value_of<O: ExactOperator<T>, T: Element>(states: &Global<i64>, state: usize, finish: Finish<O::Terms>) -> u64 {
    let first = state * words_of_state::<GridOf<O, T>>();
    let count = states.load(first + words::<GridOf<O, T>>() as usize) as u64;
    let range = WordRange::all::<GridOf<O, T>>();
    let (specials, leading) = leading_of_words::<GridOf<O, T>>(range, |k| states.load(first + k as usize), |_| {});
    // A sum of products may be negative, and has no root then.
    let is_negative = match specials.outcome() {
        Outcome::Finite => leading.is_negative,
        Outcome::Infinity { is_negative } => is_negative,
        Outcome::Nan => false,
    };
    if finish.is_root() && is_negative {
        return finish.nan();
    }
    result_of_limbs::<O::Terms, GridOf<O, T>>(finish, specials, leading, count)
}

type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;
