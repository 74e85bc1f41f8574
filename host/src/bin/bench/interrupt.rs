//! Ctrl-C, or what `timeout` and `kill` send: the first ends the run after the kernel that is being measured, with what was
//! measured so far; the second ends it at once.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit code of a program that Ctrl-C has ended, by the shells' convention.
const EXIT_CODE: i32 = 130;

/// From here on Ctrl-C and SIGTERM are asked for, by [`is_pending`].
pub fn catch() {
    // Where they cannot be had, they end the program as they do any other.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            process::exit(EXIT_CODE);
        }
        eprintln!("stopping after this kernel; again to stop now");
    });
}

/// Whether the run should end.
pub fn is_pending() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
