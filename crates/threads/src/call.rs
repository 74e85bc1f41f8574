//! A call, and the threads that work on it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is called with the number of each part.
pub(crate) type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// A call of [`run`](crate::run).
pub(crate) struct Call {
    work: &'static Work<'static>,
    parts: usize,
    /// The next part that nobody works on.
    next: AtomicUsize,
    helpers: Mutex<Helpers>,
    done: Condvar,
}

/// The threads of the pool that work on a call.
#[derive(Default)]
struct Helpers {
    working: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Call {
    /// A call of `work` for each part.
    ///
    /// # Safety
    /// `work` exists until [`Call::wait`] has returned, and nobody calls [`Call::begin`] after that.
    pub unsafe fn new(parts: usize, work: &Work<'_>) -> Self {
        // SAFETY: only the lifetime changes. All uses are between `begin` and the end of `help`, or in `work`, which
        // the caller calls; and `wait` waits for the former.
        let work = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        Self { work, parts, next: AtomicUsize::new(0), helpers: Mutex::default(), done: Condvar::new() }
    }

    /// Works on parts until none is left.
    pub fn work(&self) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return;
            }
            (self.work)(part);
        }
    }

    /// Leaves no part for others.
    pub fn stop(&self) {
        self.next.store(self.parts, Ordering::Relaxed);
    }

    /// Counts a thread that will [`help`](Call::help).
    pub fn begin(&self) {
        self.helpers().working += 1;
    }

    /// Works on a thread of the pool, after [`Call::begin`].
    pub fn help(&self) {
        let end = panic::catch_unwind(AssertUnwindSafe(|| self.work()));
        let mut helpers = self.helpers();
        if let Err(payload) = end {
            self.stop();
            helpers.panic.get_or_insert(payload);
        }
        helpers.working -= 1;
        if helpers.working == 0 {
            self.done.notify_all();
        }
    }

    /// Waits for the threads that help. Returns the panic of one of them.
    pub fn wait(&self) -> Option<Box<dyn Any + Send>> {
        let is_working = |helpers: &mut Helpers| helpers.working > 0;
        let end = self.done.wait_while(self.helpers(), is_working);
        end.unwrap_or_else(PoisonError::into_inner).panic.take()
    }

    fn helpers(&self) -> MutexGuard<'_, Helpers> {
        self.helpers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
