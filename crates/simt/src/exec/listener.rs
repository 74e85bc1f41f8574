//! The switch that tells a core's lanes whether to report their accesses.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::context::Context;

thread_local! {
    /// Thread-local, because a kernel's loop reads it in one instruction. The address of a `static` of another crate
    /// must be loaded first.
    static CURRENT: Listener = const { Listener(Cell::new(ptr::null())) };
}

/// The number of cores whose lanes report their accesses.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// The context that a core's lanes report to; null while a launch needs no reports. Then an access costs one
/// comparison.
pub(crate) struct Listener(Cell<*const Context>);

impl Listener {
    /// This core's listener, if the lanes report their accesses. Lanes pass it on, because getting it is a call, and
    /// the caller saves registers before a call.
    #[inline(always)]
    pub(crate) fn if_on<'a>() -> Option<&'a Self> {
        // Without optimization, getting a thread-local variable takes longer than the rest of an access.
        if cfg!(debug_assertions) && LISTENING.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let listener = Self::current();
        if listener.0.get() as usize == 0 { None } else { Some(listener) }
    }

    #[inline(always)]
    fn current<'a>() -> &'a Self {
        // Without optimization, `LocalKey::with` takes three times as long. There is no error: the listener has no
        // destructor.
        let Ok(listener) = CURRENT.try_with(ptr::from_ref) else { unreachable!() };
        // SAFETY: the listener has no destructor, so it exists until its thread ends. It stays on its thread, because
        // it is not `Sync`.
        unsafe { &*listener }
    }

    #[inline(always)]
    pub(crate) fn context(&self) -> Option<&Context> {
        let context = self.0.get();
        if context as usize == 0 {
            return None;
        }
        // SAFETY: `Listening` has set it to a context that it borrows until it resets it. The context is only borrowed
        // shared.
        Some(unsafe { &*context })
    }
}

/// Lanes on this core report their accesses until this guard is dropped.
pub(crate) struct Listening<'a>(PhantomData<&'a Context>);

impl<'a> Listening<'a> {
    pub(crate) fn begin(context: &'a Context) -> Self {
        LISTENING.fetch_add(1, Ordering::Relaxed);
        Listener::current().0.set(context);
        Self(PhantomData)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        Listener::current().0.set(ptr::null());
        LISTENING.fetch_sub(1, Ordering::Relaxed);
    }
}
