//! A value that one block leaves for another one of the same launch.
//!
//! A tile state is 16 bytes, a word and whether it is there, which are written and read at once: so whoever sees the one
//! sees the other, and no fence is needed. That is a way to memory and a way back less than by an atomic ticket. A
//! value of two or four words takes as many tile states, which are looked at together.
//!
//! Whoever takes the value leaves the tile states empty, ready for the next launch. Tile states begin as zeros.
//!
//! **Waiting.** A block may only wait for blocks before it in the grid. Devices start blocks in order, and what has
//! been started goes on, so they come; the executor does the same.
//!
//! Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report
//! NVR-2016-002, section 4.

use crate::backend;
use crate::element::Plain;
use crate::global::GlobalMut;
use crate::warp::{FULL_MASK, warp_vote_all};

/// How many tile states a value of this type takes.
pub const fn tile_states_of<V: Plain>() -> usize {
    if size_of::<V>() <= 8 { 1 } else { size_of::<V>() / 8 }
}

/// Leaves `value` as the `i`-th of its type, which must not be there yet. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn publish<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, value: V) {
    let [first, second, third, fourth] = value.to_four_words();
    store::<V>(tile_states, i, [[first, 1], [second, 1], [third, 1], [fourth, 1]]);
}

/// Leaves a word and its tag, which is not 0, in tile state `i`, which must be empty. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn publish_tagged(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, word: u64, tag: u64) {
    // SAFETY: `place` has checked the index.
    unsafe { backend::store_both(tile_states.place(i), [word, tag]) }
}

/// Waits for the `i`-th value of its type, and takes it. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn wait<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) -> V {
    let mut round = 0;
    loop {
        if let Some(value) = look::<V>(tile_states, i) {
            backend::end_spin(round);
            empty::<V>(tile_states, i);
            return value;
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    }
}

/// [`wait`] by each lane of a warp that `wants` one; what the others get means nothing, but their `i` must be inside of
/// the view too. All lanes of the warp come here.
///
/// They wait together, until each has seen its own. Where lanes wait in a branch of their own, as those of a warp do
/// that only some of have something to wait for, `ptxas` lets the others go ahead, and what the warp does together
/// afterwards it does lane by lane: 0.5 us for the fold of a reduction's partials (`docs/notes/short-kernels.md`).
#[inline(always)]
#[track_caller]
pub fn wait_by_warp<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> V {
    let mut round = 0;
    let value = loop {
        let value = look::<V>(tile_states, i);
        if warp_vote_all(FULL_MASK, value.is_some() | !wants) {
            break value;
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    };
    backend::end_spin(round);
    if wants {
        empty::<V>(tile_states, i);
    }
    value.unwrap_or_else(|| V::from_four_words([0; 4]))
}

/// Waits for a word and its tag in tile state `i`, and takes both; by each lane of a warp that `wants` one, as
/// [`wait_by_warp`].
#[inline(always)]
#[track_caller]
pub fn wait_tagged_by_warp(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> (u64, u64) {
    let mut round = 0;
    let [word, tag] = loop {
        // SAFETY: `place` has checked the index.
        let [word, tag] = unsafe { backend::load_both(tile_states.place(i)) };
        if warp_vote_all(FULL_MASK, (tag != 0) | !wants) {
            break [word, tag];
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    };
    backend::end_spin(round);
    if wants {
        empty::<u64>(tile_states, i);
    }
    (word, tag)
}

/// The `i`-th value, if it is there.
#[inline(always)]
#[track_caller]
fn look<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) -> Option<V> {
    let ([first, a], [second, b]) = (load_word::<V>(tile_states, i, 0), load_word::<V>(tile_states, i, 1));
    let ([third, c], [fourth, d]) = (load_word::<V>(tile_states, i, 2), load_word::<V>(tile_states, i, 3));
    let are_there = (a != 0) & (b != 0) & (c != 0) & (d != 0);
    are_there.then(|| V::from_four_words([first, second, third, fourth]))
}

/// Leaves no `i`-th value.
#[inline(always)]
#[track_caller]
fn empty<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) {
    store::<V>(tile_states, i, [[0; 2]; 4]);
}

/// Fills the tile states of the `i`-th value with the first of `words`, as many as there are.
#[inline(always)]
#[track_caller]
fn store<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, words: [[u64; 2]; 4]) {
    store_word::<V>(tile_states, i, 0, words[0]);
    store_word::<V>(tile_states, i, 1, words[1]);
    store_word::<V>(tile_states, i, 2, words[2]);
    store_word::<V>(tile_states, i, 3, words[3]);
}

/// Tile state `k` of the `i`-th value; one that is there, if the value has not as many.
#[inline(always)]
#[track_caller]
fn load_word<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, k: usize) -> [u64; 2] {
    if k >= tile_states_of::<V>() {
        return [0, 1];
    }
    // SAFETY: `place` has checked the index.
    unsafe { backend::load_both(tile_states.place(i * tile_states_of::<V>() + k)) }
}

/// Fills tile state `k` of the `i`-th value, if the value has as many.
#[inline(always)]
#[track_caller]
fn store_word<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, k: usize, word: [u64; 2]) {
    if k < tile_states_of::<V>() {
        // SAFETY: `place` has checked the index.
        unsafe { backend::store_both(tile_states.place(i * tile_states_of::<V>() + k), word) };
    }
}
