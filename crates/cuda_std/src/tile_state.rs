//! Tile states: one block publishes a value, another block of the same grid waits for it (decoupled look-back).
//!
//! A tile state is 16 bytes, a word and its flag, written and read in one access: a block that sees the flag sees the
//! word, so no fence is needed. Compared with an atomic ticket, that saves a round trip to memory. A value of two or
//! four words takes two or four tile states, which are polled together.
//!
//! The waiting block clears the tile states for the next launch. They must be 0 at first.
//!
//! **Waiting.** A block may only wait for blocks of lower index in the grid. Devices start blocks in index order, and a
//! started block makes progress, so the value arrives; the executor does the same.
//!
//! Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report
//! NVR-2016-002, section 4.

use crate::backend;
use crate::element::Plain;
use crate::global::GlobalMut;
use crate::warp::{FULL_MASK, warp_vote_all};

/// The number of tile states that a value of type `V` takes.
pub const fn tile_states_per_value<V: Plain>() -> usize {
    if size_of::<V>() <= 8 { 1 } else { size_of::<V>().div_ceil(8) }
}

/// Publishes `value` as the `i`-th value of its type. Its tile states must be clear. Traps outside the view.
#[inline(always)]
#[track_caller]
pub fn publish<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, value: V) {
    let [first, second, third, fourth] = value.to_four_words();
    store::<V>(tile_states, i, [[first, 1], [second, 1], [third, 1], [fourth, 1]]);
}

/// Publishes a word and a nonzero tag in tile state `i`, which must be clear. Traps outside the view.
#[inline(always)]
#[track_caller]
pub fn publish_tagged(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, word: u64, tag: u64) {
    // SAFETY: `pointer` has checked the index.
    unsafe { backend::store_pair(tile_states.pointer(i), [word, tag]) }
}

/// Waits for the `i`-th value of its type, returns it, and clears its tile states. Traps outside the view.
#[inline(always)]
#[track_caller]
pub fn wait<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) -> V {
    let mut round = 0;
    loop {
        if let Some(value) = try_load::<V>(tile_states, i) {
            backend::end_spin(round);
            clear::<V>(tile_states, i);
            return value;
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    }
}

/// [`wait`] for a whole warp, in each lane where `wants` is true. The result in other lanes is meaningless, but their
/// `i` must be inside the view too. All lanes of the warp must call it.
///
/// The lanes poll together until each has its value. If only some lanes waited, in a branch, `ptxas` would let the
/// other lanes run ahead, and the warp would execute the code after the wait lane by lane: 0.5 us for the fold of a
/// reduction's partials (`docs/notes/short-kernels.md`).
#[inline(always)]
#[track_caller]
pub fn wait_by_warp<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> V {
    let mut round = 0;
    let value = loop {
        let value = try_load::<V>(tile_states, i);
        if warp_vote_all(FULL_MASK, value.is_some() | !wants) {
            break value;
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    };
    backend::end_spin(round);
    if wants {
        clear::<V>(tile_states, i);
    }
    value.unwrap_or_else(|| V::from_four_words([0; 4]))
}

/// Waits for a word and its tag in tile state `i`, returns both, and clears it, in each lane where `wants` is true,
/// like [`wait_by_warp`].
#[inline(always)]
#[track_caller]
pub fn wait_tagged_by_warp(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> (u64, u64) {
    let mut round = 0;
    let [word, tag] = loop {
        // SAFETY: `pointer` has checked the index.
        let [word, tag] = unsafe { backend::load_pair(tile_states.pointer(i)) };
        if warp_vote_all(FULL_MASK, (tag != 0) | !wants) {
            break [word, tag];
        }
        backend::spin(round);
        round = round.wrapping_add(1);
    };
    backend::end_spin(round);
    if wants {
        clear::<u64>(tile_states, i);
    }
    (word, tag)
}

/// The `i`-th value, if it is published.
#[inline(always)]
#[track_caller]
fn try_load<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) -> Option<V> {
    let ([first, a], [second, b]) = (load_word::<V>(tile_states, i, 0), load_word::<V>(tile_states, i, 1));
    let ([third, c], [fourth, d]) = (load_word::<V>(tile_states, i, 2), load_word::<V>(tile_states, i, 3));
    let is_ready = (a != 0) & (b != 0) & (c != 0) & (d != 0);
    is_ready.then(|| V::from_four_words([first, second, third, fourth]))
}

/// Clears the `i`-th value.
#[inline(always)]
#[track_caller]
fn clear<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize) {
    store::<V>(tile_states, i, [[0; 2]; 4]);
}

/// Fills the tile states of the `i`-th value with `words`. A smaller value uses only the first ones.
#[inline(always)]
#[track_caller]
fn store<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, words: [[u64; 2]; 4]) {
    store_word::<V>(tile_states, i, 0, words[0]);
    store_word::<V>(tile_states, i, 1, words[1]);
    store_word::<V>(tile_states, i, 2, words[2]);
    store_word::<V>(tile_states, i, 3, words[3]);
}

/// Tile state `k` of the `i`-th value, or a ready one if the value has `k` tile states or fewer.
#[inline(always)]
#[track_caller]
fn load_word<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, k: usize) -> [u64; 2] {
    if k >= tile_states_per_value::<V>() {
        return [0, 1];
    }
    // SAFETY: `pointer` has checked the index.
    unsafe { backend::load_pair(tile_states.pointer(i * tile_states_per_value::<V>() + k)) }
}

/// Fills tile state `k` of the `i`-th value, if the value has more than `k`.
#[inline(always)]
#[track_caller]
fn store_word<V: Plain>(tile_states: &GlobalMut<'_, [u64; 2]>, i: usize, k: usize, word: [u64; 2]) {
    if k < tile_states_per_value::<V>() {
        // SAFETY: `pointer` has checked the index.
        unsafe { backend::store_pair(tile_states.pointer(i * tile_states_per_value::<V>() + k), word) };
    }
}
