//! A value of each process.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made once in each process. A child that was forked makes its own; its parent's is leaked in it.
///
/// This uses no lock, which another thread might have held during the fork.
pub struct PerProcess<T: 'static> {
    current: AtomicPtr<Made<T>>,
}

struct Made<T> {
    process: u32,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// A value that was not made yet.
    pub const fn new() -> Self {
        Self { current: AtomicPtr::new(ptr::null_mut()) }
    }

    /// This process' value. `make` makes it, if there is none. If several threads make one at the same time, one is
    /// taken, and the others are dropped.
    pub fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let process = std::process::id();
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or that of a value that is never freed.
        if let Some(made) = unsafe { current.as_ref() }
            && made.process == process
        {
            return &made.value;
        }
        let new = Box::into_raw(Box::new(Made { process, value: make() }));
        match self.current.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: no code frees the value from here on.
            Ok(_) => unsafe { &(*new).value },
            Err(other) => {
                // SAFETY: `new` was made above, and is in no other place.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: another thread of this process has stored its value, which is never freed.
                unsafe { &(*other).value }
            }
        }
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn all_threads_get_one_value() {
        static VALUE: PerProcess<usize> = PerProcess::new();
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let barrier = Barrier::new(8);
        let get = || {
            barrier.wait();
            VALUE.get_or_make(|| MADE.fetch_add(1, Ordering::Relaxed))
        };
        let found: Vec<&usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|value| ptr::eq(*value, found[0])), "{found:?}");
    }
}
