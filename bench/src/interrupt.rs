//! Handles Ctrl-C, and SIGTERM, which `timeout` and `kill` send. The first signal ends the run after the current
//! kernel, and the results so far are printed. A second signal, at least a second later, ends the program at once.
//! (`timeout` sends two at once, to the program and to its process group.)

use std::process;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time of the first signal.
static INTERRUPTED: OnceLock<Instant> = OnceLock::new();

/// Signals within this time after the first are ignored.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The exit code of a program that was ended by Ctrl-C, by convention of shells.
pub const EXIT_CODE: u8 = 130;

/// Catches Ctrl-C and SIGTERM from now on; see [`is_pending`].
pub fn catch() {
    // If the signals cannot be caught, they end the program as usual.
    let _ = ctrlc::set_handler(|| match INTERRUPTED.get() {
        None => {
            INTERRUPTED.get_or_init(Instant::now);
            eprintln!("stopping after this kernel; press Ctrl-C again to stop at once");
        }
        Some(first) if first.elapsed() < MIN_INTERVAL => {}
        Some(_) => process::exit(EXIT_CODE.into()),
    });
}

/// Whether the run should end.
pub fn is_pending() -> bool {
    INTERRUPTED.get().is_some()
}
