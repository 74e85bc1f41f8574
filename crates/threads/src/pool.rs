//! The threads of a process.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::call::{Call, Work};
use crate::{PerProcess, max};

static POOL: PerProcess<Pool> = PerProcess::new();

thread_local! {
    /// Whether this thread works on a part.
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// A call for each thread that is wanted for it.
    wanted: VecDeque<Arc<Call>>,
    threads: usize,
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for helpers, and starts threads if there are fewer. What threads the system refuses, the caller does
    /// without.
    fn ask(&'static self, call: &Arc<Call>, helpers: usize) {
        let mut state = self.state();
        while state.threads < helpers && self.start(state.threads) {
            state.threads += 1;
        }
        for _ in 0..helpers.min(state.threads) {
            state.wanted.push_back(Arc::clone(call));
            self.changed.notify_one();
        }
    }

    /// Starts a thread. Returns false if the system refuses.
    fn start(&'static self, number: usize) -> bool {
        thread::Builder::new().name(format!("warpfold-{number}")).spawn(move || self.help()).is_ok()
    }

    /// What a thread of the pool does.
    fn help(&self) {
        WORKS.set(true);
        loop {
            let is_idle = |state: &mut State| state.wanted.is_empty();
            let mut state = self.changed.wait_while(self.state(), is_idle).unwrap_or_else(PoisonError::into_inner);
            let Some(call) = state.wanted.pop_front() else { continue };
            // Before the lock is released: the caller, who waits for those who have begun, takes back the others first.
            call.begin();
            drop(state);
            call.help();
        }
    }

    /// Takes back what nobody has begun.
    fn take_back(&self, call: &Arc<Call>) {
        self.state().wanted.retain(|other| !Arc::ptr_eq(other, call));
    }
}

/// Calls `work` with each number below `parts`, on the caller's thread and on at most [`max`] threads in all. Parts
/// begin in the order of their numbers. A call from within a part works on its own thread alone.
///
/// # Panics
/// If `work` panics, with the same payload; parts that nobody has begun are then left out.
pub fn run(parts: usize, work: &Work<'_>) {
    let helpers = parts.min(max().get()).saturating_sub(1);
    if helpers == 0 || WORKS.get() {
        return (0..parts).for_each(work);
    }
    let pool = POOL.get_or_make(Pool::default);
    // SAFETY: nothing before `wait` returns or unwinds, since the work of the caller's thread is caught. Threads of the
    // pool begin with calls that are wanted, and `take_back` leaves none.
    let call = Arc::new(unsafe { Call::new(parts, work) });
    pool.ask(&call, helpers);
    WORKS.set(true);
    let end = panic::catch_unwind(AssertUnwindSafe(|| call.work()));
    WORKS.set(false);
    if end.is_err() {
        call.stop();
    }
    pool.take_back(&call);
    let panicked = call.wait();
    if let Some(payload) = end.err().or(panicked) {
        panic::resume_unwind(payload);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_part_is_called_once() {
        crate::set_max(NonZero::new(4).unwrap());
        for parts in [0, 1, 2, 3, 100] {
            let calls: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            run(parts, &|part| {
                calls[part].fetch_add(1, Ordering::Relaxed);
            });
            assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == 1), "{calls:?}");
        }
        // Two parts that wait for each other are on two threads. A call within a part has one.
        let barrier = Barrier::new(2);
        run(2, &|_| {
            barrier.wait();
            let own = thread::current().id();
            run(3, &|_| assert_eq!(thread::current().id(), own));
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        crate::set_max(NonZero::new(4).unwrap());
        for panicking in 0..4 {
            let work = |part| assert_ne!(part, panicking, "this one");
            let end = panic::catch_unwind(|| run(4, &work));
            assert!(end.unwrap_err().downcast_ref::<String>().unwrap().contains("this one"));
        }
        let calls = AtomicUsize::new(0);
        run(8, &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.into_inner(), 8);
    }

    #[test]
    fn many_threads_call_at_the_same_time() {
        crate::set_max(NonZero::new(4).unwrap());
        let sum = AtomicUsize::new(0);
        let work = |part| {
            sum.fetch_add(part, Ordering::Relaxed);
        };
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..200).for_each(|_| run(5, &work)));
            }
        });
        assert_eq!(sum.into_inner(), 8 * 200 * 10);
    }
}
