//! The threads that run blocks.
//!
//! They belong to the executor and do nothing else. A kernel may use rayon, or block. A thread of a work-stealing pool
//! could meanwhile start other work, even a second block, on the lane's stack. The state of the caller's thread does
//! not matter either: it may be unwinding.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use threads::PerProcess;

use super::fibres::panic_message;
use super::worker::Worker;

/// The work of each thread for a launch.
type Work<'a> = dyn Fn(&Worker) + Sync + 'a;

/// A thread's result: its panic, if it panicked.
type Done = Result<(), Box<dyn Any + Send>>;

struct Task {
    work: &'static Work<'static>,
    done: Sender<Done>,
}

struct Pool {
    tasks: Mutex<Sender<Task>>,
    threads: usize,
}

/// The number of threads that [`run`] uses, given at most `limit`.
pub(crate) fn threads(limit: u64) -> usize {
    let threads = pool().threads;
    usize::try_from(limit).map_or(threads, |limit| limit.min(threads))
}

/// Runs `work` on at most `limit` threads, and waits for them.
///
/// # Panics
/// If `work` panics, with the same payload.
pub(crate) fn run(limit: u64, work: &Work<'_>) {
    let pool = pool();
    let threads = threads(limit);
    // SAFETY: only the lifetime changes. Each task holds a sender of `done`, which it drops after its last use of
    // `work`. The loop below ends when all senders are gone, so `work` outlives its uses. Nothing before it returns or
    // unwinds: a task that cannot be sent is dropped, and a poisoned lock is taken.
    let work = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
    let (sender, done) = channel();
    {
        let tasks = pool.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..threads {
            // This cannot fail: the receiving threads never end.
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

/// The pool of this process: the threads of its parent are not in a forked child.
fn pool() -> &'static Pool {
    static POOL: PerProcess<Pool> = PerProcess::new();
    POOL.get_or_make(Pool::new)
}

impl Pool {
    fn new() -> Self {
        // At most 16 threads: each may hold 1024 stacks, and a stack takes two of the 65530 mappings that Linux allows
        // per process.
        let wanted = thread::available_parallelism().map_or(1, usize::from).min(16);
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = (0..wanted).take_while(|&i| start(i, Arc::clone(&receiver))).count();
        assert!(threads > 0, "a process can start a thread");
        Self { tasks: Mutex::new(sender), threads }
    }
}

/// Starts a thread. Returns false if the system refuses.
fn start(number: usize, tasks: Arc<Mutex<Receiver<Task>>>) -> bool {
    let work = move || {
        let mut worker = Worker::new();
        loop {
            let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Task { work, done }) = next else { return };
            let end = panic::catch_unwind(AssertUnwindSafe(|| work(&worker)));
            if let Err(payload) = &end
                && worker.is_in_block()
            {
                // A defect of the executor: panics of kernels are caught earlier. Lanes are still on their stacks, and
                // borrow what the caller would free. Threads that they have started may use it. The panic's hook has
                // printed nothing, because it takes a panic in a block for a lane's.
                let (message, place) = (panic_message(&**payload), worker.take_panic_location());
                eprintln!("error: the executor has failed inside a block, and cannot continue: {message} ({place})");
                std::process::abort();
            }
            if end.is_err() {
                worker = Worker::new();
            }
            // This fails only if the caller's thread was killed.
            let _ = done.send(end);
        }
    };
    thread::Builder::new().name(format!("simt-{number}")).spawn(work).is_ok()
}
