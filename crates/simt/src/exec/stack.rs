//! Switches between the stacks of fibres and the stack of the scheduler.

use std::ptr::NonNull;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};

/// What a switch of stacks passes on: nothing. `corosensei` passes values of more than a word by reference, and copies
/// others. Without optimization, a copy of even `()` takes longer than the rest of a switch.
type Nothing = [usize; 2];

pub(super) const NOTHING: Nothing = [0; 2];

/// A coroutine with a stack of its own.
pub(super) type Fibre = Coroutine<Nothing, Nothing, (), DefaultStack>;

/// Suspends a fibre.
pub(super) type FibreYielder = Yielder<Nothing, Nothing>;

/// Suspends the fibre that runs, until it is resumed.
///
/// # Safety
/// The yielder is that of the fibre that the caller runs on.
#[inline(always)]
pub(super) unsafe fn suspend(yielder: NonNull<FibreYielder>) {
    // SAFETY: as promised by the caller. A yielder lives as long as its fibre.
    unsafe { yielder.as_ref() }.suspend(NOTHING);
}
