//! A value that one block leaves for another one of the same launch.
//!
//! A mailbox is 16 bytes, a word and whether it is there, which are written and read at once: so whoever sees the one
//! sees the other, and no fence is needed. That is a way to memory and a way back less than by an atomic ticket. A
//! value of two words takes two mailboxes, which are looked at together.
//!
//! Whoever takes the value leaves the mailboxes empty, ready for the next launch. Mailboxes begin as zeros.
//!
//! **Waiting.** A block may only wait for blocks before it in the grid. Devices start blocks in order, and what has
//! been started goes on, so they come; the executor does the same.
//!
//! Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report
//! NVR-2016-002, section 4.

use crate::element::Plain;
use crate::global::GlobalMut;
use crate::machine;
use crate::warp::{FULL_MASK, warp_vote_all};

/// How many mailboxes a value of this type takes.
pub const fn boxes_of<V: Plain>() -> usize {
    if size_of::<V>() <= 8 { 1 } else { 2 }
}

/// Leaves `value` as the `i`-th of its type, which must not be there yet. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn post<V: Plain>(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize, value: V) {
    let [word, further] = value.to_pair();
    let first = i * boxes_of::<V>();
    // SAFETY: `place` has checked the index.
    unsafe { machine::store_both(mailboxes.place(first), [word, 1]) }
    if boxes_of::<V>() == 2 {
        // SAFETY: as above.
        unsafe { machine::store_both(mailboxes.place(first + 1), [further, 1]) }
    }
}

/// Leaves a word and its tag, which is not 0, in mailbox `i`, which must be empty. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn post_tagged(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize, word: u64, tag: u64) {
    // SAFETY: `place` has checked the index.
    unsafe { machine::store_both(mailboxes.place(i), [word, tag]) }
}

/// Waits for the `i`-th value of its type, and takes it. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn take<V: Plain>(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize) -> V {
    let mut round = 0;
    loop {
        if let Some(value) = look::<V>(mailboxes, i) {
            machine::end_spin(round);
            empty::<V>(mailboxes, i);
            return value;
        }
        machine::spin(round);
        round = round.wrapping_add(1);
    }
}

/// [`take`] by each lane of a warp that `wants` one; what the others get means nothing, but their `i` must be inside of
/// the view too. All lanes of the warp come here.
///
/// They wait together, until each has seen its own. Where lanes wait in a branch of their own, as those of a warp do
/// that only some of have something to wait for, `ptxas` lets the others go ahead, and what the warp does together
/// afterwards it does lane by lane: 0.5 us for the fold of a reduction's partials (`docs/benchmarks/h200.md`).
#[inline(always)]
#[track_caller]
pub fn take_by_warp<V: Plain>(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> V {
    let mut round = 0;
    let value = loop {
        let value = look::<V>(mailboxes, i);
        if warp_vote_all(FULL_MASK, value.is_some() | !wants) {
            break value;
        }
        machine::spin(round);
        round = round.wrapping_add(1);
    };
    machine::end_spin(round);
    if wants {
        empty::<V>(mailboxes, i);
    }
    value.unwrap_or_else(|| V::from_pair([0, 0]))
}

/// Waits for a word and its tag in mailbox `i`, and takes both; by each lane of a warp that `wants` one, as
/// [`take_by_warp`].
#[inline(always)]
#[track_caller]
pub fn take_tagged_by_warp(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize, wants: bool) -> (u64, u64) {
    let mut round = 0;
    let [word, tag] = loop {
        // SAFETY: `place` has checked the index.
        let [word, tag] = unsafe { machine::load_both(mailboxes.place(i)) };
        if warp_vote_all(FULL_MASK, (tag != 0) | !wants) {
            break [word, tag];
        }
        machine::spin(round);
        round = round.wrapping_add(1);
    };
    machine::end_spin(round);
    if wants {
        empty::<u64>(mailboxes, i);
    }
    (word, tag)
}

/// The `i`-th value, if it is there.
#[inline(always)]
#[track_caller]
fn look<V: Plain>(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize) -> Option<V> {
    let first = mailboxes.place(i * boxes_of::<V>());
    // SAFETY: `place` has checked the index.
    let [word, is_there] = unsafe { machine::load_both(first) };
    let [further, is_all_there] = if boxes_of::<V>() == 1 {
        [0, 1]
    } else {
        let last = mailboxes.place(i * boxes_of::<V>() + 1);
        // SAFETY: as above.
        unsafe { machine::load_both(last) }
    };
    ((is_there != 0) & (is_all_there != 0)).then(|| V::from_pair([word, further]))
}

/// Leaves no `i`-th value.
#[inline(always)]
#[track_caller]
fn empty<V: Plain>(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize) {
    let first = i * boxes_of::<V>();
    // SAFETY: `place` has checked the index.
    unsafe { machine::store_both(mailboxes.place(first), [0, 0]) };
    if boxes_of::<V>() == 2 {
        // SAFETY: as above.
        unsafe { machine::store_both(mailboxes.place(first + 1), [0, 0]) };
    }
}
