//! Ctrl-C, or what `timeout` and `kill` send: the first ends the run after the kernel that is being measured, with what
//! was measured so far; another one, a second later or more, ends it at once. (`timeout` sends two, to the program and
//! to its group.)

use std::process;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When the first one came.
static INTERRUPTED: OnceLock<Instant> = OnceLock::new();

/// What comes sooner than this after the first belongs to it.
const APART: Duration = Duration::from_secs(1);

/// The exit code of a program that Ctrl-C has ended, by the shells' convention.
pub const EXIT_CODE: u8 = 130;

/// From here on Ctrl-C and SIGTERM are asked for, by [`is_pending`].
pub fn catch() {
    // Where they cannot be had, they end the program as they do any other.
    let _ = ctrlc::set_handler(|| match INTERRUPTED.get() {
        None => {
            INTERRUPTED.get_or_init(Instant::now);
            eprintln!("stopping after this kernel; again to stop now");
        }
        Some(first) if first.elapsed() < APART => {}
        Some(_) => process::exit(EXIT_CODE.into()),
    });
}

/// Whether the run should end.
pub fn is_pending() -> bool {
    INTERRUPTED.get().is_some()
}
