//! The threads that run blocks.
//!
//! They are the executor's own, and do nothing else. A kernel may use rayon or wait for something: were its lane on a
//! thread of a work-stealing pool, that thread would meanwhile start other work, a second block perhaps, on the lane's
//! stack. Nor does it matter what the caller's thread is doing, such as unwinding.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use crate::worker::Worker;

/// What each core does for a launch.
type Work<'a> = dyn Fn(&Worker) + Sync + 'a;

/// How a core says that it is done with its part of a launch, and whether it panicked.
type Done = Result<(), Box<dyn Any + Send>>;

struct Task {
    work: &'static Work<'static>,
    done: Sender<Done>,
}

struct Cores {
    tasks: Mutex<Sender<Task>>,
    count: usize,
}

/// How many cores do work for which there shall be no more than `most`.
pub(crate) fn parts(most: u64) -> usize {
    let count = cores().count;
    usize::try_from(most).map_or(count, |most| most.min(count))
}

/// Has up to `most` cores do `work`, and waits until they have.
///
/// # Panics
/// If `work` does, with its panic.
pub(crate) fn run(most: u64, work: &Work<'_>) {
    let cores = cores();
    let parts = parts(most);
    // SAFETY: only the lifetime changes. Each task holds a sender of `done` and drops it after its last use of `work`;
    // the loop below ends when all of them are gone, so `work` outlives its uses. Between here and there nothing
    // returns or unwinds: a task that cannot be sent is dropped, and a lock that is poisoned is taken all the same.
    let work = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
    let (sender, done) = channel();
    {
        let tasks = cores.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..parts {
            // It cannot fail: the threads that receive never end.
            let _ = tasks.send(Task { work, done: sender.clone() });
        }
    }
    drop(sender);
    let mut panicked = None;
    for end in done {
        panicked = panicked.or(end.err());
    }
    if let Some(payload) = panicked {
        panic::resume_unwind(payload);
    }
}

fn cores() -> &'static Cores {
    static CORES: OnceLock<Cores> = OnceLock::new();
    CORES.get_or_init(|| {
        // At most 16: a thread may hold 1024 stacks, each two mappings, and Linux allows a process 65530.
        let wanted = thread::available_parallelism().map_or(1, usize::from).min(16);
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let count = (0..wanted).take_while(|&i| start(i, Arc::clone(&receiver))).count();
        assert!(count > 0, "a process can start a thread");
        Cores { tasks: Mutex::new(sender), count }
    })
}

/// Starts a thread, if the system has one to give.
fn start(number: usize, tasks: Arc<Mutex<Receiver<Task>>>) -> bool {
    let work = move || {
        let mut worker = Worker::new();
        loop {
            let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Task { work, done }) = next else {
                return;
            };
            let end = panic::catch_unwind(AssertUnwindSafe(|| work(&worker)));
            if end.is_err() && worker.is_in_block() {
                // A defect of the executor, as kernels' panics do not come this far. Lanes are still on their stacks,
                // with borrows of what ends when the caller goes on: a thread that one of them has started may use it.
                eprintln!("error: the executor has failed inside of a block, and cannot go on");
                std::process::abort();
            }
            if end.is_err() {
                worker = Worker::new();
            }
            // The caller has gone only if its thread was killed.
            let _ = done.send(end);
        }
    };
    thread::Builder::new().name(format!("simt-{number}")).spawn(work).is_ok()
}
