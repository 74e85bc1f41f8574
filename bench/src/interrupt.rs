//! Handles Ctrl-C, and the signal of `timeout` and `kill`. The first one ends the run after the current kernel, and
//! prints the results so far; another one, at least a second later, ends it at once. (`timeout` sends two, to the
//! program and to its group.)

use std::process;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time of the first signal.
static INTERRUPTED: OnceLock<Instant> = OnceLock::new();

/// A signal within this time after the first counts as the same.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The exit code of a program that was ended by Ctrl-C, by the shells' convention.
pub const EXIT_CODE: u8 = 130;

/// Catches Ctrl-C and SIGTERM from now on; see [`is_pending`].
pub fn catch() {
    // If they cannot be caught, they end the program as usual.
    let _ = ctrlc::set_handler(|| match INTERRUPTED.get() {
        None => {
            INTERRUPTED.get_or_init(Instant::now);
            eprintln!("stopping after this kernel; again to stop now");
        }
        Some(first) if first.elapsed() < MIN_INTERVAL => {}
        Some(_) => process::exit(EXIT_CODE.into()),
    });
}

/// Whether the run should end.
pub fn is_pending() -> bool {
    INTERRUPTED.get().is_some()
}
