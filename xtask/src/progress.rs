//! Progress messages during long work.

use std::io::{self, IsTerminal};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The interval between two messages.
const INTERVAL: Duration = Duration::from_secs(8);

/// Runs a program with its output shown, and returns its exit code. Prints progress messages as [`with_progress`] does.
pub fn run(command: &mut Command, what: &str) -> anyhow::Result<u8> {
    with_progress(what, || crate::workspace::exit_code(command))
}

/// Runs `work`. Every few seconds, prints that `what` is still running, because a compiler may take a minute for one
/// crate. Prints nothing on a terminal, where cargo shows a progress bar.
pub fn with_progress<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let start = Instant::now();
            while !io::stderr().is_terminal() && is_done.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                eprintln!("xtask: {what}, for {} seconds so far", start.elapsed().as_secs());
            }
        });
        let result = work();
        drop(done);
        result
    })
}
