//! Adds states to states, and rounds them.

use cuda_std::atomic::{Atomic, Scope};
use cuda_std::prelude::*;

use super::{add_to_limb, words_of_state};
use crate::ops::Sum;
use crate::reduce::exact::global_superaccumulators::{WordRange, finish_words};
use crate::reduce::exact::result::{ExactOperator, Finish, Results};
use crate::reduce::exact::superaccumulator::words;
use crate::reduce::exact::terms::{Summand, Terms};

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

/// Rounds each state once: its sum, or its mean.
#[kernel(instances = [Sum] x [f32, f64], block = BLOCK)]
pub fn exact_state_values<O: ExactOperator<T>, T: Summand>(states: Global<i64>, finish: u32, output: GlobalMut<u8>) {
    // SAFETY: `capacity` checks the alignment before anything is written, and the index is below it.
    let results = unsafe { Results::<O::Terms>::new(finish, output) };
    let state = thread::index_1d_wide();
    if state < results.capacity() {
        results.store(state, value_of::<O, T>(&states, state, results.finish));
    }
}

#[inline(always)]
fn value_of<O: ExactOperator<T>, T: Summand>(states: &Global<i64>, state: usize, finish: Finish<O::Terms>) -> u64 {
    let first = state * words_of_state::<GridOf<O, T>>();
    let count = states.load(first + words::<GridOf<O, T>>() as usize) as u64;
    finish_words::<_, GridOf<O, T>>(
        finish,
        WordRange::all::<GridOf<O, T>>(),
        |k| states.load(first + k as usize),
        |_| {},
        count,
    )
}

type GridOf<O, T> = <<O as ExactOperator<T>>::Terms as Terms>::Grid;
