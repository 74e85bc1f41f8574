//! The switch that tells a core's lanes whether to report their accesses.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::context::Context;

thread_local! {
    /// The context that this core's lanes report to; null while a launch needs no reports. Then an access costs one
    /// comparison. Thread-local, because a kernel's loop reads it in one instruction. The address of a `static` of
    /// another crate must be loaded first.
    static LISTENER: Cell<*const Context> = const { Cell::new(ptr::null()) };
}

/// The number of cores whose lanes report their accesses.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// The context of the running lane, if it reports its accesses. The context outlives the lane, whose functions must not
/// keep the reference longer. Lanes pass it on, because getting it is a call, and the caller saves registers before a
/// call.
#[inline(always)]
pub(super) fn listener<'a>() -> Option<&'a Context> {
    // Without optimization, getting a thread-local variable takes longer than the rest of an access.
    if cfg!(debug_assertions) && LISTENING.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // Without optimization, `LocalKey::get` and `is_null` are further calls. There is no error: the variable has no
    // destructor.
    let Ok(context) = LISTENER.try_with(Cell::get) else { return None };
    if context as usize == 0 {
        return None;
    }
    // SAFETY: `Listening` has set it to a context that it borrows until it resets it. The context is only borrowed
    // shared.
    Some(unsafe { &*context })
}

/// Lanes on this core report their accesses until this guard is dropped.
pub(crate) struct Listening<'a>(PhantomData<&'a Context>);

impl<'a> Listening<'a> {
    pub(crate) fn begin(context: &'a Context) -> Self {
        LISTENING.fetch_add(1, Ordering::Relaxed);
        LISTENER.set(context);
        Self(PhantomData)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        LISTENER.set(ptr::null());
        LISTENING.fetch_sub(1, Ordering::Relaxed);
    }
}
