//! A word that one block leaves for another one of the same launch.
//!
//! A mailbox is 16 bytes, the word and whether it is there, which are written and read at once: so whoever sees the one
//! sees the other, and no fence is needed. That is a way to memory and a way back less than by an atomic ticket.
//!
//! Whoever takes the word leaves the mailbox empty, ready for the next launch. Mailboxes begin as zeros.
//!
//! **Waiting.** A block may only wait for blocks before it in the grid. Devices start blocks in order, and what has been
//! started goes on, so they come; the executor does the same.
//!
//! Source: Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report
//! NVR-2016-002, section 4.

use crate::global::GlobalMut;
use crate::machine;

/// Leaves `word` in mailbox `i`, which must be empty. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn post(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize, word: u64) {
    // SAFETY: `place` has checked the index.
    unsafe { machine::store_both(mailboxes.place(i), [word, 1]) }
}

/// Waits for a word in mailbox `i`, and takes it. Traps outside of the view.
#[inline(always)]
#[track_caller]
pub fn take(mailboxes: &GlobalMut<'_, [u64; 2]>, i: usize) -> u64 {
    let place = mailboxes.place(i);
    loop {
        // SAFETY: `place` has checked the index.
        let [word, is_there] = unsafe { machine::load_both(place) };
        if is_there != 0 {
            // SAFETY: as above.
            unsafe { machine::store_both(place, [0, 0]) };
            return word;
        }
        machine::spin();
    }
}
