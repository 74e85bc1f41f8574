//! Who hears what a core's lanes do with memory.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use crate::context::Context;

thread_local! {
    /// It is a core's own, as a kernel's loop gets at a thread's memory in one instruction: a `static` of another crate
    /// has an address that must be loaded first.
    static OWN: Listener = const { Listener(Cell::new(ptr::null())) };
}

/// Whom a core's lanes tell what they do with memory: its context, while a launch wants to know; else null. Then to say
/// it costs a look at this.
pub(crate) struct Listener(Cell<*const Context>);

impl Listener {
    /// This core's. Lanes hand it on: to get at it is a call, before which whoever makes it saves registers.
    #[inline(always)]
    pub(crate) fn own<'a>() -> &'a Self {
        // SAFETY: it has no destructor, so it is there until its thread ends, and no other one gets it: it is not
        // `Sync`.
        unsafe { &*OWN.with(ptr::from_ref) }
    }

    #[inline(always)]
    pub(crate) fn is_there(&self) -> bool {
        !self.0.get().is_null()
    }

    #[inline(always)]
    pub(crate) fn context(&self) -> Option<&Context> {
        // SAFETY: `Hearing` has set it to a context that it borrows until it takes it back. It is only ever borrowed
        // shared.
        unsafe { self.0.get().as_ref() }
    }
}

/// This core's lanes are heard, until it is dropped.
pub(crate) struct Hearing<'a>(PhantomData<&'a Context>);

impl<'a> Hearing<'a> {
    pub(crate) fn begin(context: &'a Context) -> Self {
        Listener::own().0.set(context);
        Self(PhantomData)
    }
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        Listener::own().0.set(ptr::null());
    }
}
