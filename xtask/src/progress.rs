//! Progress messages of long work, at least every ten seconds.

use std::io::{self, IsTerminal};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time without output.
const SILENCE: Duration = Duration::from_secs(8);

/// Runs a program to its end, with its output shown, and returns its exit code. Every few seconds a line says that
/// `what` is still running, because a compiler may take a minute for one crate. On a terminal, where cargo shows a
/// progress bar, there are no such lines.
pub fn run(command: &mut Command, what: &str) -> anyhow::Result<u8> {
    while_saying(what, || crate::workspace::exit_code(command))
}

/// Runs `work`, and says every few seconds that `what` is still running.
pub fn while_saying<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let start = Instant::now();
            while !io::stderr().is_terminal() && is_done.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("xtask: {what}, for {} seconds so far", start.elapsed().as_secs());
            }
        });
        let result = work();
        drop(done);
        result
    })
}
